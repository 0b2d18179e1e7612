"""The door for SciPy's sparse matrices: checked in full, then CSR.

SciPy checks a matrix when it is made and trusts its arrays from then on. One that was altered afterwards makes SciPy's
and our compiled loops read and write outside their memory, so nothing of it is used before it was looked at: not its
arrays, and not its word that columns ascend.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array: TypeAlias = NDArray[Any]
_PLAIN_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def sparse_rows(name: str, values: object) -> csr_array | None:
    """Return a SciPy sparse matrix or array of any format as CSR, or None for everything else.

    Entries keep their order, and may come twice in a row, except where the format itself adds them up (COO): callers to
    whom that matters ask ``has_canonical_format``, which is worked out anew. The arrays are shared with the matrix
    where they can be.

    Raises
    ------
    ValueError
        That names the argument and the part: numbers that are not real, bounds that go back or beyond the entries,
        places outside the shape, parts whose lengths disagree.

    Examples
    --------
    >>> from scipy.sparse import csc_matrix
    >>> matrix = csc_matrix([[0.0, 2.0], [1.0, 0.0]])
    >>> sparse_rows("X", matrix).toarray().tolist(), sparse_rows("X", [[0.0, 2.0]])
    ([[0.0, 2.0], [1.0, 0.0]], None)
    >>> matrix.indices[0] = 7
    >>> sparse_rows("X", matrix)
    Traceback (most recent call last):
    ValueError: X: expected a sparse matrix with places from 0 to 1 in indices, found 0 to 7
    """
    from scipy.sparse import issparse

    if not issparse(values):
        return None
    matrix = cast("Any", values)
    if matrix.ndim != 2:
        raise ValueError(f"{name}: expected 2 dimensions, found shape {matrix.shape}")
    if np.dtype(matrix.dtype).kind not in "biuf":
        raise ValueError(f"{name}: expected numbers, found dtype {matrix.dtype}")
    return _READERS[matrix.format](name, matrix)


def _compressed(name: str, matrix: Any) -> csr_array:
    """Read CSR, CSC and BSR: bounds of the entries of each line, and where in the line they stand."""
    from scipy.sparse import bsr_array, csc_array, csr_array

    kind: Any = {"csr": csr_array, "csc": csc_array, "bsr": bsr_array}[matrix.format]
    data, n_dimensions = np.asarray(matrix.data), 3 if matrix.format == "bsr" else 1
    if data.ndim != n_dimensions or 0 in data.shape[1:]:
        raise _fault(name, f"{n_dimensions}-dimensional data", f"shape {data.shape}")
    block = data.shape[1:] or (1, 1)
    if any(size % step for size, step in zip(matrix.shape, block, strict=True)):
        raise _fault(name, f"blocks that fill the shape {matrix.shape}", f"blocks of shape {block}")
    n_rows, n_columns = (size // step for size, step in zip(matrix.shape, block, strict=True))
    n_lines, n_places = (n_columns, n_rows) if matrix.format == "csc" else (n_rows, n_columns)
    indptr, indices = _whole(name, "indptr", matrix.indptr), _whole(name, "indices", matrix.indices)
    if len(indptr) != n_lines + 1:
        raise _fault(name, f"{n_lines + 1} bounds in indptr", str(len(indptr)))
    if len(indices) != len(data):
        raise _fault(name, f"as many indices as data, {len(data)}", str(len(indices)))
    end = int(indptr[-1])
    # The first and the last first: a difference of unsigned numbers is never negative.
    if indptr[0] != 0 or end > len(indices) or (indptr[1:] < indptr[:-1]).any():
        found = f"bounds from {indptr[0]} to {end}, {indptr.min()} to {indptr.max()} on the way"
        raise _fault(name, f"bounds in indptr that grow from 0 to at most the {len(indices)} entries", found)
    _require_inside(name, "indices", indices[:end], n_places)
    # SciPy allows numbers behind the last bound.
    checked = kind((_plain(data[:end]), indices[:end], indptr), shape=matrix.shape)
    return checked if matrix.format == "csr" else checked.tocsr()


def _coordinates(name: str, matrix: Any) -> csr_array:
    return _from_places(name, matrix.shape, np.asarray(matrix.data), matrix.row, matrix.col)


def _dictionary(name: str, matrix: Any) -> csr_array:
    places = np.array(list(matrix.keys()), dtype=object).reshape(-1, 2)
    rows, columns = (np.array(places[:, side].tolist() or np.empty(0, dtype=np.int64)) for side in (0, 1))
    return _from_places(name, matrix.shape, np.array(list(matrix.values()), dtype=matrix.dtype), rows, columns)


def _diagonals(name: str, matrix: Any) -> csr_array:
    data, offsets = np.asarray(matrix.data), _whole(name, "offsets", matrix.offsets)
    if data.ndim != 2 or len(data) != len(offsets) or len(set(offsets.tolist())) != len(offsets):
        raise _fault(name, "a row of data for each offset, each offset once", f"{len(offsets)} and shape {data.shape}")
    columns: Array = np.broadcast_to(np.arange(int(data.shape[1])), data.shape)
    rows = columns - np.clip(offsets, -(1 << 62), 1 << 62).astype(np.int64)[:, None]
    stored = (rows >= 0) & (rows < matrix.shape[0]) & (columns < matrix.shape[1]) & (data != 0)
    return _from_places(name, matrix.shape, data[stored], rows[stored], columns[stored])


def _lists(name: str, matrix: Any) -> csr_array:
    from scipy.sparse import csr_array

    rows, values = list(matrix.rows), list(matrix.data)
    lengths = [len(row) for row in rows]
    if len(rows) != matrix.shape[0] or lengths != [len(row) for row in values]:
        raise _fault(name, f"{matrix.shape[0]} lists of places and as many values each", "lists of other lengths")
    indices = _whole(name, "rows", np.array(list(chain.from_iterable(rows)) or np.empty(0, dtype=np.int64)))
    _require_inside(name, "rows", indices, matrix.shape[1])
    data = _plain(np.array(list(chain.from_iterable(values)), dtype=matrix.dtype))
    return csr_array((data, indices, np.cumsum([0, *lengths])), shape=matrix.shape)


def _from_places(name: str, shape: tuple[int, int], data: Array, rows: Any, columns: Any) -> csr_array:
    from scipy.sparse import coo_array

    places = [_whole(name, "row", rows), _whole(name, "col", columns)]
    if data.ndim != 1 or not len(data) == len(places[0]) == len(places[1]):
        raise _fault(name, "as many values as rows and columns", f"{data.shape}, {len(places[0])}, {len(places[1])}")
    for part, given, size in zip(("row", "col"), places, shape, strict=True):
        _require_inside(name, part, given, size)
    return coo_array((_plain(data), (places[0], places[1])), shape=shape).tocsr()


_READERS: dict[str, Callable[[str, Any], csr_array]] = {
    "csr": _compressed,
    "csc": _compressed,
    "bsr": _compressed,
    "coo": _coordinates,
    "dok": _dictionary,
    "dia": _diagonals,
    "lil": _lists,
}


def _whole(name: str, part: str, given: Any) -> Array:
    values = np.asarray(given)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise _fault(name, f"a row of whole numbers as {part}", f"{values.dtype} of shape {values.shape}")
    return values


def _require_inside(name: str, part: str, places: Array, size: int) -> None:
    if len(places) and not (places.min() >= 0 and places.max() < size):
        raise _fault(name, f"places from 0 to {size - 1} in {part}", f"{places.min()} to {places.max()}")


def _plain(data: Array) -> Array:
    """Return numbers of a type that SciPy computes with."""
    if data.dtype.kind == "f":
        return data if data.dtype in _PLAIN_FLOATS else data.astype(np.float64)
    return data.astype(data.dtype.newbyteorder("="), copy=False)


def _fault(name: str, expected: str, found: str) -> ValueError:
    return ValueError(f"{name}: expected a sparse matrix with {expected}, found {found}")
