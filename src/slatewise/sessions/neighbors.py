"""Rank next items by what came in similar sessions (V-SKNN: Ludewig and Jannach 2018, Garg et al. 2019)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from slatewise.core import rules
from slatewise.core.arrays import Floats, Ints, Shorts
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
from slatewise.sessions.sparse_scores import blocks, by_popularity, decay_powers, query_items, weigh_repeats
from slatewise.sessions.tuning import HeldOut, Measure, Values, given_settings, keep_settings, learned_settings, tune

if TYPE_CHECKING:
    from slatewise.recommend.kernels.neighbors import Neighbors, SessionIndex
    from slatewise.recommend.kernels.sparse_scores import Popularity, SparseScores

STARTS: Mapping[str, float] = {"decay": 0.8, "last_weight": 1.0, "repeat_weight": 1.0, "reach": math.inf}
"""What "auto" is where there are too few sessions to try anything."""
LADDERS: Mapping[str, tuple[float, ...]] = {
    "decay": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "repeat_weight": (0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 4.0, 8.0),
    "last_weight": (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
    "reach": (2.0, 4.0, 8.0, 16.0, math.inf),
}


class SessionNeighbors(SessionModel):
    """Rank all items for a session by the sessions that are most like it.

    The k sessions that share most with the query score their items::

        similarity(q, s) = sum over items i of both of  w_i log(1 + N / n_i)  /  sqrt(|s|)
        score(q, d)      = sum over the k most similar sessions s that have d of  similarity(q, s)

    N is the number of sessions, n_i of those that have item i, ``|s|`` how many different items s has, w_i the sum of
    ``decay ** age`` over the places of i in the query, the last item having age 0. The search is exact. There is
    nothing to train: a fit stores the sessions, and tries a few settings on the last of them.

    Notes
    -----
    "auto" is settled on the last twentieth of the sessions (at most 3,000 queries), by NDCG at 20 of the next item with
    the ranker of all sessions before. Where these have fewer than 20 next items, "auto" is 0.8, 1, 1 and None.

    The default of k was the best compromise on the last twentieth of the training sessions of three public sets (of
    clicks, purchases and music): 50 lost 2% of NDCG at 20 on the first, 100 as much on the last.

    Memory: 8 bytes per different item of a session, and 24 per session and per item.

    Examples
    --------
    >>> from slatewise import SessionNeighbors
    >>> ranker = SessionNeighbors().fit([["tea", "milk"], ["tea", "cup", "milk"], ["ink", "pen"], ["pen", "paper"]])
    >>> ranker.rank([["cup", "tea"], ["ink"]], k=2, exclude_seen=True)
    2 lists of 2
    0: milk (2.154), pen (-0.5)
    1: pen (1.138), milk (-0.5)
    """

    k: int = param(
        rules.count(1, rules.MOST_LISTED),
        "The number of similar sessions. Of equally similar ones the shorter, then the later.",
        default=70,
        kw_only=False,
    )
    decay: float | Literal["auto"] = param(AUTO_DECAY, DECAY_TEXT, default="auto")
    last_weight: float | Literal["auto"] = param(AUTO_WEIGHT, LAST_TEXT, default="auto")
    repeat_weight: float | Literal["auto"] = param(AUTO_WEIGHT, REPEAT_TEXT, default="auto")
    reach: float | Literal["auto"] | None = param(
        rules.LEARNED_POSITIVE | rules.NONE | rules.one_of("auto"),
        """Items of a similar session are weighted by ``exp(-distance / reach)``, the distance in positions to that item
        of it which is the latest in the query. None: all weights are the same.""",
        default="auto",
    )
    window: int = param(WINDOW, "The number of items of the query that count, the last ones.", default=20)
    n_jobs: int | None = param(rules.JOBS, JOBS_TEXT, default=None, saved=False)

    session_items_: Shorts = learned(
        rules.whole_array(1, "int32"),
        "The different items of each session, as positions in ``item_ids_``, in the order of their last occurrences.",
    )
    session_offsets_: Ints = learned(rules.whole_array(1), "Where each session begins in ``session_items_``.")
    k_: int = learned(
        rules.count(1, rules.MOST_LISTED), "Predictions are made with it, whatever ``k`` is set to later."
    )
    decay_: float = learned(DECAY, "The same of ``decay``.")
    last_weight_: float = learned(rules.WEIGHT, "The same of ``last_weight``.")
    repeat_weight_: float = learned(rules.WEIGHT, "The same of ``repeat_weight``.")
    reach_: float = learned(
        rules.LEARNED_POSITIVE, "The same of ``reach``; absent where all weights are the same.", optional=True
    )
    window_: int = learned(WINDOW, "The same of ``window``.")

    def _learn(self, sessions: NumberedSessions, executor: Executor) -> None:
        def measure_of(held: HeldOut) -> Measure:
            return _GainsByDecay(held, int(self.k), int(self.window), executor).gains

        sets = SessionSets.of(sessions)
        self._keep(sets, tune(self, sessions, STARTS, LADDERS, measure_of))

    def _add(self, sessions: NumberedSessions, former: Ints) -> None:
        before, fresh = former.astype(np.int32)[self.session_items_], SessionSets.of(sessions)
        offsets = np.concatenate([self.session_offsets_, fresh.offsets[1:] + self.session_offsets_[-1]])
        sets = SessionSets(np.concatenate([before, fresh.items]), offsets)
        self._keep(sets, {**learned_settings(self, STARTS), **given_settings(self, STARTS)})

    def _keep(self, sets: SessionSets, chosen: Values) -> None:
        self.session_items_, self.session_offsets_ = sets.items, sets.offsets
        self.k_, self.window_ = int(self.k), int(self.window)
        keep_settings(self, chosen)

    def _scorer_of(self, sessions: NumberedSessions | None, executor: Executor) -> NeighborModel:
        sets = SessionSets(self.session_items_, self.session_offsets_) if sessions is None else SessionSets.of(sessions)
        settings = NeighborSettings(self.k_, self.window_, **learned_settings(self, STARTS))
        return NeighborModel.of(sets.index(len(self.item_ids_)), settings)

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        items, offsets, n_items = self.session_items_, self.session_offsets_, len(self.item_ids_)
        if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != len(items) or not (np.diff(offsets) > 0).all():
            raise ValueError(f"session_offsets_: expected sessions with items, of {len(items)} in all, found others")
        if items.max() >= n_items:
            raise ValueError(f"session_items_: expected places among {n_items} items, found {items.max()}")
        sessions = NumberedSessions(self.item_ids_, items.astype(np.int64), offsets)
        if len(SessionSets.of(sessions).items) != len(items):
            raise ValueError("session_items_: expected an item once in a session, found one twice")


@dataclass(frozen=True)
class NeighborSettings:
    """The settings of similarities and scores."""

    k: int
    window: int
    decay: float
    reach: float
    """math.inf: positions do not matter."""
    last_weight: float
    repeat_weight: float


@dataclass(frozen=True, eq=False)
class SessionSets:
    """The items of each session, once each, in the order in which they were there last."""

    items: Shorts
    offsets: Ints

    @classmethod
    def of(cls, sessions: NumberedSessions) -> SessionSets:
        """Leave out repeats."""
        from slatewise.recommend.kernels.neighbors import last_places

        items, offsets = sessions.items, sessions.offsets
        kept, kept_offsets = np.empty(len(items), dtype=np.int32), np.zeros(len(offsets), dtype=np.int64)
        n = last_places(items, offsets, kept, kept_offsets, np.zeros(len(sessions.item_ids), dtype=np.int64))
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
class NeighborModel:
    """An index of sessions, and the settings of similarities and scores."""

    index: SessionIndex
    settings: NeighborSettings
    powers: Floats
    """Of the decay, by age."""
    popularity: Popularity

    @classmethod
    def of(cls, index: SessionIndex, settings: NeighborSettings) -> NeighborModel:
        """Prepare the weights of ages and the order by popularity."""
        shares = np.diff(index.starts) / (len(index.offsets) - 1)
        return cls(index, settings, decay_powers(settings.decay, settings.window), by_popularity(shares))

    def sparse(self, queries: SessionQueries) -> SparseScores:
        """Find the neighbors of a block of queries, and score their items."""
        return self.scored(queries, self.neighbors(queries))

    def neighbors(self, queries: SessionQueries) -> Neighbors:
        """Find the most similar sessions of each query of a block."""
        from slatewise.recommend.kernels.neighbors import Bench, Neighbors, find_neighbors

        index, n_items, window = self.index, len(self.index.rarity), self.settings.window
        shape = len(queries), min(self.settings.k, len(index.offsets) - 1)
        out = Neighbors(np.empty(shape), np.empty(shape, dtype=np.int64), np.empty(len(queries), dtype=np.int64))
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
        find_neighbors(query_items(queries, self.powers), index, bench, out)
        return out

    def scored(self, queries: SessionQueries, neighbors: Neighbors) -> SparseScores:
        """Score the items of the sessions found for each query of a block."""
        from slatewise.recommend.kernels.neighbors import most_scores, score_items
        from slatewise.recommend.kernels.sparse_scores import SparseScores

        index, settings, n_items = self.index, self.settings, len(self.index.rarity)
        query_rows, offsets = query_items(queries, self.powers), np.zeros(len(queries) + 1, dtype=np.int64)
        most_scores(index, neighbors, n_items, offsets)
        ends, total, marks = np.empty(len(queries), dtype=np.int64), int(offsets[-1]), np.zeros(n_items, dtype=np.int64)
        items, scores = np.empty(total, dtype=np.int64), np.empty(total)
        score_items(
            query_rows, index, neighbors, settings.reach, marks, np.zeros(n_items), offsets, ends, items, scores
        )
        found = SparseScores(offsets[:-1], ends, items, scores)
        weigh_repeats(query_rows, found, settings.last_weight, settings.repeat_weight, n_items)
        return found


class _GainsByDecay:
    """The gains of held-out queries; neighbors are looked up once for each decay."""

    def __init__(self, held: HeldOut, k: int, window: int, executor: Executor) -> None:
        self._index = SessionSets.of(held.training).index(len(held.training.item_ids))
        self._held, self._k, self._window, self._executor = held, k, window, executor
        self._found: dict[float, list[Neighbors]] = {}

    def gains(self, values: Values) -> Floats:
        """Return the gain of every query under some settings."""
        from slatewise.recommend.kernels.sparse_scores import places_of

        model = NeighborModel.of(self._index, NeighborSettings(self._k, self._window, **values))
        queries, targets = self._held.queries, self._held.targets
        rows = blocks(len(queries))
        if model.settings.decay not in self._found:
            parts = [queries[part] for part in rows]
            self._found[model.settings.decay] = list(self._executor.map_blocks(NeighborModel.neighbors, model, parts))
        found, ranks = self._found[model.settings.decay], np.empty(len(queries), dtype=np.int64)

        def fill(block: int) -> None:
            part = rows[block]
            places_of(model.scored(queries[part], found[block]), targets[part], ranks[part])

        self._executor.fill_blocks(fill, range(len(rows)))
        return gains_of(ranks)
