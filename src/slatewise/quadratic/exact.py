"""Exact quadratic ranking: all rankings of few items, or all subsets where D depends on the later position only.

    D[p, q] = after[p],  D[q, p] = before[p]    for all q < p

holds for average precision (1 / (p + 1), Mensink et al. 2011), Kemeny's rule (1 above the diagonal, 0 below) and the
block of a top k (1 where both positions are in it). Recursions: ``kernels/exact.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.quadratic.form import QuadraticForm
from slatewise.quadratic.kernels.exact import best_of_all_rankings, best_of_all_subsets, subset_sums

MOST_ENUMERATED = 10
MOST_IN_SUBSETS = 25
"""The table of values takes 8 * 2^N bytes."""


class LaterWeights(NamedTuple):
    """What a pair counts by its later position p: D[p, q] and D[q, p] for every q < p."""

    after: Floats
    before: Floats


def later_weights(position_pairs: Floats) -> LaterWeights | None:
    """Return the weights, or None where D does not depend on the later position only."""
    after, before = position_pairs[:, 0].copy(), position_pairs[0].copy()
    n = len(after)
    lower, upper = np.tril_indices(n, -1), np.triu_indices(n, 1)
    same = (position_pairs[lower] == after[lower[0]]).all() and (position_pairs[upper] == before[upper[1]]).all()
    return LaterWeights(after, before) if same else None


def by_enumeration(form: QuadraticForm) -> Ints:
    """Return the best ranking of at most ``MOST_ENUMERATED`` items."""
    if form.n > MOST_ENUMERATED:
        raise ValueError(f"method: 'enumeration' expects at most {MOST_ENUMERATED} items, found {form.n}")
    order = np.empty(form.n, dtype=np.int64)
    best_of_all_rankings(form.linear, form.item_pairs, form.position_pairs, order)
    return order


def by_subsets(form: QuadraticForm) -> Ints:
    """Return the best ranking where D depends on the later position only."""
    if form.n > MOST_IN_SUBSETS:
        raise ValueError(f"method: 'subsets' expects at most {MOST_IN_SUBSETS} items, found {form.n}")
    weights = later_weights(form.position_pairs)
    if weights is None:
        raise ValueError("D: method 'subsets' expects D[p, q] and D[q, p] to be the same for all q < p; they are not")
    half = form.n // 2
    order = np.empty(form.n, dtype=np.int64)
    low, high = _sums(form.item_pairs, slice(0, half)), _sums(form.item_pairs, slice(half, form.n))
    best_of_all_subsets(form.linear, *weights, low, high, np.empty(1 << form.n), order)
    return order


def _sums(item_pairs: Floats, items: slice) -> Floats:
    rows, columns = np.ascontiguousarray(item_pairs[:, items]), np.ascontiguousarray(item_pairs.T[:, items])
    sums = np.empty((1 << rows.shape[1], len(rows), 2))
    subset_sums(rows, columns, sums)
    return sums
