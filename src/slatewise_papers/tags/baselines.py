"""What c-star is set beside: other people's ways to score labels, each tuned by validation on the training rows.

Every way returns the log-odds of test rows, the number of settings it tried, and the CPU seconds it took. Settings are
judged by the break-even precision on one fifth of the training rows, the same for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from slatewise import metrics
from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import Features
from slatewise.core.running.executor import ONE_THREAD
from slatewise.cstar.base.classifiers import LogisticBase
from slatewise.cstar.base.logistic import Labels
from slatewise.cstar.rows import merge_features
from slatewise_papers.cstar.scores import Spectrum, logistic_path
from slatewise_papers.framework.arrays import dense, folds, logit, sigmoid, standardized
from slatewise_papers.tags.chains import Chain, fit_chain
from slatewise_papers.tags.mlknn import Neighbours, mlknn_log_odds

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
    """One logistic regression per label: a strength for all labels, and whether features are standardised.

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
    """ML-kNN: k, and whether rows count as they are or with length 1 (sparse) or standardised (dense)."""
    inner, truth = part.validation()
    numbers = [k for k in NEIGHBOURS if k < len(inner.Y)]
    ways = (_as_they_are, _of_length_one if issparse(part.X) else _standard)
    scores: list[float] = []
    for way in ways:
        neighbours = Neighbours.of(*way(inner), max(numbers))
        scores += [quality(truth, mlknn_log_odds(neighbours, inner.Y, k)) for k in numbers]
    best = int(np.argmax(scores))
    k = numbers[best % len(numbers)]
    return mlknn_log_odds(Neighbours.of(*ways[best // len(numbers)](part), k), part.Y, k), len(scores)


def _of_length_one(part: Part) -> tuple[Floats, Floats]:
    normalize: Any = import_module("sklearn.preprocessing").normalize
    X, X_test = _as_they_are(part)
    return normalize(X), normalize(X_test)


def quality(truth: Floats, log_odds: Floats) -> float:
    """Return the break-even precision of rows with a label."""
    some = truth.any(axis=1)
    return metrics.BreakEven()(truth[some], log_odds[some])
