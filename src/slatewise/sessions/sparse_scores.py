"""Scorers of few items per query: rankings, scores of given items, ranks of targets, and normalized scores.

Items without a score follow by popularity. A *level* is a score on a scale from 0 to 1, which scorers of different
units share: ``factors/offsets.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.executor import Executor
from slatewise.factors.offsets import Levels
from slatewise.recommend.filters import ItemFilter
from slatewise.recommend.histories import SessionQueries

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from slatewise.recommend.kernels.neighbors import QueryItems
    from slatewise.recommend.kernels.sparse_scores import ItemSets, Popularity, SparseScores


QUERIES_PER_BLOCK = 256
FAINTEST = 1e-150
DEPTH = 100
"""The number of best items of a query that have levels: in training they take 8 bytes each."""


class SparseScorer(Protocol):
    """Scores few of the items for each query, and knows how popular all are."""

    def sparse(self, queries: SessionQueries) -> SparseScores:
        """Return the scores > 0 of a block of queries, the weights of repeats applied."""
        ...

    @property
    def popularity(self) -> Popularity:
        """What ranks the other items."""
        ...


def decay_powers(decay: float, window: int) -> Floats:
    """Return decay ** age of the last items; never 0, which would pass for no weight."""
    with np.errstate(under="ignore"):
        return np.maximum(decay ** np.arange(window, dtype=np.float64), FAINTEST)


def query_items(queries: SessionQueries, powers: Floats) -> QueryItems:
    """Return queries as kernels take them, with the weight of each age."""
    from slatewise.recommend.kernels.neighbors import QueryItems

    return QueryItems(queries.items, queries.starts, queries.ends, powers)


def weigh_repeats(queries: QueryItems, found: SparseScores, last: float, earlier: float, n_items: int) -> None:
    """Multiply the scores of a query's own items: its last one by ``last``, the others by ``earlier``."""
    from slatewise.recommend.kernels import sparse_scores as kernels

    if (last, earlier) != (1.0, 1.0):
        kernels.weigh_repeats(queries, found, last, earlier, np.zeros(n_items, dtype=np.int64))


def by_popularity(shares: Floats) -> Popularity:
    """Return how items rank that have no other score, by the share of sessions that each is in."""
    from slatewise.recommend.kernels.sparse_scores import Popularity

    scores = shares - 1.0
    return Popularity(scores, np.argsort(-scores, kind="stable"))


def best_items(
    scorer: SparseScorer, queries: SessionQueries, k: int, shown: ItemFilter, executor: Executor
) -> tuple[Ints, Floats]:
    """Return the k best items of each query that may be shown, and their scores; where fewer are left, item -1."""
    from slatewise.recommend.kernels import sparse_scores as kernels

    popularity, n_items = scorer.popularity, len(scorer.popularity.order)
    out, scores = np.full((len(queries), k), -1, dtype=np.int64), np.full((len(queries), k), -np.inf)
    common = None if shown.common is None else kernels.ItemSets(np.array([0, len(shown.common)]), shown.common)

    def fill(rows: slice) -> None:
        found, hidden = scorer.sparse(queries[rows]), _sets(shown.hidden, rows)
        own = common if shown.own is None else _sets(shown.own, rows)
        marks, best, items = np.zeros(n_items, dtype=np.int64), scores[rows], out[rows]
        if own is None:
            kernels.best_items(found, popularity, hidden, marks, best, items)
        else:
            kernels.best_candidates(found, popularity, hidden, own, marks, np.zeros(n_items), best, items)

    executor.fill_blocks(fill, blocks(len(queries)))
    return out, scores


def item_scores(scorer: SparseScorer, queries: SessionQueries, items: Ints, executor: Executor) -> Floats:
    """Return the score of every query with each of these items, (queries, items); -inf for item -1."""
    from slatewise.recommend.kernels import sparse_scores as kernels

    popularity, out = scorer.popularity, np.empty((len(queries), len(items)))

    def fill(rows: slice) -> None:
        kernels.scores_of(scorer.sparse(queries[rows]), popularity, items, np.zeros(len(popularity.order)), out[rows])

    executor.fill_blocks(fill, blocks(len(queries)))
    return out


def places_of(scorer: SparseScorer, queries: SessionQueries, targets: Ints, executor: Executor) -> Ints:
    """Return the number of items ahead of each query's target; -1 if it has no score of its own."""
    from slatewise.recommend.kernels import sparse_scores as kernels

    out = np.empty(len(queries), dtype=np.int64)

    def fill(rows: slice) -> None:
        kernels.places_of(scorer.sparse(queries[rows]), targets[rows], out[rows])

    executor.fill_blocks(fill, blocks(len(queries)))
    return out


def normalized_scores(scorer: SparseScorer, queries: SessionQueries, executor: Executor) -> Levels:
    """Return the levels of the best items of each query."""
    parts = [queries[rows] for rows in blocks(len(queries))]
    return joined_scores(list(executor.map_blocks(normalized_block, scorer, parts)))


def normalized_block(scorer: SparseScorer, queries: SessionQueries) -> Levels:
    """Return the levels of one block of queries."""
    from slatewise.factors.kernels.base_levels import best_levels

    found = scorer.sparse(queries)
    most = int(np.minimum(found.ends - found.starts, DEPTH).sum())
    offsets = np.zeros(len(queries) + 1, dtype=np.int64)
    items, levels = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.float32)
    best_levels(found, DEPTH, offsets[1:], items, levels)
    n = int(offsets[-1])
    return Levels(offsets[:-1], offsets[1:], items[:n], levels[:n])


def joined_scores(parts: list[Levels]) -> Levels:
    """Put the queries of parts one after the other."""
    if not parts:
        return Levels.none(0)
    sizes = np.concatenate([part.ends - part.starts for part in parts])
    ends = np.cumsum(sizes)
    items, levels = [part.items for part in parts], [part.levels for part in parts]
    return Levels(ends - sizes, ends, np.concatenate(items), np.concatenate(levels))


def blocks(n_queries: int) -> list[slice]:
    """Cut queries into blocks."""
    return [slice(first, min(first + QUERIES_PER_BLOCK, n_queries)) for first in range(0, n_queries, QUERIES_PER_BLOCK)]


def _sets(matrix: csr_array | None, rows: slice) -> ItemSets:
    from slatewise.recommend.kernels.sparse_scores import ItemSets

    if matrix is None:
        return ItemSets(np.zeros(rows.stop - rows.start + 1, dtype=np.int64), np.empty(0, dtype=np.int64))
    bounds = matrix.indptr[rows.start : rows.stop + 1].astype(np.int64)
    return ItemSets(bounds - bounds[0], matrix.indices[bounds[0] : bounds[-1]].astype(np.int64))
