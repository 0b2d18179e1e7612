"""Retrieval by example: rank items by a learned distance from a query, on data that stand in for eHarmony's.

*speed-dating*: people rank those they met; relevant are mutual matches. Later events are the test, as eHarmony's later
interval was. *omniglot901*: drawings rank drawings; relevant are those of the same character. Characters of the test
are new, so that the distance is tested, not the memory of a class.

Everything but Euclidean is chosen (strength, regularizer) by MAP on held-out events or characters of the training part
and then learned again from all of it. SVM-MAP is the poster's: a weight for each ``(q - i)^2``, of any sign, learned by
:class:`slatewise.MarginRanker`; on drawings its lists have all relevant and 60 other items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from slatewise import datasets, metrics
from slatewise.core.arrays import Bools, Floats, Ints
from slatewise.datasets.records import ImageSet, MeetingSet
from slatewise.metric_learning.margin_ranker import MarginRanker
from slatewise.metric_learning.ranker import MetricRanker
from slatewise_papers.framework.reproduction import Published, Row
from slatewise_papers.framework.running import expected_warnings

RETRIEVAL = ("speed-dating", "omniglot901")
MEASURES = {
    "AUC": metrics.AUC(empty="skip"),
    "MAP": metrics.AP(empty="skip"),
    "MRR": metrics.RR(empty="skip"),
}
PAPER = Published(
    ("AUC", "MAP", "MRR", "rounds"),
    {
        "MLR-AUC": (0.612, 0.445, 0.466, 7.0),
        "MLR-MAP": (0.624, 0.453, 0.474, 23.0),
        "MLR-MRR": (0.616, 0.448, 0.469, 17.0),
        "SVM-MAP": (0.614, 0.447, 0.467, 36.0),
        "Euclidean": (0.522, 0.394, 0.414),
    },
)
PAPER_SIZES = {"users": 294832.0, "queries": 22391.0}
STRENGTHS = {"frobenius": (0.001, 0.01, 0.1, 1.0, 10.0), "trace": (0.1, 1.0, 10.0)}
SVM_STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
MOST_OTHERS = 60
DRAWERS = 12
_PASSES = 100
_decomposition: Any = import_module("sklearn.decomposition")


@dataclass(frozen=True, eq=False)
class Lists:
    """Pairs of points of one table: ``item[r]`` stands in the list of ``query[r]``, relevant or not."""

    X: Floats
    query: Ints
    item: Ints
    relevant: Bools

    def useful(self) -> Lists:
        """Leave out queries whose items are all relevant, or none."""
        hits, sizes = np.bincount(self.query, self.relevant), np.bincount(self.query)
        return self.part(((hits > 0) & (hits < sizes))[self.query])

    def part(self, rows: Any) -> Lists:
        """Keep some of the pairs."""
        return Lists(self.X, self.query[rows], self.item[rows], self.relevant[rows])

    def scores(self, W: Floats) -> Floats:
        """Return -(q - i)'W(q - i) of every pair."""
        images = self.X @ W
        squares = np.einsum("nd,nd->n", images, self.X)
        return 2.0 * (images @ self.X.T)[self.query, self.item] - squares[self.query] - squares[self.item]

    def measure(self, W: Floats, names: Sequence[str]) -> dict[str, float]:
        """Measure the ranking by W."""
        scores, relevance = self.scores(W), self.relevant.astype(np.float64)
        return {name: MEASURES[name](relevance, scores, self.query) for name in names}


class Retrieval(NamedTuple):
    """Lists to learn from, to choose by, to learn from once more, and to measure on."""

    inner: Lists
    validation: Lists
    train: Lists
    test: Lists

    @property
    def n_items(self) -> int:
        """Items of the training and test lists; those of one table may stand in both."""
        if self.train.X is self.test.X:
            return len(np.union1d(self.train.item, self.test.item))
        return len(np.unique(self.train.item)) + len(np.unique(self.test.item))


class Learned(NamedTuple):
    """W, and the rounds it took."""

    W: Floats
    rounds: int


def retrieval_rows(name: str, quick: bool) -> list[Row]:
    """Return the sizes, and one row a method."""
    data = _speed_dating(quick) if name == "speed-dating" else _drawings(quick)
    sizes = {
        "train": float(data.train.relevant.sum()),
        "test": float(data.test.relevant.sum()),
        "users": float(data.n_items),
        "queries": float(len(np.unique(data.test.query))),
    }
    rows = [Row(f"{name}: relevant pairs, users, queries", sizes, PAPER_SIZES)]
    for method in ("MLR-AUC", "MLR-MAP", "MLR-MRR", "SVM-MAP"):
        found = _svm_map(data, quick) if method == "SVM-MAP" else _metric(method, data, quick)
        measured = {**data.test.measure(found.W, list(MEASURES)), "rounds": float(found.rounds)}
        rows.append(Row(f"{name}: {method}", measured, PAPER.of(method)))
    plain = data.test.measure(np.eye(data.test.X.shape[1]), list(MEASURES))
    return [*rows, Row(f"{name}: Euclidean", plain, PAPER.of("Euclidean"))]


