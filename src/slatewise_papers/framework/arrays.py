"""What many methods do to their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import Features

INNER_FOLDS = 5
_selection: Any = import_module("sklearn.model_selection")

Scorer: TypeAlias = Callable[[Floats], Floats]
"""From rows of features to a score per label."""


def folds(n_rows: int, n_splits: int = INNER_FOLDS, seed: int = 0) -> Iterator[tuple[Ints, Ints]]:
    """Cut rows at random, the same way for the same seed."""
    return _selection.KFold(n_splits, shuffle=True, random_state=seed).split(np.zeros(n_rows))


def out_of_fold(fit: Callable[[Floats, Floats], Scorer], X: Floats, Y: Floats) -> Floats:
    """Score every row by a model that did not see it."""
    scores = np.empty(Y.shape)
    for kept, held_out in folds(len(X)):
        scores[held_out] = fit(X[kept], Y[kept])(X[held_out])
    return scores


def dense(X: Features) -> Floats:
    """Return an array of sparse rows too."""
    rows: Any = X.toarray() if issparse(X) else X
    return np.asarray(rows, dtype=np.float64)


def standardized(X: Floats, *others: Floats) -> list[Floats]:
    """Return rows and further ones with the columns of the first brought to mean 0 and spread 1."""
    mean, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread == 0.0] = 1.0
    return [(rows - mean) / spread for rows in (X, *others)]


def smoothed_log_odds(Y: Floats) -> Floats:
    """Log-odds of every label's frequency, half a row added to either side."""
    return logit((Y.sum(axis=0) + 0.5) / (len(Y) + 1.0))


def logit(p: Floats, least: float = 0.0) -> Floats:
    """Return log-odds, cut where a probability is less than ``least`` from 0 or 1."""
    p = np.clip(p, least, 1.0 - least)
    return np.log(p) - np.log1p(-p)


def sigmoid(z: Floats) -> Floats:
    """Return probabilities of log-odds."""
    return 0.5 + 0.5 * np.tanh(0.5 * z)


def most_frequent(Y: NDArray[Any], n_labels: int) -> Ints:
    """Return the numbers of the most frequent labels, ascending."""
    return np.sort(np.argsort(-Y.sum(axis=0), kind="stable")[:n_labels])
