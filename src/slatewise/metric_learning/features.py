"""Points as a metric learner sees them, and the way back.

    linear    x itself, centred in every column that is stored in full: distances do not change
    basis     phi(x) with phi phi' = K, by pivoted Cholesky: K = k(x, x') of a kernel, or x.x' where features are more
              than points. A metric that regularizes the trace never leaves the span of the points, so nothing is lost

A learned map L of phi becomes a map of x, or of the kernel values with the basis rows: ``L phi(x) = A k(basis, x)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from slatewise.core.arrays import Floats
from slatewise.core.numerics.row_kernels import RowKernel, kernel_basis
from slatewise.data.row_source import Shifted, StoredRows
from slatewise.kernels import Chi2, Intersection, Precomputed, Rbf
from slatewise.metric_learning.distance import Rows, dense, is_sparse, squares


@dataclass(frozen=True, eq=False)
class PointFeatures:
    """Features of the queries and items of a fit."""

    queries: Rows
    items: Rows
    components: Callable[[Floats], Floats]
    """Turns the learner's L (rank, features) into one of x, or of the kernel values."""
    basis: NDArray[Any] | None = None
    """What kernel values are taken with; None without a kernel."""
    gamma: float | None = None
    """Of the kernel, if it has one."""


def point_features(kernel: object, queries: Rows, items: Rows, *, keep_columns: bool) -> PointFeatures:
    """Return features of a kernel of :mod:`slatewise.kernels`, or of the points themselves ("linear").

    ``keep_columns`` is for a learner that weighs the columns of the points: no other coordinates will do.
    """
    if isinstance(kernel, Rbf | Chi2):
        values = kernel.of(items)
        return replace(kernel_features(values, queries, items, kernel.n_basis), gamma=float(values.gamma))
    if isinstance(kernel, Intersection | Precomputed):
        return kernel_features(kernel.of(items), queries, items, kernel.n_basis)
    n_points = items.shape[0] + (0 if queries is items else queries.shape[0])
    if items.shape[1] > n_points and not keep_columns:
        return span_features(queries, items)
    return plain_features(queries, items)


def plain_features(queries: Rows, items: Rows) -> PointFeatures:
    """Take the points as they are, but centred, which keeps small differences exact.

    Sparse points are centred in the columns that all of them store, so they stay as sparse as they were.
    """
    if is_sparse(items) or is_sparse(queries):
        rows = _own_csr(items)
        others = rows if queries is items else _own_csr(queries)
        centre = np.where(_stored_in_full(rows) & _stored_in_full(others), _mean(rows), 0.0)
        for table in (rows,) if others is rows else (rows, others):
            table.data -= centre[table.indices]
        return PointFeatures(others, rows, _same)
    # Not the mean at once: a constant column becomes exactly 0.
    centre = items[0] + (items - items[0]).mean(axis=0)
    centred = np.ascontiguousarray(items - centre)
    if isinstance(queries, StoredRows):
        return PointFeatures(queries.made(Shifted(centre)), centred, _same)
    return PointFeatures(centred if queries is items else np.ascontiguousarray(queries - centre), centred, _same)


def span_features(queries: Rows, items: Rows) -> PointFeatures:
    """Take coordinates in the span of the points: as many features as points, whatever the number of columns."""
    plain = plain_features(queries, items)
    points = _stacked(plain.queries, plain.items)

    def column(row: int) -> Floats:
        return dense(points @ points[[row]].T).ravel()

    basis = kernel_basis(column, squares(points))
    if not len(basis.pivots):  # all points are the same one
        return plain

    def components(L: Floats) -> Floats:
        weights = basis.dual(L)
        return np.ascontiguousarray((points[basis.pivots].T @ weights).T)

    n_items = int(items.shape[0])
    return PointFeatures(basis.phi if queries is items else basis.phi[n_items:], basis.phi[:n_items], components)


def kernel_features(kernel: RowKernel, queries: Floats, items: Floats, n_basis: int | None) -> PointFeatures:
    """Take features whose products are the kernel, exactly or with at most ``n_basis`` of them."""
    points = _stacked(queries, items)
    basis = kernel_basis(lambda row: kernel.column(points, row), kernel.diagonal(points), n_basis)
    if not len(basis.pivots):
        raise ValueError("X: expected a kernel that is not 0 everywhere, found 0 for every row with itself")
    n_items = len(items)
    return PointFeatures(
        basis.phi if queries is items else basis.phi[n_items:],
        basis.phi[:n_items],
        lambda L: np.ascontiguousarray(basis.dual(L).T),
        kernel.rows(points, basis.pivots),
    )


def _stacked(queries: Rows, items: Rows) -> Rows:
    if queries is items:
        return items
    return csr_array(vstack([items, queries])) if is_sparse(items) else np.vstack([items, queries])


def _own_csr(rows: Rows) -> csr_array:
    """A copy to write to, with every entry stored once."""
    copy = csr_array(rows).astype(np.float64)
    copy.sum_duplicates()
    return copy


def _stored_in_full(rows: csr_array) -> NDArray[np.bool_]:
    n_rows, width = rows.shape
    return np.bincount(rows.indices, minlength=width) == n_rows


def _mean(rows: csr_array) -> Floats:
    """The mean of every column stored in full; of a constant one it is exact."""
    n_rows, width = rows.shape
    first = dense(rows[[0]]).ravel()
    return first + np.bincount(rows.indices, rows.data - first[rows.indices], width) / n_rows


def _same(L: Floats) -> Floats:
    return L
