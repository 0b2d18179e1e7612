"""Keep the k best of a tile of scores, with the k best of the tiles before it.

A chunk of items is looked at one by one only if its largest score beats the k-th best so far. Tiles come in item order
and only a larger score moves in, so equal scores rank by item number.

Hidden items get the score -inf before their tile is merged; items that get an amount beside the product are hidden from
the tiles, and put among the best of all others afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.kernel import kernel
from slatewise.recommend.kernels.singles import count_above, dot

if TYPE_CHECKING:
    from slatewise.factors.offsets import ItemOffsets
    from slatewise.factors.scoring import Hidden


CHUNK = 64


@kernel
def hide_items(scores: Singles, first_item: int, offsets: Ints, items: Ints, places: Ints) -> None:
    """Give the items of CSR row r, ascending, the score -inf in row r; ``places`` remembers how far each row is."""
    for row in range(len(scores)):
        place = places[row]
        while place < offsets[row + 1] and items[place] < first_item + scores.shape[1]:
            if items[place] >= first_item:
                scores[row, items[place] - first_item] = -np.inf
            place += 1
        places[row] = place


@kernel
def keep_best(scores: Singles, first_item: int, best: Singles, items: Ints) -> None:
    """Merge a tile into the k best of each row, best first; unfilled places hold the score -inf and item -1."""
    k = best.shape[1]
    for row in range(len(scores)):
        values, top, names = scores[row], best[row], items[row]
        for first in range(0, len(values), CHUNK):
            chunk = values[first : first + CHUNK]
            if not count_above(chunk, top[k - 1]):
                continue
            for j in range(len(chunk)):
                value = chunk[j]
                if not value > top[k - 1]:  # NaN has no place
                    continue
                place = k - 1
                while place > 0 and top[place - 1] < value:
                    top[place], names[place] = top[place - 1], names[place - 1]
                    place -= 1
                top[place], names[place] = value, first_item + first + j


@kernel
def put_items(vectors: Singles, table: Singles, held: ItemOffsets, hidden: Hidden, best: Singles, items: Ints) -> None:
    """Merge items into the k best of each row, of which they are none yet: product with the vector, and an amount."""
    offsets, wanted, amounts = held
    starts, unwanted = hidden
    k, width = best.shape[1], vectors.shape[1]
    for row in range(len(vectors)):
        top, names, out_of_sight = best[row], items[row], unwanted[starts[row] : starts[row + 1]]
        for entry in range(offsets[row], offsets[row + 1]):
            item = wanted[entry]
            first = int(np.searchsorted(out_of_sight, np.int64(item)))
            if first < len(out_of_sight) and out_of_sight[first] == item:
                continue
            value = dot(vectors[row], table[item, :width]) + amounts[entry]
            place = k
            while place > 0 and (top[place - 1] < value or (top[place - 1] == value and names[place - 1] > item)):
                if place < k:
                    top[place], names[place] = top[place - 1], names[place - 1]
                place -= 1
            if place < k:
                top[place], names[place] = value, item
