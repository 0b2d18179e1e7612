"""The most violated ranking for NDCG at k with relevance 0 or 1.

    Delta = 1 - (1/D) sum of d_p over the positions p <= k with a relevant item,    k <- min(k, P)
    d_p = 1, 1, 1 / log2(3), 1 / log2(4), .. (LETOR's discount),    D = d_1 + .. + d_k

A walk over how many relevant (a) and irrelevant (b) items stand on the first a + b positions. It costs O(k^2); behind
the first k positions nothing is lost any more, and score order with m_i >= b is best.

    V(a, b) = max{ V(a - 1, b) + h_a(b) - h_a(ahead_a) - PN d_{a+b} / D,  V(a, b - 1) }
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.running.kernel import kernel
from slatewise.metric_learning.kernels.interleave import Scores, longest
from slatewise.metric_learning.kernels.interleave_top import Top, move, new_top, open_list, sort_front, write_behind


@kernel
def walk(
    top: Top, n_good: int, k: int, most_bad: int, unit: float, discount: Floats, values: Floats, last: Bytes
) -> int:
    """Fill ``last``, 1 where (a, b) is best entered with a relevant item; return the best a with a + b = k."""
    for b in range(most_bad + 1):
        values[b] = 0.0
    fewer = n_good  # relevant items with ahead_i < b
    best, at = -np.inf, max(0, k - most_bad)
    for a in range(k + 1):
        for b in range(min(k - a, most_bad) + 1):
            if a > 0:
                values[b] += move(top, a - 1, a, b) - unit * discount[a + b - 1]
                last[a, b] = b == 0 or values[b] >= values[b - 1]
                if not last[a, b]:
                    values[b] = values[b - 1]
        b = k - a
        if b <= most_bad:
            while fewer > 0 and top.ahead[fewer - 1] >= b:
                fewer -= 1
            value = values[b] + (move(top, a, fewer, b) if fewer > a else 0.0)
            if value >= best:
                best, at = value, a
    return at


@kernel
def most_relevant(relevance: Bytes, offsets: Ints) -> int:
    """Return the largest number of relevant items in a list."""
    most = 0
    for number in range(len(offsets) - 1):
        count = 0
        for item in range(offsets[number], offsets[number + 1]):
            count += relevance[item] == 1
        most = max(most, count)
    return most


@kernel
def ndcg_block(scores: Scores, relevance: Bytes, offsets: Ints, k: int, losses: Floats, weights: Floats) -> None:
    """Fill the loss and the weights psi(0) - psi(m) of each list."""
    top, most = new_top(longest(offsets)), min(k, most_relevant(relevance, offsets))
    values, last, discount = np.empty(most + 1), np.zeros((most + 1, most + 1), np.int8), np.ones(most)
    for p in range(2, most):
        discount[p] = 1.0 / np.log2(p + 1.0)
    for number in range(len(losses)):
        n_good, n_bad = open_list(scores, relevance, offsets[number], offsets[number + 1], top, weights)
        losses[number] = 0.0
        if n_good == 0 or n_bad == 0:
            continue
        cut, total = min(k, n_good), 0.0
        for p in range(cut):
            total += discount[p]
        most_bad = min(cut, n_bad)
        sort_front(top, n_bad, most_bad)
        a = walk(top, n_good, cut, most_bad, n_good * n_bad / total, discount, values, last)
        b = cut - a
        write_behind(top, n_good, n_bad, a, b, weights)
        unit, lost = 2.0 / (n_good * n_bad), total
        while a + b > 0:  # back along the walk
            if a > 0 and last[a, b]:
                a -= 1
                weights[top.good.item[a]] = unit * b
                lost -= discount[a + b]
            else:
                b -= 1
                weights[top.bad.item[top.front.item[b]]] = unit * (a - n_good)
        losses[number] = lost / total
