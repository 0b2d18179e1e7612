"""The k best of some candidates, the same for all queries or each query's own: their scores, sorted."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import Executor
from slatewise.factors.base_scores import pieces
from slatewise.factors.cascade import Cascade, TopItems, scores_of
from slatewise.factors.engine import Factors

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from slatewise.recommend.filters import ItemFilter


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
