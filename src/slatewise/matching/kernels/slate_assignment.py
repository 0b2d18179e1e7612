"""The best ranking of few items whatever they weigh at each position: dynamic programming over subsets, many at a time.

    max over pi of  sum_i s_i c[pi_i] + b_i a[pi_i] ,      V(S) = max_{i in S}  V(S - i) + s_i c_{|S|-1} + b_i a_{|S|-1}

Positions are filled from the top; S holds the items that are gone. O(M 2^M) per slate, against O(M^3) of an assignment
solver with a call each: faster up to about ten items.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.kernel import kernel


@kernel
def best_rankings(scores: Floats, weights: Floats, item_cost: Floats, position_cost: Floats, position: Ints) -> None:
    """Fill the position of each item, (B, M); b is the item's cost, a the position's. Of equals the last item stays."""
    n_slates, size = scores.shape
    full = (1 << size) - 1
    value, last, count = np.empty(full + 1), np.empty(full + 1, np.int64), np.zeros(full + 1, np.int64)
    for state in range(1, full + 1):
        count[state] = count[state >> 1] + (state & 1)
    for b in range(n_slates):
        value[0] = 0.0
        for state in range(1, full + 1):
            c, a = weights[b, count[state] - 1], position_cost[b, count[state] - 1]
            best, chosen = -np.inf, -1
            for i in range(size):
                if (state >> i) & 1:
                    total = value[state ^ (1 << i)] + scores[b, i] * c + item_cost[b, i] * a
                    if chosen < 0 or total >= best:  # the first at any rate: NaN is never the larger
                        best, chosen = total, i
            value[state], last[state] = best, chosen
        state = full
        while state:
            position[b, last[state]] = count[state] - 1
            state ^= 1 << last[state]
