"""Nearest-neighbor errors of learned distances, every setting chosen inside the training rows.

A method is a list of settings and a way to learn one map of rows a setting; the learned distance is Euclidean after
the map. A setting is judged on inner folds by the share of other classes among the 7 nearest neighbors: errors of 3
neighbors are few there, and many settings have equally many. Then the map is learned again from all training rows, and
its error of 3 neighbors on the test rows is what the table shows.

Settings differ less than their errors on small folds vary. So instead of the best one the best few may be taken: the
mean of their squared distances, each divided by its own mean over the training rows, ``W = mean_s W_s / scale_s``. It
is a learned distance like each of them. A setting also says whether the distance before learning has a share in such a
mean: it does where that one is good already, as on pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.kernels import Rbf
from slatewise.losses.training import TrainingLoss
from slatewise.metric_learning.ranker import MetricRanker
from slatewise_papers.framework.running import expected_warnings
from slatewise_papers.learners.mlcc import collapse_classes
from slatewise_papers.mlr.data import Fold, Map, Scaling, standard

NEIGHBORS = 3
JUDGED_NEIGHBORS = 7
_TOLERANCE, _PASSES = 1e-2, 100
"""Rough fits: what counts here is the order of neighbors."""
_BASIS_ROWS = 100
_neighbors: Any = import_module("sklearn.neighbors")


class Setting(NamedTuple):
    """What is chosen on validation: the strength, the ranks (of a loss) or width (of a map), regularizer and kernel."""

    C: float = 1.0
    k: int = NEIGHBORS
    regularizer: str = "frobenius"
    gamma: float = 0.0
    """Of an rbf kernel, times the total variance of the rows; 0: no kernel."""
    scaling: Scaling = standard
    """Of the features."""
    beside: bool = False
    """Whether the distance is the mean of the learned one and the one before learning."""


Scaled: TypeAlias = Mapping[Scaling, Fold]
"""A fold, scaled in each way there is to choose from."""
Loss: TypeAlias = Callable[[int], str | TrainingLoss]
"""Of the number of first ranks that count."""
Learn: TypeAlias = Callable[[Floats, Ints, Sequence[Setting]], "list[Map]"]


@dataclass(frozen=True, eq=False)
class Method:
    """A way to learn maps."""

    name: str
    settings: tuple[Setting, ...]
    typical: Setting
    """By which the scaling of features is chosen."""
    learn: Learn
    ours: bool = False


class Judged(NamedTuple):
    """A setting, and the share of neighbors of other classes on validation in percent."""

    method: Method
    setting: Setting
    others: float


def scaled_each_way(fold: Fold, scalings: Sequence[Scaling]) -> Scaled:
    """Scale a fold once, for all methods."""
    return {scaling: fold.mapped(scaling(fold.X)) for scaling in scalings}


def ranked_settings(method: Method, folds: Sequence[Scaled]) -> list[Judged]:
    """Return the settings by their mean shares on the inner folds, smallest first, of equals the first in the list.

    The scaling of features is chosen first, by the method's typical setting.
    """
    scaled = [method.typical._replace(scaling=scaling) for scaling in folds[0]]
    scaling = _judged(method, scaled, folds)[0].setting.scaling if len(scaled) > 1 else scaled[0].scaling
    both = [setting._replace(scaling=scaling, beside=beside) for beside in (False, True) for setting in method.settings]
    return _judged(method, both, folds)


def _judged(method: Method, settings: Sequence[Setting], folds: Sequence[Scaled]) -> list[Judged]:
    shares = np.array([[_share_of_others(rows) for rows in _learn(method, fold, settings)] for fold in folds])
    means = shares.mean(axis=0).tolist()
    judged = [Judged(method, setting, share) for setting, share in zip(settings, means, strict=True)]
    return sorted(judged, key=lambda one: one.others)


def error_on_test(chosen: Sequence[Judged], fold: Scaled) -> float:
    """Learn with the chosen settings from all training rows; return the error of their mean distance in percent."""
    mapped: list[Fold] = []
    for method in dict.fromkeys(one.method for one in chosen):
        mapped += _learn(method, fold, [one.setting for one in chosen if one.method is method])
    rows = _mean_distance(mapped)
    wrong = _majority(_neighboring(rows, NEIGHBORS)) != rows.y_test
    return 100.0 * np.count_nonzero(wrong) / len(wrong)


def _mean_distance(folds: Sequence[Fold]) -> Fold:
    """Map rows to where the squared distance is the mean of those in each fold, up to a factor."""
    spreads = [np.sqrt(fold.X.var(axis=0).sum()) or 1.0 for fold in folds]
    return folds[0]._replace(
        X=np.hstack([fold.X / spread for fold, spread in zip(folds, spreads, strict=True)]),
        X_test=np.hstack([fold.X_test / spread for fold, spread in zip(folds, spreads, strict=True)]),
    )


def metric_ranking(name: str, loss: Loss, strengths: Sequence[float], ks: Sequence[int] = (NEIGHBORS,)) -> Method:
    """Metric learning to rank: a path of strengths for each k, and one with the paper's trace for the first."""
    # The trace of W asks for more strength than the sum of its squares.
    traced = tuple(Setting(C, ks[0], "trace") for C in strengths[-2:])
    settings = (*(Setting(C, k) for k in ks for C in strengths), *traced)
    return _metric_method(name, loss, settings, settings[len(strengths) // 2])


def kernel_metric_ranking(name: str, loss: Loss, strengths: Sequence[float], gammas: Sequence[float]) -> Method:
    """Metric learning to rank in the feature space of an rbf kernel, with the paper's trace."""
    settings = tuple(Setting(C, NEIGHBORS, "trace", gamma) for gamma in gammas for C in strengths)
    return _metric_method(name, loss, settings, settings[0])


def _metric_method(name: str, loss: Loss, settings: tuple[Setting, ...], typical: Setting) -> Method:
    def learn(X: Floats, y: Ints, settings: Sequence[Setting]) -> list[Map]:
        found: dict[Setting, Map] = {}
        for first in dict.fromkeys(setting._replace(C=0.0) for setting in settings):
            path = sorted((one for one in settings if one._replace(C=0.0) == first), key=lambda one: one.C)
            ranker: Any = MetricRanker(
                loss(first.k),
                regularizer=cast("Any", first.regularizer),
                targets="all",  # as in the paper, whose C are those of the grids
                pairs="all",
                tol=_TOLERANCE,
                max_iter=_PASSES,
                kernel=Rbf(first.gamma / float(X.var(axis=0).sum()), _BASIS_ROWS) if first.gamma else "linear",
            )
            rankers = ranker.path(X, y, [setting.C for setting in path])
            found |= {setting: fitted.transform for setting, fitted in zip(path, rankers, strict=True)}
        return [found[setting] for setting in settings]

    return Method(name, settings, typical, learn, ours=True)


def euclidean() -> Method:
    """Leave the rows as they are."""
    return Method("Euclidean", (Setting(),), Setting(), lambda X, y, settings: [np.asarray])


def neighborhood_components(n_features: int) -> Method:
    """NCA as scikit-learn has it, of full and of half width."""
    nca: Any = _neighbors.NeighborhoodComponentsAnalysis

    def learn(X: Floats, y: Ints, settings: Sequence[Setting]) -> list[Map]:
        return [nca(setting.k, random_state=0).fit(X, y).transform for setting in settings]

    settings = tuple(Setting(k=width) for width in sorted({n_features, (n_features + 1) // 2}, reverse=True))
    return Method("NCA", settings, settings[0], learn)


def collapsing_classes(strengths: Sequence[float]) -> Method:
    """MLCC, with a trace term whose weight is chosen like everybody's."""

    def learn(X: Floats, y: Ints, settings: Sequence[Setting]) -> list[Map]:
        fits = [collapse_classes(X, y, setting.C, tol=_TOLERANCE, max_iter=_PASSES) for setting in settings]
        return [partial(_project, fit.params) for fit in fits]

    settings = tuple(Setting(C) for C in strengths)
    return Method("MLCC", settings, settings[len(settings) // 2], learn)


def _project(L: Floats, rows: Floats) -> Floats:
    return rows @ L.T


def _learn(method: Method, fold: Scaled, settings: Sequence[Setting]) -> list[Fold]:
    """Learn a map a setting, and return the rows after each, in the order of settings."""
    found: dict[Setting, Fold] = {}
    for scaling in dict.fromkeys(setting.scaling for setting in settings):
        rows = fold[scaling]
        some = list(dict.fromkeys(one._replace(beside=False) for one in settings if one.scaling is scaling))
        with expected_warnings():  # what counts is the neighbors, not the objective
            maps = method.learn(rows.X, rows.y, some)
        for setting, learned in zip(some, maps, strict=True):
            found[setting] = rows.mapped(learned)
            found[setting._replace(beside=True)] = _mean_distance([found[setting], rows])
    return [found[setting] for setting in settings]


def _share_of_others(rows: Fold) -> float:
    differ = _neighboring(rows, JUDGED_NEIGHBORS) != rows.y_test[:, None]
    return 100.0 * np.count_nonzero(differ) / differ.size


def _neighboring(rows: Fold, k: int) -> Ints:
    """Classes of the k nearest training rows of each test row, nearest first."""
    search = _neighbors.NearestNeighbors(n_neighbors=min(k, len(rows.y))).fit(rows.X)
    return rows.y[search.kneighbors(rows.X_test, return_distance=False)]


def _majority(labels: Ints) -> Ints:
    """The most frequent class among the neighbors; of equals the one whose nearest member is nearest."""
    votes = (labels[:, :, None] == labels[:, None, :]).sum(axis=2)
    return labels[np.arange(len(labels)), votes.argmax(axis=1)]
