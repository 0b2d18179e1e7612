"""Several scorers of sessions in one: how likely each item is to come next, by what all of them say of it.

    h(q, d) = sum over parts p of  g_p(level_p(q, d))               of an item that is new to the session
    h(q, d) = sum over parts p of  g'_p(level_p(q, d))  +  r_age    of one that the session had ``age`` items ago
    P(d comes next) = exp h / (sum over candidates of exp h  +  number of all other items)

A level is what a part says of one of its best items, from 0 to 1, against the best of them (``base_levels.py``); a part
that does not name an item adds nothing. Lines go through equally spaced knots and never fall, so no part's order is
turned round by itself; r is of any sign. Items of the session have lines of their own, because whatever names items for
a session names its own items first: there a high level says less. All are learnt together, by L-BFGS, from sessions
that the parts have not seen: under them the items that came are most likely. A prior keeps them where there is little
to learn from.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import fmin_l_bfgs_b

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.executor import Executor
from slatewise.recommend.histories import SessionQueries
from slatewise.sessions.cross_fit import levels_of_block
from slatewise.sessions.sparse_scores import SparseScorer, blocks

if TYPE_CHECKING:
    from slatewise.recommend.kernels.sparse_scores import Popularity, SparseScores
    from slatewise.sessions.kernels.blend import Candidates, Heights

N_KNOTS = 9
START = 5.0
"""What the best item of a part gets where there is nothing to learn from."""
FLAT = 1e9
"""In units of the last digit: a step that gains less than 2e-7 of the loss is the last, far below what is noise."""


@dataclass(frozen=True, eq=False)
class BlendModel:
    """Parts, and what their levels and ages are worth."""

    parts: tuple[SparseScorer, ...]
    steps: Floats
    """(2, parts, knots): what g and g' rise by at each knot, >= 0; the first is the height at level 0."""
    repeats: Floats
    """r of every age."""

    @property
    def popularity(self) -> Popularity:
        """What ranks items that nobody names."""
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
        """Ask every part about a block of queries, and put together what they name."""
        from slatewise.recommend.kernels.neighbors import Asked
        from slatewise.sessions.kernels.blend import Candidates, Named, gather

        levels = list(map(levels_of_block, self.parts, repeat(queries)))
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
        asked = Asked(queries.items, queries.starts, queries.ends, np.empty(window))
        n = gather(named, asked, np.zeros(len(self.popularity.order), dtype=np.int64), out)
        return out._replace(items=out.items[:n].copy(), levels=out.levels[:, :n].copy(), ages=out.ages[:n].copy())

    def heights(self) -> Heights:
        """Return what levels and ages add."""
        from slatewise.sessions.kernels.blend import Heights

        return Heights(np.cumsum(self.steps, axis=2), self.repeats)


def not_learnt(n_parts: int, window: int) -> tuple[Floats, Floats]:
    """Return steps and repeats where there is nothing to learn them from: parts count alike, and repeats nothing."""
    return np.full((2, n_parts, N_KNOTS), START / N_KNOTS), np.zeros(window)


def likely_blend(
    parts: tuple[SparseScorer, ...], window: int, queries: SessionQueries, targets: Ints, executor: Executor
) -> tuple[Floats, Floats]:
    """Return the steps and repeats under which these items are most likely to come after these queries."""
    from slatewise.sessions.kernels.blend import Heights, surprise

    start = not_learnt(len(parts), window)
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
    weights, _, told = fmin_l_bfgs_b(loss, prior, bounds=bounds, factr=FLAT)
    if told["warnflag"] == 1:
        warnings.warn(f"the mixture is not the most likely one yet after {told['funcalls']} looks", stacklevel=2)
    return weights[:n_steps].reshape(start[0].shape), weights[n_steps:]