def _metric(method: str, data: Retrieval, quick: bool) -> Learned:
    loss: Any = method.removeprefix("MLR-").lower()
    best: tuple[float, dict[str, Any]] = (-1.0, {})
    with expected_warnings():
        for regularizer, strengths in list(STRENGTHS.items())[: 1 if quick else None]:
            # psi is the paper's, whose C are those of the grid.
            settings: dict[str, Any] = {"loss": loss, "regularizer": regularizer, "unlisted": "ignored", "pairs": "all"}
            rough: Any = MetricRanker(**settings, tol=1e-2, max_iter=_PASSES)
            for ranker in rough.path(
                data.inner.X, Cs=strengths[:3] if quick else strengths, relevance=_matrix(data.inner)
            ):
                value = data.validation.measure(ranker.metric_, ["MAP"])["MAP"]
                best = max(best, (value, {**settings, "C": ranker.C}), key=lambda one: one[0])
        ranker = MetricRanker(**best[1], tol=1e-2).fit(data.train.X, relevance=_matrix(data.train))
    return Learned(ranker.metric_, ranker.n_iter_)


def _svm_map(data: Retrieval, quick: bool) -> Learned:
    best = (-1.0, 1.0)
    with expected_warnings():
        for C in SVM_STRENGTHS[:2] if quick else SVM_STRENGTHS:
            value = data.validation.measure(_squares_ranker(data.inner, C).W, ["MAP"])["MAP"]
            best = max(best, (value, C))
        return _squares_ranker(data.train, best[1])


def _squares_ranker(lists: Lists, C: float) -> Learned:
    rng = np.random.default_rng(0)
    chance = rng.random(len(lists.query))
    others = np.bincount(lists.query, ~lists.relevant)[lists.query]
    few = lists.part(lists.relevant | (chance * others < MOST_OTHERS)).useful()
    features = (few.X[few.query] - few.X[few.item]) ** 2
    ranker = MarginRanker("map", C=C, tol=1e-2, max_iter=_PASSES).fit(features, few.relevant, qid=few.query)
    return Learned(-np.diag(ranker.coef_), ranker.n_iter_)


def _matrix(lists: Lists) -> csr_array:
    """Queries by items, with a stored 0 where an item is in the list and irrelevant."""
    size = len(lists.X)
    return csr_array((lists.relevant.astype(np.float64), (lists.query, lists.item)), shape=(size, size))


def _speed_dating(quick: bool) -> Retrieval:
    """Every event is one wave; the earlier half is for training, its last three for validation."""
    meetings = datasets.load("speed-dating", MeetingSet)
    known = meetings.partner >= 0
    query, item, wave = meetings.subject[known], meetings.partner[known], meetings.wave[known]
    half = int(np.median(wave))
    answers = meetings.people[:, meetings.feature_names != "gender"]  # the same for all items of a list
    early = np.unique(query[wave <= half])
    answered = np.isfinite(answers[early]).mean(axis=0) > 0.5
    answers = answers[:, answered]
    mean, spread = np.nanmean(answers[early], axis=0), np.nanstd(answers[early], axis=0)
    X = np.nan_to_num((answers - mean) / np.where(spread > 0, spread, 1.0))
    lists = Lists(X, query, item, meetings.match[known] == 1)
    parts = (wave <= half - 3, (wave > half - 3) & (wave <= half), wave <= half, wave > half)
    return Retrieval(*(lists.part(part).useful() for part in parts))


def _drawings(quick: bool) -> Retrieval:
    """Characters of the background set are for training and validation, of the evaluation set for the test."""
    drawings = datasets.load("omniglot901", ImageSet)
    sizes = (12, 8, 12) if quick else (100, 40, 100)
    rng = np.random.default_rng(0)
    background = rng.permutation(np.unique(drawings.y[~drawings.from_evaluation]))
    evaluation = rng.permutation(np.unique(drawings.y[drawings.from_evaluation]))
    inner, validation, test = (
        background[: sizes[0]],
        background[sizes[0] : sizes[0] + sizes[1]],
        evaluation[: sizes[2]],
    )
    kept = np.isin(drawings.y, np.concatenate([inner, validation, test])) & (drawings.drawer <= DRAWERS)
    y, images = drawings.y[kept], drawings.images(np.flatnonzero(kept))
    blocks = images.reshape(len(images), 15, 7, 15, 7).mean(axis=(2, 4)).reshape(len(images), -1)
    training = np.isin(y, inner)
    model = _decomposition.PCA(min(60, int(training.sum())), random_state=0).fit(blocks[training])
    X = np.asarray(model.transform(blocks), dtype=np.float64)
    parts = (inner, validation, np.concatenate([inner, validation]), test)
    return Retrieval(*(_same_character(X[np.isin(y, part)], y[np.isin(y, part)]) for part in parts))


def _same_character(X: Floats, y: Ints) -> Lists:
    """Every drawing ranks all others."""
    query, item = np.nonzero(~np.eye(len(y), dtype=np.bool_))
    return Lists(X, query.astype(np.int64), item.astype(np.int64), y[query] == y[item])
