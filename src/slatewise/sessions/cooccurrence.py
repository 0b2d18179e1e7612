"""Rank next items by how often they stood near the items of a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from slatewise.core import rules
from slatewise.core.arrays import Floats, Ints, Shorts
from slatewise.core.checks import cut_points
from slatewise.core.declarations import JOBS_TEXT, learned, param
from slatewise.core.running.executor import Executor
from slatewise.recommend.evaluation import gains_of
from slatewise.recommend.histories import NumberedSessions, SessionQueries
from slatewise.sessions.estimator import (
    AUTO_DECAY,
    AUTO_WEIGHT,
    DECAY,
    DECAY_TEXT,
    LAST_TEXT,
    REPEAT_TEXT,
    WINDOW,
    SessionModel,
)
from slatewise.sessions.sparse_scores import by_popularity, decay_powers, places_of, query_items, weigh_repeats
from slatewise.sessions.tuning import HeldOut, Measure, Values, given_settings, keep_settings, learned_settings, tune

if TYPE_CHECKING:
    from slatewise.recommend.kernels.sparse_scores import Popularity, SparseScores
    from slatewise.sessions.kernels.pair_counts import CountRows, Events, RateRows

STARTS: Mapping[str, float] = {
    "decay": 0.8,
    "backward": 1.0,
    "row_power": 1.0,
    "last_weight": 1.0,
    "repeat_weight": 1.0,
}
"""What "auto" is where there are too few sessions to try anything."""
LADDERS: Mapping[str, tuple[float, ...]] = {
    "decay": (0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0),
    "backward": (0.0, 0.25, 0.5, 1.0),
    "row_power": (0.0, 0.5, 1.0),
    "repeat_weight": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
    "last_weight": (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
}
POWER = rules.number("a number from 0 to 1", 0.0, 1.0)
BINARY_PLACES = 1 << 20
"""Weights are whole multiples of its inverse: sums are exact up to billions of pairs."""
PAIRS_PER_BLOCK = 1 << 20
FAINTEST_RATE = 1e-100
"""A rate of 0 would pass for none."""


class SessionCooccurrence(SessionModel):
    """Rank all items for a session by how near they stood to its items in other sessions.

    Every two items of a session that are at most ``window`` places apart count ``1 / distance``, forward for the later
    one and backward for the earlier one. A query adds up the counts of its last ``window`` items::

        score(q, d) = sum over items x of q of  decay^age (F[x, d] + backward F[d, x]) / (sum of the row of x)^row_power

    Notes
    -----
    "auto" is settled on the last twentieth of the sessions (at most 3,000 queries), by NDCG at 20 of the next item with
    the ranker of all sessions before. Where these have fewer than 20 next items, "auto" is 0.8 for ``decay``, else 1.

    Memory: 32 bytes per pair of items that are ever near each other.

    Examples
    --------
    >>> from slatewise import SessionCooccurrence
    >>> ranker = SessionCooccurrence().fit([["tea", "milk"], ["tea", "cup", "milk"], ["ink", "pen"], ["pen", "paper"]])
    >>> ranker.rank([["cup", "tea"], ["ink"]], k=2, exclude_seen=True)
    2 lists of 2
    0: milk (1), pen (-0.5)
    1: pen (1), milk (-0.5)
    """

    window: int = param(
        WINDOW,
        "The largest distance of two items that count, and the number of items of the query that count, the last ones.",
        default=20,
        kw_only=False,
    )
    decay: float | Literal["auto"] = param(AUTO_DECAY, DECAY_TEXT, default="auto")
    backward: float | Literal["auto"] = param(
        AUTO_WEIGHT,
        "Weight of an item that stood before another, relative to one that stood after it; 1: both directions alike.",
        default="auto",
    )
    row_power: float | Literal["auto"] = param(
        POWER | rules.one_of("auto"),
        "From 0 to 1: how far items with many neighbors are scaled down to those with few.",
        default="auto",
    )
    last_weight: float | Literal["auto"] = param(AUTO_WEIGHT, LAST_TEXT, default="auto")
    repeat_weight: float | Literal["auto"] = param(AUTO_WEIGHT, REPEAT_TEXT, default="auto")
    n_jobs: int | None = param(rules.JOBS, JOBS_TEXT, default=None, saved=False)

    pair_offsets_: Ints = learned(rules.whole_array(1), "Where the pairs of each item begin in ``pair_items_``.")
    pair_items_: Shorts = learned(
        rules.whole_array(1, "int32"), "The other items of the pairs of each item.", shape=("p",)
    )
    forward_: Floats = learned(rules.COUNTS, "Counts of items after each item.", shape=("p",))
    backward_counts_: Floats = learned(rules.COUNTS, "Counts of items before each item.", shape=("p",))
    item_counts_: Ints = learned(
        rules.whole_array(1), "The number of sessions that have each item.", shape=("item_ids_",)
    )
    n_sessions_: int = learned(rules.count(), "The number of sessions.")
    decay_: float = learned(DECAY, "Predictions are made with it, whatever ``decay`` is set to later.")
    backward_: float = learned(rules.WEIGHT, "The same of ``backward``.")
    row_power_: float = learned(POWER, "The same of ``row_power``.")
    last_weight_: float = learned(rules.WEIGHT, "The same of ``last_weight``.")
    repeat_weight_: float = learned(rules.WEIGHT, "The same of ``repeat_weight``.")
    window_: int = learned(WINDOW, "The same of ``window``.")

    def _learn(self, sessions: NumberedSessions, executor: Executor) -> None:
        window = int(self.window)

        def measure_of(held: HeldOut) -> Measure:
            counts = PairCounts.of(held.training, window, executor)

            def gains(values: Values) -> Floats:
                model = CountModel.of(counts, CountSettings(window, **values))
                return gains_of(places_of(model, held.queries, held.targets, executor))

            return gains

        chosen = tune(self, sessions, STARTS, LADDERS, measure_of)
        self._keep(PairCounts.of(sessions, window, executor), chosen)

    def _add(self, sessions: NumberedSessions, former: Ints) -> None:
        if self.window != self.window_:
            raise ValueError(f"window: expected {self.window_}, that of the counts to go on with, found {self.window}")
        fresh = PairCounts.of(sessions, self.window_, Executor.of(self.n_jobs))
        before = self._counts().moved(former, len(sessions.item_ids))
        self._keep(before.plus(fresh), {**learned_settings(self, STARTS), **given_settings(self, STARTS)})

    def _keep(self, counts: PairCounts, chosen: Values) -> None:
        self.pair_offsets_, self.pair_items_ = counts.offsets, counts.items
        self.forward_, self.backward_counts_ = counts.forward, counts.backward
        self.item_counts_, self.n_sessions_, self.window_ = counts.n_with, counts.n_sessions, int(self.window)
        keep_settings(self, chosen)

    def _counts(self) -> PairCounts:
        pairs = self.pair_offsets_, self.pair_items_, self.forward_, self.backward_counts_
        return PairCounts(*pairs, self.item_counts_, self.n_sessions_)

    def _scorer_of(self, sessions: NumberedSessions | None, executor: Executor) -> CountModel:
        counts = self._counts() if sessions is None else PairCounts.of(sessions, self.window_, executor)
        return CountModel.of(counts, CountSettings(self.window_, **learned_settings(self, STARTS)))

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        items, offsets, n_items = self.pair_items_, self.pair_offsets_, len(self.item_ids_)
        if len(offsets) != n_items + 1 or offsets[0] != 0 or offsets[-1] != len(items) or (np.diff(offsets) < 0).any():
            raise ValueError(f"pair_offsets_: expected {n_items} rows of {len(items)} pairs in all, found others")
        if items.max(initial=0) >= n_items:
            raise ValueError(f"pair_items_: expected places among {n_items} items, found {items.max()}")
        inside = np.ones(max(len(items) - 1, 0), dtype=bool)
        ends = offsets[1:-1][(offsets[1:-1] > 0) & (offsets[1:-1] < len(items))] - 1
        inside[ends] = False
        if (np.diff(items)[inside] <= 0).any():
            raise ValueError("pair_items_: expected ascending items in each row, found others")
        if self.item_counts_.max() > self.n_sessions_:
            raise ValueError(f"item_counts_: expected up to {self.n_sessions_}, found {self.item_counts_.max()}")


@dataclass(frozen=True)
class CountSettings:
    """The settings of scores."""

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
    """Counts as rates, and the settings of scores."""

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
        from slatewise.recommend.kernels.sparse_scores import SparseScores
        from slatewise.sessions.kernels.pair_counts import add_rates, most_rates

        query_rows, n_items = query_items(queries, self.powers), len(self.popularity.order)
        offsets, ends = np.zeros(len(queries) + 1, dtype=np.int64), np.empty(len(queries), dtype=np.int64)
        most_rates(query_rows, self.rows, n_items, offsets)
        items, scores = np.empty(int(offsets[-1]), dtype=np.int64), np.empty(int(offsets[-1]))
        add_rates(query_rows, self.rows, np.zeros(n_items), offsets, ends, items, scores)
        found, settings = SparseScores(offsets[:-1], ends, items, scores), self.settings
        weigh_repeats(query_rows, found, settings.last_weight, settings.repeat_weight, n_items)
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
