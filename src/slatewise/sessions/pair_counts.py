"""Counts of items that stand near each other in sessions, and the scores made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from slatewise.core.arrays import Floats, Ints, Shorts
from slatewise.core.checks import cut_points
from slatewise.core.running.executor import Executor
from slatewise.recommend.histories import NumberedSessions, SessionQueries
from slatewise.sessions.sparse_scores import by_popularity, decay_powers

if TYPE_CHECKING:
    from slatewise.recommend.kernels.sparse_scores import Popularity, SparseScores
    from slatewise.sessions.kernels.pair_counts import CountRows, Events, RateRows

BINARY_PLACES = 1 << 20
"""Weights are whole multiples of its inverse: sums are exact up to billions of pairs."""
PAIRS_PER_BLOCK = 1 << 20
FAINTEST_RATE = 1e-100
"""A rate of 0 would pass for none."""


@dataclass(frozen=True)
class CountSettings:
    """What scores depend on."""

    window: int
    decay: float
    backward: float
    row_power: float
    last_weight: float
    repeat_weight: float


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Row i: items near i (also i itself), those after it (forward) and before (backward); and how popular all are."""

    offsets: Ints
    items: Shorts
    forward: Floats
    backward: Floats
    n_with: Ints
    """In how many sessions each item is."""
    n_sessions: int

    @classmethod
    def of(cls, sessions: NumberedSessions, window: int, executor: Executor) -> PairCounts:
        """Count pairs at most ``window`` places apart, block of items by block."""
        n_items = len(sessions.item_ids)
        events, weights = _events(sessions), np.rint(BINARY_PLACES / np.arange(1, window + 1)) / BINARY_PLACES
        most = np.concatenate([[0], np.cumsum(np.minimum(np.diff(events.starts) * 2 * window, n_items))])
        task = _Count(events, weights, most)
        parts = list(executor.map_blocks(_count_block, task, cut_points(most, PAIRS_PER_BLOCK)))
        sizes = np.concatenate([part.sizes for part in parts])
        return cls(
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([part.items for part in parts]),
            np.concatenate([part.forward for part in parts]),
            np.concatenate([part.backward for part in parts]),
            _sessions_with(events, n_items),
            len(sessions),
        )

    def moved(self, places: Ints, n_items: int) -> PairCounts:
        """Return the same counts where items have other numbers, in the same order."""
        sizes, n_with = np.zeros(n_items, dtype=np.int64), np.zeros(n_items, dtype=np.int64)
        sizes[places], n_with[places] = np.diff(self.offsets), self.n_with
        offsets, items = np.concatenate([[0], np.cumsum(sizes)]), places.astype(np.int32)[self.items]
        return PairCounts(offsets, items, self.forward, self.backward, n_with, self.n_sessions)

    def plus(self, other: PairCounts) -> PairCounts:
        """Add counts of the same items."""
        from scipy.sparse import csr_array

        shape = len(self.n_with), len(self.n_with)
        # Both kinds of counts in one sum: the parts of a complex number do not mix in it.
        rows = [
            csr_array((part.forward + 1j * part.backward, part.items, part.offsets), shape) for part in (self, other)
        ]
        total = rows[0] + rows[1]
        return PairCounts(
            total.indptr.astype(np.int64),
            total.indices.astype(np.int32),
            total.data.real.astype(np.float64),
            total.data.imag.astype(np.float64),
            self.n_with + other.n_with,
            self.n_sessions + other.n_sessions,
        )

    def rates(self, backward: float, row_power: float) -> RateRows:
        """Weigh both kinds, and divide rows by a power of their sums."""
        from slatewise.sessions.kernels.pair_counts import RateRows

        counts, n_items = self.forward + backward * self.backward, len(self.n_with)
        rows = np.repeat(np.arange(n_items), np.diff(self.offsets))
        sums = np.bincount(rows, counts, minlength=n_items)
        rates = np.maximum(counts * (np.where(sums > 0, sums, 1.0) ** -row_power)[rows], FAINTEST_RATE)
        there = counts > 0
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rows[there], minlength=n_items))])
        return RateRows(offsets, self.items[there], rates[there])


@dataclass(frozen=True, eq=False)
class CountModel:
    """Rates, and how to ask them."""

    rows: RateRows
    settings: CountSettings
    powers: Floats
    """Of the decay, by age."""
    popularity: Popularity

    @classmethod
    def of(cls, counts: PairCounts, settings: CountSettings) -> CountModel:
        """Make rates of counts."""
        rates = counts.rates(settings.backward, settings.row_power)
        powers = decay_powers(settings.decay, settings.window)
        return cls(rates, settings, powers, by_popularity(counts.n_with / counts.n_sessions))

    def sparse(self, queries: SessionQueries) -> SparseScores:
        """Add up the rows of the items of each query of a block."""
        from slatewise.recommend.kernels.neighbors import Asked
        from slatewise.recommend.kernels.sparse_scores import SparseScores, weigh_repeats
        from slatewise.sessions.kernels.pair_counts import add_rates, most_rates

        asked, n_items = Asked(queries.items, queries.starts, queries.ends, self.powers), len(self.popularity.order)
        offsets, ends = np.zeros(len(queries) + 1, dtype=np.int64), np.empty(len(queries), dtype=np.int64)
        most_rates(asked, self.rows, n_items, offsets)
        items, scores = np.empty(int(offsets[-1]), dtype=np.int64), np.empty(int(offsets[-1]))
        add_rates(asked, self.rows, np.zeros(n_items), offsets, ends, items, scores)
        found, settings = SparseScores(offsets[:-1], ends, items, scores), self.settings
        if (settings.last_weight, settings.repeat_weight) != (1.0, 1.0):
            marks = np.zeros(n_items, dtype=np.int64)
            weigh_repeats(asked, found, settings.last_weight, settings.repeat_weight, marks)
        return found


@dataclass(frozen=True, eq=False)
class _Count:
    """What counting needs beside the block."""

    events: Events
    weights: Floats
    most: Ints
    """How many pairs the items before each can have."""


def _count_block(task: _Count, block: tuple[int, int]) -> CountRows:
    """Count the pairs of the items between two."""
    from slatewise.sessions.kernels.pair_counts import CountBench, CountRows, count_pairs

    (first, last), n_items = block, len(task.most) - 1
    most = int(task.most[last] - task.most[first])
    bench = CountBench(np.zeros(n_items), np.zeros(n_items), np.empty(n_items, dtype=np.int64))
    out = CountRows(
        np.empty(last - first, dtype=np.int64), np.empty(most, dtype=np.int32), np.empty(most), np.empty(most)
    )
    n = count_pairs(task.events, task.weights, first, bench, out)
    return CountRows(out.sizes, out.items[:n].copy(), out.forward[:n].copy(), out.backward[:n].copy())


def _events(sessions: NumberedSessions) -> Events:
    from slatewise.sessions.kernels.pair_counts import Events

    owners = np.repeat(np.arange(len(sessions)), np.diff(sessions.offsets))
    counts = np.bincount(sessions.items, minlength=len(sessions.item_ids))
    starts = np.concatenate([[0], np.cumsum(counts)])
    return Events(sessions.items, sessions.offsets, owners, np.argsort(sessions.items, kind="stable"), starts)


def _sessions_with(events: Events, n_items: int) -> Ints:
    """Return in how many sessions each item is."""
    items, owners = events.items[events.places], events.owners[events.places]
    new = np.ones(len(items), dtype=bool)
    new[1:] = (items[1:] != items[:-1]) | (owners[1:] != owners[:-1])
    return np.bincount(items[new], minlength=n_items)
