"""Scores by a learned distance, s = -(q - i)' W (q - i), W positive semidefinite.

    W = L'L ,     s = -|Lq - Li|^2 = 2 (Lq).(Li) - |Li|^2 - |Lq|^2

L has as many rows as W has rank: points are mapped once, and distances are Euclidean from there on. The last term is
the same for all items of a query, so rankings do without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from scipy.sparse import issparse
from scipy.spatial.distance import cdist

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import BLOCK_BYTES
from slatewise.core.groups import blocks
from slatewise.core.numerics.row_kernels import RowKernel
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.metrics import AP

if TYPE_CHECKING:
    from slatewise.metric_learning.relevance import Relevance

Rows: TypeAlias = Any
"""(n, d) dense or CSR."""

RANK_TOLERANCE = 1e-10
"""Eigenvalues below this share of the largest are rounding."""


def factor(W: Floats) -> Floats:
    """Return L (rank, d) with W = L'L, the direction that matters most first.

    Examples
    --------
    >>> np.abs(factor(np.array([[4.0, 0.0], [0.0, 0.0]])))
    array([[2., 0.]])
    """
    values, vectors = eigh(W)
    kept = np.flatnonzero(values > RANK_TOLERANCE * max(float(values[-1]), 0.0))[::-1]
    L = np.ascontiguousarray((vectors[:, kept] * np.sqrt(values[kept])).T)
    # The sign of an eigenvector is arbitrary: the largest entry of each row is made positive.
    largest = np.abs(L).argmax(axis=1) if len(L) else np.zeros(0, dtype=np.int64)
    return L * np.where(L[np.arange(len(L)), largest] < 0, -1.0, 1.0)[:, None]


def catalogue_scores(queries: Rows, items: Rows, item_squares: Floats) -> Floats:
    """Return 2 q.i - |i|^2 (queries, items) of mapped points: -|q - i|^2 up to a constant per query."""
    scores = dense(queries @ items.T)
    scores *= 2.0
    scores -= item_squares
    return scores


def is_sparse(rows: Rows) -> bool:
    """Return whether rows are a SciPy sparse matrix (its own test confuses the type checker)."""
    return bool(issparse(rows))


def dense(product: Rows) -> Floats:
    """Return a product of dense or sparse matrices as a dense one."""
    return cast("Floats", product.toarray() if is_sparse(product) else product)


def squares(Z: Rows) -> Floats:
    """Return |z|^2 of every row.

    Examples
    --------
    >>> squares(np.array([[3.0, 4.0], [1.0, 0.0]]))
    array([25.,  1.])
    """
    return np.asarray((Z * Z).sum(axis=1), dtype=np.float64).ravel()


def row_blocks(n_rows: int, n_items: int) -> list[slice]:
    """Cut queries so that the scores of a block take at most ``BLOCK_BYTES``; the cuts depend on the sizes only."""
    return blocks(n_rows, max(1, BLOCK_BYTES // (8 * max(n_items, 1))))


def smallest(distances: Floats, k: int) -> Ints:
    """Return the columns of the k smallest values of every row, smallest first; of equal ones the first."""
    if k == distances.shape[1]:
        return np.argsort(distances, axis=1, kind="stable")
    worst = np.partition(distances, k - 1, axis=1)[:, k - 1]
    found = np.empty((len(distances), k), dtype=np.int64)
    for row, (values, limit) in enumerate(zip(distances, worst, strict=True)):
        near = np.flatnonzero(values <= limit)
        found[row] = near[np.argsort(values[near], kind="stable")[:k]]
    return found


def nearest(queries: Floats, items: Floats, k: int, executor: Executor = ONE_THREAD) -> tuple[Ints, Floats]:
    """Return the k nearest items of every query, nearest first (of equal ones the first), and -|q - i|^2 of each.

    Examples
    --------
    >>> columns, scores = nearest(np.array([[0.0], [5.0]]), np.array([[4.0], [1.0], [0.5]]), 2)
    >>> columns.tolist(), scores.tolist()
    ([[2, 1], [0, 1]], [[-0.25, -1.0], [-1.0, -16.0]])
    """
    if not len(queries):
        return np.empty((0, k), dtype=np.int64), np.empty((0, k))
    with one_blas_thread():
        search = _Search(queries, items, squares(items), k)
        found = list(executor.map_blocks(_nearest_of, search, row_blocks(len(queries), len(items))))
    columns, scores = (np.concatenate(part) for part in zip(*found, strict=True))
    return columns, scores


class _Search(NamedTuple):
    queries: Floats
    items: Floats
    item_squares: Floats
    k: int


def _nearest_of(search: _Search, rows: slice) -> tuple[Ints, Floats]:
    queries = search.queries[rows]
    scores = catalogue_scores(queries, search.items, search.item_squares)
    columns = smallest(-scores, search.k)
    # What is the same for all items of a query is added last, so that rounding keeps their order.
    return columns, np.minimum(np.take_along_axis(scores, columns, axis=1) - squares(queries)[:, None], 0.0)


def squared_distances(points: Floats, others: Floats) -> Floats:
    """Return |p - o|^2 of all pairs of mapped rows, (points, others).

    Summed from differences, it is the same bits in both directions and 0 between equal points; products would round
    differently in (u, v) and (v, u).

    Examples
    --------
    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[25.,  0.]])
    """
    if not points.shape[1]:
        return np.zeros((len(points), len(others)))
    return cdist(points, others, "sqeuclidean")


@dataclass(frozen=True, eq=False)
class LearnedDistance:
    """A function of two rows: d(u, v) = |L phi(u) - L phi(v)|, phi(x) = x or the kernel values with the basis rows."""

    components: Floats
    """L."""
    kernel: RowKernel | None
    basis: NDArray[Any] | None

    def __call__(self, u: ArrayLike, v: ArrayLike) -> float:
        """Return the distance, not squared, of two rows of features."""
        values = np.array([u, v], dtype=np.float64)
        if self.kernel is not None and self.basis is not None:
            values = self.kernel.compare(values, self.basis)
        return float(np.linalg.norm(self.components @ (values[0] - values[1])))


def mean_average_precision(queries: Floats, items: Floats, relevance: Relevance) -> float:
    """Return the mean over the queries with relevant items; points are mapped, so that distances are Euclidean."""
    item_squares, values = squares(items), np.empty(len(queries))
    for block in row_blocks(len(queries), len(items)):
        scores = catalogue_scores(queries[block], items, item_squares)
        relevant = np.empty(scores.shape, dtype=np.int8)
        relevance.fill(block, relevant)
        # Items left out come last as irrelevant ones: that changes no precision at the rank of a relevant item.
        scores[relevant < 0] = scores.min() - 1.0
        values[block] = AP(empty="skip").per_list(np.maximum(relevant, 0), scores)
    if np.isnan(values).all():
        raise ValueError(f"X: expected a query with a relevant row in the catalogue, found none among {len(queries)}")
    return float(np.nanmean(values))
