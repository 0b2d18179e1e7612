"""The most violated ranking for precision at k, and for the error of k nearest neighbors.

    precision: Delta(t) = 1 - t / min(k', P),    knn: Delta(t) = 1 where t <= k'/2, else 0,    k' = min(k, P + N)

t counts relevant items among the first k', b = k' - t irrelevant ones. Given t, the best ranking is the one by score
with its boundary shifted: m_i = min(ahead_i, b) for i <= t and max(ahead_i, b) for i > t. Each t costs O(1).

Nearest neighbors vote; a draw counts as an error, and so does a list with too few relevant items to win.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.running.kernel import kernel
from slatewise.metric_learning.kernels.interleave import Scores, longest
from slatewise.metric_learning.kernels.interleave_top import Top, move, new_top, open_list, sort_front, write_behind


@kernel
def precision_loss(t: int, k: int, n_good: int) -> float:
    """Return one minus the precision, as a share of the best possible."""
    return 1.0 - t / min(k, n_good)


@kernel
def vote_loss(t: int, k: int) -> float:
    """Return 1 where relevant items have no majority among k."""
    return 1.0 if 2 * t <= k else 0.0


@kernel
def scan(top: Top, n_good: int, n_bad: int, k: int, vote: bool) -> int:
    """Return the t, the smallest, with the largest loss plus score."""
    fewer, not_more = n_good, n_good  # relevant items with ahead_i < b, and with ahead_i <= b
    least = max(0, k - n_bad)
    best, at = -np.inf, least
    for t in range(least, min(k, n_good) + 1):
        b = k - t
        while fewer > 0 and top.ahead[fewer - 1] >= b:
            fewer -= 1
        while not_more > 0 and top.ahead[not_more - 1] > b:
            not_more -= 1
        gain = n_good * n_bad * (vote_loss(t, k) if vote else precision_loss(t, k, n_good))
        if fewer > t:
            gain += move(top, t, fewer, b)
        elif not_more < t:
            gain += move(top, not_more, t, b)
        if gain > best:
            best, at = gain, t
    return at


@kernel
def rank_list(top: Top, n_good: int, n_bad: int, k: int, vote: bool, weights: Floats) -> float:
    """Return the loss of the most violated ranking and fill its weights."""
    sort_front(top, n_bad, min(k, n_bad))
    t = scan(top, n_good, n_bad, k, vote)
    b = k - t
    write_behind(top, n_good, n_bad, t, b, weights)
    unit = 2.0 / (n_good * n_bad)
    for i in range(t):
        weights[top.good.item[i]] = unit * min(top.ahead[i], b)
    for j in range(b):
        place = top.front.item[j]
        weights[top.bad.item[place]] = unit * (min(top.over[place], t) - n_good)
    return vote_loss(t, k) if vote else precision_loss(t, k, n_good)


@kernel
def precision_block(scores: Scores, relevance: Bytes, offsets: Ints, k: int, losses: Floats, weights: Floats) -> None:
    """Fill the loss and the weights psi(0) - psi(m) of each list."""
    top = new_top(longest(offsets))
    for number in range(len(losses)):
        n_good, n_bad = open_list(scores, relevance, offsets[number], offsets[number + 1], top, weights)
        losses[number] = 0.0
        if n_good > 0 and n_bad > 0:
            losses[number] = rank_list(top, n_good, n_bad, min(k, n_good + n_bad), False, weights)


@kernel
def knn_block(scores: Scores, relevance: Bytes, offsets: Ints, k: int, losses: Floats, weights: Floats) -> None:
    """Fill the loss and the weights psi(0) - psi(m) of each list."""
    top = new_top(longest(offsets))
    for number in range(len(losses)):
        n_good, n_bad = open_list(scores, relevance, offsets[number], offsets[number + 1], top, weights)
        losses[number] = 0.0
        if n_good > 0 and n_bad > 0:
            losses[number] = rank_list(top, n_good, n_bad, min(k, n_good + n_bad), True, weights)
