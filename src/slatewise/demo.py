"""``slatewise demo``: what the structure of a list is worth on embedded data, in one table and one page.

Each system against what one would do without it: items scored by themselves, a distance or a matching that was not
learned. Where the problem is generated the best possible ranking is known, and stands beside the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from slatewise import (
    BestFeatureRanker,
    CStarRanker,
    GraphMatcher,
    LatentRanker,
    MarginRanker,
    MatchingRanker,
    MetricRanker,
    metrics,
)
from slatewise.datasets import (
    edge_features,
    make_interacting_lists,
    make_label_scenes,
    make_queries,
    make_sessions,
    make_silhouettes,
)
from slatewise.report import Page, bars, points

Floats: TypeAlias = NDArray[np.float64]
_datasets: Any = import_module("sklearn.datasets")
COLUMNS = ["system", "problem", "measure", "independent", "structured", "best possible"]


@dataclass(frozen=True)
class DemoRow:
    """One problem, measured with and without a system; ``best`` is None where nobody knows it."""

    system: str
    problem: str
    measure: str
    independent: float
    structured: float
    best: float | None
    story: str
    picture: str = ""
    """An SVG, where people would rather look."""


@dataclass(frozen=True)
class Demo:
    """The demo's table, as cells and as a page."""

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

    def page(self) -> Page:
        """Return the report."""
        page = Page("slatewise demo")
        page.paragraph("What a list is worth beyond its items: each system against doing without it.")
        page.table("Mean over test lists", COLUMNS, self.cells())
        page.figure(
            bars(
                [f"{row.problem}\n{row.system}" for row in self.rows],
                {
                    COLUMNS[3]: [row.independent for row in self.rows],
                    COLUMNS[4]: [row.structured for row in self.rows],
                    COLUMNS[5]: [np.nan if row.best is None else row.best for row in self.rows],
                },
                "mean over test lists",
            ),
            "Larger is better. The third bar is the best possible ranking, where the generator knows it.",
        )
        for row in self.rows:
            page.heading(f"{row.system}: {row.problem}")
            page.paragraph(row.story)
            if row.picture:
                page.figure(row.picture, f"{row.problem}: test rows before and after.")
        return page


def run_demo(random_state: int = 0) -> Demo:
    """Generate, train, measure; some seconds."""
    return Demo(
        [
            _interacting(random_state),
            _scenes(random_state),
            _retrieval("wine", _datasets.load_wine, random_state),
            _retrieval("breast cancer", _datasets.load_breast_cancer, random_state),
            *_queries(random_state),
            _keypoints(random_state),
            _sessions(random_state),
        ]
    )


def _interacting(seed: int) -> DemoRow:
    lists = make_interacting_lists(n_lists=1500, random_state=seed)
    alone, joint = _alone_and_joint(lists.X, lists.Y, n_train=1000, core=len(lists.core))
    return DemoRow(
        "CStarRanker",
        "interacting items",
        f"p@{lists.k}",
        alone,
        joint,
        1.0,
        "A few core items attract or repel others. Scored by themselves, the best items are not the best selection; "
        "trying every subset of the core finds it exactly.",
    )


def _scenes(seed: int) -> DemoRow:
    scenes = make_label_scenes(n_rows=1500, random_state=seed)
    alone, joint = _alone_and_joint(scenes.X, scenes.Y, n_train=1000, core=5)
    return DemoRow(
        "CStarRanker",
        "tags of a scene",
        "break-even precision",
        alone,
        joint,
        metrics.BreakEven(empty="skip")(scenes.Y[1000:], scenes.marginals(scenes.X[1000:])),
        "Tags that come together or exclude each other. The best possible ranking sorts by the true probability of "
        "every tag, which the generator knows.",
    )


