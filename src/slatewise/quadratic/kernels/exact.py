"""Exact search for the best ranking of a quadratic form: all rankings, or all subsets.

    f = sum_i L[i, pos_i] + sum_{i != j} F_ij D[pos_i, pos_j]

*All rankings*, depth first: position p adds, for item i after the items o_0 .. o_{p-1},

    L[i, p] + sum_{q < p} F[i, o_q] D[p, q] + F[o_q, i] D[q, p]

*All subsets*: where D[p, q] = after[p] and D[q, p] = before[p] for all q < p, that sum does not ask in which order the
earlier items stand. So V(S), the best value of the items S on the first |S| positions, obeys, with p = |S| - 1,

    V(S) = max over i in S of  V(S - i) + L[i, p] + after[p] sum_{j in S} F_ij + before[p] sum_{j in S} F_ji

in O(N 2^N): the sums over S come from two tables, one for the lower half of the items and one for the upper.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.kernel import kernel


@kernel
def best_of_all_rankings(linear: Floats, item_pairs: Floats, position_pairs: Floats, best_order: Ints) -> None:
    """Put the best ranking into ``best_order``."""
    n = len(linear)
    order = np.full(n, -1)
    used = np.zeros(n, dtype=np.bool_)
    value = np.zeros(n + 1)
    best = -np.inf
    for i in range(n):
        best_order[i] = i
    p = 0
    while p >= 0:
        # Take the next unused item at position p; when none is left, go back one position.
        if order[p] >= 0:
            used[order[p]] = False
        order[p] += 1
        while order[p] < n and used[order[p]]:
            order[p] += 1
        if order[p] == n:
            order[p] = -1
            p -= 1
            continue
        i = order[p]
        used[i] = True
        total = value[p] + linear[i, p]
        for q in range(p):
            j = order[q]
            total += item_pairs[i, j] * position_pairs[p, q] + item_pairs[j, i] * position_pairs[q, p]
        if p < n - 1:
            p += 1
            value[p] = total
        elif total > best:
            best = total
            best_order[:] = order


@kernel
def subset_sums(rows: Floats, columns: Floats, sums: Floats) -> None:
    """Fill ``sums[S, i] = (sum of rows[i, j], sum of columns[i, j])`` over the j in the bit set S."""
    sums[0] = 0.0
    for subset in range(1, len(sums)):
        j = 0
        while not (subset >> j) & 1:
            j += 1
        rest = subset & (subset - 1)
        for i in range(sums.shape[1]):
            sums[subset, i, 0] = sums[rest, i, 0] + rows[i, j]
            sums[subset, i, 1] = sums[rest, i, 1] + columns[i, j]


@kernel
def last_item(
    subset: int, linear: Floats, after: Floats, before: Floats, low_sums: Floats, high_sums: Floats, values: Floats
) -> tuple[int, float]:
    """Return the best item for the last position of the subset, and V(subset)."""
    p, rest = -1, subset
    while rest:
        rest &= rest - 1
        p += 1
    low_bits = len(linear) // 2
    low, high = subset & ((1 << low_bits) - 1), subset >> low_bits
    best, chosen = -np.inf, -1
    for i in range(len(linear)):
        if (subset >> i) & 1:
            value = (
                values[subset ^ (1 << i)]
                + linear[i, p]
                + after[p] * (low_sums[low, i, 0] + high_sums[high, i, 0])
                + before[p] * (low_sums[low, i, 1] + high_sums[high, i, 1])
            )
            if chosen < 0 or value > best:  # the first at any rate: NaN is never the larger
                best, chosen = value, i
    return chosen, best


@kernel
def best_of_all_subsets(
    linear: Floats,
    after: Floats,
    before: Floats,
    low_sums: Floats,
    high_sums: Floats,
    values: Floats,
    best_order: Ints,
) -> None:
    """Fill ``values`` with V and ``best_order`` with the best ranking."""
    values[0] = 0.0
    for subset in range(1, len(values)):
        _, values[subset] = last_item(subset, linear, after, before, low_sums, high_sums, values)
    subset = len(values) - 1
    for p in range(len(linear) - 1, -1, -1):
        best_order[p], _ = last_item(subset, linear, after, before, low_sums, high_sums, values)
        subset ^= 1 << best_order[p]
