"""The k best items of the whole catalog for each query, stage after stage, with memory for a block of queries.

    order(q) = argsort of b(q, d) + x_q . z_d, largest first, equal scores by item number

x_q is the vector of a query, z_d the row of an item, and b an optional base: scores that come from elsewhere and do not
move. Each stage but the first is moved by the list of the one before. Tile after tile of the catalog is scored by a
matrix product and merged into the best so far in one pass. Threads run over blocks of queries or, where there is only
one block, over shares of the catalog. Very few queries use a quantized index first, where there is one. With candidates
only their scores are computed, and sorted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints, Singles
from slatewise.core.groups import concatenate_ranges
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.factors.offsets import ItemOffsets
from slatewise.factors.pair_terms import ListedQueries, OwnItems, PairTerm, add_lists, places_of
from slatewise.factors.queries import Queries
from slatewise.factors.tables import Table, without_padding
from slatewise.recommend.quantized import QuantizedIndex

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from slatewise.recommend.filters import ItemFilter


MOST_SCORES = 1 << 22
"""Scores (16 MB) that a thread holds; rows are taken in pieces of this size, which the data decide."""


class BaseScores(Protocol):
    """Scores of all items for queries that are called by number, from several threads."""

    def rows(self, queries: Ints) -> Singles:
        """Return a fresh array (queries, items)."""
        ...


def pieces(n_rows: int, n_items: int, most: int | None = None) -> list[slice]:
    """Cut rows into pieces of at most ``MOST_SCORES`` scores, and ``most`` rows, but never less than a row."""
    size = max(1, min(most or n_rows, MOST_SCORES // max(n_items, 1)))
    return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]


@dataclass(frozen=True, eq=False)
class Factors:
    """What is learned: the score of item d for query q is ``queries.vectors([q]) . items.values[d]``.

    Where there is a base, its b(q, d) is added; nothing of it moves.
    """

    queries: Queries
    items: Table
    base: BaseScores | None = None


QUERIES_PER_BLOCK, QUERIES_ON_BASE = 512, 128
"""Of factors, and of a base, whose rows are whole ones."""

SCORES_PER_TILE, MOST_ITEMS_PER_TILE = 1 << 18, 1 << 14
"""A tile stays in the cache; few queries take wide ones, so that calls stay few."""

ITEMS_PER_SHARE = 1 << 15
"""Fewer are ranked before a thread has started."""

FEW_QUERIES = 4
"""This number of queries is faster one by one with a quantized index than together in a product."""


@dataclass(frozen=True, eq=False)
class TopItems:
    """For each query its best items, (queries, k), best first; where fewer are left: item -1, score -inf."""

    items: Ints
    scores: Singles

    @classmethod
    def nothing(cls, n_queries: int, k: int) -> TopItems:
        """Return empty places."""
        return cls(np.full((n_queries, k), -1, dtype=np.int64), np.full((n_queries, k), -np.inf, dtype=np.float32))

    def of(self, rows: slice) -> TopItems:
        """Return the places of some queries, not a copy."""
        return TopItems(self.items[rows], self.scores[rows])


class Hidden(NamedTuple):
    """Items that do not show: row r has the ascending ``items[offsets[r] : offsets[r + 1]]``."""

    offsets: Ints
    items: Ints


class _Scored(NamedTuple):
    """A block of queries that all items are scored for."""

    vectors: Singles
    items: Singles
    base: Singles | None
    """(queries, items) scores to be added."""
    hidden: Hidden


class Device(Protocol):
    """Ranks elsewhere than on the CPU."""

    def top(self, cascade: Cascade, numbers: Ints, k: int, exclude: csr_array | None) -> TopItems:
        """Rank as :meth:`Cascade.top` does."""
        ...


@dataclass(frozen=True, eq=False)
class Cascade:
    """Factors of some stages for queries called by number; those of later ones come without what their lists add.

    A single stage may be anything that scores; later ones need the pair term and the weights of the places.
    """

    stages: tuple[Factors, ...]
    pair: PairTerm | None = None
    position_weights: Singles = field(default_factory=lambda: np.empty(0, dtype=np.float32))
    own_items: OwnItems | None = None
    quantized: Callable[[int], QuantizedIndex | None] = lambda stage: None
    """Returns the quantized index of the items of a stage, if there is one."""
    device: Device | None = None
    """Where to rank; None: here."""

    @property
    def n_items(self) -> int:
        """How many items are ranked."""
        return len(self.stages[0].items.values)

    @property
    def list_length(self) -> int:
        """How many items a stage hands over."""
        return min(len(self.position_weights), self.n_items)

    def top(self, numbers: Ints, k: int, exclude: csr_array | None = None, executor: Executor = ONE_THREAD) -> TopItems:
        """Rank the catalogue by the last stage.

        Parameters
        ----------
        numbers
            The queries to rank for.
        k
            Items to return per query.
        exclude
            (len(numbers), items): entries stored in row i do not show for query i.
        executor
            Works over blocks of queries or shares of the catalogue; the result has the same bits with any number of
            threads.
        """
        if self.device is not None:
            return self.device.top(self, numbers, k, exclude)
        if exclude is not None:
            exclude.sort_indices()
        found = TopItems.nothing(len(numbers), k)
        blocks = self._blocks(len(numbers))
        with one_blas_thread():
            if len(blocks) == 1:
                self._rank(numbers, exclude, found, executor, ITEMS_PER_SHARE, blocks[0])
            else:
                rank = partial(self._rank, numbers, exclude, found, ONE_THREAD, self.n_items)
                executor.fill_blocks(rank, blocks)
        return found

    def factors(self, n_queries: int, executor: Executor = ONE_THREAD) -> Factors:
        """Return the last stage for queries 0 to ``n_queries``, with what their lists add."""
        last = self.stages[-1]
        if len(self.stages) == 1 or self.pair is None:
            return last
        lists, weights = self.handed_over(n_queries, executor)
        return replace(last, queries=ListedQueries(last.queries, last.items, self.pair, lists, weights))

    def handed_over(self, n_queries: int, executor: Executor = ONE_THREAD) -> tuple[Ints, Singles]:
        """Return the lists that the last stage is moved by, own items behind them, and the weights of all places."""
        if len(self.stages) == 1:
            return np.empty((n_queries, 0), dtype=np.int64), self.position_weights[:0]
        before = replace(self, stages=self.stages[:-1])
        lists = before.top(np.arange(n_queries), self.list_length, executor=executor).items
        return places_of(lists, self.position_weights, self.own_items, slice(n_queries))

    def scores(self, n_queries: int, items: Ints, width: int, executor: Executor = ONE_THREAD) -> Singles:
        """Return the score of queries 0 to ``n_queries`` with each of these items, (queries, items).

        Vectors are 0 beyond their first ``width`` columns.
        """
        factors = self.factors(n_queries, executor)
        rows = factors.items.values[items, :width]
        scores, every = np.empty((n_queries, len(items)), dtype=np.float32), np.arange(n_queries)

        def multiply(part: slice) -> None:
            scores_of(factors, every[part], items, rows, scores[part])

        with one_blas_thread():
            executor.fill_blocks(multiply, self._blocks(n_queries))
        return scores

    def base_scores(self, items: Ints) -> Singles:
        """Return what given items, (queries, given), score beside all products: by a base, or for being repeated."""
        out, every = np.zeros(items.shape, dtype=np.float32), np.arange(len(items))
        offsets = self.stages[-1].queries.score_offsets
        if offsets is not None:
            out[:] = offsets.of_pairs(np.repeat(every, items.shape[1]), items.reshape(-1)).reshape(items.shape)
        base = self.stages[0].base
        if base is not None:
            with one_blas_thread():
                for part in self._blocks(len(items)):
                    out[part] = np.take_along_axis(base.rows(every[part]), items[part], axis=1)
        return out

    def _blocks(self, n_queries: int) -> list[slice]:
        if self.stages[0].base is not None:
            return pieces(n_queries, self.n_items, QUERIES_ON_BASE)
        return [slice(first, first + QUERIES_PER_BLOCK) for first in range(0, n_queries, QUERIES_PER_BLOCK)]

    def _rank(
        self,
        numbers: Ints,
        exclude: csr_array | None,
        found: TopItems,
        executor: Executor,
        share: int,
        rows: slice,
    ) -> None:
        """Fill in the best items of a block, from shares of the catalog of at most ``share`` items."""
        from slatewise.factors.kernels.catalogue_topk import put_items

        block, last, first = numbers[rows], len(self.stages) - 1, self.stages[0].base
        base = None if first is None else first.rows(block)
        is_indexed = base is None and len(numbers) <= FEW_QUERIES
        lists = np.empty((len(block), 0), dtype=np.int64)
        for stage, factors in enumerate(self.stages):
            vectors, items = factors.queries.vectors(block), factors.items.values
            if stage and self.pair is not None:
                places, weights = places_of(lists, self.position_weights, self.own_items, block)
                add_lists(self.pair, items, places, weights, vectors)
            part = found.of(rows) if stage == last else TopItems.nothing(len(block), self.list_length)
            hidden = _hidden(exclude if stage == last else None, rows.start, len(block))
            offsets = factors.queries.score_offsets
            held = None if offsets is None else offsets.of_queries(block)
            others = hidden if held is None else _hidden_too(hidden, held, self.n_items)
            index = self.quantized(stage) if is_indexed else None
            if index is not None and np.isfinite(vectors).all():
                executor.fill_blocks(partial(index.best, vectors, *others, part.scores, part.items), range(len(block)))
            elif share >= self.n_items:
                _keep_best(_Scored(vectors, items, base, others), [part], share, 0)
            else:
                scored, shape = _Scored(vectors, items, base, others), part.items.shape
                shares = [TopItems.nothing(*shape) for _ in range(0, self.n_items, share)]
                # One query only reads memory, which threads do not make faster, and should not wait for them to start.
                threads = executor if len(block) > 1 else ONE_THREAD
                threads.fill_blocks(partial(_keep_best, scored, shares, share), range(len(shares)))
                _merge(shares, part)
            if held is not None:
                # What gets more or less than its product is put among the best of all other items.
                put_items(vectors, items, held, hidden, part.scores, part.items)
            lists = part.items


def scores_of(factors: Factors, queries: Ints, items: Ints, rows: Singles, out: Singles) -> None:
    """Fill in the scores of queries with some items, whose rows are given."""
    np.matmul(factors.queries.vectors(queries)[:, : rows.shape[1]], rows.T, out=out)
    if factors.base is not None:
        out += factors.base.rows(queries)[:, items]
    if factors.queries.score_offsets is not None:
        _add_held(out, items, factors.queries.score_offsets.of_queries(queries))


def _add_held(scores: Singles, items: Ints, held: ItemOffsets) -> None:
    """Add what queries hold to their rows of scores with some items, which may be given twice."""
    order = np.argsort(items, kind="stable")
    first, last = (np.searchsorted(items, held.items, side, order) for side in ("left", "right"))
    rows = np.repeat(np.arange(len(scores)), np.diff(held.offsets))
    here = np.repeat(np.arange(len(rows)), last - first)
    scores[rows[here], order[concatenate_ranges(first, last - first)[0]]] += held.amounts[here]


def _merge(shares: list[TopItems], found: TopItems) -> None:
    """Put the best of shares of the catalogue, which come in item order, together."""
    names, scores = (np.hstack(parts) for parts in zip(*((of.items, of.scores) for of in shares), strict=True))
    order = np.argsort(-scores, axis=1, kind="stable")[:, : found.items.shape[1]]  # ties rank by item number
    found.items[:], found.scores[:] = (np.take_along_axis(each, order, axis=1) for each in (names, scores))


def _keep_best(scored: _Scored, shares: list[TopItems], size: int, share: int) -> None:
    """Find the best items of a share of the catalog, of ``size`` items."""
    from slatewise.factors.kernels.catalogue_topk import hide_items, keep_best

    found, vectors = shares[share], without_padding(scored.vectors)
    n_queries, width = vectors.shape
    first, last = share * size, min((share + 1) * size, len(scored.items))
    tile = min(SCORES_PER_TILE // max(n_queries, 1), MOST_ITEMS_PER_TILE, last - first)
    buffer = np.empty((n_queries, tile), dtype=np.float32)
    offsets, unwanted = scored.hidden
    places = offsets[:-1].copy()
    for start in range(first, last, tile):
        stop = min(start + tile, last)
        scores = buffer if stop - start == tile else np.empty((n_queries, stop - start), dtype=np.float32)
        np.matmul(vectors, scored.items[start:stop, :width].T, out=scores)
        if scored.base is not None:
            scores += scored.base[:, start:stop]
        if len(unwanted):
            hide_items(scores, start, offsets, unwanted, places)
        keep_best(scores, start, found.scores, found.items)


def _hidden_too(hidden: Hidden, held: ItemOffsets, n_items: int) -> Hidden:
    """Return what is hidden and what queries hold."""
    rows = [np.repeat(np.arange(len(part.offsets) - 1), np.diff(part.offsets)) for part in (hidden, held)]
    keys = np.unique(np.concatenate(rows) * n_items + np.concatenate([hidden.items, held.items]))
    return Hidden(np.searchsorted(keys, np.arange(len(hidden.offsets)) * n_items), keys % n_items)


def _hidden(exclude: csr_array | None, first: int, n_queries: int) -> Hidden:
    """Return what some rows hide; no items where nothing is hidden."""
    if exclude is None:
        return Hidden(np.zeros(n_queries + 1, dtype=np.int64), np.empty(0, dtype=np.int64))
    return hidden_rows(exclude, first, n_queries)


def hidden_rows(exclude: csr_array, first: int, n_queries: int) -> Hidden:
    """Return what some rows hide."""
    every, items = cast("Ints", exclude.indptr), cast("Ints", exclude.indices)
    offsets = every[first : first + n_queries + 1].astype(np.int64)
    return Hidden(offsets - offsets[0], items[offsets[0] : offsets[-1]].astype(np.int64))


def top_among(cascade: Cascade, n_queries: int, k: int, shown: ItemFilter, executor: Executor) -> TopItems:
    """Rank candidates for queries 0 to ``n_queries``; lists have as many as there are, at most k."""
    found, factors = TopItems.nothing(n_queries, k), cascade.factors(n_queries, executor)
    # Queries with candidates of their own are taken one by one.
    blocks = [slice(query, query + 1) for query in range(n_queries)]
    if shown.common is not None:
        blocks = pieces(n_queries, len(shown.common))
    for matrix in (shown.hidden, shown.own):
        if matrix is not None:
            matrix.sort_indices()
    with one_blas_thread():
        executor.fill_blocks(partial(_rank, factors, shown, found), blocks)
    return found


def _rank(factors: Factors, shown: ItemFilter, found: TopItems, rows: slice) -> None:
    items = _of_row(cast("csr_array", shown.own), rows.start) if shown.common is None else shown.common
    scores = np.empty((rows.stop - rows.start, len(items)), dtype=np.float32)
    queries: Ints = np.arange(rows.start, rows.stop, dtype=np.int64)
    scores_of(factors, queries, items, factors.items.values[items], scores)
    if shown.hidden is not None:
        for row, hidden in enumerate(_of_row(shown.hidden, query) for query in range(rows.start, rows.stop)):
            scores[row, np.isin(items, hidden, assume_unique=True)] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, : found.items.shape[1]]  # ties rank by item number
    best: Singles = np.take_along_axis(scores, order, axis=1)
    found.scores[rows, : order.shape[1]] = best
    found.items[rows, : order.shape[1]] = np.where(best == -np.inf, -1, items[order])


def _of_row(matrix: csr_array, row: int) -> Ints:
    return np.asarray(matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]], dtype=np.int64)


def require_finite(scores: Singles, there: NDArray[Any] | None = None) -> None:
    """Raise ValueError where factors times a query are more than float32 has: such scores have no order.

    ``there``: where a list has an item at all; None: everywhere.
    """
    finite = np.isfinite(scores)
    wrong = ~(finite if there is None else finite | ~there).all(axis=1)
    if wrong.any():
        raise ValueError(
            f"queries: expected finite scores, found others for query {int(np.flatnonzero(wrong)[0])}: "
            "its numbers are too large for float32"
        )
