"""Out-of-fold scores of a base: training queries are scored by a base that has not seen their session.

A base that has seen a session scores its beginnings as it will score no later session. So in training, sessions of a
fold are scored by a base of all other sessions, with its counts, rarities and popularity; held-out sessions by a base
of all that are trained on; and predictions use a base of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints
from slatewise.core.groups import concatenate_ranges
from slatewise.core.running.executor import Executor
from slatewise.factors.base_levels import Levels
from slatewise.factors.pairs import Validation
from slatewise.recommend.histories import NumberedSessions, SessionQueries
from slatewise.sessions.estimator import SessionModel, scorer_of
from slatewise.sessions.session_pairs import SessionPairs
from slatewise.sessions.sparse_scores import SparseScorer, blocks

if TYPE_CHECKING:
    from slatewise.recommend.kernels.sparse_scores import SparseScores

DEPTH = 100
"""Items of a base that count, its best: in training their levels take 8 bytes each."""
FOLDS = 10
_STREAM = 2 << 32
"""Keeps the folds apart from other random numbers."""


def cross_fitted(
    base: SessionModel, pairs: SessionPairs, validation: Validation | None, seed: int, executor: Executor
) -> Levels:
    """Return scores of all queries by bases that have not seen their session; ``base`` is fitted on all sessions."""
    sessions = pairs.sessions
    held = np.zeros(len(sessions), dtype=bool)
    if validation is not None:
        held[pairs.owners[validation.queries]] = True
    used = np.flatnonzero(~held)
    folds, n_folds = np.full(len(held), -1, dtype=np.int64), min(FOLDS, len(used))
    if n_folds > 1:  # there are no others to score a single session
        folds[used] = np.random.default_rng((seed, _STREAM)).permutation(len(used)) % n_folds
    queries = queries_so_far(pairs)
    parts: list[Levels] = []
    asked: list[Ints] = []
    for fold in range(-1, n_folds if n_folds > 1 else 0):
        others, own = (~held, held) if fold < 0 else (~held & (folds != fold), folds == fold)
        numbers = np.flatnonzero(own[pairs.owners])
        if len(numbers):
            scorer = scorer_of(base, some_sessions(sessions, others), executor)
            parts.append(levels_of(scorer, _some_queries(queries, numbers), executor))
            asked.append(numbers)
    return _put_together(parts, asked, len(queries))


def further_levels(base: SessionModel, pairs: SessionPairs, known: Ints, executor: Executor) -> Levels:
    """Return a base's scores of sessions that it has not learned from yet; ``known`` are its items among all."""
    places = np.full(len(pairs.item_ids), -1, dtype=np.int64)
    places[known] = np.arange(len(known))
    queries = queries_so_far(pairs)
    numbers = places[queries.items]
    before = np.concatenate(([0], np.cumsum(numbers >= 0)))
    asked = SessionQueries(queries.ids, numbers[numbers >= 0], before[queries.starts], before[queries.ends])
    found = levels_of(scorer_of(base), asked, executor)
    return found._replace(items=known.astype(np.int32)[found.items])  # both ascend


def queries_so_far(pairs: SessionPairs) -> SessionQueries:
    """Return the beginnings of sessions as queries of a base, which has a window of its own."""
    bags = pairs.bags
    return SessionQueries(np.arange(bags.n_queries), bags.items, pairs.firsts, bags.ends)


def levels_of(scorer: SparseScorer, queries: SessionQueries, executor: Executor) -> Levels:
    """Ask a base, block by block."""
    parts = list(executor.map_blocks(levels_of_block, scorer, [queries[rows] for rows in blocks(len(queries))]))
    return _joined(parts)


def some_sessions(sessions: NumberedSessions, chosen: NDArray[np.bool_]) -> NumberedSessions:
    """Return some of the sessions, with all items."""
    places, offsets = concatenate_ranges(sessions.offsets[:-1][chosen], np.diff(sessions.offsets)[chosen])
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
        places = concatenate_ranges(out.starts[numbers], sizes[numbers])[0]
        out.items[places], out.levels[places] = part.items, part.levels
    return out
