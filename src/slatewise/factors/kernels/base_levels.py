"""Levels of few items per query: from scores of a base, how likely they are, and added to tiles of scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from slatewise.core.arrays import Floats, Ints, Shorts, Singles
from slatewise.core.running.kernel import kernel
from slatewise.recommend.kernels.best_few import best_first, offer
from slatewise.recommend.kernels.sparse_scores import SparseScores


@kernel
def _amount(level: Any, knots: Singles) -> np.float32:
    last = len(knots) - 2
    at = level * np.float32(last + 1)
    knot = min(int(at), last)
    return np.float32(knots[knot] + (at - np.float32(knot)) * (knots[knot + 1] - knots[knot]))


@kernel
def _place(items: Shorts, first: Any, last: Any, wanted: Any) -> int:
    """Return where an item is between two places, ascending; -1: nowhere."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if items[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < last and items[low] == wanted else -1


@kernel
def amounts_at(levels: Singles, knots: Singles, out: Singles) -> None:
    """Fill in what each level gets."""
    for place in range(len(levels)):
        out[place] = _amount(levels[place], knots)


@kernel
def amounts_of(
    wanted: Ints,
    queries: Ints,
    starts: Ints,
    ends: Ints,
    items: Shorts,
    levels: Singles,
    knots: Singles,
    out: Singles,
) -> None:
    """Fill in what item ``wanted[p]`` gets with query ``queries[p]``."""
    for pair in range(len(wanted)):
        place = _place(items, starts[queries[pair]], ends[queries[pair]], wanted[pair])
        if place >= 0:
            out[pair] = _amount(levels[place], knots)


@kernel
def add_amounts(
    scores: Singles, first_item: int, ends: Ints, items: Shorts, levels: Singles, knots: Singles, places: Ints
) -> None:
    """Add to a tile of scores that starts at ``first_item``; ``places`` remembers how far each row is."""
    for row in range(len(scores)):
        place, stop = places[row], first_item + scores.shape[1]
        while place < ends[row] and items[place] < stop:
            scores[row, items[place] - first_item] += _amount(levels[place], knots)
            place += 1
        places[row] = place


@kernel
def places_among(wanted: Ints, queries: Ints, starts: Ints, ends: Ints, items: Shorts, out: Ints) -> None:
    """Fill in where item ``wanted[p]`` is among those of query ``queries[p]``; -1: nowhere."""
    for pair in range(len(wanted)):
        out[pair] = _place(items, starts[queries[pair]], ends[queries[pair]], wanted[pair])


@kernel
def surprise(
    queries: Ints,
    targets: Ints,
    starts: Ints,
    ends: Ints,
    levels: Singles,
    n_items: int,
    knots: Floats,
    of_knots: Floats,
) -> float:
    """Return minus the log-likelihood of targets, and add its slope by the heights of the knots."""
    last, total = len(knots) - 2, 0.0
    shares = np.zeros(len(knots))
    for row in range(len(queries)):
        first, stop = starts[queries[row]], ends[queries[row]]
        shares[:] = 0.0
        mass = float(n_items - (stop - first))
        for place in range(first, stop):
            at = levels[place] * (last + 1.0)
            knot = min(int(at), last)
            share = at - knot
            height = knots[knot] + share * (knots[knot + 1] - knots[knot])
            weight = np.exp(min(height, 500.0))
            mass += weight
            shares[knot] += weight * (1.0 - share)
            shares[knot + 1] += weight * share
            if place == targets[row]:
                total -= height
                of_knots[knot] -= 1.0 - share
                of_knots[knot + 1] -= share
        total += np.log(mass)
        for knot in range(len(knots)):
            of_knots[knot] += shares[knot] / mass
    return total


@kernel
def best_levels(found: SparseScores, depth: int, ends: Ints, items: Shorts, levels: Singles) -> None:
    """Fill in the levels of each query's best items, at most ``depth``, in the order of items; ``ends`` from 0 on."""
    best, names, n = np.empty(depth), np.empty(depth, np.int64), 0
    for q in range(len(found.starts)):
        size = 0
        for at in range(found.starts[q], found.ends[q]):
            if found.scores[at] > 0.0:
                size = offer(best, names, size, found.scores[at], found.items[at])
        best_first(best, names, size)
        order = np.argsort(names[:size])
        for place in order:
            items[n] = names[place]
            levels[n] = np.log1p(9.0 * (best[place] / best[0])) / np.log(10.0)
            n += 1
        ends[q] = n
