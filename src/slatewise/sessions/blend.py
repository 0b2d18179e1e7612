"""Rank next items by similar sessions and by counts at once, mixed as sessions that both have not seen say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from slatewise.core import rules
from slatewise.core.executor import Executor
from slatewise.core.rules import Rule
from slatewise.data.records import Sessions
from slatewise.factors.tables import Ints
from slatewise.recommend.histories import NumberedSessions, SessionQueries
from slatewise.sessions.blend_model import N_KNOTS, BlendModel, likely_blend, not_learnt
from slatewise.sessions.cooccurrence import CooccurrenceRanker
from slatewise.sessions.cross_fit import some_sessions
from slatewise.sessions.estimator import SessionRanker
from slatewise.sessions.neighbors import SessionNeighbors
from slatewise.sessions.sparse_scores import Floats, SparseScorer

HELD_OUT, MOST_QUERIES, FEWEST_QUERIES = 0.1, 20_000, 20
"""Share of the sessions, the last ones, that the mixture is learnt from, and how many of their beginnings."""
MOST_AGES = 1000


class SessionBlend(SessionRanker):
    """Rank all items for a session by how likely they are to come next, given what two rankers say of them.

    :class:`slatewise.SessionNeighbors` knows similar sessions, :class:`slatewise.CooccurrenceRanker` what stood near
    what; here both are asked, and the score of an item is the probability that it comes next::

        score(q, d) = exp h / (sum over candidates of exp h + number of other items)
        h(q, d)     = g(what the neighbours say of d) + g'(what the counts say of d)
        h(q, d)     = the same with two other lines, + r(how long ago the session had d), for items that it had

    The lines rise, through nine knots each, and r has a number for every age. They are those under which the items that
    came in the last tenth of the sessions are most likely, with both rankers fitted on the sessions before.

    Parameters
    ----------
    k : int
        How many similar sessions speak.
    window : int
        How many items of the query count, the last ones.
    n_jobs : int, optional
        Threads over blocks; the answers have the same bits with any number. -1: all cores.

    Attributes
    ----------
    item_ids_
        Ids in ascending order.
    neighbors_, counts_
        The fitted rankers, with what they found best, but for the weights of items that the session has: these are 1,
        as r says that here.
    steps_
        (2, 2, 9) what lines rise by at each knot: of new items and of those that the session has, by neighbours and by
        counts.
    repeats_
        r of every age, the last item's first.

    Notes
    -----
    :meth:`partial_fit` adds sessions to both rankers, and leaves the mixture as the first fit found it.

    Where the last tenth has fewer than 20 next items, both rankers count alike, and r is 0.

    Items that neither ranker names, each at most 100, and the session has not, come after all others by popularity,
    with scores from -1 to 0.

    Examples
    --------
    >>> from slatewise import SessionBlend
    >>> ranker = SessionBlend().fit([["tea", "milk"], ["tea", "cup", "milk"], ["ink", "pen"], ["pen", "paper"]])
    >>> ranker.rank([["cup", "tea"], ["ink"]], k=2, exclude_seen=True).ids.tolist()
    [['milk', 'pen'], ['pen', 'milk']]
    """

    _learned: ClassVar[Mapping[str, Rule]] = {
        "item_ids_": rules.IDS,
        "steps_": rules.learned_array(3, most=500.0),
        "repeats_": rules.learned_array(1, most=500.0),
    }
    _parts: ClassVar[tuple[str, ...]] = ("neighbors_", "counts_")
    neighbors_: SessionNeighbors
    counts_: CooccurrenceRanker
    steps_: Floats
    repeats_: Floats
    _frozen_from: ClassVar[tuple[str, ...]] = (*_learned, *_parts)

    _rules: ClassVar[Mapping[str, Rule]] = {
        "k": rules.count(1, rules.MOST_LISTED),
        "window": rules.count(1, MOST_AGES),
        "n_jobs": rules.JOBS,
    }

    def __init__(self, k: int = 100, window: int = 20, n_jobs: int | None = None) -> None:
        self.k = k
        self.window = window
        self.n_jobs = n_jobs

    def _learn(self, sessions: NumberedSessions, executor: Executor) -> None:
        window = int(self.window)
        neighbors = SessionNeighbors(int(self.k), window=window, n_jobs=self.n_jobs)
        counts = CooccurrenceRanker(window, n_jobs=self.n_jobs)
        for part in (neighbors, counts):
            part.fit_numbered(sessions)
            part.last_weight_ = part.repeat_weight_ = 1.0
        self.neighbors_, self.counts_ = neighbors, counts
        self.steps_, self.repeats_ = self._mixture(sessions, window, executor)

    def _mixture(self, sessions: NumberedSessions, window: int, executor: Executor) -> tuple[Floats, Floats]:
        held = np.arange(len(sessions)) >= (1.0 - HELD_OUT) * len(sessions)
        known, own = some_sessions(sessions, ~held), some_sessions(sessions, held)
        asked = Sessions(own.items, own.offsets).prefixes()
        if len(asked) < FEWEST_QUERIES:
            return not_learnt(len(self._parts), window)
        asked = asked[np.linspace(0, len(asked) - 1, min(len(asked), MOST_QUERIES)).astype(np.int64)]
        queries = SessionQueries(np.arange(len(asked)), asked.items, asked.starts, asked.ends)
        return likely_blend(self._scorers(known, executor), window, queries, asked.next_items, executor)

    def _add(self, sessions: NumberedSessions, former: Ints) -> None:
        if self.window != len(self.repeats_):
            raise ValueError(
                f"window: expected {len(self.repeats_)}, that of the fit to go on with, found {self.window}"
            )
        further = Sessions(sessions.item_ids[sessions.items], sessions.offsets)
        self.neighbors_ = self.neighbors_.with_further(further, self.n_jobs)
        self.counts_ = self.counts_.with_further(further, self.n_jobs)

    def scorer_of(self, sessions: NumberedSessions, executor: Executor) -> BlendModel:
        """Return what scores with other sessions under what fit found; the items are those of fit."""
        return BlendModel(self._scorers(sessions, executor), self.steps_, self.repeats_)

    def _scorers(self, sessions: NumberedSessions, executor: Executor) -> tuple[SparseScorer, SparseScorer]:
        return self.neighbors_.scorer_of(sessions, executor), self.counts_.scorer_of(sessions, executor)

    def _freeze(self) -> BlendModel:
        return BlendModel((self.neighbors_.scorer(), self.counts_.scorer()), self.steps_, self.repeats_)

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        self._check_items()
        kinds: dict[str, type[SessionRanker]] = {"neighbors_": SessionNeighbors, "counts_": CooccurrenceRanker}
        for name, kind in kinds.items():
            part: Any = getattr(self, name)
            if not isinstance(part, kind) or not np.array_equal(part.item_ids_, self.item_ids_):
                raise ValueError(f"{name}: expected a {kind.__name__} of the same items, found {type(part).__name__}")
        shape = 2, len(kinds), N_KNOTS
        if self.steps_.shape != shape or (self.steps_ < 0).any():
            raise ValueError(f"steps_: expected {shape} numbers >= 0, found {self.steps_.shape}")
        if not len(self.repeats_):
            raise ValueError("repeats_: expected a number for every age, found none")
