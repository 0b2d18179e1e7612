"""Rank next items by similar sessions and by counts at once, mixed as sessions that both have not seen say."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from slatewise.core import rules
from slatewise.core.arrays import Floats, Ints
from slatewise.core.declarations import JOBS_TEXT, learned, param
from slatewise.core.running.executor import Executor
from slatewise.data.records import Sessions
from slatewise.recommend.histories import NumberedSessions, SessionQueries
from slatewise.sessions.blend_model import N_KNOTS, BlendModel, likely_blend, not_learnt
from slatewise.sessions.cooccurrence import SessionCooccurrence
from slatewise.sessions.cross_fit import some_sessions
from slatewise.sessions.estimator import SessionModel, fit_numbered, scorer_of, with_further
from slatewise.sessions.neighbors import SessionNeighbors
from slatewise.sessions.sparse_scores import SparseScorer

HELD_OUT, MOST_QUERIES, FEWEST_QUERIES = 0.1, 20_000, 20
"""Share of the sessions, the last ones, that the mixture is learnt from, and how many of their beginnings."""
MOST_AGES = 1000


class SessionBlend(SessionModel):
    """Rank all items for a session by how likely they are to come next, given what two rankers say of them.

    :class:`slatewise.SessionNeighbors` knows similar sessions, :class:`slatewise.SessionCooccurrence` what stood near
    what; here both are asked, and the score of an item is the probability that it comes next::

        score(q, d) = exp h / (sum over candidates of exp h + number of other items)
        h(q, d)     = g(what the neighbours say of d) + g'(what the counts say of d)
        h(q, d)     = the same with two other lines, + r(how long ago the session had d), for items that it had

    The lines rise, through nine knots each, and r has a number for every age. They are those under which the items that
    came in the last tenth of the sessions are most likely, with both rankers fitted on the sessions before.

    Notes
    -----
    :meth:`partial_fit` adds sessions to both rankers, and leaves the mixture as the first fit found it.

    Where the last tenth has fewer than 20 next items, both rankers count alike, and r is 0.

    Items that neither ranker names, each at most 100, and the session has not, come after all others by popularity,
    with scores from -1 to 0.

    Examples
    --------
    >>> from slatewise.sessions.blend import SessionBlend
    >>> ranker = SessionBlend().fit([["tea", "milk"], ["tea", "cup", "milk"], ["ink", "pen"], ["pen", "paper"]])
    >>> ranker.rank([["cup", "tea"], ["ink"]], k=2, exclude_seen=True).ids.tolist()
    [['milk', 'pen'], ['pen', 'milk']]
    """

    _parts: ClassVar[tuple[str, ...]] = ("neighbors_", "counts_")
    k: int = param(rules.count(1, rules.MOST_LISTED), "The number of similar sessions.", default=100, kw_only=False)
    window: int = param(
        rules.count(1, MOST_AGES), "The number of items of the query that count, the last ones.", default=20
    )
    n_jobs: int | None = param(rules.JOBS, JOBS_TEXT, default=None, saved=False)

    neighbors_: SessionNeighbors = learned(
        rules.ANY,
        "The fitted neighbors, with 1 for the weights of items of the session: ``repeats_`` has these.",
        saved=False,
    )
    counts_: SessionCooccurrence = learned(rules.ANY, "The fitted counts, in the same way.", saved=False)
    spline_steps_: Floats = learned(
        rules.learned_array(3, most=500.0),
        """What the lines rise by at each knot: for new items and for those of the session, by neighbors and by
        counts.""",
        shape=(2, 2, N_KNOTS),
    )
    repeats_: Floats = learned(rules.learned_array(1, most=500.0), "r of every age, that of the last item first.")

    def _learn(self, sessions: NumberedSessions, executor: Executor) -> None:
        window = int(self.window)
        neighbors = SessionNeighbors(int(self.k), window=window, n_jobs=self.n_jobs)
        counts = SessionCooccurrence(window, n_jobs=self.n_jobs)
        for part in (neighbors, counts):
            fit_numbered(part, sessions)
            part.last_weight_ = part.repeat_weight_ = 1.0
        self.neighbors_, self.counts_ = neighbors, counts
        self.spline_steps_, self.repeats_ = self._mixture(sessions, window, executor)

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
        self.neighbors_ = with_further(self.neighbors_, further, self.n_jobs)
        self.counts_ = with_further(self.counts_, further, self.n_jobs)

    def _scorer_of(self, sessions: NumberedSessions, executor: Executor) -> BlendModel:
        return BlendModel(self._scorers(sessions, executor), self.spline_steps_, self.repeats_)

    def _scorers(self, sessions: NumberedSessions, executor: Executor) -> tuple[SparseScorer, SparseScorer]:
        return scorer_of(self.neighbors_, sessions, executor), scorer_of(self.counts_, sessions, executor)

    def _freeze(self) -> BlendModel:
        return BlendModel((scorer_of(self.neighbors_), scorer_of(self.counts_)), self.spline_steps_, self.repeats_)

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        kinds: dict[str, type[SessionModel]] = {"neighbors_": SessionNeighbors, "counts_": SessionCooccurrence}
        for name, kind in kinds.items():
            part: Any = getattr(self, name)
            if not isinstance(part, kind) or not np.array_equal(part.item_ids_, self.item_ids_):
                raise ValueError(f"{name}: expected a {kind.__name__} of the same items, found {type(part).__name__}")
        if (self.spline_steps_ < 0).any():
            raise ValueError("spline_steps_: expected numbers >= 0, found others")
        if not len(self.repeats_):
            raise ValueError("repeats_: expected a number for every age, found none")
