"""What a block of pairs asks for when all pairs share a few drawn negatives, and each query has a short list besides.

The catalogue falls into two strata. In a query's list every violator is counted; outside, each drawn item stands for
``scale = items outside / drawn items outside`` of them. The rank is the sum, and each violator gets its share of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.kernel import kernel
from slatewise.recommend.kernels.singles import count_above, dot, excess_above

if TYPE_CHECKING:
    from slatewise.factors.pairs import Block
    from slatewise.factors.tables import Entries


@kernel
def find(ascending: Ints, item: int) -> int:
    """Return the place of ``item``, -1 if it is not there."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low if low < len(ascending) and ascending[low] == item else -1


@kernel
def shared_gradient(
    table: Singles,
    vectors: Singles,
    scores: Singles,
    negatives: Ints,
    lists: Ints,
    block: Block,
    rank_weight: Singles,
    coefficients: Singles,
    gradient: Singles,
    entries: Entries,
    totals: NDArray[np.float64],
) -> int:
    """Fill ``coefficients`` (rows, negatives), and add positives and lists to ``gradient`` and the entries.

    The pairs of a row share its list, so an item of the list gets one entry per row, for all of them.

    ``negatives`` ascend; ``lists`` has a row of items per query, -1 after the last. ``scores`` of negatives that are in
    the list become -inf. Return the number of entries; ``totals`` gets the loss and the number of pairs violated.
    """
    _, ends, positives, weights, _ = block
    entry_items, entry_coefficients, entry_rows = entries
    width, n_items = table.shape[1], len(table)
    listed, pushed = np.empty(lists.shape[1], np.float32), np.empty(lists.shape[1], np.float32)
    entry = 0
    for row in range(len(ends)):
        vector, values, step = vectors[row], scores[row], gradient[row]
        n_listed, outside = 0, len(negatives)
        while n_listed < len(listed) and lists[row, n_listed] >= 0:
            listed[n_listed] = dot(vector, table[lists[row, n_listed]])
            place = find(negatives, lists[row, n_listed])
            if place >= 0:
                values[place] = -np.inf
                outside -= 1
            pushed[n_listed] = 0.0
            n_listed += 1
        for pair in range(ends[row - 1] if row else 0, ends[row]):
            positive = positives[pair]
            good = table[positive]
            bar = np.float32(dot(vector, good) - 1.0)
            place = find(negatives, positive)
            own, drawn = -np.inf, outside
            if place >= 0:
                own, values[place] = values[place], -np.inf
                if own > -np.inf:
                    drawn -= 1
            inside, hinge, rest = 0, 0.0, n_items - 1
            for i in range(n_listed):
                rest -= lists[row, i] != positive
                if listed[i] > bar and lists[row, i] != positive:
                    inside += 1
                    hinge += listed[i] - bar
            count = count_above(values, bar)
            scale = rest / max(drawn, 1)
            total = inside + count * scale
            if total > 0:
                rank = min(max(int(total + 0.5), 1), n_items - 1)
                amount = weights[pair] * rank_weight[rank]
                share, far = np.float32(amount / total), np.float32(amount * scale / total)
                if count > 0:
                    none = np.float32(0.0)
                    for j in range(len(values)):
                        coefficients[row, j] -= far if values[j] > bar else none
                for i in range(n_listed):
                    if listed[i] > bar and lists[row, i] != positive:
                        pushed[i] += share
                for f in range(width):
                    step[f] += amount * good[f]
                entry_items[entry], entry_coefficients[entry], entry_rows[entry] = positive, amount, row
                entry += 1
                totals[0] += amount * (hinge + scale * excess_above(values, bar)) / total
                totals[1] += 1.0
            if place >= 0:
                values[place] = own
        for i in range(n_listed):
            if pushed[i] > 0.0:
                bad = table[lists[row, i]]
                for f in range(width):
                    step[f] -= pushed[i] * bad[f]
                entry_items[entry], entry_coefficients[entry], entry_rows[entry] = lists[row, i], -pushed[i], row
                entry += 1
    return entry
