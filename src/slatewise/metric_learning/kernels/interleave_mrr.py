"""The most violated ranking for the reciprocal rank of the first relevant item.

    Delta(r) = 1 - 1 / (r + 1),    m_i = max(ahead_i, r)

r counts the irrelevant items before the first relevant one. Up to ahead_1 loss and score both rise with r. From there
on both are concave, so r grows while one more irrelevant item in front pays:

    1 / ((r + 1) (r + 2)) > (2/PN) sum over i with s_i >= v_{r+1} of (s_i - v_{r+1})

An item behind J others of those below s_1 does not pay if it would not as the J-th of them. For a J that leaves at
least J items, only those are sorted: about sqrt(N), and far from all.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.running.kernel import kernel
from slatewise.metric_learning.kernels.interleave import Scores, longest, sort_falling
from slatewise.metric_learning.kernels.interleave_top import Top, new_top, open_list, write_behind


@kernel
def sort_hopeful(top: Top, n_good: int, n_bad: int, cost: Floats) -> int:
    """Fill the front with the items below s_1 that may go before all relevant ones; return how many."""
    first = top.ahead[0]
    for j in range(n_bad):
        over = top.over[j]
        # Items above s_1 go there anyway.
        cost[j] = 2.0 * (top.good_sum[over] - over * top.bad.score[j]) if over > 0 else np.inf
    rank, size, limit = n_bad - first, -1, np.inf
    while size < rank:
        rank >>= 1
        limit = n_good * n_bad / ((first + rank + 1.0) * (first + rank + 2.0))
        size = 0
        for j in range(n_bad):
            size += cost[j] < limit
    front, size = top.front, 0
    for j in range(n_bad):
        front.score[size], front.item[size] = top.bad.score[j], j
        size += cost[j] < limit
    sort_falling(front, size, top.bins)
    return size


@kernel
def count_that_pay(top: Top, n_good: int, n_bad: int, size: int, cost: Floats) -> int:
    """Return how many items of the front go before all relevant ones."""
    for j in range(size):
        r = top.ahead[0] + j
        if n_good * n_bad <= cost[top.front.item[j]] * (r + 1.0) * (r + 2.0):
            return j
    return size


@kernel
def mrr_block(scores: Scores, relevance: Bytes, offsets: Ints, k: int, losses: Floats, weights: Floats) -> None:
    """Fill the loss and the weights psi(0) - psi(m) of each list; ``k`` is not used."""
    n = longest(offsets)
    top, cost = new_top(n), np.empty(n)
    for number in range(len(losses)):
        n_good, n_bad = open_list(scores, relevance, offsets[number], offsets[number + 1], top, weights)
        losses[number] = 0.0
        if n_good == 0 or n_bad == 0:
            continue
        size = sort_hopeful(top, n_good, n_bad, cost)
        taken = count_that_pay(top, n_good, n_bad, size, cost)
        r = top.ahead[0] + taken
        losses[number] = 1.0 - 1.0 / (r + 1)
        write_behind(top, n_good, n_bad, 0, r, weights)
        for j in range(taken):
            weights[top.bad.item[top.front.item[j]]] = -2.0 / n_bad
