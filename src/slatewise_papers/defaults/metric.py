"""``MetricRanker(loss)`` with default settings: the error of 3 nearest neighbors by its distance.

Wine, breast cancer, digits and iris, standardized by the training rows; five 80/20 splits of a seed that the tables of
the paper (:mod:`slatewise_papers.mlr`) never used. Beside it the distance before learning, scikit-learn's NCA with
its defaults, and "auc" with C chosen from a grid on a fifth of the training rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from slatewise.losses.training import NDCG, Precision, TrainingLoss
from slatewise.metric_learning.ranker import MetricRanker
from slatewise_papers.framework.reproduction import Row
from slatewise_papers.framework.running import expected_warnings, over_splits
from slatewise_papers.framework.statistics import mean_and_error
from slatewise_papers.mlr.data import ClassProblem, Fold, Map, inner_folds, load_problem, standard

DATA = ("uci-wine", "uci-wdbc", "digits", "iris")
LOSSES: dict[str, str | TrainingLoss] = {
    "'auc'": "auc",
    "Precision(k=3)": Precision(k=3),
    "'map'": "map",
    "'mrr'": "mrr",
    "NDCG(k=3)": NDCG(k=3),
    "'knn'": "knn",
}
GRID = (0.1, 1.0, 10.0, 100.0)
SPLITS = 5
_neighbors: Any = import_module("sklearn.neighbors")

Learn: TypeAlias = Callable[[Fold], Map]


def rows(quick: bool, seed: int) -> list[Row]:
    """Return one row a data set and method: the error in percent, mean and standard error over the splits."""
    table: list[Row] = []
    for name in DATA:
        problem = replace(_problem(name), n_splits=SPLITS)
        problem = problem.smaller() if quick else problem
        errors = over_splits(problem.folds(seed), errors_of_split, f"{name}: split", problem.n_splits)
        table += [Row(f"{name}: {method}", mean_and_error("error", values), None) for method, values in errors.items()]
    return table


def errors_of_split(fold: Fold) -> Iterator[tuple[str, float]]:
    """Learn with every method from the training rows, and yield its error."""
    scaled = fold.mapped(standard(fold.X))
    for method, learn in METHODS.items():
        with expected_warnings():
            learned = learn(scaled)
        yield method, error(scaled, learned)


def error(fold: Fold, learned: Map) -> float:
    """Return the error of 3 nearest neighbors on the test rows after the map, in percent."""
    nearest = _neighbors.KNeighborsClassifier(3).fit(_wide(learned(fold.X)), fold.y)
    found = np.asarray(nearest.predict(_wide(learned(fold.X_test))))
    return 100.0 * np.count_nonzero(found != fold.y_test) / len(found)


def _wide(rows: Any) -> Any:
    """Where W = 0 no column is left: all rows are then at the same place."""
    return rows if rows.shape[1] else np.zeros((len(rows), 1))


def _problem(name: str) -> ClassProblem:
    if name != "iris":
        return load_problem(name)
    X, y = import_module("sklearn.datasets").load_iris(return_X_y=True)
    return ClassProblem(name, X, y.astype(np.int64))


def _with_defaults(loss: str | TrainingLoss) -> Learn:
    return lambda fold: MetricRanker(loss).fit(fold.X, fold.y).transform


def _chosen(fold: Fold) -> Map:
    """C of "auc" by the error on a fifth of the training rows, of equals the first."""
    inner = next(iter(islice(inner_folds(fold), 1)))
    rankers = MetricRanker("auc").path(inner.X, inner.y, GRID)
    best = min(rankers, key=lambda ranker: error(inner, ranker.transform))
    return MetricRanker("auc", C=best.C).fit(fold.X, fold.y).transform


def _nca(fold: Fold) -> Map:
    return _neighbors.NeighborhoodComponentsAnalysis(random_state=0).fit(fold.X, fold.y).transform


METHODS: dict[str, Learn] = {
    "Euclidean": lambda fold: np.asarray,
    "NCA (scikit-learn)": _nca,
    **{f"MetricRanker({name})": _with_defaults(loss) for name, loss in LOSSES.items()},
    "MetricRanker('auc'), C chosen": _chosen,
}
