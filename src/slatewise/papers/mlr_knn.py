"""Nearest-neighbour errors of learned distances, every setting chosen inside the training rows.

A method is a list of settings and a way to learn one map of rows a setting; the learned distance is Euclidean after
the map. A setting is judged on inner folds by the mean error of 1, 3 and 5 nearest neighbours, which varies less than
that of 3 alone. Then the map is learnt again from all training rows, and its error of 3 neighbours on the test rows is
what the table shows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from slatewise.estimators.metric import MetricRanker
from slatewise.learners.mlcc import collapse_classes
from slatewise.learners.result import ConvergenceWarning
from slatewise.papers.mlr_data import Floats, Fold, Ints, inner_folds

NEIGHBOURS = 3
_TOLERANCE, _PASSES = 1e-2, 100
"""Rough fits: what counts here is the order of neighbours."""
_BASIS_ROWS = 100
_neighbours: Any = import_module("sklearn.neighbors")


class Setting(NamedTuple):
    """What is chosen on validation: the strength, the ranks (of a loss) or width (of a map), regulariser and kernel."""

    C: float = 1.0
    k: int = NEIGHBOURS
    regularizer: str = "frobenius"
    gamma: float = 0.0
    """Of an rbf kernel, times the total variance of the rows; 0: no kernel."""


Map: TypeAlias = Callable[[Floats], Floats]
Learn: TypeAlias = Callable[[Floats, Ints, Sequence[Setting]], "list[Map]"]


@dataclass(frozen=True)
class Method:
    """A way to learn maps."""

    name: str
    settings: tuple[Setting, ...]
    learn: Learn
    ours: bool = False


class Chosen(NamedTuple):
    """A setting, and its error on validation in percent."""

    method: Method
    setting: Setting
    error: float


def choose(method: Method, folds: Sequence[Fold]) -> Chosen:
    """Return the setting with the smallest mean error on the inner folds; of equals the first."""
    errors = np.array(
        [[_errors(learned, fold) for learned in _quiet(method, fold, method.settings)] for fold in folds]
    )  # (folds, settings, neighbours)
    means = errors.mean(axis=(0, 2))
    best = int(np.argmin(means))
    return Chosen(method, method.settings[best], float(means[best]))


def error_on_test(chosen: Chosen, fold: Fold) -> float:
    """Learn with the chosen setting from all training rows, and return the error on the test rows in percent."""
    (learned,) = _quiet(chosen.method, fold, [chosen.setting])
    return _errors(learned, fold)[1]


def validation_folds(fold: Fold) -> list[Fold]:
    """Cut the inner folds once, for all methods."""
    return list(inner_folds(fold))


def metric_ranking(name: str, loss: Any, strengths: Sequence[float], ks: Sequence[int] = (NEIGHBOURS,)) -> Method:
    """Metric learning to rank: a path of strengths for each k, and one with the paper's trace for the first."""
    # The trace of W asks for more strength than the sum of its squares, and larger ones take long.
    traced = tuple(Setting(C, ks[0], "trace") for C in strengths[-3:-1])
    return _metric_method(name, loss, (*(Setting(C, k) for k in ks for C in strengths), *traced))


def kernel_metric_ranking(name: str, loss: Any, strengths: Sequence[float], gammas: Sequence[float]) -> Method:
    """Metric learning to rank in the feature space of an rbf kernel, with the paper's trace."""
    return _metric_method(
        name, loss, tuple(Setting(C, NEIGHBOURS, "trace", gamma) for gamma in gammas for C in strengths)
    )


def _metric_method(name: str, loss: Any, settings: tuple[Setting, ...]) -> Method:
    def learn(X: Floats, y: Ints, settings: Sequence[Setting]) -> list[Map]:
        found: dict[Setting, Map] = {}
        for first in dict.fromkeys(setting._replace(C=0.0) for setting in settings):
            path = [setting for setting in settings if setting._replace(C=0.0) == first]
            ranker: Any = MetricRanker(
                loss,
                k=first.k,
                regularizer=cast("Any", first.regularizer),
                tol=_TOLERANCE,
                max_iter=_PASSES,
                kernel="rbf" if first.gamma else "linear",
                gamma=first.gamma / float(X.var(axis=0).sum()) or None,
                n_components=_BASIS_ROWS if first.gamma else None,
            )
            rankers = ranker.path(X, y, [setting.C for setting in path])
            found |= {setting: fitted.transform for setting, fitted in zip(path, rankers, strict=True)}
        return [found[setting] for setting in settings]

    return Method(name, settings, learn, ours=True)


def euclidean() -> Method:
    """Leave the rows as they are."""
    return Method("Euclidean", (Setting(),), lambda X, y, settings: [lambda rows: rows])


def neighbourhood_components(n_features: int) -> Method:
    """NCA as scikit-learn has it, of full and of half width."""
    nca: Any = _neighbours.NeighborhoodComponentsAnalysis

    def learn(X: Floats, y: Ints, settings: Sequence[Setting]) -> list[Map]:
        return [nca(setting.k, random_state=0).fit(X, y).transform for setting in settings]

    widths = sorted({n_features, (n_features + 1) // 2}, reverse=True)
    return Method("NCA", tuple(Setting(k=width) for width in widths), learn)


def collapsing_classes(strengths: Sequence[float]) -> Method:
    """MLCC, with a trace term whose weight is chosen like everybody's."""

    def learn(X: Floats, y: Ints, settings: Sequence[Setting]) -> list[Map]:
        fits = [collapse_classes(X, y, setting.C, tol=_TOLERANCE, max_iter=_PASSES) for setting in settings]
        return [partial(_project, fit.params) for fit in fits]

    return Method("MLCC", tuple(Setting(C) for C in strengths), learn)


def _project(L: Floats, rows: Floats) -> Floats:
    return rows @ L.T


def _quiet(method: Method, fold: Fold, settings: Sequence[Setting]) -> list[Map]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # judged by its neighbours, not by its objective
        return method.learn(fold.X, fold.y, settings)


def _errors(learned: Map, fold: Fold) -> list[float]:
    """Error of 1, 3 and 5 neighbours in percent."""
    near, far = learned(fold.X), learned(fold.X_test)
    most = min(5, len(near))
    search = _neighbours.NearestNeighbors(n_neighbors=most).fit(near)
    labels: Ints = fold.y[search.kneighbors(far, return_distance=False)]
    wrong = [_majority(labels[:, :k]) != fold.y_test for k in (1, NEIGHBOURS, most)]
    return [100.0 * np.count_nonzero(rows) / len(rows) for rows in wrong]


def _majority(labels: Ints) -> Ints:
    """The most frequent class among the neighbours; of equals the one whose nearest member is nearest."""
    votes = (labels[:, :, None] == labels[:, None, :]).sum(axis=2)
    return labels[np.arange(len(labels)), votes.argmax(axis=1)]
