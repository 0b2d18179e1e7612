"""The two sides of a list, relevant and irrelevant, as the oracles of metric learning to rank need them.

    s_1 >= .. >= s_P: relevant,    v_j: irrelevant,    over_j = #{i : s_i >= v_j},    ahead_i = #{j : v_j > s_i}

A ranking that keeps score order inside both sides is a vector m_1 <= .. <= m_P, m_i = irrelevant items before i; the
one by score is m = ahead. Sorting the P relevant items is enough to know it: ``over`` is a search among them, and
``ahead`` the histogram of ``over`` summed up. That takes O((P + N) log P), and close to O(P + N) where scores spread.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.running.kernel import kernel

Scores: TypeAlias = NDArray[np.floating[Any]]

# Up to this many values an insertion sort beats everything.
_FEW = 24
# Bins per value in a search: most bins are then empty or hold one value.
_BINS = 4


class Side(NamedTuple):
    """One side of a list: scores and the items they belong to. The first entries are in use, as many as it has."""

    score: Floats
    item: Ints


class Bins(NamedTuple):
    """Buffers to deal a side into equal bins; ``start`` says where the values of a bin begin."""

    score: Floats
    item: Ints
    start: Ints


class Search(NamedTuple):
    """How :func:`count_at_least` finds a value: its bin, then steps of ``stride``, ``stride / 2`` .. 1 inside it."""

    top: float
    scale: float
    last: float
    stride: int


@kernel
def longest(offsets: Ints) -> int:
    """Return the length of the longest list."""
    length = 0
    for number in range(len(offsets) - 1):
        length = max(length, offsets[number + 1] - offsets[number])
    return length


@kernel
def new_side(n: int) -> Side:
    """Allocate a side of up to n items, with places for the values that end a search."""
    return Side(np.empty(3 * n + 1), np.empty(n + 1, np.int64))


@kernel
def new_bins(n: int) -> Bins:
    """Allocate the buffers for a side of up to n items."""
    return Bins(np.empty(n), np.empty(n, np.int64), np.empty(_BINS * n + 2, np.int64))


@kernel
def split(scores: Scores, relevance: Bytes, low: int, high: int, wanted: int, side: Side) -> int:
    """Gather the items low..high whose relevance is ``wanted``; return how many."""
    score, item = side.score, side.item
    n = 0
    for i in range(low, high):  # no branch to mispredict: the next item overwrites one that is not wanted
        score[n] = scores[i]
        item[n] = i
        n += relevance[i] == wanted
    return n


@kernel
def insert_falling(score: Floats, item: Ints, low: int, high: int) -> None:
    """Sort low..high by falling score; equal ones keep their order."""
    for i in range(low + 1, high):
        own, place = score[i], item[i]
        j = i
        while j > low and score[j - 1] < own:
            score[j], item[j] = score[j - 1], item[j - 1]
            j -= 1
        score[j], item[j] = own, place


@kernel
def merge_falling(score: Floats, item: Ints, low: int, high: int, bins: Bins) -> None:
    """Sort low..high by falling score, however bunched; equal ones keep their order."""
    for begin in range(low, high, _FEW):
        insert_falling(score, item, begin, min(begin + _FEW, high))
    width = _FEW
    while width < high - low:
        for begin in range(low, high - width, 2 * width):
            for i in range(begin, begin + width):
                bins.score[i], bins.item[i] = score[i], item[i]
            left, right, end = begin, begin + width, min(begin + 2 * width, high)
            place = begin
            while left < begin + width:  # what is left of the right half is in place already
                if right < end and score[right] > bins.score[left]:
                    score[place], item[place] = score[right], item[right]
                    right += 1
                else:
                    score[place], item[place] = bins.score[left], bins.item[left]
                    left += 1
                place += 1
        width *= 2


@kernel
def bin_scale(spread: float, n_bins: int) -> float:
    """Return what turns the distance from the top into a bin below ``n_bins``; 0, all in one, where nothing spreads."""
    scale = (n_bins - 1) / spread if spread > 0.0 else 0.0
    return scale if scale < np.inf else 0.0


@kernel
def bin_of(distance: float, scale: float, last: float) -> int:
    """Return the bin of a value so far from the top; 0 for one that is not a number, which else would index nowhere."""
    place = distance * scale
    place = place if place > 0.0 else 0.0
    return int(place if place < last else last)


@kernel
def sort_falling(side: Side, n: int, bins: Bins) -> None:
    """Sort a side of n items by falling score; equal ones keep their order.

    Values are dealt into n equal bins, which then hold one or two each. A bin may hold many, where values are bunched.
    """
    score, item, start = side.score, side.item, bins.start
    if n <= _FEW:
        insert_falling(score, item, 0, n)
        return
    top, bottom = score[0], score[0]
    for i in range(1, n):
        top, bottom = max(top, score[i]), min(bottom, score[i])
    scale, last = bin_scale(top - bottom, n), n - 1.0
    for b in range(n + 1):
        start[b] = 0
    for i in range(n):
        bins.score[i], bins.item[i] = score[i], item[i]
        start[bin_of(top - score[i], scale, last) + 1] += 1
    for b in range(n):
        start[b + 1] += start[b]
    for i in range(n):
        b = bin_of(top - bins.score[i], scale, last)
        place = start[b]
        start[b] = place + 1
        score[place], item[place] = bins.score[i], bins.item[i]
    low = 0
    for b in range(n):
        high = start[b]  # after the dealing a bin's start has moved to its end
        if high - low > _FEW:
            merge_falling(score, item, low, high, bins)
        elif high - low > 1:
            insert_falling(score, item, low, high)
        low = high


@kernel
def new_search(score: Floats, n: int, start: Ints) -> Search:
    """Prepare to count among the n falling scores; fill ``start`` and the places behind the scores."""
    top, n_bins = score[0], _BINS * n
    scale = bin_scale(top - score[n - 1], n_bins)
    b, most = 0, 1
    for i in range(n):
        own = bin_of(top - score[i], scale, n_bins - 1.0)
        while b <= own:
            start[b] = i
            b += 1
        most = max(most, i + 1 - start[own])
    while b <= n_bins:
        start[b] = n
        b += 1
    stride = 1
    while 2 * stride <= most:
        stride *= 2
    for i in range(n, n + 2 * stride):
        score[i] = np.nan  # at least no value
    return Search(top, scale, float(n_bins), stride)


@kernel
def count_at_least(value: float, score: Floats, start: Ints, search: Search) -> int:
    """Return how many of the falling scores are >= value.

    No step depends on a comparison but by arithmetic: a mispredicted branch would cost more than all of them.
    """
    count = start[bin_of(search.top - value, search.scale, search.last)]
    stride = search.stride
    while stride > 0:
        count += stride * (score[count + stride - 1] >= value)
        stride >>= 1
    return count