def _retrieval(name: str, load: Callable[..., Any], seed: int) -> DemoRow:
    data = load()
    X, y = cast("Floats", data.data), cast("NDArray[np.int64]", data.target)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[len(y) // 3 :], order[: len(y) // 3]
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    learned = MetricRanker(loss="map", C=10.0).fit(X[train], y[train])
    relevance = (y[train] == y[test, None]).astype(np.int64)
    return DemoRow(
        "MetricRanker",
        name,
        "map",
        metrics.AP()(relevance, -cdist(X[test], X[train])),
        learned.score(X[test], y[test]),
        None,
        "Every test row asks for the training rows of its class. Independent: by Euclidean distance of standardised "
        f"features. Structured: by a distance trained for average precision, which needs {len(learned.components_)} "
        "directions.",
        _before_and_after(X[train], X[test], learned, [str(name) for name in data.target_names[y[test]]]),
    )


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
    measure = metrics.NDCG(k=10)

    def quality(ranker: BestFeatureRanker | MarginRanker | MatchingRanker) -> float:
        ranker.fit(queries.X[train], queries.y[train], qid=queries.qid[train])
        return measure(queries.y[test], ranker.predict(queries.X[test]), queries.qid[test])

    alone, best = quality(BestFeatureRanker()), measure(queries.y[test], queries.scores[test], queries.qid[test])
    story = (
        "Graded documents whose hidden scorer multiplies features. Independent: the best single feature. Structured: "
    )
    return [
        DemoRow(
            "MarginRanker",
            "documents of a query",
            "ndcg@10",
            alone,
            quality(MarginRanker("map", C=10.0)),
            best,
            story + "a linear score trained for average precision. No linear score reaches the hidden one.",
        ),
        DemoRow(
            "MatchingRanker",
            "documents of a query",
            "ndcg@10",
            alone,
            quality(MatchingRanker(M=3, repeats=2, random_state=seed)),
            best,
            story + "a linear score trained by the exact likelihood of small slates.",
        ),
    ]


def _keypoints(seed: int) -> DemoRow:
    pairs = make_silhouettes(n_pairs=60, n_points=12, largest_shear=0.8, noise=0.02, random_state=seed)
    edges = [edge_features(one, other) for one, other in zip(pairs.source, pairs.target, strict=True)]
    train, test = slice(0, 30), slice(30, 60)
    matcher = GraphMatcher(l2=0.01).fit(edges[train], list(pairs.matches[train]))
    truth = pairs.matches[test]
    unlearned = np.array([linear_sum_assignment(edge.sum(axis=2))[1] for edge in edges[test]], dtype=np.int64)
    learned = np.array(matcher.predict(edges[test]), dtype=np.int64)
    return DemoRow(
        "GraphMatcher",
        "points of sheared outlines",
        "share matched",
        _share(unlearned == truth),
        _share(learned == truth),
        None,
        "Which point of the sheared outline is which? Independent: the assignment with the closest shape contexts, all "
        "features alike. Structured: features weighted by the exact likelihood of whole matchings.",
    )


def _sessions(seed: int) -> DemoRow:
    made = make_sessions(n_sessions=8000, n_items=500, n_clusters=40, random_state=seed)
    pairs = made.sessions.pairs()
    cut = int(0.8 * len(pairs.queries))
    train, test = slice(0, cut), slice(cut, None)
    ranker = LatentRanker(n_components=16, stages=2, random_state=seed).fit(pairs.queries[train], pairs.items[train])
    queries, items = pairs.queries[test], pairs.items[test]
    best = np.any(made.best_next(queries, k=10) == items[:, None], axis=1)
    return DemoRow(
        "LatentRanker",
        "the next item of a session",
        "recall@10",
        ranker.recall(queries, items, [10], stage=0)[10],
        ranker.recall(queries, items, [10])[10],
        _share(best),
        "Independent: latent factors, every item by itself (stage 0). Structured: items that belong to the top of the "
        "list rise with it (stage 1), where validation says that this pays.",
    )


def _alone_and_joint(X: Floats, Y: NDArray[np.int8], n_train: int, core: int) -> tuple[float, float]:
    """Break-even precision on the rows after ``n_train`` of independent labels, and of ``core`` interacting ones."""
    alone, joint = (CStarRanker(core=size, C=10.0).fit(X[:n_train], Y[:n_train]) for size in (0, core))
    return alone.score(X[n_train:], Y[n_train:]), joint.score(X[n_train:], Y[n_train:])


def _share(right: NDArray[np.bool_]) -> float:
    return float(right.mean())
