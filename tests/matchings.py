"""Slow, independent judges of sums over matchings: every matching, one by one."""

from itertools import permutations

import numpy as np


def all_matchings(n_rows, n_columns):
    """Every one-to-one map of rows to columns: (number, M)."""
    return np.array(list(permutations(range(n_columns), n_rows)), dtype=np.int64)


def probabilities(w):
    """The matchings of w, log Z, and the probability of each."""
    n_rows, n_columns = w.shape
    matchings = all_matchings(n_rows, n_columns)
    totals = w[np.arange(n_rows), matchings].sum(axis=1)
    largest = totals.max()
    parts = np.exp(totals - largest)
    return matchings, largest + np.log(parts.sum()), parts / parts.sum()


def log_sum_and_marginals(w):
    """Return log Z and P by adding up every matching."""
    matchings, log_z, p = probabilities(w)
    marginals = np.zeros(w.shape)
    for i in range(w.shape[0]):
        np.add.at(marginals[i], matchings[:, i], p)
    return log_z, marginals


def random_weights(rng, count, n_rows, n_columns, spread, forbidden=0.0):
    """Log weights in an interval of the given length; some edges forbidden, but never all matchings."""
    w = rng.uniform(-spread / 2, spread / 2, (count, n_rows, n_columns))
    open_ = rng.random(w.shape) >= forbidden
    for matrix in open_:
        matrix[np.arange(n_rows), rng.permutation(n_columns)[:n_rows]] = True
    return np.where(open_, w, -np.inf)
