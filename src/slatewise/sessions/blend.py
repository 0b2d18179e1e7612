"""Rank next items by similar sessions and by counts at once: how likely each item is, given the scores of both.

    h(q, d) = sum over parts p of  g_p(level_p(q, d))               of an item that is new to the session
    h(q, d) = sum over parts p of  g'_p(level_p(q, d))  +  r_age    of one that the session had ``age`` items ago
    P(d comes next) = exp h / (sum over candidates of exp h  +  number of all other items)

A level is a part's score of one of its best items, from 0 to 1, relative to the best of them (``factors/offsets.py``);
an item without one adds nothing. Lines go through equally spaced knots and never fall, so each keeps the order of its
part; r is of any sign. Items of the session have lines of their own, because each part ranks a session's own items
first: there a high level means less. All are learned together, by L-BFGS, from sessions that the parts have not seen,
so that the true next items are as likely as possible. A prior keeps them where there is little to learn from.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import fmin_l_bfgs_b

from slatewise.core import rules
from slatewise.core.arrays import Floats, Ints
from slatewise.core.declarations import JOBS_TEXT, learned, param
from slatewise.core.running.executor import Executor
from slatewise.data.records import Sessions
from slatewise.recommend.histories import NumberedSessions, SessionQueries
from slatewise.sessions.cooccurrence import SessionCooccurrence
from slatewise.sessions.estimator import SessionModel, fit_numbered, scorer_of, with_further
from slatewise.sessions.neighbors import SessionNeighbors
from slatewise.sessions.sparse_scores import SparseScorer, blocks, normalized_block, query_items
from slatewise.sessions.tuning import next_items

if TYPE_CHECKING:
    from slatewise.recommend.kernels.sparse_scores import Popularity, SparseScores
    from slatewise.sessions.kernels.blend import Candidates, Heights

HELD_OUT, MOST_QUERIES, FEWEST_QUERIES = 0.1, 20_000, 20
"""Share of the sessions, the last ones, that the mixture is learned from, and the number of their beginnings."""
MOST_AGES = 1000
N_KNOTS = 9
START = 5.0
"""What the best item of a part gets where there is nothing to learn from."""
FLAT = 1e9
"""In units of the last digit: a step that gains less than 2e-7 of the loss is the last, far below what is noise."""


class SessionBlend(SessionModel):
    """Rank all items for a session by how likely they are to come next, given the scores of two models.

    :class:`slatewise.SessionNeighbors` knows similar sessions, :class:`slatewise.SessionCooccurrence` which items stood
    near each other; the score of an item is the probability that it comes next, given both::

        score(q, d) = exp h / (sum over candidates of exp h + number of other items)
        h(q, d)     = g(score of d by the neighbors) + g'(score of d by the counts)
        h(q, d)     = the same with two other lines, + r(how long ago the session had d), for items that it had

    The lines rise, through nine knots each, and r has a number for every age. They make the items that came in the last
    tenth of the sessions most likely, with both models fitted on the sessions before.

    Notes
    -----
    :meth:`partial_fit` adds sessions to both models, and leaves the mixture as the first fit found it.

    If the last tenth has fewer than 20 next items, both models count alike, and r is 0.

    Items that are neither among the 100 best of a model nor in the session come after all others, by popularity, with
    scores from -1 to 0.

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
        known, own = sessions.subset(~held), sessions.subset(held)
        queries, targets = next_items(Sessions(own.items, own.offsets), MOST_QUERIES)
        if len(queries) < FEWEST_QUERIES:
            return default_blend(len(self._parts), window)
        return likely_blend(self._scorers(known, executor), window, queries, targets, executor)

    def _add(self, sessions: NumberedSessions, former: Ints) -> None:
        if self.window != len(self.repeats_):
            raise ValueError(
                f"window: expected {len(self.repeats_)}, that of the fit to go on with, found {self.window}"
            )
        further = Sessions(sessions.item_ids[sessions.items], sessions.offsets)
        self.neighbors_ = with_further(self.neighbors_, further, self.n_jobs)
        self.counts_ = with_further(self.counts_, further, self.n_jobs)

    def _scorer_of(self, sessions: NumberedSessions | None, executor: Executor) -> BlendModel:
        return BlendModel(self._scorers(sessions, executor), self.spline_steps_, self.repeats_)

    def _scorers(self, sessions: NumberedSessions | None, executor: Executor) -> tuple[SparseScorer, SparseScorer]:
        return scorer_of(self.neighbors_, sessions, executor), scorer_of(self.counts_, sessions, executor)

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


