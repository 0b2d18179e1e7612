"""``slatewise demo``: what the structure of a list is worth on embedded data, in one table and one page.

Each system is compared with a baseline: items scored by themselves, or a distance or a matching that was not learned.
For generated problems the best possible ranking is shown too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from slatewise import (
    BestFeatureRanker,
    CStarMarginRanker,
    GraphMatcher,
    LatentRanker,
    MarginRanker,
    MatchingRanker,
    MetricRanker,
    metrics,
)
from slatewise.core.arrays import Floats
from slatewise.core.running.progress import track
from slatewise.datasets import (
    edge_features,
    make_interacting_lists,
    make_label_scenes,
    make_queries,
    make_sessions,
    make_silhouettes,
)
from slatewise.datasets.make_sessions import MadeSessions
from slatewise.labeling import simulate
from slatewise.matching import Slates
from slatewise.report import Page, bars, gains, lines, matchings, pair_graphs, points, slopes

_datasets: Any = import_module("sklearn.datasets")
COLUMNS = ["system", "problem", "measure", "baseline", "structured", "best possible"]


@dataclass(frozen=True)
class DemoRow:
    """One problem, measured with and without a system; ``best`` is None if it is not known."""

    system: str
    problem: str
    measure: str
    independent: float
    structured: float
    best: float | None
    story: str
    picture: str
    """An SVG."""
    caption: str


@dataclass(frozen=True)
class Demo:
    """The table of the demo, as cells and as a page."""

    rows: list[DemoRow]

    def cells(self) -> list[list[str]]:
        """Return the table's rows as text."""
        return [
            [
                row.system,
                row.problem,
                row.measure,
                f"{row.independent:.3f}",
                f"{row.structured:.3f}",
                "" if row.best is None else f"{row.best:.3f}",
            ]
            for row in self.rows
        ]

    def overview(self) -> str:
        """Return the table as a picture."""
        return bars(
            [f"{row.problem}\n{row.system}, {row.measure}" for row in self.rows],
            {
                COLUMNS[3]: [row.independent for row in self.rows],
                COLUMNS[4]: [row.structured for row in self.rows],
                COLUMNS[5]: [np.nan if row.best is None else row.best for row in self.rows],
            },
            "mean over test lists",
        )

    def page(self) -> Page:
        """Return the report."""
        page = Page("slatewise demo")
        page.paragraph("What a list is worth beyond its items: each system against doing without it.")
        page.table("Mean over test lists", COLUMNS, self.cells())
        page.figure(
            self.overview(),
            "Larger is better. The third bar is the best possible ranking, where the generator knows it.",
        )
        for row in self.rows:
            page.heading(f"{row.system}: {row.problem}")
            page.paragraph(row.story)
            page.figure(row.picture, row.caption)
        return page


def run_demo(random_state: int = 0) -> Demo:
    """Generate, train, measure; some seconds."""
    problems: list[Callable[[int], list[DemoRow]]] = [
        _interacting,
        _scenes,
        partial(_retrieval, "wine", _datasets.load_wine),
        partial(_retrieval, "breast cancer", _datasets.load_breast_cancer),
        _queries,
        _keypoints,
        _sessions,
    ]
    return Demo([row for problem in track(problems, "problem") for row in problem(random_state)])


def _interacting(seed: int) -> list[DemoRow]:
    lists = make_interacting_lists(n_lists=1500, random_state=seed)
    alone, joint = _alone_and_joint(lists.X, lists.Y, n_train=1000, core=lists.core.tolist(), C=100.0)
    graphs = {
        "as generated": _strongest_pairs(lists.core, lists.pair, 9),
        "as learned": _strongest_pairs(joint.core_, joint.pair_, 9),
    }
    return [
        DemoRow(
            "CStarMarginRanker",
            "interacting items",
            f"p@{lists.k}",
            alone.score(lists.X[1000:], lists.Y[1000:]),
            joint.score(lists.X[1000:], lists.Y[1000:]),
            1.0,
            "Three core items attract or repel others. Scored by themselves, the best items are not the best "
            "selection; trying every subset of the core finds it exactly. The core items are given here, and their "
            "interactions are learned.",
            pair_graphs(graphs),
            "The nine strongest pairs of items, named by number; the three core items are yellow. Wider is stronger.",
        )
    ]


