"""Rank items by products with their rows, and read the rows of few: a byte per number tells whose score can be large.

    z = s b + e,   x = t w + g,   b bytes, w whole numbers, |e_f| <= s / 2, |g_f| <= t / 2

    x . z  <=  s (t w . b + slack),   slack = |x|_1 / 2 + 127 t n / 2 and something for products and sums in float32

Items whose bound does not reach the k-th best so far are passed over; the score of the others is the exact one. Bytes
lie by column in tiles of items, so that many sums grow side by side and none has to be added up across a register, and
four columns are added at once, so that sums are read and written less often; of most tiles no item reaches the bar.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.kernel import kernel
from slatewise.recommend.kernels.singles import dot

Whole: TypeAlias = NDArray[Any]

LARGEST_BYTE = 127
AT_ONCE = 4
"""Columns that are added together; there are a multiple of them, the last ones zeros."""


@kernel
def to_bytes(rows: Singles, width: int, factors: Singles, numbers: Whole, scales: Singles) -> bool:
    """Write the first columns of rows, times a factor each, as int8 times a scale; False: one is not finite."""
    tile = numbers.shape[2]
    for d in range(len(rows)):
        largest = np.float32(0.0)
        for f in range(width):
            size = abs(rows[d, f] * factors[d])
            if not np.isfinite(size):
                return False
            largest = max(largest, size)
        scales[d] = max(largest / np.float32(LARGEST_BYTE), np.finfo(np.float32).tiny)
        for f in range(width):
            numbers[d // tile, f, d % tile] = np.rint(rows[d, f] * factors[d] / scales[d])
    return True


class QuantizedQuery(NamedTuple):
    """x, w, t and slack of the bound."""

    vector: Singles
    whole: Whole
    unit: float
    slack: float


class QuantizedItems(NamedTuple):
    """b and s of the bound, and the rows z, whose scores are multiplied by factors."""

    numbers: Whole
    scales: Singles
    rows: Singles
    factors: Singles


@kernel
def best_by_bound(
    query: QuantizedQuery, catalogue: QuantizedItems, hidden: Ints, sums: Whole, best: Singles, items: Ints
) -> None:
    """Put the k best items into ``items``, best first, equal scores by number; ``hidden`` are left out, ascending.

    ``sums``, one per item of a tile, is memory to work in.
    """
    whole, unit, slack = query.whole, query.unit, query.slack
    numbers, scales = catalogue.numbers, catalogue.scales
    size, n_items, more = numbers.shape[2], len(scales), np.float32(slack / unit)
    for tile in range(len(numbers)):
        for i in range(size):
            sums[i] = 0
        for f in range(0, len(whole), AT_ONCE):
            one, two, three, four = whole[f], whole[f + 1], whole[f + 2], whole[f + 3]
            for i in range(len(sums)):
                sums[i] += (
                    np.int32(one * np.int32(numbers[tile, f, i]))
                    + np.int32(two * np.int32(numbers[tile, f + 1, i]))
                    + np.int32(three * np.int32(numbers[tile, f + 2, i]))
                    + np.int32(four * np.int32(numbers[tile, f + 3, i]))
                )
        first = tile * size
        n, bar, reached = min(size, n_items - first), np.float32(best[len(best) - 1] / unit), 0
        of_tile = scales[first : first + n]
        for i in range(n):  # in units, and in float32: infinities, should there be any, reach each other
            reached += of_tile[i] * (np.float32(sums[i]) + more) >= bar
        if reached:
            _score(query, catalogue, hidden, first, sums[:n], best, items)


@kernel
def _score(
    query: QuantizedQuery, catalogue: QuantizedItems, hidden: Ints, first: int, sums: Whole, best: Singles, items: Ints
) -> None:
    """Offer the items of a tile, from the ``first`` on, whose bound reaches the bar, which rises on the way."""
    vector, _, unit, slack = query
    _, scales, rows, factors = catalogue
    k = len(best)
    for i in range(len(sums)):
        d = first + i
        if scales[d] * (unit * sums[i] + slack) <= best[k - 1]:
            continue
        score = dot(vector, rows[d, : len(vector)]) * factors[d]
        if not score > best[k - 1]:  # NaN has no place
            continue
        place = np.searchsorted(hidden, d)
        if place < len(hidden) and hidden[place] == d:
            continue
        place = k - 1
        while place > 0 and best[place - 1] < score:
            best[place], items[place] = best[place - 1], items[place - 1]
            place -= 1
        best[place], items[place] = score, d
