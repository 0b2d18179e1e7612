"""The k best items of the whole catalogue for each query, never with more memory than a block of scores.

    order(q) = argsort of x_q . z_d, largest first, equal scores by item number

Tile after tile of the catalogue is scored by a matrix product and merged into the best so far in one pass; threads run
over blocks of queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from slatewise import parallel
from slatewise.warp.queries import Queries
from slatewise.warp.tables import Ints, Singles, without_padding

if TYPE_CHECKING:
    from scipy.sparse import csr_array

QUERIES_A_BLOCK = 512
SCORES_A_TILE, MOST_ITEMS_A_TILE = 1 << 18, 1 << 14
"""A tile stays in the cache; few queries take wide ones, so that calls stay few."""


@dataclass(frozen=True, eq=False)
class TopItems:
    """For each query its best items, (queries, k), best first; where fewer are left: item -1, score -inf."""

    items: Ints
    scores: Singles


def top_items(
    queries: Queries,
    numbers: Ints,
    items: Singles,
    k: int,
    exclude: csr_array | None = None,
    n_threads: int | None = None,
) -> TopItems:
    """Rank the catalogue for each query called by ``numbers``.

    Parameters
    ----------
    queries
        Where the query vectors come from, a block at a time.
    numbers
        The queries to rank for.
    items
        A row an item.
    k
        Items to return a query.
    exclude
        (len(numbers), items): entries stored in row i do not show for query i.
    n_threads
        Threads over blocks of queries; the result has the same bits with any number.
    """
    from slatewise.kernels.catalogue_topk import hide_items, keep_best

    best = np.full((len(numbers), k), -np.inf, dtype=np.float32)
    names = np.full((len(numbers), k), -1, dtype=np.int64)
    if exclude is not None:
        exclude.sort_indices()

    def rank(first: int) -> None:
        last = min(first + QUERIES_A_BLOCK, len(numbers))
        rows = slice(first, last)
        vectors = without_padding(queries.vectors(numbers[rows]))
        width = vectors.shape[1]
        tile = min(SCORES_A_TILE // len(vectors), MOST_ITEMS_A_TILE, len(items))
        room = np.empty((len(vectors), tile), dtype=np.float32)
        offsets, hidden = _hidden(exclude, first, last)
        places = offsets[:-1].copy()
        for start in range(0, len(items), tile):
            part = items[start : start + tile, :width]
            scores = room if len(part) == tile else np.empty((len(vectors), len(part)), dtype=np.float32)
            np.matmul(vectors, part.T, out=scores)
            if len(hidden):
                hide_items(scores, start, offsets, hidden, places)
            keep_best(scores, start, best[rows], names[rows])

    threads = n_threads if len(numbers) > QUERIES_A_BLOCK else 1  # one query should not wait for threads to start
    with parallel.one_blas_thread():
        for _ in parallel.map_blocks(rank, range(0, len(numbers), QUERIES_A_BLOCK), threads):
            pass
    return TopItems(names, best)


def _hidden(exclude: csr_array | None, first: int, last: int) -> tuple[Ints, Ints]:
    """Return offsets and ascending items of these rows; no items where nothing is hidden."""
    if exclude is None:
        return np.zeros(last - first + 1, dtype=np.int64), np.empty(0, dtype=np.int64)
    every, items = cast("Ints", exclude.indptr), cast("Ints", exclude.indices)
    offsets = every[first : last + 1].astype(np.int64)
    return offsets - offsets[0], items[offsets[0] : offsets[-1]].astype(np.int64)