@dataclass(frozen=True, eq=False)
class BlendModel:
    """Parts, and what levels and ages add to the logarithm of a probability."""

    parts: tuple[SparseScorer, ...]
    steps: Floats
    """(2, parts, knots): what g and g' rise by at each knot, >= 0; the first is the height at level 0."""
    repeats: Floats
    """r of every age."""

    @property
    def popularity(self) -> Popularity:
        """The order of items that no part scores."""
        return self.parts[0].popularity

    def sparse(self, queries: SessionQueries) -> SparseScores:
        """Return how likely the candidates of a block of queries are."""
        from slatewise.recommend.kernels.sparse_scores import SparseScores
        from slatewise.sessions.kernels.blend import probabilities

        found = self.candidates(queries)
        scores = np.empty(len(found.items))
        probabilities(found, len(self.popularity.order), self.heights(), scores)
        return SparseScores(found.starts, found.ends, found.items.astype(np.int64), scores)

    def candidates(self, queries: SessionQueries) -> Candidates:
        """Return the items that any part scores for a block of queries, with their levels."""
        from slatewise.sessions.kernels.blend import Candidates, Named, gather

        levels = list(map(normalized_block, self.parts, repeat(queries)))
        firsts = np.cumsum([0, *(len(part.items) for part in levels[:-1])])
        named = Named(
            np.stack([part.starts + first for part, first in zip(levels, firsts, strict=True)]),
            np.stack([part.ends + first for part, first in zip(levels, firsts, strict=True)]),
            np.concatenate([part.items for part in levels]),
            np.concatenate([part.levels for part in levels]),
        )
        window = len(self.repeats)
        most = len(named.items) + int(np.minimum(queries.ends - queries.starts, window).sum())
        out = Candidates(
            np.empty(len(queries), dtype=np.int64),
            np.empty(len(queries), dtype=np.int64),
            np.empty(most, dtype=np.int32),
            np.empty((len(levels), most), dtype=np.float32),
            np.empty(most, dtype=np.int32),
        )
        own = query_items(queries, np.empty(window))
        n = gather(named, own, np.zeros(len(self.popularity.order), dtype=np.int64), out)
        return out._replace(items=out.items[:n].copy(), levels=out.levels[:, :n].copy(), ages=out.ages[:n].copy())

    def heights(self) -> Heights:
        """Return what levels and ages add."""
        from slatewise.sessions.kernels.blend import Heights

        return Heights(np.cumsum(self.steps, axis=2), self.repeats)


def default_blend(n_parts: int, window: int) -> tuple[Floats, Floats]:
    """Return steps and repeats without data: parts count alike, and repeats nothing."""
    return np.full((2, n_parts, N_KNOTS), START / N_KNOTS), np.zeros(window)


def likely_blend(
    parts: tuple[SparseScorer, ...], window: int, queries: SessionQueries, targets: Ints, executor: Executor
) -> tuple[Floats, Floats]:
    """Return the steps and repeats under which these targets are most likely."""
    from slatewise.sessions.kernels.blend import Heights, surprise

    start = default_blend(len(parts), window)
    model, n_items = BlendModel(parts, *start), len(parts[0].popularity.order)
    rows = blocks(len(queries))
    found = list(executor.map_blocks(BlendModel.candidates, model, [queries[part] for part in rows]))
    prior = np.concatenate([part.ravel() for part in start])
    n_steps = start[0].size

    def loss(weights: Floats) -> tuple[float, Floats]:
        heights = Heights(np.cumsum(weights[:n_steps].reshape(start[0].shape), axis=2), weights[n_steps:])
        totals = np.empty(len(rows))
        slopes = Heights(np.zeros((len(rows), *start[0].shape)), np.zeros((len(rows), window)))

        def fill(block: int) -> None:
            part, slope = found[block], Heights(slopes.knots[block], slopes.ages[block])
            chances = np.empty(len(part.items))
            totals[block] = surprise(part, targets[rows[block]], n_items, heights, chances, slope)

        executor.fill_blocks(fill, range(len(rows)))
        away = weights - prior
        # A step lifts all knots after it.
        of_steps = np.cumsum(slopes.knots.sum(axis=0)[..., ::-1], axis=2)[..., ::-1]
        slope = np.concatenate([of_steps.ravel(), slopes.ages.sum(axis=0)])
        return float(totals.sum()) + 0.5 * float(away @ away), slope + away

    bounds = [(0.0, None)] * n_steps + [(None, None)] * window
    weights, _, report = fmin_l_bfgs_b(loss, prior, bounds=bounds, factr=FLAT)
    if report["warnflag"] == 1:
        calls = report["funcalls"]
        warnings.warn(f"the blend weights did not converge in {calls} function evaluations", stacklevel=2)
    return weights[:n_steps].reshape(start[0].shape), weights[n_steps:]
