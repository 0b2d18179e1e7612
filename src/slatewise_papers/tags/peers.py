"""What c-star is set beside: other people's ways to score labels, each tuned by validation on the training rows.

Every way returns the log-odds of test rows, the number of settings it tried, and the CPU seconds it took. Settings are
judged by the break-even precision on one fifth of the training rows, the same for all.

*Chains.* Classifier chains (Read et al. 2009) on log-odds that are there already.

The link of label j is a logistic regression on the log-odds of all labels and on the labels that precede j in the
chain's order. Training knows these, so the links do not wait for each other: all are fitted at once,

    min  1/2 |D|^2 + 1/2 |d|^2 + C sum over rows and labels of log(1 + exp(-+(s_j + [s, y].D_j + d_j))) ,

s and y less their means, D 0 where a label does not precede. The regularizer draws every link to the log-odds as they
are, not to 0: a weak chain is the base, and none is hurt by what few rows cannot tell. A new row's labels are decided
along the chain.

*Neighbors.* ML-kNN (Zhang and Zhou 2007, "ML-kNN: a lazy learning approach to multi-label learning").

Of every label: how many of a row's k nearest training rows have it? Bayes' rule turns that number into log-odds, with
the frequencies of the numbers among training rows that have the label, and among those that have it not:

    log-odds = log P(label) - log P(no label) + log P(number | label) - log P(number | no label) ,

all four smoothed by one row more of each kind.

*Trees.* LightGBM (Ke et al. 2017), one classifier of boosted trees per label.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import fmin_l_bfgs_b
from scipy.sparse import issparse

from slatewise import metrics
from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import Features
from slatewise.core.running.executor import ONE_THREAD
from slatewise.cstar.base.classifiers import LogisticBase
from slatewise.cstar.base.logistic import Labels
from slatewise.cstar.rows import merge_features
from slatewise_papers.cstar.scores import Spectrum, logistic_path
from slatewise_papers.framework.arrays import dense, folds, logit, sigmoid, smoothed_log_odds, standardized

STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0)
"""Of logistic regressions: C times the total variance of the features. Weaker ones were far worse on other splits."""
CHAIN_STRENGTHS = (0.0001, 0.001, 0.01, 0.1)
ORDERS = 10
NEIGHBOURS = (5, 10, 20, 40)
LEAST_CHANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Part:
    """Rows to learn from, and rows to score."""

    X: Features
    Y: Floats
    X_test: Features

    def validation(self) -> tuple[Part, Floats]:
        """Return a part of the training rows only, and the labels of those it scores."""
        kept, held_out = next(folds(len(self.Y)))
        return Part(self.X[kept], self.Y[kept], self.X[held_out]), self.Y[held_out]


class Found(NamedTuple):
    """What a way to score labels came to."""

    log_odds: Floats
    """(n_test, n_labels)"""
    n_settings: int
    seconds: float


def timed(way: Callable[[Part], tuple[Floats, int]], part: Part) -> Found:
    """Take the CPU time."""
    start = time.process_time()
    log_odds, n_settings = way(part)
    return Found(log_odds, n_settings, time.process_time() - start)


# --- logistic regressions ---------------------------------------------------------------------------------------------


def tuned_logistic(part: Part) -> tuple[Floats, int]:
    """One logistic regression per label: a strength for all labels, and whether features are standardized.

    The objective is that of scikit-learn's LogisticRegression; all labels are solved at once.
    """
    inner, truth = part.validation()
    scores: list[float] = []
    for way in (_as_they_are, _standard):
        rows, held_out = way(inner)
        tried = logistic_path(Spectrum.of(rows), inner.Y, _scaled(rows))
        scores += [quality(truth, score(held_out)) for score in tried]
    best = int(np.argmax(scores))
    rows, test = (_as_they_are, _standard)[best // len(STRENGTHS)](part)
    C = _scaled(rows)[best % len(STRENGTHS)]
    return next(logistic_path(Spectrum.of(rows), part.Y, [C]))(test), len(scores)


def _scaled(rows: Floats) -> list[float]:
    variance = max(float(rows.var(axis=0).sum()), 1e-300)
    return [strength / variance for strength in STRENGTHS]


def _as_they_are(part: Part) -> tuple[Floats, Floats]:
    return dense(part.X), dense(part.X_test)


def _standard(part: Part) -> tuple[Floats, Floats]:
    """Return training and test rows with mean 0 and variance 1 in every column."""
    X, X_test = standardized(*_as_they_are(part))
    return X, X_test


# --- classifier chains ------------------------------------------------------------------------------------------------


def chains(part: Part) -> tuple[Floats, int]:
    """Ten chains in random orders on the log-odds of c-star's own base, their probabilities averaged."""
    base = own_base(part)
    kept, held_out = next(folds(len(base.Y)))
    order = next(_orders(part.Y.shape[1]))

    def tried(C: float) -> float:
        log_odds = fit_chain(base.train[kept], base.Y[kept], Chain(order, C))(base.train[held_out])
        return quality(base.Y[held_out], log_odds)

    C = CHAIN_STRENGTHS[int(np.argmax([tried(C) for C in CHAIN_STRENGTHS]))]
    orders = _orders(part.Y.shape[1])
    found = [fit_chain(base.train, base.Y, Chain(next(orders), C))(base.test) for _ in range(ORDERS)]
    return logit(np.mean([sigmoid(log_odds) for log_odds in found], axis=0), LEAST_CHANCE), len(CHAIN_STRENGTHS)


