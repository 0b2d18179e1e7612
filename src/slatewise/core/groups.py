"""Rows and the lists they belong to: grouped by query id in any order, and features taken list by list, never dense."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Ints
from slatewise.core.checks import Features

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_EXACT = 2.0**53
"""Up to here floats tell whole numbers apart."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows gathered by list: ``order`` sorts rows so that list l (called ``ids[l]``) is a contiguous run."""

    order: Ints | None
    """Row numbers, list after list; None where the rows already stand that way."""
    offsets: Ints
    ids: NDArray[Any]

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values in list order."""
        return values if self.order is None else values[self.order]


def group_rows(qid: ArrayLike | None, n_rows: int, group: ArrayLike | None = None) -> Groups:
    """Gather rows by query id: any order, any dtype; lists keep the order in which they first appear.

    ``group``, instead of ``qid``: how many rows each list has, one list's rows after the other's. Without either all
    rows are one list.

    Examples
    --------
    >>> groups = group_rows(["b", "a", "b"], 3)
    >>> groups.ids.tolist(), groups.offsets.tolist(), groups.order.tolist()
    (['b', 'a'], [0, 2, 3], [0, 2, 1])
    >>> group_rows(None, 3, group=[1, 2]).offsets.tolist()
    [0, 1, 3]
    """
    if group is not None:
        if qid is not None:
            raise ValueError("group: expected either qid or group, found both")
        offsets = np.concatenate(([0], np.cumsum(_sizes(group, n_rows)))).astype(np.int64)
        return Groups(None, offsets, np.arange(len(offsets) - 1, dtype=np.int64))
    if qid is None:
        return Groups(None, np.array([0, n_rows], dtype=np.int64), np.zeros(1, dtype=np.int64))
    try:
        ids = np.asarray(qid)
    except ValueError:
        raise ValueError("qid: expected one id per row, found lists of different lengths") from None
    if ids.shape != (n_rows,):
        raise ValueError(f"qid: expected one id per row, shape ({n_rows},), found shape {ids.shape}")
    if n_rows == 0:
        return Groups(None, np.zeros(1, dtype=np.int64), ids)
    if ids.dtype.kind == "O":
        ids = _one_kind(ids)
    if ids.dtype.kind == "c":
        raise ValueError(f"qid: expected whole numbers or names, found dtype {ids.dtype}")
    if ids.dtype.kind in "fmM" and not np.isfinite(ids).all():
        raise ValueError(f"qid: expected an id in every row, found {ids[~np.isfinite(ids)][0]}")
    if ids.dtype.kind == "f" and (np.abs(ids) > _EXACT).any():
        # NumPy makes floats of a list with numbers on both sides of 2^63, and neighbors would become one list.
        raise ValueError(f"qid: expected whole numbers of one integer type, found {ids[np.abs(ids) > _EXACT][0]:.0f}")
    starts = np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1)).astype(np.int64)
    runs = ids[starts]
    names, first_run, run_list = np.unique(runs, return_index=True, return_inverse=True)
    if len(names) == len(runs):
        return Groups(None, np.append(starts, n_rows), runs)
    rank = np.empty(len(names), dtype=np.int64)
    rank[np.argsort(first_run)] = np.arange(len(names))
    row_list = np.repeat(rank[run_list], np.diff(np.append(starts, n_rows)))
    offsets = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum(np.bincount(row_list, minlength=len(names)), out=offsets[1:])
    return Groups(np.argsort(row_list, kind="stable"), offsets, names[np.argsort(first_run)])


def _sizes(group: ArrayLike, n_rows: int) -> Ints:
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        raise ValueError(f"group: expected whole numbers, one a list, found {sizes.dtype} of shape {sizes.shape}")
    wrong = np.flatnonzero((sizes < 1) | (sizes > n_rows))
    if len(wrong):
        raise ValueError(f"group: expected sizes from 1 to the {n_rows} rows, found {sizes[wrong[0]]} at {wrong[0]}")
    total = int(sizes.sum(dtype=np.int64))
    if total != n_rows:
        raise ValueError(f"group: expected sizes that add up to the {n_rows} rows, found {total}")
    return sizes.astype(np.int64)


def _one_kind(ids: NDArray[Any]) -> NDArray[Any]:
    """Check that objects can be compared: what is missing, or of another kind than the rest, is an error."""
    kinds: set[type] = {_kind(value) for value in ids.tolist()}
    if len(kinds) > 1 or kinds == {type(None)}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"qid: expected an id in every row, all of one kind, found {names}")
    return np.array(ids.tolist()) if kinds == {Number} else ids


def _kind(value: object) -> type:
    for kind in (str, Number):
        if isinstance(value, kind):
            return kind
    return type(value)


def concatenate_ranges(
    starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of all ranges one after the other, and the offset of each range.

    Examples
    --------
    >>> concatenate_ranges(np.array([7, 2]), np.array([2, 3]))
    (array([7, 8, 2, 3, 4]), array([0, 2, 5]))
    """
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return np.arange(int(offsets[-1])) + np.repeat(starts - offsets[:-1], lengths), offsets


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


def mean_within_list_variance(X: Features, offsets: Ints) -> float:
    """Return the mean squared distance of a row from the center of its list: exactly 0 where its rows are equal."""
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


def blocks(n_rows: int, size: int) -> list[slice]:
    """Cut rows into blocks of ``size``, of which the last may be smaller.

    Examples
    --------
    >>> blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]
