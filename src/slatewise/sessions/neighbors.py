"""Rank next items by what came in similar sessions (V-SKNN: Ludewig and Jannach 2018, Garg et al. 2019)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from slatewise.core import rules
from slatewise.core.arrays import Floats, Ints, Shorts
from slatewise.core.declarations import JOBS_TEXT, learned, param
from slatewise.core.running.executor import Executor
from slatewise.recommend.evaluation import gains_of
from slatewise.recommend.histories import NumberedSessions
from slatewise.sessions.estimator import DECAY, WINDOW, SessionModel
from slatewise.sessions.neighbor_model import NeighbourModel, NeighbourSettings, SessionSets
from slatewise.sessions.sparse_scores import blocks
from slatewise.sessions.tuning import HeldOut, choose, hold_out

if TYPE_CHECKING:
    from slatewise.recommend.kernels.neighbors import Neighbours

STARTS: Mapping[str, float] = {"decay": 0.8, "last_weight": 1.0, "repeat_weight": 1.0, "reach": math.inf}
"""What "auto" is where there are too few sessions to try anything."""
LADDERS: Mapping[str, tuple[float, ...]] = {
    "decay": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "repeat_weight": (0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 4.0, 8.0),
    "last_weight": (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
    "reach": (2.0, 4.0, 8.0, 16.0, math.inf),
}


LAST_TEXT = "Factor of the score of the last item of the query."
REPEAT_TEXT = """Factor of the scores of its earlier items, also those before the window. With 0 they come after all
items that have a score; ``rank(exclude_seen=True)`` leaves them out."""


class SessionNeighbors(SessionModel):
    """Rank all items for a session by the sessions that are most like it.

    The k sessions that share most with the query speak for their items::

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
    decay: float | Literal["auto"] = param(
        DECAY | rules.one_of("auto"),
        """Weight of an item of the query relative to the next one, from 0.01 to 1; 1: all the same, as in a basket.""",
        default="auto",
    )
    last_weight: float | Literal["auto"] = param(rules.WEIGHT | rules.one_of("auto"), LAST_TEXT, default="auto")
    repeat_weight: float | Literal["auto"] = param(rules.WEIGHT | rules.one_of("auto"), REPEAT_TEXT, default="auto")
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
        given = self._given_numbers()
        tried = {name: ladder for name, ladder in LADDERS.items() if name not in given}
        held = hold_out(sessions) if tried else None
        chosen = {**STARTS, **given}
        if held is not None:
            chosen = choose(chosen, tried, _Judge(held, int(self.k), int(self.window), executor))
        self._settle(chosen)
        sets = SessionSets.of(sessions.items, sessions.offsets, len(sessions.item_ids))
        self.session_items_, self.session_offsets_ = sets.items, sets.offsets

    def _add(self, sessions: NumberedSessions, former: Ints) -> None:
        found = {name: getattr(self, f"{name}_", math.inf) for name in STARTS}
        self._settle({**found, **self._given_numbers()})
        sets = SessionSets.of(sessions.items, sessions.offsets, len(sessions.item_ids))
        before = former.astype(np.int32)[self.session_items_]
        self.session_items_ = np.concatenate([before, sets.items])
        self.session_offsets_ = np.concatenate([self.session_offsets_, sets.offsets[1:] + self.session_offsets_[-1]])

    def _given_numbers(self) -> dict[str, float]:
        return {name: math.inf if value is None else value for name, value in self._given(STARTS).items()}

    def _settle(self, chosen: Mapping[str, float]) -> None:
        self.k_, self.window_ = int(self.k), int(self.window)
        self.decay_, self.last_weight_ = chosen["decay"], chosen["last_weight"]
        self.repeat_weight_ = chosen["repeat_weight"]
        vars(self).pop("reach_", None)
        if chosen["reach"] != math.inf:
            self.reach_ = chosen["reach"]

    def _scorer_of(self, sessions: NumberedSessions, executor: Executor) -> NeighbourModel:
        return self._predictor_of(SessionSets.of(sessions.items, sessions.offsets, len(sessions.item_ids)))

    def _freeze(self) -> NeighbourModel:
        return self._predictor_of(SessionSets(self.session_items_, self.session_offsets_))

    def _predictor_of(self, sets: SessionSets) -> NeighbourModel:
        reach = getattr(self, "reach_", math.inf)
        settings = NeighbourSettings(self.k_, self.window_, self.decay_, reach, self.last_weight_, self.repeat_weight_)
        return NeighbourModel.of(sets.index(len(self.item_ids_)), settings)

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        items, offsets, n_items = self.session_items_, self.session_offsets_, len(self.item_ids_)
        if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != len(items) or not (np.diff(offsets) > 0).all():
            raise ValueError(f"session_offsets_: expected sessions with items, of {len(items)} in all, found others")
        if items.max() >= n_items:
            raise ValueError(f"session_items_: expected places among {n_items} items, found {items.max()}")
        if len(SessionSets.of(items.astype(np.int64), offsets, n_items).items) != len(items):
            raise ValueError("session_items_: expected an item once in a session, found one twice")


class _Judge:
    """What queries are worth that were held out; neighbours are looked up once for each decay."""

    def __init__(self, held: HeldOut, k: int, window: int, executor: Executor) -> None:
        sets = SessionSets.of(held.training.items, held.training.offsets, len(held.training.item_ids))
        self._index = sets.index(len(held.training.item_ids))
        self._held, self._k, self._window, self._executor = held, k, window, executor
        self._found: dict[float, list[Neighbours]] = {}

    def __call__(self, values: Mapping[str, float]) -> Floats:
        from slatewise.recommend.kernels.sparse_scores import places_of

        model = NeighbourModel.of(self._index, NeighbourSettings(self._k, self._window, **values))
        queries, targets = self._held.queries, self._held.targets
        rows = blocks(len(queries))
        if model.settings.decay not in self._found:
            parts = [queries[part] for part in rows]
            self._found[model.settings.decay] = list(self._executor.map_blocks(NeighbourModel.neighbours, model, parts))
        found, places = self._found[model.settings.decay], np.empty(len(queries), dtype=np.int64)

        def fill(block: int) -> None:
            part = rows[block]
            places_of(model.scored(queries[part], found[block]), targets[part], places[part])

        self._executor.fill_blocks(fill, range(len(rows)))
        return gains_of(places)