def _orders(n_labels: int) -> Iterator[Ints]:
    rng = np.random.default_rng(0)
    while True:
        yield rng.permutation(n_labels)


class OwnBase(NamedTuple):
    """Log-odds of c-star's own base, the same as a ranker of random_state 0 learns."""

    train: Floats
    """By models that did not see their rows."""
    Y: Floats
    """Labels of the same rows, which the ranker puts in an order of its own."""
    test: Floats


def own_base(part: Part) -> OwnBase:
    """Learn it apart from the ranker, which keeps no scores of training rows."""
    X, known, weight = merge_features(part.X, part.Y.astype(np.int8), np.ones(len(part.Y)))
    out_of_fold, fitted = LogisticBase().cross_fit(X, Labels(known, weight), 0, ONE_THREAD)
    each = np.repeat(np.arange(len(known)), weight.astype(np.int64))
    return OwnBase(out_of_fold[each], known[each].astype(np.float64), fitted.log_odds(part.X_test))


# --- neighbors --------------------------------------------------------------------------------------------------------


def mlknn(part: Part) -> tuple[Floats, int]:
    """ML-kNN: k, and whether rows count as they are or with length 1 (sparse) or standardized (dense)."""
    inner, truth = part.validation()
    numbers = [k for k in NEIGHBOURS if k < len(inner.Y)]
    ways = (_as_they_are, _of_length_one if issparse(part.X) else _standard)
    scores: list[float] = []
    for way in ways:
        neighbors = Neighbors.of(*way(inner), max(numbers))
        scores += [quality(truth, mlknn_log_odds(neighbors, inner.Y, k)) for k in numbers]
    best = int(np.argmax(scores))
    k = numbers[best % len(numbers)]
    return mlknn_log_odds(Neighbors.of(*ways[best // len(numbers)](part), k), part.Y, k), len(scores)


def _of_length_one(part: Part) -> tuple[Floats, Floats]:
    normalize: Any = import_module("sklearn.preprocessing").normalize
    X, X_test = _as_they_are(part)
    return normalize(X), normalize(X_test)


def quality(truth: Floats, log_odds: Floats) -> float:
    """Return the break-even precision of rows with a label."""
    some = truth.any(axis=1)
    return metrics.BreakEven()(truth[some], log_odds[some])


# --- the parts of chains ----------------------------------------------------------------------------------------------


class Chain(NamedTuple):
    """In which order labels are decided, and how strong the data count."""

    order: Ints
    C: float


def fit_chain(scores: Floats, Y: Floats, chain: Chain) -> Callable[[Floats], Floats]:
    """Return what turns log-odds of new rows (n, N) into those of the chain; ``scores`` are out-of-fold.

    Examples
    --------
    >>> second_is_first = np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> score = fit_chain(second_is_first * 4.0 - [2.0, 2.0], second_is_first, Chain(np.array([0, 1]), 1.0))
    >>> bool(score(np.array([[3.0, 0.0]]))[0, 1] > 0.5)
    True
    """
    found, mean, frequency = fit_links(scores, Y, chain), scores.mean(axis=0), Y.mean(axis=0)

    def score(new: Floats) -> Floats:
        rows = np.hstack([new - mean, np.zeros(new.shape), np.ones((len(new), 1))])
        n_labels, out = new.shape[1], np.empty(new.shape)
        for label in chain.order:  # what does not precede has no weight yet
            out[:, label] = new[:, label] + rows @ found[:, label]
            rows[:, n_labels + label] = (out[:, label] > 0.0) - frequency[label]
        return out

    return score


def fit_links(scores: Floats, Y: Floats, chain: Chain) -> Floats:
    """Return D with d below, (2 N + 1, N)."""
    n_labels = Y.shape[1]
    # Less their means: log-odds of rare labels are all far below 0, and columns far from 0 look alike to the search.
    rows = np.hstack([scores - scores.mean(axis=0), Y - Y.mean(axis=0), np.ones((len(Y), 1))])
    place = np.empty(n_labels, dtype=np.int64)
    place[chain.order] = np.arange(n_labels)
    free = np.ones((2 * n_labels + 1, n_labels))
    free[n_labels:-1] = place[:, None] < place[None, :]
    # About the root of the diagonal of the Hessian: the search is over multiples of it.
    chance = (Y.sum(axis=0) + 0.5) / (len(Y) + 1.0)
    unit = free / np.sqrt(1.0 + chain.C * np.outer((rows**2).sum(axis=0), chance * (1.0 - chance)))
    sign = 2.0 * Y - 1.0

    def value_and_gradient(flat: Floats) -> tuple[float, Floats]:
        point = flat.reshape(unit.shape) * unit
        margins = sign * (scores + rows @ point)
        slope: Floats = -chain.C * sign * (0.5 - 0.5 * np.tanh(0.5 * margins))
        value = chain.C * np.logaddexp(0.0, -margins).sum() + 0.5 * np.vdot(point, point)
        return float(value), ((rows.T @ slope + point) * unit).ravel()

    first = np.zeros(unit.size)
    found = fmin_l_bfgs_b(value_and_gradient, first, maxiter=300, factr=1e-6 / np.finfo(float).eps)[0]
    return np.asarray(found, dtype=np.float64).reshape(unit.shape) * unit


# --- the parts of neighbors -------------------------------------------------------------------------------------------


SMOOTHING = 1.0
_sklearn: Any = import_module("sklearn.neighbors")


class Neighbors(NamedTuple):
    """Nearest training rows, nearest first."""

    of_train: Ints
    """(n, most): without the row itself."""
    of_test: Ints

    @classmethod
    def of(cls, X: Features, X_test: Features, most: int) -> Neighbors:
        """Compare all rows."""
        search = _sklearn.NearestNeighbors(n_neighbors=most, algorithm="brute").fit(X)
        return cls(search.kneighbors(return_distance=False), search.kneighbors(X_test, return_distance=False))


def mlknn_log_odds(neighbors: Neighbors, Y: Floats, k: int) -> Floats:
    """Return the log-odds (n_test, n_labels) by the first k of the neighbors; Y (n, n_labels) are of training rows.

    Examples
    --------
    >>> X, Y = np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([[1.0], [1.0], [0.0], [0.0]])
    >>> mlknn_log_odds(Neighbors.of(X, np.array([[0.4], [5.2]]), most=1), Y, k=1).round(2).ravel()
    array([ 1.1, -1.1])
    """
    seen, new = (counts_of(near[:, :k], Y) for near in (neighbors.of_train, neighbors.of_test))
    yes = Y.sum(axis=0)
    prior = np.log(SMOOTHING + yes) - np.log(SMOOTHING + len(Y) - yes)
    number = np.arange(k + 1)[:, None]
    with_label = np.array([((seen == c) & (Y > 0.0)).sum(axis=0) for c in number.ravel()])
    without = np.array([((seen == c) & (Y <= 0.0)).sum(axis=0) for c in number.ravel()])
    evidence = _log_shares(with_label) - _log_shares(without)
    return prior + np.take_along_axis(evidence, new, axis=0)


def counts_of(near: Ints, Y: Floats) -> Ints:
    """Return how many of the neighbors of each row have each label."""
    counts = np.zeros((len(near), Y.shape[1]), dtype=np.int64)
    has = Y > 0.0
    for place in range(near.shape[1]):
        counts += has[near[:, place]]
    return counts


def _log_shares(counts: Ints) -> Floats:
    """Return the log of each number's share, (k + 1, n_labels)."""
    return np.log(SMOOTHING + counts) - np.log(SMOOTHING * len(counts) + counts.sum(axis=0))


# --- the parts of trees -----------------------------------------------------------------------------------------------


TREES = ((0.1, 7), (0.1, 31), (0.05, 15), (0.3, 4))
"""Learning rates and numbers of leaves."""
MOST_ROUNDS, PATIENCE, MOST_LABELS_TO_CHOOSE = 200, 10, 25


def boosted_trees(part: Part) -> tuple[Floats, int]:
    """LightGBM, one classifier per label: one setting for all labels, the number of rounds per label.

    The setting is chosen by the held-out log loss of at most 25 labels, drawn at random; the rounds by early stopping
    on the same validation rows; the classifiers are then fitted to all training rows.
    """
    inner, truth = part.validation()
    forest, labels = _Forest.of(inner, truth), np.flatnonzero(np.ptp(inner.Y, axis=0) > 0.0)
    drawn = np.random.default_rng(0).permutation(labels)[:MOST_LABELS_TO_CHOOSE]
    losses = [sum(forest.stopped(setting, label)[0] for label in drawn) for setting in TREES]
    best = TREES[int(np.argmin(losses))]
    rounds = {int(label): forest.stopped(best, int(label))[1] for label in labels}
    whole = _Forest.of(part, None)
    out = np.broadcast_to(smoothed_log_odds(part.Y), (int(part.X_test.shape[0]), part.Y.shape[1])).copy()
    for label, count in rounds.items():
        out[:, label] = whole.trained(best, label, count)
    return out, len(TREES)


@dataclass(frozen=True, eq=False)
class _Forest:
    """Binned rows that all labels share."""

    lightgbm: Any
    part: Part
    rows: Any
    truth: Floats | None
    held_out: Any

    @classmethod
    def of(cls, part: Part, truth: Floats | None) -> _Forest:
        lightgbm = import_module("lightgbm")
        options = {"verbose": -1, "num_threads": 1, "max_bin": 63, "feature_pre_filter": False}
        rows = lightgbm.Dataset(_plain(part.X), label=np.zeros(len(part.Y)), params=options, free_raw_data=False)
        rows.construct()
        held_out = None
        if truth is not None:
            held_out = rows.create_valid(_plain(part.X_test), label=np.zeros(len(truth)), params=options)
            held_out.construct()
        return cls(lightgbm, part, rows, truth, held_out)

    def stopped(self, setting: tuple[float, int], label: int) -> tuple[float, int]:
        """Return the held-out log loss and the number of rounds."""
        assert self.truth is not None
        self.rows.set_label(self.part.Y[:, label])
        self.held_out.set_label(self.truth[:, label])
        stop = self.lightgbm.early_stopping(PATIENCE, verbose=False)
        trees = self.lightgbm.train(
            _options(setting), self.rows, MOST_ROUNDS, valid_sets=[self.held_out], callbacks=[stop]
        )
        return float(trees.best_score["valid_0"]["binary_logloss"]), int(trees.best_iteration)

    def trained(self, setting: tuple[float, int], label: int, rounds: int) -> Floats:
        """Return the log-odds of the test rows."""
        self.rows.set_label(self.part.Y[:, label])
        trees = self.lightgbm.train(_options(setting), self.rows, rounds)
        return np.asarray(trees.predict(_plain(self.part.X_test), raw_score=True), dtype=np.float64)


def _options(setting: tuple[float, int]) -> dict[str, Any]:
    rate, leaves = setting
    return {
        "objective": "binary",
        "metric": "binary_logloss",
        "learning_rate": rate,
        "num_leaves": leaves,
        "min_data_in_leaf": 5,
        "feature_fraction": 0.3,
        "max_bin": 63,
        "feature_pre_filter": False,
        "num_threads": 1,
        "seed": 0,
        "deterministic": True,
        "verbose": -1,
    }


def _plain(X: Features) -> Any:
    """Return what LightGBM reads: it knows sparse matrices, not sparse arrays."""
    return import_module("scipy.sparse").csr_matrix(X) if issparse(X) else X
