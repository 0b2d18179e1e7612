"""Hits: the items with a non-zero relevance and the ranks they take, all that any measure needs to see.

A hit stands with equal chance on each of ``size`` ranks from ``first`` (0-based). A tie rule that orders tied items
leaves ``size`` = 1; ``"average"`` keeps the group, and measures take the expectation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.metrics.conventions import Array, Ties
from slatewise.metrics.lists import Scored
from slatewise.metrics.standings import Standings, blocks

NEVER = 1 << 62
"""The rank of an item that was not retrieved: past every cut-off."""


@dataclass(frozen=True, eq=False)
class Hits:
    """Flat arrays, list after list, by rank inside a list."""

    lengths: Ints
    """Ranked items of each list, relevant or not."""
    lists: Ints
    relevance: Floats
    first: Ints
    size: Ints

    def relevant(self, threshold: float) -> Hits:
        """Keep the hits of at least that relevance."""
        return self.where(self.relevance >= threshold)

    def where(self, keep: Array) -> Hits:
        """Keep the flagged hits."""
        if keep.all():
            return self
        return Hits(self.lengths, self.lists[keep], self.relevance[keep], self.first[keep], self.size[keep])

    def count(self) -> Ints:
        """Hits of each list."""
        return np.bincount(self.lists, minlength=len(self.lengths))

    def judged(self) -> Ints:
        """Items of each list, with those that were not retrieved."""
        return self.lengths + np.bincount(self.lists[self.first == NEVER], minlength=len(self.lengths))

    def sum(self, values: Floats) -> Floats:
        """Add a value a hit up by list, in rank order."""
        total = np.bincount(self.lists, weights=values, minlength=len(self.lengths))
        return total.astype(np.float64, copy=False)  # without a single hit bincount counts in integers

    def number(self) -> Ints:
        """Position of each hit among its list's hits, from 0."""
        count = self.count()
        return np.arange(len(self.lists)) - (np.cumsum(count) - count)[self.lists]

    def within(self, k: int | Ints | None) -> Floats:
        """Chance that each hit stands on the first k ranks; None: on any rank."""
        places = (NEVER if k is None else k) - self.first
        return np.clip(places, 0, self.size) / self.size


def _by_id(standings: Standings, scored: Scored) -> Array:
    if scored.ids is None:
        tied = standings.rows[standings.tied > 1]
        raise ValueError(
            f"ids: expected document ids, because items tie at score {standings.scores[tied[0]]} "
            f"(compared as {standings.scores.dtype}) and ties='id' orders them by id"
        )
    return -np.unique(np.asarray(scored.ids).astype(np.str_), return_inverse=True)[1]


_TIE_KEYS: dict[str, Callable[[Standings, Scored], Array]] = {
    "input": lambda standings, scored: np.arange(len(scored.scores)),
    "worst": lambda standings, scored: scored.relevance,
    "best": lambda standings, scored: -scored.relevance,
    "id": _by_id,
}
"""What orders tied items, smallest first."""


def _ranks(standings: Standings, scored: Scored, ties: Ties) -> tuple[Ints, Ints]:
    """Return the first rank of each hit and the number of ranks it may take; re-sort only lists with a tied hit."""
    first, size = standings.above, np.ones_like(standings.tied)
    if ties == "average":
        return first, standings.tied
    if ties == "together":
        return first + standings.tied - 1, size
    tied = np.zeros(len(scored.offsets) - 1, dtype=np.bool_)
    tied[standings.lists[standings.tied > 1]] = True
    if not tied.any():
        return first, size
    keys, rank = _TIE_KEYS[ties](standings, scored), np.zeros(len(scored.scores), dtype=np.int64)
    for block in blocks(scored.offsets, np.flatnonzero(tied)):
        order = np.lexsort((block.pick(keys), block.falling(standings.scores)), axis=-1)
        by_rank = np.take_along_axis(block.rows, order, axis=1)
        inside = block.inside
        rank[by_rank[inside]] = np.nonzero(inside)[1]
    again = tied[standings.lists]
    first = first.copy()
    first[again] = rank[standings.rows[again]]
    return first, size


def make_hits(standings: Standings, scored: Scored, ties: Ties) -> Hits:
    """Apply a tie rule, and add the relevant items that were not retrieved."""
    first, size = _ranks(standings, scored, ties)
    lists, relevance = standings.lists, scored.relevance[standings.rows]
    if scored.unretrieved is not None:
        extra = len(scored.unretrieved.lists)
        lists = np.concatenate((lists, scored.unretrieved.lists))
        relevance = np.concatenate((relevance, scored.unretrieved.relevance))
        first = np.concatenate((first, np.full(extra, NEVER)))
        size = np.concatenate((size, np.ones(extra, dtype=np.int64)))
    # Tied hits stand by falling relevance, so that sums add up in one order however the rows came.
    later = (first[1:] < first[:-1]) | ((first[1:] == first[:-1]) & (relevance[1:] > relevance[:-1]))
    if np.any((lists[1:] < lists[:-1]) | ((lists[1:] == lists[:-1]) & later)):
        order = np.lexsort((-relevance, first, lists))
        lists, relevance, first, size = lists[order], relevance[order], first[order], size[order]
    return Hits(scored.lengths, lists, relevance, first, size)
