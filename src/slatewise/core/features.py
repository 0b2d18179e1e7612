"""Features of rows, dense or CSR: the few things a linear learner asks of them, without ever filling in the zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints
from slatewise.core.checks import Features

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def take_rows(X: Features, rows: NDArray[Any]) -> Features:
    """Return some rows, by number or by a boolean each, in the order given."""
    taken = cast("Any", X)[rows]
    return cast("Features", np.ascontiguousarray(taken) if isinstance(X, np.ndarray) else taken)


def used_columns(X: csr_array) -> tuple[csr_array, Ints]:
    """Leave out the columns that no row has an entry in, but one where there is no entry; return those kept, rising.

    A linear learner with a ridge gives the others weight 0, and what it keeps per column is then as long as the data
    asks for, not as the file says.
    """
    from scipy.sparse import csr_array

    columns, place = np.unique(X.indices, return_inverse=True)
    if not len(columns):
        columns = np.zeros(1, dtype=np.int64)
    narrow = csr_array((X.data, place.astype(X.indices.dtype), X.indptr), shape=(X.shape[0], len(columns)))
    return narrow, columns.astype(np.int64)


def spread(X: Features, offsets: Ints) -> float:
    """Return the mean squared distance of a row from the centre of its list: exactly 0 where its rows are equal."""
    starts, sizes = offsets[:-1], np.diff(offsets)
    # From the first row of the list: of equal rows exactly 0, which a mean would not give.
    first: Any = take_rows(X, np.repeat(starts, sizes))
    n_rows = int(offsets[-1])
    if isinstance(X, np.ndarray):
        away = X - first
        away -= np.repeat(np.add.reduceat(away, starts, axis=0) / sizes[:, None], sizes, axis=0)
        return float(np.einsum("nd,nd->", away, away)) / n_rows
    from scipy.sparse import csr_array

    apart: Any = X - first
    members = csr_array((np.ones(n_rows), np.arange(n_rows), offsets), shape=(len(sizes), n_rows))
    totals = members @ apart
    of_centres = (totals * totals).sum(axis=1) / sizes
    return max(0.0, float((apart.data**2).sum() - of_centres.sum())) / n_rows
