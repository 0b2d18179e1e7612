"""Features scaled within each query, as LETOR's QueryLevelNorm does."""

from __future__ import annotations

from typing import Any, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import numbers, sparse_rows
from slatewise.core.groups import group_rows
from slatewise.data.kernels.scaling import Sparse, minmax_dense, minmax_sparse


@overload
def minmax_per_query(X: csr_array, qid: ArrayLike) -> csr_array: ...
@overload
def minmax_per_query(X: ArrayLike, qid: ArrayLike) -> Floats: ...
def minmax_per_query(X: csr_array | ArrayLike, qid: ArrayLike) -> csr_array | Floats:
    """Scale every feature to [0, 1] within each query: (v - min) / (max - min), and 0 where it is constant.

    Minimum and maximum run over all rows of the query; an entry a sparse matrix does not store is 0. Where a feature
    is negative in one row of a query, the entries absent from the query's other rows therefore come out positive, and
    are stored.

    Parameters
    ----------
    X : array or CSR, shape (n_rows, n_features)
        Finite features. Not changed.
    qid : array of shape (n_rows,)
        Query of each row, in any order and dtype.

    Examples
    --------
    >>> minmax_per_query([[1.0, 5.0], [3.0, 5.0], [-2.0, 0.0]], qid=[7, 7, 8])
    array([[0., 0.],
           [1., 0.],
           [0., 0.]])
    """
    rows = sparse_rows("X", X)
    if rows is not None:
        return _sparse(rows, qid)
    dense = numbers("X", cast("ArrayLike", X), 2).astype(np.float64, copy=False)
    _check_finite(dense)
    groups = group_rows(qid, dense.shape[0])
    gathered = dense if groups.order is None else dense[groups.order]
    out = np.empty_like(gathered)
    minmax_dense(gathered, groups.offsets, out)
    if groups.order is None:
        return out
    result = np.empty_like(out)
    result[groups.order] = out
    return result


def _sparse(X: csr_array, qid: ArrayLike) -> csr_array:
    _check_finite(X.data)
    n_rows, n_features = X.shape
    groups = group_rows(qid, n_rows)
    gathered = X if groups.order is None else X[groups.order]
    if not gathered.has_canonical_format:
        gathered = gathered.copy()
        gathered.sum_duplicates()
    columns = _ints(gathered.indices)
    used: Ints | None = None
    if n_features > len(columns):  # the kernel's buffers are by column: keep it to those in use
        used, columns = np.unique(columns, return_inverse=True)
        n_features = len(used)
    arrays = Sparse(_ints(gathered.indptr), columns, np.asarray(gathered.data, dtype=np.float64))
    nothing = Sparse(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
    size = minmax_sparse(arrays, groups.offsets, n_features, nothing, False)
    out = Sparse(np.zeros(n_rows + 1, dtype=np.int64), np.empty(size, dtype=np.int64), np.empty(size))
    minmax_sparse(arrays, groups.offsets, n_features, out, True)
    indices = out.indices if used is None else used[out.indices]
    scaled = csr_array((out.values, indices, out.indptr), shape=X.shape)
    return scaled if groups.order is None else scaled[np.argsort(groups.order)]


def _ints(values: NDArray[np.integer[Any]]) -> Ints:
    return np.asarray(values, dtype=np.int64)


def _check_finite(values: Floats) -> None:
    if not np.isfinite(values).all():
        raise ValueError(f"X: expected finite numbers, found {values[~np.isfinite(values)][0]}")