def _strongest_pairs(core: NDArray[np.int64], pair: Floats, count: int) -> dict[tuple[str, str], float]:
    """Return the pairs (core label, other label) of largest weight, named by number; one of two core labels once."""
    weights = pair.copy()
    weights[np.arange(len(core)), core] = 0.0
    weights[:, core] = np.triu(weights[:, core])
    strongest = np.argsort(-np.abs(weights), axis=None, kind="stable")[:count]
    places = zip(*np.unravel_index(strongest, weights.shape), strict=True)
    return {(str(core[row]), str(label)): float(weights[row, label]) for row, label in places}


def _scenes(seed: int) -> list[DemoRow]:
    scenes = make_label_scenes(n_rows=1500, random_state=seed)
    X, Y = scenes.X[1000:], scenes.Y[1000:]
    alone, joint = _alone_and_joint(scenes.X, scenes.Y, n_train=1000, core=5, C=10.0)
    by_answers = {
        name: simulate(ranker, X, Y, questions=range(11)).mean()
        for name, ranker in (("independent", alone), ("structured", joint))
    }
    return [
        DemoRow(
            "CStarMarginRanker",
            "tags of a scene",
            "break-even",
            alone.score(X, Y),
            joint.score(X, Y),
            metrics.BreakEven(empty="skip")(Y, scenes.marginals(X)),
            "Tags that come together or exclude each other. The best possible ranking sorts by the true probability of "
            "every tag, which the generator knows.",
            lines(
                range(11),
                {name: list(means.values()) for name, means in by_answers.items()},
                "questions answered",
                "break-even precision",
            ),
            "A person answers questions about the tags that are most in doubt. With pair terms, an answer also "
            "changes the probabilities of other tags.",
        )
    ]


