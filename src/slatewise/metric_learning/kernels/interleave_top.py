"""What the losses that look at the top of a list share.

A ranking with the t best relevant and the b best irrelevant items in front, and the others behind in score order, has

    m_i <= b for i <= t,    m_i = max(ahead_i, b) for i > t

Its score is compared with that of the ranking by score, m = ahead, in units of 1/PN:

    sum_i h_i(m_i) - h_i(ahead_i),    h_i(m) = 2 (c_m - m s_i),    c_m = v_1 + .. + v_m

The i that move to the same m are neighbors, so prefix sums give them all at once; and only the front of the
irrelevant items is ever sorted, the others are looked up among the relevant ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.running.kernel import kernel
from slatewise.metric_learning.kernels.interleave import (
    Bins,
    Scores,
    Side,
    count_at_least,
    new_bins,
    new_search,
    new_side,
    sort_falling,
    split,
)


class Top(NamedTuple):
    """Work space for one list. Scores are less the middle relevant one, so that their sums stay small."""

    good: Side
    """The relevant items, falling."""
    bad: Side
    """The irrelevant items, in the order of the list."""
    over: Ints
    """over_j of those: the relevant items before them by score."""
    front: Side
    """The best irrelevant items, falling; ``front.item`` numbers them as ``bad`` does."""
    front_sum: Floats
    """c_m, from m = 0."""
    ahead: Ints
    """ahead_i, the irrelevant items before relevant i by score."""
    good_sum: Floats
    """Sum of the first i relevant scores, from i = 0."""
    kept_sum: Floats
    """Sum of the first i of h_i(ahead_i), from i = 0."""
    bins: Bins


@kernel
def new_top(n: int) -> Top:
    """Allocate the work space for lists of up to n items."""
    good, bad, front = new_side(n), new_side(n), new_side(n)
    over, ahead = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    return Top(good, bad, over, front, np.empty(n + 1), ahead, np.empty(n + 1), np.empty(n + 1), new_bins(n))


@kernel
def open_list(scores: Scores, relevance: Bytes, low: int, high: int, top: Top, weights: Floats) -> tuple[int, int]:
    """Fill all but the front, and zeros as weights; return how many items are relevant, and irrelevant."""
    good, bad, ahead, good_sum, kept_sum = top.good, top.bad, top.ahead, top.good_sum, top.kept_sum
    n_good = split(scores, relevance, low, high, 1, good)
    n_bad = split(scores, relevance, low, high, 0, bad)
    for item in range(low, high):
        weights[item] = 0.0
    if n_good == 0 or n_bad == 0:
        return n_good, n_bad
    sort_falling(good, n_good, top.bins)
    middle = good.score[n_good >> 1]
    for i in range(n_good):
        good.score[i] -= middle
    search = new_search(good.score, n_good, top.bins.start)
    for i in range(n_good + 1):
        ahead[i], kept_sum[i] = 0, 0.0
    for j in range(n_bad):
        bad.score[j] -= middle
        over = count_at_least(bad.score[j], good.score, top.bins.start, search)
        top.over[j] = over
        ahead[over] += 1
        kept_sum[over] += bad.score[j]
    # Histograms so far: now the sums. What falls on the last place is behind all relevant items.
    before, ahead_sum, good_total, kept_total = 0, 0.0, 0.0, 0.0
    for i in range(n_good):
        before += ahead[i]
        ahead_sum += kept_sum[i]
        ahead[i], good_sum[i], kept_sum[i] = before, good_total, kept_total
        good_total += good.score[i]
        kept_total += 2.0 * (ahead_sum - before * good.score[i])
    good_sum[n_good], kept_sum[n_good] = good_total, kept_total
    return n_good, n_bad


@kernel
def sort_front(top: Top, n_bad: int, count: int) -> None:
    """Fill the front with the ``count`` best irrelevant items."""
    front, score = top.front, top.bad.score
    buffered = min(2 * count + 32, n_bad)
    size, threshold = 0, np.nan  # nothing is below that
    for j in range(n_bad):
        if not score[j] <= threshold:
            front.score[size], front.item[size] = score[j], j
            size += 1
            if size == buffered and buffered > count:
                sort_falling(front, size, top.bins)
                size, threshold = count, front.score[count - 1]
    sort_falling(front, size, top.bins)
    top.front_sum[0] = 0.0
    for j in range(count):
        top.front_sum[j + 1] = top.front_sum[j] + front.score[j]


@kernel
def move(top: Top, first: int, last: int, m: int) -> float:
    """Return what the score gains, at most 0, when the relevant items first..last go from ahead_i to m."""
    kept = top.kept_sum[last] - top.kept_sum[first]
    return 2.0 * (top.front_sum[m] * (last - first) - m * (top.good_sum[last] - top.good_sum[first])) - kept


@kernel
def write_behind(top: Top, n_good: int, n_bad: int, t: int, b: int, weights: Floats) -> None:
    """Fill the weights of all items behind t relevant and b irrelevant ones; what stands in front comes after."""
    unit = 2.0 / (n_good * n_bad)
    for i in range(t, n_good):
        weights[top.good.item[i]] = unit * max(top.ahead[i], b)
    for j in range(n_bad):
        weights[top.bad.item[j]] = unit * (max(top.over[j], t) - n_good)
