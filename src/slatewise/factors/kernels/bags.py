"""Sums over the items of a bag, which is a slice of a flat array: its last item has age 0, the one before it age 1.

Where there is one weight for all ages, items are in no order and their sum is divided by the root of their number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from slatewise.core.arrays import Floats, Ints, Singles
from slatewise.core.running.kernel import kernel
from slatewise.recommend.kernels.singles import dot

if TYPE_CHECKING:
    from slatewise.factors.bags import Bags
    from slatewise.factors.tables import Entries


@kernel
def _scale(size: int, n_ages: int) -> np.float32:
    return np.float32(1.0 / np.sqrt(size)) if n_ages == 1 and size else np.float32(1.0)


@kernel
def bag_vectors(table: Singles, bags: Bags, weights: Singles, n: int, out: Singles) -> None:
    """Add the weighted sum of the first n columns of the items' rows to each row of ``out``."""
    items, starts, ends = bags
    last = len(weights) - 1
    for row in range(len(starts)):
        scale = _scale(ends[row] - starts[row], len(weights))
        total = out[row]
        for place in range(starts[row], ends[row]):
            weight, vector = scale * weights[min(ends[row] - 1 - place, last)], table[items[place]]
            for f in range(n):
                total[f] += weight * vector[f]


@kernel
def bag_entries(bags: Bags, weights: Singles, entries: Entries) -> None:
    """Fill what a gradient of the vectors asks of the items' rows: an entry per item of a bag."""
    items, starts, ends = bags
    rows, coefficients, sources = entries
    entry, last = 0, len(weights) - 1
    for row in range(len(starts)):
        scale = _scale(ends[row] - starts[row], len(weights))
        for place in range(starts[row], ends[row]):
            rows[entry], sources[entry] = items[place], row
            coefficients[entry] = scale * weights[min(ends[row] - 1 - place, last)]
            entry += 1


@kernel
def weight_gradient(table: Singles, bags: Bags, gradient: Singles, n: int, by_age: Floats) -> None:
    """Add what a gradient of the vectors asks of the weight of each age."""
    items, starts, ends = bags
    last = len(by_age) - 1
    for row in range(len(starts)):
        scale = _scale(ends[row] - starts[row], len(by_age))
        for place in range(starts[row], ends[row]):
            here = dot(gradient[row, :n], table[items[place], :n])
            by_age[min(ends[row] - 1 - place, last)] += scale * here


@kernel
def add_repeats(scores: Singles, first_item: int, bags: Bags, repeats: Singles) -> None:
    """Add to a tile of scores, that starts at ``first_item``, what each row's own items get by their age."""
    items, starts, ends = bags
    last, size = len(repeats) - 1, scores.shape[1]
    for row in range(len(starts)):
        for place in range(starts[row], ends[row]):
            column = items[place] - first_item
            if 0 <= column < size:
                scores[row, column] += repeats[min(ends[row] - 1 - place, last)]


@kernel
def repeats_of(wanted: Ints, rows: Ints, bags: Bags, repeats: Singles, out: Singles) -> None:
    """Add what item ``wanted[p]`` gets in row ``rows[p]``."""
    items, starts, ends = bags
    last = len(repeats) - 1
    for pair in range(len(wanted)):
        row = rows[pair]
        for place in range(starts[row], ends[row]):
            if items[place] == wanted[pair]:
                out[pair] += repeats[min(ends[row] - 1 - place, last)]


@kernel
def repeat_gradient(entries: Entries, bags: Bags, by_age: Floats) -> None:
    """Add what entries for items, whose sources are rows, ask of what repeated items get, by age."""
    items, starts, ends = bags
    wanted, coefficients, rows = entries
    last = len(by_age) - 1
    for entry in range(len(wanted)):
        item, row = wanted[entry], rows[entry]
        for place in range(starts[row], ends[row]):
            if items[place] == item:
                by_age[min(ends[row] - 1 - place, last)] += coefficients[entry]