def _retrieval(name: str, load: Callable[..., Any], seed: int) -> list[DemoRow]:
    data = load()
    X, y = cast("Floats", data.data), cast("NDArray[np.int64]", data.target)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[len(y) // 3 :], order[: len(y) // 3]
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    learned = MetricRanker(loss="map", C=10.0).fit(X[train], y[train])
    relevance = (y[train] == y[test, None]).astype(np.int64)
    return [
        DemoRow(
            "MetricRanker",
            name,
            "map",
            metrics.AP()(relevance, -cdist(X[test], X[train])),
            learned.score(X[test], y[test]),
            None,
            "Every test row asks for the training rows of its class. Independent: by Euclidean distance of "
            "standardised features. Structured: by a distance trained for average precision, which needs "
            f"{len(learned.components_)} directions.",
            _before_and_after(X[train], X[test], learned, [str(name) for name in data.target_names[y[test]]]),
            "Test rows before and after, coloured by class.",
        )
    ]


def _before_and_after(X: Floats, X_test: Floats, learned: MetricRanker, classes: list[str]) -> str:
    _, _, directions = np.linalg.svd(X, full_matrices=False)
    panels = {
        "two principal components": (X_test @ directions[:2].T).tolist(),
        "two directions of the learned distance": np.pad(learned.transform(X_test), ((0, 0), (0, 2)))[:, :2].tolist(),
    }
    return points(panels, classes)


def _queries(seed: int) -> list[DemoRow]:
    queries = make_queries(n_queries=400, random_state=seed)
    train, test = queries.qid < 200, queries.qid >= 200
    y, qid = queries.y[test], queries.qid[test]
    measure = metrics.NDCG(k=10)
    rankers = {
        "best feature": BestFeatureRanker(),
        "margin": MarginRanker("map", C=10.0),
        "matching": MatchingRanker(Slates(3, repeats=2), random_state=seed),
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*lists are left out")  # a made list or two has a single rating
        for ranker in rankers.values():
            ranker.fit(queries.X[train], queries.y[train], qid=queries.qid[train])
    scores = {name: ranker.predict(queries.X[test]) for name, ranker in rankers.items()}
    scores["hidden scorer"] = queries.scores[test]
    alone, margin, matching, best = (measure(y, score, qid) for score in scores.values())
    depths = range(1, 11)
    by_depth = {name: [metrics.NDCG(k=depth)(y, score, qid) for depth in depths] for name, score in scores.items()}
    gained = measure.per_list(y, scores["matching"], qid) - measure.per_list(y, scores["best feature"], qid)
    story = (
        "Graded documents whose hidden scorer multiplies features. Independent: the best single feature. Structured: "
    )
    return [
        DemoRow(
            "MarginRanker",
            "graded documents",
            "ndcg@10",
            alone,
            margin,
            best,
            story + "a linear score trained for average precision. No linear score reaches the hidden one.",
            lines(depths, by_depth, "documents looked at", "ndcg"),
            "NDCG of the first documents only, by how many are looked at: mean over test queries.",
        ),
        DemoRow(
            "MatchingRanker",
            "graded documents",
            "ndcg@10",
            alone,
            matching,
            best,
            story + "a linear score trained by the exact likelihood of small slates.",
            gains(gained.tolist(), "test queries, the largest gain first", "gain in ndcg@10"),
            "What each test query gains over the best single feature.",
        ),
    ]


def _keypoints(seed: int) -> list[DemoRow]:
    pairs = make_silhouettes(n_pairs=60, n_points=12, largest_shear=0.8, noise=0.02, random_state=seed)
    edges = [edge_features(one, other) for one, other in zip(pairs.source, pairs.target, strict=True)]
    train, test = slice(0, 30), slice(30, 60)
    matcher = GraphMatcher(l2=0.01).fit(edges[train], list(pairs.matches[train]))
    truth = pairs.matches[test]
    unlearned = np.array([linear_sum_assignment(edge.sum(axis=2))[1] for edge in edges[test]], dtype=np.int64)
    learned = np.array(matcher.predict(edges[test]), dtype=np.int64)
    right = np.stack([unlearned == truth, learned == truth])
    shown = int(np.diff(right.sum(axis=2), axis=0).argmax())
    found = {"not learned": unlearned[shown].tolist(), "learned": learned[shown].tolist()}
    source, target = pairs.source[test][shown], pairs.target[test][shown]
    return [
        DemoRow(
            "GraphMatcher",
            "sheared outlines",
            "accuracy",
            _share(right[0]),
            _share(right[1]),
            None,
            "Which point of the sheared outline is which? Independent: the assignment with the closest shape contexts, "
            "all features alike. Structured: features weighted by the exact likelihood of whole matchings.",
            matchings(source.tolist(), target.tolist(), truth[shown].tolist(), found, outlines=True),
            "The test pair that gains most. Wrong matches are red.",
        )
    ]


def _sessions(seed: int) -> list[DemoRow]:
    made = make_sessions(n_sessions=8000, n_items=500, n_clusters=40, random_state=seed)
    pairs = made.sessions.pairs()
    cut = int(0.8 * len(pairs.queries))
    train, test = slice(0, cut), slice(cut, None)
    ranker = LatentRanker(n_components=16, stages=2, random_state=seed).fit(pairs.queries[train], pairs.items[train])
    queries, items = pairs.queries[test], pairs.items[test]
    best = np.any(made.best_next(queries, k=10) == items[:, None], axis=1)
    return [
        DemoRow(
            "LatentRanker",
            "next item",
            "recall@10",
            ranker.recall(queries, items, [10], stage=0)[10],
            ranker.recall(queries, items, [10])[10],
            _share(best),
            "Independent: latent factors, every item by itself (stage 0). Structured: items that belong to the top of "
            "the list rise with it (stage 1), where validation says that this pays.",
            *_list_before_and_after(ranker, made, queries),
        )
    ]


def _list_before_and_after(ranker: LatentRanker, made: MadeSessions, queries: NDArray[np.int64]) -> tuple[str, str]:
    """Draw the list that gains most of those of frequent queries; the likeliest items stand out."""
    items, counts = np.unique(queries, return_counts=True)
    common = items[np.argsort(-counts, kind="stable")[:50]]
    before, after = ranker.rank(common, 10, stage=0).ids, ranker.rank(common, 10).ids
    likeliest = made.best_next(common, k=10)
    hits = [(lists[:, :, None] == likeliest[:, None]).any(axis=2).sum(axis=1) for lists in (before, after)]
    row = int(np.argmax(hits[1] - hits[0]))
    names = [[f"item {item}" for item in items[row]] for items in (before, after, likeliest)]
    return (
        slopes(names[0], names[1], ("every item by itself", "with the top of the list"), good=names[2]),
        f"After item {common[row]}: the best ten before and after the stages, the list that "
        "gains most among the 50 most frequent items. Blue: the ten items that are truly likeliest.",
    )


def _alone_and_joint(
    X: Floats, Y: NDArray[np.int8], n_train: int, core: int | list[int], C: float
) -> tuple[CStarMarginRanker, CStarMarginRanker]:
    """Fit independent labels, and a core of interacting ones, on the first ``n_train`` rows."""
    alone, joint = (CStarMarginRanker(core=labels, C=C).fit(X[:n_train], Y[:n_train]) for labels in (0, core))
    return alone, joint


def _share(right: NDArray[np.bool_]) -> float:
    return float(right.mean())
