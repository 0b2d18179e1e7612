"""Rank next items by how often they stood near the items of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

from slatewise.core import rules
from slatewise.core.executor import Executor
from slatewise.core.rules import Rule
from slatewise.factors.tables import Ints
from slatewise.recommend.evaluation import gains_of
from slatewise.recommend.histories import NumberedSessions
from slatewise.sessions.estimator import DECAY, WINDOW, SessionRanker
from slatewise.sessions.pair_counts import CountModel, CountSettings, PairCounts, Short
from slatewise.sessions.sparse_scores import Floats, places_of
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


class CooccurrenceRanker(SessionRanker):
    """Rank all items for a session by how near they stood to its items in other sessions.

    Every two items of a session that are at most ``window`` places apart count ``1 / distance``, forward for the later
    one and backward for the earlier one. A query adds up the counts of its last ``window`` items::

        score(q, d) = sum over items x of q of  decay^age (F[x, d] + backward F[d, x]) / (sum of the row of x)^row_power

    Parameters
    ----------
    window : int
        How many places apart two items can be, and how many items of the query count, the last ones.
    decay : float or "auto"
        What an item of the query weighs against the one after it, from 0.01 to 1; 1: all the same, as in a basket.
    backward : float or "auto"
        What it counts that an item stood before another, against that it stood behind it; 1: both ways alike.
    row_power : float or "auto"
        From 0 to 1: how far items that stand near many others speak as loudly as those that stand near few.
    last_weight, repeat_weight : float or "auto"
        What the score of the query's last item, and of its earlier items, is multiplied by, also those before the
        window. 0: they come after all items that anything speaks for, which is less than ``rank(exclude_seen=True)``.
    n_jobs : int, optional
        Threads over blocks of items and of queries; the answers have the same bits with any number. -1: all cores.

    Attributes
    ----------
    item_ids_
        Ids in ascending order.
    pair_offsets_, pair_items_, forward_, backward_counts_
        The counts, as rows of a sparse matrix: those of the items behind and before each item.
    item_counts_, n_sessions_
        In how many sessions each item is, and how many there are.
    decay_, backward_, row_power_, last_weight_, repeat_weight_, window_
        What all answers are made with, whatever the parameters are set to after fit.

    Notes
    -----
    "auto" is settled on the last twentieth of the sessions (at most 3,000 queries), by NDCG at 20 of the next item with
    the ranker of all sessions before. Where these have fewer than 20 next items, "auto" is 0.8 for ``decay``, else 1.

    Memory: 32 bytes per pair of items that are ever near each other.

    Examples
    --------
    >>> from slatewise import CooccurrenceRanker
    >>> ranker = CooccurrenceRanker().fit([["tea", "milk"], ["tea", "cup", "milk"], ["ink", "pen"], ["pen", "paper"]])
    >>> ranker.rank([["cup", "tea"], ["ink"]], k=2, exclude_seen=True)
    2 lists of 2
    0: milk (1), pen (-0.5)
    1: pen (1), milk (-0.5)
    """

    _learned: ClassVar[Mapping[str, Rule]] = {
        "item_ids_": rules.IDS,
        "pair_offsets_": rules.whole_array(1),
        "pair_items_": rules.whole_array(1, "int32"),
        "forward_": rules.COUNTS,
        "backward_counts_": rules.COUNTS,
        "item_counts_": rules.whole_array(1),
        "n_sessions_": rules.count(),
        "decay_": DECAY,
        "backward_": rules.WEIGHT,
        "row_power_": POWER,
        "last_weight_": rules.WEIGHT,
        "repeat_weight_": rules.WEIGHT,
        "window_": WINDOW,
    }
    pair_offsets_: Ints
    pair_items_: Short
    forward_: Floats
    backward_counts_: Floats
    item_counts_: Ints
    n_sessions_: int
    decay_: float
    backward_: float
    row_power_: float
    last_weight_: float
    repeat_weight_: float
    window_: int
    _frozen_from: ClassVar[tuple[str, ...]] = tuple(_learned)

    _rules: ClassVar[Mapping[str, Rule]] = {
        "window": WINDOW,
        "decay": DECAY | rules.one_of("auto"),
        "backward": rules.WEIGHT | rules.one_of("auto"),
        "row_power": POWER | rules.one_of("auto"),
        "last_weight": rules.WEIGHT | rules.one_of("auto"),
        "repeat_weight": rules.WEIGHT | rules.one_of("auto"),
        "n_jobs": rules.JOBS,
    }

    def __init__(
        self,
        window: int = 20,
        decay: Literal["auto"] | float = "auto",
        backward: Literal["auto"] | float = "auto",
        row_power: Literal["auto"] | float = "auto",
        last_weight: Literal["auto"] | float = "auto",
        repeat_weight: Literal["auto"] | float = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.window = window
        self.decay = decay
        self.backward = backward
        self.row_power = row_power
        self.last_weight = last_weight
        self.repeat_weight = repeat_weight
        self.n_jobs = n_jobs

    def _learn(self, sessions: NumberedSessions, executor: Executor) -> None:
        given, window = self._given(), int(self.window)
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
        self._keep(before.plus(fresh), {**found, **self._given()})

    def _given(self) -> dict[str, float]:
        """Return the settings that are numbers."""
        given = self.get_params(deep=False)
        return {name: float(given[name]) for name in STARTS if given[name] != "auto"}

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

    def scorer_of(self, sessions: NumberedSessions, executor: Executor) -> CountModel:
        """Return what scores with other sessions under the settings that fit found; the items are those of fit."""
        counts = PairCounts.of(sessions, self.window_, executor)
        return self._asking(counts)

    def _freeze(self) -> CountModel:
        return self._asking(self._counts())

    def _asking(self, counts: PairCounts) -> CountModel:
        settings = CountSettings(
            self.window_, self.decay_, self.backward_, self.row_power_, self.last_weight_, self.repeat_weight_
        )
        return CountModel.of(counts, settings)

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        self._check_items()
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
        if len(self.forward_) != len(items) or len(self.backward_counts_) != len(items):
            raise ValueError(f"forward_, backward_counts_: expected {len(items)} counts each, found others")
        if len(self.item_counts_) != n_items or self.item_counts_.max() > self.n_sessions_:
            raise ValueError(f"item_counts_: expected {n_items} numbers up to {self.n_sessions_}, found others")
