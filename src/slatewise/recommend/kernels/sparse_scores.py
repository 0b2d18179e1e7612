"""Lists from scores of few items: those with a score > 0 first, all others by popularity.

An item without a score > 0 has its share of sessions less 1: below 0 and above -1. Equal scores rank by number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.kernel import kernel
from slatewise.recommend.kernels.best_few import best_first, offer
from slatewise.recommend.kernels.neighbors import QueryItems


class SparseScores(NamedTuple):
    """Query q scores ``items[starts[q]:ends[q]]``, each once, by ``scores``."""

    starts: Ints
    ends: Ints
    items: Ints
    scores: Floats


class Popularity(NamedTuple):
    """The score of items that have no other, and the items by it, best first."""

    scores: Floats
    order: Ints


class ItemSets(NamedTuple):
    """Items of each query: ``items[offsets[q]:offsets[q + 1]]``."""

    offsets: Ints
    items: Ints


@kernel
def weigh_repeats(queries: QueryItems, found: SparseScores, last: float, earlier: float, marks: Ints) -> None:
    """Multiply the scores of the query's last item, and of its earlier ones; ``marks`` are zeros."""
    for q in range(len(found.starts)):
        for place in range(queries.starts[q], queries.ends[q]):
            marks[queries.items[place]] = 2 if place == queries.ends[q] - 1 else 1
        for at in range(found.starts[q], found.ends[q]):
            mark = marks[found.items[at]]
            if mark:
                found.scores[at] *= last if mark == 2 else earlier
        for place in range(queries.starts[q], queries.ends[q]):
            marks[queries.items[place]] = 0


@kernel
def best_items(
    found: SparseScores, popularity: Popularity, hidden: ItemSets, marks: Ints, best: Floats, items: Ints
) -> None:
    """Fill in the best items of each query but the hidden ones, best first, as many as there are places for."""
    k = items.shape[1]
    for q in range(len(found.starts)):
        size, mark = 0, q + 1
        for at in range(hidden.offsets[q], hidden.offsets[q + 1]):
            marks[hidden.items[at]] = mark
        for at in range(found.starts[q], found.ends[q]):
            i = found.items[at]
            if found.scores[at] > 0.0 and marks[i] != mark:
                size = offer(best[q], items[q], size, found.scores[at], i)
                marks[i] = mark
        best_first(best[q], items[q], size)
        for place in range(len(popularity.order)):
            if size == k:
                break
            i = popularity.order[place]
            if marks[i] != mark:
                best[q, size], items[q, size] = popularity.scores[i], i
                size += 1


@kernel
def best_candidates(
    found: SparseScores,
    popularity: Popularity,
    hidden: ItemSets,
    candidates: ItemSets,
    marks: Ints,
    values: Floats,
    best: Floats,
    items: Ints,
) -> None:
    """Fill in the best candidates of each query but the hidden ones; a single row of candidates is that of all."""
    shared = len(candidates.offsets) == 2
    for q in range(len(found.starts)):
        size, mark = 0, q + 1
        for at in range(hidden.offsets[q], hidden.offsets[q + 1]):
            marks[hidden.items[at]] = mark
        for at in range(found.starts[q], found.ends[q]):
            values[found.items[at]] = found.scores[at]
        row = 0 if shared else q
        for at in range(candidates.offsets[row], candidates.offsets[row + 1]):
            i = candidates.items[at]
            if marks[i] != mark:
                score = values[i] if values[i] > 0.0 else popularity.scores[i]
                size = offer(best[q], items[q], size, float(score), i)
        best_first(best[q], items[q], size)
        for at in range(found.starts[q], found.ends[q]):
            values[found.items[at]] = 0.0


@kernel
def scores_of(found: SparseScores, popularity: Popularity, wanted: Ints, values: Floats, out: Floats) -> None:
    """Fill in the score of every query with each wanted item; -inf for item -1."""
    for q in range(len(found.starts)):
        for at in range(found.starts[q], found.ends[q]):
            values[found.items[at]] = found.scores[at]
        for column in range(len(wanted)):
            i = wanted[column]
            if i < 0:
                out[q, column] = -np.inf
            else:
                out[q, column] = values[i] if values[i] > 0.0 else popularity.scores[i]
        for at in range(found.starts[q], found.ends[q]):
            values[found.items[at]] = 0.0


@kernel
def places_of(found: SparseScores, targets: Ints, out: Ints) -> None:
    """Fill in how many items are ahead of each query's target; -1 where it has no score > 0."""
    for q in range(len(found.starts)):
        own = 0.0
        for at in range(found.starts[q], found.ends[q]):
            if found.items[at] == targets[q]:
                own = found.scores[at]
        out[q] = -1
        if own > 0.0:
            ahead = 0
            for at in range(found.starts[q], found.ends[q]):
                score = found.scores[at]
                ahead += score > own or (score == own and found.items[at] < targets[q])
            out[q] = ahead
