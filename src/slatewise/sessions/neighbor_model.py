"""Sessions to look a query up in, frozen, and the scores that its neighbours give (V-SKNN)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from slatewise.core.arrays import Floats, Ints, Shorts
from slatewise.recommend.histories import SessionQueries
from slatewise.sessions.sparse_scores import by_popularity, decay_powers

if TYPE_CHECKING:
    from slatewise.recommend.kernels.neighbors import Asked, Neighbours, SessionIndex
    from slatewise.recommend.kernels.sparse_scores import Popularity, SparseScores


@dataclass(frozen=True)
class NeighbourSettings:
    """What similarities and scores depend on."""

    k: int
    window: int
    decay: float
    reach: float
    """math.inf: places do not matter."""
    last_weight: float
    repeat_weight: float


@dataclass(frozen=True, eq=False)
class SessionSets:
    """The items of each session, once each, in the order in which they were there last."""

    items: Shorts
    offsets: Ints

    @classmethod
    def of(cls, items: Ints, offsets: Ints, n_items: int) -> SessionSets:
        """Leave out repeats."""
        from slatewise.recommend.kernels.neighbors import last_places

        kept, kept_offsets = np.empty(len(items), dtype=np.int32), np.zeros(len(offsets), dtype=np.int64)
        n = last_places(items, offsets, kept, kept_offsets, np.zeros(n_items, dtype=np.int64))
        return cls(kept[:n].copy() if n < len(kept) else kept, kept_offsets)

    def index(self, n_items: int) -> SessionIndex:
        """Put sessions in the order of their lengths, the latest first, and list those of each item."""
        from slatewise.recommend.kernels.neighbors import SessionIndex, in_order, invert

        n_sessions = len(self.offsets) - 1
        sizes = np.diff(self.offsets)
        order = n_sessions - 1 - np.argsort(sizes[::-1], kind="stable")
        items, offsets = np.empty_like(self.items), np.zeros_like(self.offsets)
        in_order(self.items, self.offsets, order, items, offsets)
        lengths, firsts = np.unique(sizes[order], return_index=True)
        counts = np.bincount(items, minlength=n_items)
        starts, sessions = np.append(counts, 0), np.empty(len(items), dtype=np.int32)
        invert(items, offsets, starts, sessions)
        rarity = np.log1p(n_sessions / np.maximum(counts, 1))
        return SessionIndex(items, offsets, lengths, np.append(firsts, n_sessions), sessions, starts, rarity)


@dataclass(frozen=True, eq=False)
class NeighbourModel:
    """An index, and how to ask it."""

    index: SessionIndex
    settings: NeighbourSettings
    powers: Floats
    """Of the decay, by age."""
    popularity: Popularity

    @classmethod
    def of(cls, index: SessionIndex, settings: NeighbourSettings) -> NeighbourModel:
        """Make what follows from both."""
        shares = np.diff(index.starts) / (len(index.offsets) - 1)
        return cls(index, settings, decay_powers(settings.decay, settings.window), by_popularity(shares))

    def sparse(self, queries: SessionQueries) -> SparseScores:
        """Find the neighbours of a block of queries, and score their items."""
        return self.scored(queries, self.neighbours(queries))

    def neighbours(self, queries: SessionQueries) -> Neighbours:
        """Find the most similar sessions of each query of a block."""
        from slatewise.recommend.kernels.neighbors import Bench, Neighbours, find_neighbours

        index, n_items, window = self.index, len(self.index.rarity), self.settings.window
        shape = len(queries), min(self.settings.k, len(index.offsets) - 1)
        out = Neighbours(np.empty(shape), np.empty(shape, dtype=np.int64), np.empty(len(queries), dtype=np.int64))
        most = int(np.diff(index.firsts).max())
        bench = Bench(
            similarity=np.zeros(most),
            found=np.empty(most, dtype=np.int64),
            weight=np.zeros(n_items),
            rank=np.zeros(n_items, dtype=np.int64),
            seen=np.empty(window, dtype=np.int64),
            sums=np.zeros(window + 1),
            hits=np.zeros(window, dtype=np.bool_),
            bounds=np.empty(len(index.lengths)),
        )
        find_neighbours(self._asked(queries), index, bench, out)
        return out

    def scored(self, queries: SessionQueries, neighbours: Neighbours) -> SparseScores:
        """Score the items of the sessions found for each query of a block."""
        from slatewise.recommend.kernels.neighbors import most_scores, score_items
        from slatewise.recommend.kernels.sparse_scores import SparseScores, weigh_repeats

        index, settings, n_items = self.index, self.settings, len(self.index.rarity)
        asked, offsets = self._asked(queries), np.zeros(len(queries) + 1, dtype=np.int64)
        most_scores(index, neighbours, n_items, offsets)
        ends, total, marks = np.empty(len(queries), dtype=np.int64), int(offsets[-1]), np.zeros(n_items, dtype=np.int64)
        items, scores = np.empty(total, dtype=np.int64), np.empty(total)
        score_items(asked, index, neighbours, settings.reach, marks, np.zeros(n_items), offsets, ends, items, scores)
        found = SparseScores(offsets[:-1], ends, items, scores)
        if (settings.last_weight, settings.repeat_weight) != (1.0, 1.0):
            weigh_repeats(asked, found, settings.last_weight, settings.repeat_weight, marks)
        return found

    def _asked(self, queries: SessionQueries) -> Asked:
        from slatewise.recommend.kernels.neighbors import Asked

        return Asked(queries.items, queries.starts, queries.ends, self.powers)
