"""A ranker of sessions under a LatentRanker: what it says of queries that it has not seen.

A base that knows a session by heart says of its beginnings what no later session will hear, so in training it is asked
from folds: sessions of a fold are scored by a base of all other sessions, its counts, rarities and popularity too.
Sessions held out to judge by are scored by a base of all that are learnt from; and answers come from a base of all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slatewise.core.executor import Executor
from slatewise.core.groups import spans
from slatewise.factors.base_levels import Levels
from slatewise.factors.input import LatentPairs, SessionsSoFar
from slatewise.factors.tables import Ints
from slatewise.factors.training import Validation
from slatewise.recommend.histories import NumberedSessions, SessionQueries
from slatewise.sessions.estimator import SessionModel, scorer_of
from slatewise.sessions.sparse_scores import SparseScorer, blocks

if TYPE_CHECKING:
    from slatewise.recommend.kernels.sparse_scores import SparseScores

DEPTH = 100
"""Items of a base that count, its best: in training their levels take 8 bytes each."""
FOLDS = 10
_STREAM = 2 << 32
"""Keeps the folds apart from other random numbers."""


def with_levels(
    pairs: LatentPairs, base: SessionModel | None, validation: Validation | None, seed: int, executor: Executor
) -> LatentPairs:
    """Add what bases that have not seen a session say of its beginnings; ``base`` is fitted on all sessions."""
    so_far = pairs.sessions
    if base is None or so_far is None:
        return pairs
    sessions = NumberedSessions(pairs.item_ids, so_far.items, so_far.offsets)
    held = np.zeros(len(sessions), dtype=bool)
    if validation is not None:
        held[so_far.owners[validation.queries]] = True
    used = np.flatnonzero(~held)
    folds, n_folds = np.full(len(held), -1, dtype=np.int64), min(FOLDS, len(used))
    if n_folds > 1:  # a single session has nobody to be scored by
        folds[used] = np.random.default_rng((seed, _STREAM)).permutation(len(used)) % n_folds
    queries = queries_so_far(so_far)
    parts: list[Levels] = []
    asked: list[Ints] = []
    for fold in range(-1, n_folds if n_folds > 1 else 0):
        others, own = (~held, held) if fold < 0 else (~held & (folds != fold), folds == fold)
        numbers = np.flatnonzero(own[so_far.owners])
        if len(numbers):
            scorer = scorer_of(base, some_sessions(sessions, others), executor)
            parts.append(levels_of(scorer, _some_queries(queries, numbers), executor))
            asked.append(numbers)
    levels = _put_together(parts, asked, len(queries))
    return replace(pairs, sessions=replace(so_far, levels=levels))


def further_levels(base: SessionModel, so_far: SessionsSoFar, n_items: int, known: Ints, executor: Executor) -> Levels:
    """Return what a base says of sessions that it has not learnt from yet; ``known`` are its items among all."""
    places = np.full(n_items, -1, dtype=np.int64)
    places[known] = np.arange(len(known))
    queries = queries_so_far(so_far)
    numbers = places[queries.items]
    before = np.concatenate(([0], np.cumsum(numbers >= 0)))
    asked = SessionQueries(queries.ids, numbers[numbers >= 0], before[queries.starts], before[queries.ends])
    found = levels_of(scorer_of(base), asked, executor)
    return found._replace(items=known.astype(np.int32)[found.items])  # both ascend


def queries_so_far(so_far: SessionsSoFar) -> SessionQueries:
    """Return the beginnings of sessions as queries of a base, which has a window of its own."""
    bags = so_far.bags
    return SessionQueries(np.arange(bags.n_queries), bags.items, so_far.firsts, bags.ends)


def levels_of(scorer: SparseScorer, queries: SessionQueries, executor: Executor) -> Levels:
    """Ask a base, block by block."""
    parts = list(executor.map_blocks(levels_of_block, scorer, [queries[rows] for rows in blocks(len(queries))]))
    return _joined(parts)


def some_sessions(sessions: NumberedSessions, chosen: NDArray[np.bool_]) -> NumberedSessions:
    """Return some of the sessions, with all items."""
    places, offsets = spans(sessions.offsets[:-1][chosen], np.diff(sessions.offsets)[chosen])
    return NumberedSessions(sessions.item_ids, sessions.items[places], offsets)


def levels_of_block(scorer: SparseScorer, queries: SessionQueries) -> Levels:
    """Ask a base about one block."""
    from slatewise.factors.kernels.base_levels import best_levels

    found: SparseScores = scorer.sparse(queries)
    most = int(np.minimum(found.ends - found.starts, DEPTH).sum())
    offsets = np.zeros(len(queries) + 1, dtype=np.int64)
    items, levels = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.float32)
    best_levels(found, DEPTH, offsets[1:], items, levels)
    n = int(offsets[-1])
    return Levels(offsets[:-1], offsets[1:], items[:n], levels[:n])


def _some_queries(queries: SessionQueries, numbers: Ints) -> SessionQueries:
    return SessionQueries(queries.ids[numbers], queries.items, queries.starts[numbers], queries.ends[numbers])


def _joined(parts: list[Levels]) -> Levels:
    if not parts:
        return Levels.none(0)
    sizes = np.concatenate([part.ends - part.starts for part in parts])
    ends = np.cumsum(sizes)
    return Levels(
        ends - sizes,
        ends,
        np.concatenate([part.items for part in parts]),
        np.concatenate([part.levels for part in parts]),
    )


def _put_together(parts: list[Levels], asked: list[Ints], n_queries: int) -> Levels:
    """Put rows that were asked for in parts into the order of the queries; the others have no items."""
    sizes = np.zeros(n_queries, dtype=np.int64)
    for part, numbers in zip(parts, asked, strict=True):
        sizes[numbers] = part.ends - part.starts
    ends, total = np.cumsum(sizes), int(sizes.sum())
    out = Levels(ends - sizes, ends, np.empty(total, np.int32), np.empty(total, np.float32))
    for part, numbers in zip(parts, asked, strict=True):
        places = spans(out.starts[numbers], sizes[numbers])[0]
        out.items[places], out.levels[places] = part.items, part.levels
    return out
