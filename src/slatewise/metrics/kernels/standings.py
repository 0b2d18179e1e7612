"""Count, for the marked rows of each list, how many items score higher and how many the same.

    above_i = #{j : s_j > s_i},    tied_i = #{j : s_j = s_i}

Few marked rows: count them one by one, a loop the compiler turns into vector instructions. Many: sort once.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints
from slatewise.core.running.kernel import kernel

Float: TypeAlias = NDArray[np.floating[Any]]

# Counting costs marked * n comparisons of a fraction of a nanosecond, sorting n log n steps of several nanoseconds.
_MOST_COUNTED = 64


@kernel
def stand(
    scores: Float, offsets: Ints, starts: Ints, rows: Ints, above: Ints, tied: Ints, begin: int, end: int
) -> None:
    """Fill ``above`` and ``tied`` for the lists begin..end, and put each list's ``rows`` in order of falling score."""
    for number in range(begin, end):
        low, high = offsets[number], offsets[number + 1]
        first, last = starts[number], starts[number + 1]
        if last - first <= _MOST_COUNTED:
            count_each(scores[low:high], scores, rows[first:last], above[first:last], tied[first:last])
            insertion_sort(rows[first:last], above[first:last], tied[first:last])
        else:
            sort_all(scores[low:high], low, rows[first:last], above[first:last], tied[first:last])


@kernel
def count_each(values: Float, scores: Float, rows: Ints, above: Ints, tied: Ints) -> None:
    """Count against every item of the list."""
    for i in range(len(rows)):
        own = scores[rows[i]]
        larger, equal = 0, 0
        for j in range(len(values)):
            larger += values[j] > own
            equal += values[j] == own
        above[i], tied[i] = larger, equal


@kernel
def insertion_sort(rows: Ints, above: Ints, tied: Ints) -> None:
    """Sort the three arrays together by ``above``."""
    for i in range(1, len(rows)):
        row, larger, equal = rows[i], above[i], tied[i]
        j = i
        while j > 0 and above[j - 1] > larger:
            rows[j], above[j], tied[j] = rows[j - 1], above[j - 1], tied[j - 1]
            j -= 1
        rows[j], above[j], tied[j] = row, larger, equal


@kernel
def sort_all(values: Float, low: int, rows: Ints, above: Ints, tied: Ints) -> None:
    """Sort the whole list once, then read the marked items off in order."""
    n = len(values)
    marked = np.zeros(n, dtype=np.bool_)
    for i in range(len(rows)):
        marked[rows[i] - low] = True
    order = np.argsort(-values)
    found, start = 0, 0
    while start < n:
        stop = start + 1
        while stop < n and values[order[stop]] == values[order[start]]:
            stop += 1
        for rank in range(start, stop):
            if marked[order[rank]]:
                rows[found], above[found], tied[found] = low + order[rank], start, stop - start
                found += 1
        start = stop
