"""ML-kNN (Zhang and Zhou 2007, "ML-kNN: a lazy learning approach to multi-label learning").

Of every label: how many of a row's k nearest training rows have it? Bayes' rule turns that number into log-odds, with
the frequencies of the numbers among training rows that have the label, and among those that have it not:

    log-odds = log P(label) - log P(no label) + log P(number | label) - log P(number | no label) ,

all four smoothed by one row more of each kind.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import Features

SMOOTHING = 1.0
_sklearn: Any = import_module("sklearn.neighbors")


class Neighbours(NamedTuple):
    """Nearest training rows, nearest first."""

    of_train: Ints
    """(n, most): without the row itself."""
    of_test: Ints

    @classmethod
    def of(cls, X: Features, X_test: Features, most: int) -> Neighbours:
        """Compare all rows."""
        search = _sklearn.NearestNeighbors(n_neighbors=most, algorithm="brute").fit(X)
        return cls(search.kneighbors(return_distance=False), search.kneighbors(X_test, return_distance=False))


def mlknn_log_odds(neighbours: Neighbours, Y: Floats, k: int) -> Floats:
    """Return the log-odds (n_test, n_labels) by the first k of the neighbours; Y (n, n_labels) are of training rows.

    Examples
    --------
    >>> X, Y = np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([[1.0], [1.0], [0.0], [0.0]])
    >>> mlknn_log_odds(Neighbours.of(X, np.array([[0.4], [5.2]]), most=1), Y, k=1).round(2).ravel()
    array([ 1.1, -1.1])
    """
    seen, new = (counts_of(near[:, :k], Y) for near in (neighbours.of_train, neighbours.of_test))
    yes = Y.sum(axis=0)
    prior = np.log(SMOOTHING + yes) - np.log(SMOOTHING + len(Y) - yes)
    number = np.arange(k + 1)[:, None]
    with_label = np.array([((seen == c) & (Y > 0.0)).sum(axis=0) for c in number.ravel()])
    without = np.array([((seen == c) & (Y <= 0.0)).sum(axis=0) for c in number.ravel()])
    evidence = _log_shares(with_label) - _log_shares(without)
    return prior + np.take_along_axis(evidence, new, axis=0)


def counts_of(near: Ints, Y: Floats) -> Ints:
    """Return how many of the neighbours of each row have each label."""
    counts = np.zeros((len(near), Y.shape[1]), dtype=np.int64)
    has = Y > 0.0
    for place in range(near.shape[1]):
        counts += has[near[:, place]]
    return counts


def _log_shares(counts: Ints) -> Floats:
    """Return the log of each number's share, (k + 1, n_labels)."""
    return np.log(SMOOTHING + counts) - np.log(SMOOTHING * len(counts) + counts.sum(axis=0))
