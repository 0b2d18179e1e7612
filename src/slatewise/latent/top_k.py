"""The k best items of the whole catalogue for each query, never with more memory than a block of scores.

    order(q) = argsort of x_q . z_d, largest first, equal scores by item number

Tile after tile of the catalogue is scored by a matrix product and merged into the best so far in one pass. Threads run
over blocks of queries or, where there is only one block, over shares of the catalogue. Very few queries look at a
screen of bytes first, where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from slatewise.core import executor
from slatewise.latent.queries import Queries
from slatewise.latent.screen import Screen
from slatewise.latent.tables import Ints, Singles, without_padding

if TYPE_CHECKING:
    from scipy.sparse import csr_array

QUERIES_A_BLOCK = 512
SCORES_A_TILE, MOST_ITEMS_A_TILE = 1 << 18, 1 << 14
"""A tile stays in the cache; few queries take wide ones, so that calls stay few."""
ITEMS_A_SHARE = 1 << 15
"""Fewer are ranked before a thread has started."""
FEW_QUERIES = 4
"""So many are faster one by one with a screen than together in a product."""


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
    screen: Screen | None = None,
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
        Threads over blocks of queries or shares of the catalogue; the result has the same bits with any number.
    screen
        The items' screen, for very few queries.
    """
    if exclude is not None:
        exclude.sort_indices()
    with executor.one_blas_thread():
        if len(numbers) <= QUERIES_A_BLOCK:
            vectors, hidden = queries.vectors(numbers), _hidden(exclude, 0, len(numbers))
            if screen is not None and len(numbers) <= FEW_QUERIES and np.isfinite(vectors).all():
                return _screened(vectors, screen, k, hidden, n_threads)
            return _of_one_block(vectors, items, k, hidden, n_threads)
        found = _nothing(len(numbers), k)

        def rank(first: int) -> None:
            rows = slice(first, min(first + QUERIES_A_BLOCK, len(numbers)))
            hidden = _hidden(exclude, first, rows.stop)
            _rank(queries.vectors(numbers[rows]), items, 0, hidden, TopItems(found.items[rows], found.scores[rows]))

        for _ in executor.map_blocks(rank, range(0, len(numbers), QUERIES_A_BLOCK), n_threads):
            pass
    return found


def _of_one_block(
    vectors: Singles, items: Singles, k: int, hidden: tuple[Ints, Ints], n_threads: int | None
) -> TopItems:
    """Rank shares of the catalogue by themselves, then their best together."""
    starts = range(0, len(items), ITEMS_A_SHARE)
    shares = [_nothing(len(vectors), k) for _ in starts]

    def rank(share: int) -> None:
        start = starts[share]
        _rank(vectors, items[start : start + ITEMS_A_SHARE], start, hidden, shares[share])

    # One query only reads memory, which threads do not make faster, and should not wait for them to start.
    for _ in executor.map_blocks(rank, range(len(starts)), n_threads if min(len(starts), len(vectors)) > 1 else 1):
        pass
    if len(shares) == 1:
        return shares[0]
    names, scores = (np.hstack(parts) for parts in zip(*((of.items, of.scores) for of in shares), strict=True))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]  # shares come in item order: ties rank by item number
    return TopItems(np.take_along_axis(names, order, axis=1), np.take_along_axis(scores, order, axis=1))


def _screened(vectors: Singles, screen: Screen, k: int, hidden: tuple[Ints, Ints], n_threads: int | None) -> TopItems:
    found, (offsets, unwanted) = _nothing(len(vectors), k), hidden

    def rank(row: int) -> None:
        hidden_here = unwanted[offsets[row] : offsets[row + 1]]
        screen.best(vectors[row], hidden_here, found.scores[row], found.items[row])

    for _ in executor.map_blocks(rank, range(len(vectors)), n_threads if len(vectors) > 1 else 1):
        pass
    return found


def _nothing(n_queries: int, k: int) -> TopItems:
    return TopItems(np.full((n_queries, k), -1, dtype=np.int64), np.full((n_queries, k), -np.inf, dtype=np.float32))


def _rank(vectors: Singles, items: Singles, first_item: int, hidden: tuple[Ints, Ints], found: TopItems) -> None:
    """Merge items, numbered from ``first_item``, into what is found so far."""
    from slatewise.latent.kernels.catalogue_topk import hide_items, keep_best

    vectors = without_padding(vectors)
    width = vectors.shape[1]
    tile = min(SCORES_A_TILE // max(len(vectors), 1), MOST_ITEMS_A_TILE, len(items))
    room = np.empty((len(vectors), tile), dtype=np.float32)
    offsets, unwanted = hidden
    places = offsets[:-1].copy()
    for start in range(0, len(items), tile):
        part = items[start : start + tile, :width]
        scores = room if len(part) == tile else np.empty((len(vectors), len(part)), dtype=np.float32)
        np.matmul(vectors, part.T, out=scores)
        if len(unwanted):
            hide_items(scores, first_item + start, offsets, unwanted, places)
        keep_best(scores, first_item + start, found.scores, found.items)


def _hidden(exclude: csr_array | None, first: int, last: int) -> tuple[Ints, Ints]:
    """Return offsets and ascending items of these rows; no items where nothing is hidden."""
    if exclude is None:
        return np.zeros(last - first + 1, dtype=np.int64), np.empty(0, dtype=np.int64)
    every, items = cast("Ints", exclude.indptr), cast("Ints", exclude.indices)
    offsets = every[first : last + 1].astype(np.int64)
    return offsets - offsets[0], items[offsets[0] : offsets[-1]].astype(np.int64)
