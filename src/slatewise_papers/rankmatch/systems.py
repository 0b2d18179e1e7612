"""The systems of Figure 2: each learns from a fold's training lists, chooses on validation lists and scores the test.

RankMatch and DORM choose l2 by their loss on the validation lists; all others, and RankMatch its M, by the mean of
NDCG@1 to 10 there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from slatewise import metrics
from slatewise.core.arrays import Floats
from slatewise.core.groups import group_rows
from slatewise.core.running.executor import Executor
from slatewise.matching.slates.ranker import MOST_BY_DEFAULT
from slatewise.matching.slates.slates import RatedLists, drawn_slates
from slatewise.matching.slates.training import MakeProblem, Task, held_out_path
from slatewise.metric_learning.margin_ranker import MarginRanker
from slatewise_papers.framework.running import expected_warnings
from slatewise_papers.learners.adarank import fit_adarank
from slatewise_papers.learners.listnet import TopOneEntropy, fit_listnet
from slatewise_papers.rankmatch.data import Fold, Rows

System: TypeAlias = Callable[[Fold, int], Floats]
"""From a fold and a seed: one score a test row."""
Surrogate: TypeAlias = Literal["likelihood", "max-margin"]

L2 = (0.3, 0.1, 0.03, 0.01, 0.003, 1e-3, 3e-4, 1e-4)
TOLERANCE: Mapping[Surrogate, float] = {"likelihood": 1e-5, "max-margin": 1e-3}
STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)
LEAVES = (4, 8, 16)
DEPTHS = range(1, 11)
_LETOR = metrics.preset("letor")


class Slating(NamedTuple):
    """How RankMatch or DORM learn from lists; ``size`` None: as many documents as there are ratings."""

    surrogate: Surrogate
    fraction: float = 0.4
    size: int | None = None

    def fit(self, fold: Fold, seed: int) -> Floats:
        """Return theta for the l2 with the smallest loss on the validation lists."""
        train, validation = _rated(fold.train), _rated(fold.validation)
        ratings = np.unique(train.ratings)
        size = int(np.clip(len(ratings), 2, MOST_BY_DEFAULT)) if self.size is None else self.size
        c, draw = np.arange(size - 1, -1, -1, dtype=np.float64), partial(drawn_slates, self.fraction)
        task = Task(self.surrogate == "max-margin", ratings, c, size, draw, executor=Executor.of(None))
        shown = min(size, len(ratings))
        with expected_warnings():  # lists are left out as in the paper
            learned, judged = train.useful(size, shown), validation.useful(size, shown)
        return _best_of_path(task.problem, learned, judged, seed, TOLERANCE[self.surrogate])


def rankmatch(fraction: float = 0.4) -> System:
    """RankMatch, one document of each rating a slate."""
    return lambda fold, seed: fold.test.X @ Slating("likelihood", fraction).fit(fold, seed)


def dorm(fraction: float = 0.4) -> System:
    """The same slates, max-margin."""
    return lambda fold, seed: fold.test.X @ Slating("max-margin", fraction).fit(fold, seed)


def rankmatch_choosing(sizes: Sequence[int]) -> System:
    """RankMatch with the M that ranks the validation lists best."""

    def system(fold: Fold, seed: int) -> Floats:
        found = [Slating("likelihood", size=size).fit(fold, seed) for size in sizes]
        return fold.test.X @ max(found, key=_quality_of(fold.validation))

    return system


def whole_queries(fold: Fold, seed: int) -> Floats:
    """RankMatch on all documents of a query at once, a weight a rating: 0, 1, .."""
    train, validation = _rated(fold.train), _rated(fold.validation)
    ratings = np.unique(np.concatenate([train.ratings, validation.ratings]))
    weights = np.arange(len(ratings), dtype=np.float64)
    task = Task(False, ratings, weights, executor=Executor.of(None))
    with expected_warnings():  # lists of a single rating are left out
        learned, judged = train.useful(2, 2), validation.useful(2, 2)
    return fold.test.X @ _best_of_path(task.problem, learned, judged, seed, TOLERANCE["likelihood"])


def listnet(fold: Fold, seed: int) -> Floats:
    """Linear ListNet, stopped early."""
    del seed
    groups = group_rows(fold.train.qid, len(fold.train.y))
    loss = TopOneEntropy(groups.gather(fold.train.X), groups.gather(fold.train.y), groups.offsets)
    return fold.test.X @ fit_listnet(loss, _quality_of(fold.validation))


def adarank(measure: metrics.Measure) -> System:
    """AdaRank for a measure; a list that has none counts as ranked perfectly."""

    def system(fold: Fold, seed: int) -> Floats:
        del seed
        train, validation = fold.train, fold.validation

        def per_list(scores: Floats) -> Floats:
            return np.nan_to_num(measure.per_list(train.y, scores, train.qid), nan=1.0)

        def quality(params: Floats) -> float:
            return measure(validation.y, validation.X @ params, validation.qid)

        return fold.test.X @ fit_adarank(train.X, per_list, quality)

    return system


def margin(fold: Fold, seed: int) -> Floats:
    """SVM-MAP, with the C that ranks the validation lists best."""
    del seed
    found: list[tuple[float, MarginRanker]] = []
    for C in STRENGTHS:
        ranker = MarginRanker("map", C=C, tol=1e-2)
        with expected_warnings():  # of every C the same lists are left out
            ranker.fit(fold.train.X, fold.train.y, qid=fold.train.qid)
        found.append((mean_ndcg(fold.validation, ranker.predict(fold.validation.X)), ranker))
    return max(found, key=lambda pair: pair[0])[1].predict(fold.test.X)


def lambdarank(fold: Fold, seed: int) -> Floats:
    """LightGBM's boosted trees, stopped early, with the number of leaves that ranks the validation lists best."""
    lightgbm = import_module("lightgbm")
    train, validation = (_lightgbm_rows(lightgbm, rows) for rows in (fold.train, fold.validation))
    found: list[tuple[float, Any]] = []
    for leaves in LEAVES:
        settings = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "learning_rate": 0.05}
        settings |= {"num_leaves": leaves, "seed": seed, "num_threads": 1, "verbose": -1}
        stop = lightgbm.early_stopping(30, verbose=False)
        trees = lightgbm.train(settings, train, 500, valid_sets=[validation], callbacks=[stop])
        found.append((mean_ndcg(fold.validation, trees.predict(fold.validation.X)), trees))
    return np.asarray(max(found, key=lambda pair: pair[0])[1].predict(fold.test.X), dtype=np.float64)


def mean_ndcg(rows: Rows, scores: Floats) -> float:
    """Return the mean of NDCG@1 to 10 with LETOR's discount."""
    return float(np.mean([_LETOR.NDCG(k)(rows.y, scores, rows.qid) for k in DEPTHS]))


def _best_of_path(
    make_problem: MakeProblem, train: RatedLists, validation: RatedLists, seed: int, tol: float
) -> Floats:
    path = held_out_path(make_problem, train, validation, L2, seed, tol, max_iter=300)
    return min(path, key=lambda step: step.loss).found[0]


def _rated(rows: Rows) -> RatedLists:
    groups = group_rows(rows.qid, len(rows.y))
    return RatedLists.of(groups.gather(rows.X), groups.gather(rows.y), groups.offsets)


def _quality_of(rows: Rows) -> Callable[[Floats], float]:
    return lambda params: mean_ndcg(rows, rows.X @ params)


def _lightgbm_rows(lightgbm: Any, rows: Rows) -> Any:
    groups = group_rows(rows.qid, len(rows.y))
    sizes = np.diff(groups.offsets).tolist()
    return lightgbm.Dataset(groups.gather(rows.X), groups.gather(rows.y), group=sizes, free_raw_data=False)
