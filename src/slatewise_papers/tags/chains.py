"""Classifier chains (Read et al. 2009) on log-odds that are there already.

The link of label j is a logistic regression on the log-odds of all labels and on the labels that precede j in the
chain's order. Training knows these, so the links do not wait for each other: all are fitted at once,

    min  1/2 |D|^2 + 1/2 |d|^2 + C sum over rows and labels of log(1 + exp(-+(s_j + [s, y].D_j + d_j))) ,

s and y less their means, D 0 where a label does not precede. The regularizer draws every link to the log-odds as they
are, not to 0: a weak chain is the base, and none is hurt by what few rows cannot tell. A new row's labels are decided
along the chain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import fmin_l_bfgs_b

from slatewise.core.arrays import Floats, Ints


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
