"""Rank next items by how often they stood near the items of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from slatewise.core import rules
from slatewise.core.arrays import Floats, Ints, Shorts
from slatewise.core.declarations import JOBS_TEXT, learned, param
from slatewise.core.running.executor import Executor
from slatewise.recommend.evaluation import gains_of
from slatewise.recommend.histories import NumberedSessions
from slatewise.sessions.estimator import DECAY, WINDOW, SessionModel
from slatewise.sessions.neighbors import LAST_TEXT, REPEAT_TEXT
from slatewise.sessions.pair_counts import CountModel, CountSettings, PairCounts
from slatewise.sessions.sparse_scores import places_of
from slatewise.sessions.tuning import choose, hold_out

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
    decay: float | Literal["auto"] = param(
        DECAY | rules.one_of("auto"),
        """Weight of an item of the query relative to the next one, from 0.01 to 1; 1: all the same, as in a basket.""",
        default="auto",
    )
    backward: float | Literal["auto"] = param(
        rules.WEIGHT | rules.one_of("auto"),
        "Weight of an item that stood before another, relative to one that stood after it; 1: both directions alike.",
        default="auto",
    )
    row_power: float | Literal["auto"] = param(
        POWER | rules.one_of("auto"),
        "From 0 to 1: how far items with many neighbors are scaled down to those with few.",
        default="auto",
    )
    last_weight: float | Literal["auto"] = param(rules.WEIGHT | rules.one_of("auto"), LAST_TEXT, default="auto")
    repeat_weight: float | Literal["auto"] = param(rules.WEIGHT | rules.one_of("auto"), REPEAT_TEXT, default="auto")
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
        given, window = self._given_numbers(), int(self.window)
        tried = {name: ladder for name, ladder in LADDERS.items() if name not in given}
        held = hold_out(sessions) if tried else None
        chosen = {**STARTS, **given}
        if held is not None:
            counts = PairCounts.of(held.training, window, executor)

            def judge(values: Mapping[str, float]) -> Floats:
                model = CountModel.of(counts, CountSettings(window, **values))
                return gains_of(places_of(model, held.queries, held.targets, executor))

            chosen = choose(chosen, tried, judge)
        self._keep(PairCounts.of(sessions, window, executor), chosen)

    def _add(self, sessions: NumberedSessions, former: Ints) -> None:
        if self.window != self.window_:
            raise ValueError(f"window: expected {self.window_}, that of the counts to go on with, found {self.window}")
        found = {name: getattr(self, f"{name}_") for name in STARTS}
        fresh = PairCounts.of(sessions, self.window_, Executor.of(self.n_jobs))
        before = self._counts().moved(former, len(sessions.item_ids))
        self._keep(before.plus(fresh), {**found, **self._given_numbers()})

    def _given_numbers(self) -> dict[str, float]:
        return {name: value for name, value in self._given(STARTS).items() if value is not None}

    def _keep(self, counts: PairCounts, chosen: Mapping[str, float]) -> None:
        self.pair_offsets_, self.pair_items_ = counts.offsets, counts.items
        self.forward_, self.backward_counts_ = counts.forward, counts.backward
        self.item_counts_, self.n_sessions_, self.window_ = counts.n_with, counts.n_sessions, int(self.window)
        self.decay_, self.backward_, self.row_power_ = chosen["decay"], chosen["backward"], chosen["row_power"]
        self.last_weight_, self.repeat_weight_ = chosen["last_weight"], chosen["repeat_weight"]

    def _counts(self) -> PairCounts:
        return PairCounts(
            self.pair_offsets_,
            self.pair_items_,
            self.forward_,
            self.backward_counts_,
            self.item_counts_,
            self.n_sessions_,
        )

    def _scorer_of(self, sessions: NumberedSessions, executor: Executor) -> CountModel:
        counts = PairCounts.of(sessions, self.window_, executor)
        return self._predictor_of(counts)

    def _freeze(self) -> CountModel:
        return self._predictor_of(self._counts())

    def _predictor_of(self, counts: PairCounts) -> CountModel:
        settings = CountSettings(
            self.window_, self.decay_, self.backward_, self.row_power_, self.last_weight_, self.repeat_weight_
        )
        return CountModel.of(counts, settings)

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
