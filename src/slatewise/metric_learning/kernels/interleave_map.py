"""The most violated ranking for average precision.

    Delta(m) = (1/P) sum_l m_l / (l + m_l)

    Delta(m) + <W, psi(m) - psi(0)> = (1/P) sum_j G_j(x_j),
    G_j(x) = sum_{l > x} [ l / ((l + j) (l + j - 1)) - 2 (s_l - v_j) / N ]

x_j = relevant items before the j-th best irrelevant one, because m_l / (l + m_l) is the sum of the first terms over
j <= m_l. Both terms fall with j, so the best x_j rises with j: the middle j is decided first and bounds the others,
O((P + N) log N) in all.

An irrelevant item stays behind all relevant ones, x_j = P, if all its terms are <= 0. For any j > J that holds where

    v_j <= min_l  s_l - (N/2) l / ((l + J + 1) (l + J))

so items this low are dropped before the sort, for a J such that at least J items are not. Usually most are dropped.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.running.kernel import kernel
from slatewise.metric_learning.kernels.interleave import Scores, Side, longest, new_bins, new_side, sort_falling, split


@kernel
def drop_hopeless(good: Floats, n_good: int, bad: Side, n_bad: int, pace: Floats) -> int:
    """Keep, in front of ``bad``, the items that may go before a relevant one; return how many."""
    score, item = bad.score, bad.item
    rank, kept, threshold = n_bad, 0, -np.inf
    while kept < rank:
        rank >>= 1
        threshold = np.inf
        for x in range(n_good):
            threshold = min(threshold, good[x] - 0.5 * n_bad * (x + 1) * pace[x + 2 + rank])
        kept = 0
        for j in range(n_bad):
            kept += score[j] > threshold
    kept = 0
    for j in range(n_bad):
        score[kept], item[kept] = score[j], item[j]
        kept += score[j] > threshold
    return kept


@kernel
def best_before(good: Floats, value: float, j: int, low: int, high: int, price: float, pace: Floats) -> int:
    """Return the x in low..high, the smallest, with the largest G_j(x)."""
    best, total, at = 0.0, 0.0, high
    for x in range(high - 1, low - 1, -1):
        total += (x + 1) * pace[x + 1 + j] - price * (good[x] - value)
        if total >= best:
            best, at = total, x
    return at


@kernel
def conquer(good: Floats, n_good: int, bad: Floats, n_bad: int, price: float, pace: Floats, before: Ints) -> None:
    """Fill ``before``: x_j of each of the falling irrelevant scores."""
    stride = 1
    while 2 * stride <= n_bad:
        stride *= 2
    while stride > 0:
        for j in range(stride - 1, n_bad, 2 * stride):
            low = before[j - stride] if j >= stride else 0
            high = before[j + stride] if j + stride < n_bad else n_good
            before[j] = best_before(good, bad[j], j + 1, low, high, price, pace)
        stride >>= 1


@kernel
def map_block(scores: Scores, relevance: Bytes, offsets: Ints, k: int, losses: Floats, weights: Floats) -> None:
    """Fill the loss and the weights psi(0) - psi(m) of each list; ``k`` is not used."""
    n = longest(offsets)
    good, bad, bins = new_side(n), new_side(n), new_bins(n)
    ahead, before, pace = np.empty(n + 1, np.int64), np.empty(n, np.int64), np.zeros(n + 2)
    for t in range(2, n + 2):
        pace[t] = 1.0 / (t * (t - 1.0))
    for number in range(len(losses)):
        low, high = offsets[number], offsets[number + 1]
        n_good = split(scores, relevance, low, high, 1, good)
        n_bad = split(scores, relevance, low, high, 0, bad)
        losses[number] = 0.0
        for item in range(low, high):
            weights[item] = 0.0
        if n_good == 0 or n_bad == 0:
            continue
        sort_falling(good, n_good, bins)
        n_tried = drop_hopeless(good.score, n_good, bad, n_bad, pace)
        sort_falling(bad, n_tried, bins)
        conquer(good.score, n_good, bad.score, n_tried, 2.0 / n_bad, pace, before)
        unit = 2.0 / (n_good * n_bad)
        for i in range(n_good + 1):
            ahead[i] = 0
        for j in range(n_tried):
            ahead[before[j]] += 1
            weights[bad.item[j]] = unit * (before[j] - n_good)
        m, total = 0, 0.0
        for i in range(n_good):
            m += ahead[i]
            total += m / (i + 1 + m)
            weights[good.item[i]] = unit * m
        losses[number] = total / n_good
