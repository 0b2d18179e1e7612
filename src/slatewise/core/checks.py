"""Checks of arguments: arrays as kernels need them, or an error that names the argument and the position.

SciPy checks a sparse matrix when it is made and trusts its arrays from then on. If one was altered afterwards, SciPy's
and our compiled loops would read and write outside their memory. So :func:`sparse_rows` checks every array of a sparse
matrix before anything uses it, and does not trust the flag that columns ascend.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Ints, LazyArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array, sparray, spmatrix

    Sparse: TypeAlias = sparray | spmatrix

Float: TypeAlias = NDArray[np.floating[Any]]
Features: TypeAlias = "Float | csr_array"
BLOCK_BYTES = 1 << 22
LARGEST = 1e50
"""The largest weight, of either sign: a product of six of them stays in range, and every float32 is below."""


def real(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return an array of real numbers of any dtype; complex numbers, texts, objects and ragged lists are an error."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name}: expected numbers in a regular shape, found lists of different lengths") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected numbers, found dtype {array.dtype}")
    return array


def real_numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return real numbers of any shape as C-contiguous float64, with NaN and infinities."""
    array = real(name, values)
    with np.errstate(over="ignore"):  # a long double beyond float64 is an infinity
        return array.astype(np.float64, order="C", copy=False)


def bounded(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return finite real numbers of any shape, none larger than :data:`LARGEST`, as C-contiguous float64."""
    array = real_numbers(name, values)
    require_in_range(name, array)
    return array


def whole_number(name: str, value: object, least: int) -> int:
    """Return a whole number that is not below ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}: expected a whole number >= {least}, found {value!r}")
    return int(cast("int", value))


def require_in_range(name: str, values: Float) -> None:
    """Raise ValueError for NaN, infinities and numbers larger than :data:`LARGEST` in an array of any shape."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest <= LARGEST:  # false for NaN
        return
    finite = np.isfinite(values)
    expected = f"at most {LARGEST:g} in size" if finite.all() else "finite numbers"
    wrong = np.abs(values) == largest if finite.all() else ~finite
    at = np.unravel_index(int(np.argmax(wrong)), values.shape)
    where = int(at[0]) if len(at) == 1 else [int(index) for index in at]
    raise ValueError(f"{name}: expected {expected}, found {values[at]} at {where}")


def numbers(name: str, values: ArrayLike, ndim: int) -> Float:
    """Return a C-contiguous float32 or float64 array of ``ndim`` dimensions."""
    array = real(name, values)
    if array.ndim != ndim:
        raise ValueError(f"{name}: expected {ndim} dimensions, found shape {array.shape}")
    return np.ascontiguousarray(array) if array.dtype == np.float32 else real_numbers(name, array)


def feature_rows(name: str, values: ArrayLike | Sparse) -> Features:
    """Return dense or CSR rows of finite float32 or float64 numbers."""
    matrix = sparse_rows(name, values)
    if matrix is None:
        dense = numbers(name, cast("ArrayLike", values), 2)
        require_finite(name, dense, lambda row: f"row {row}")
        return dense
    if matrix.dtype.name not in ("float32", "float64"):
        matrix = matrix.astype(np.float64)
    require_finite_entries(name, matrix)
    return matrix


def require_finite(name: str, values: Float, place: Callable[[int], str]) -> None:
    """Raise ValueError for NaN and infinities in a 2-D array; ``place`` describes a row."""
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        found = values[row, column]
        raise ValueError(f"{name}: expected finite numbers, found {found} at {place(int(row))}, column {column}")


def require_finite_entries(name: str, matrix: csr_array) -> None:
    """Raise ValueError for NaN and infinities among the stored entries."""
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        raise ValueError(f"{name}: expected finite numbers, found {matrix.data[bad[0]]} at {_entry(matrix, bad[0])}")


def relevance_rows(relevance: Sparse) -> csr_array:
    """Return a CSR matrix of lists by items with finite values, columns ascending and none twice in a row."""
    matrix = sparse_rows("relevance", relevance)
    if matrix is None:
        raise ValueError(f"relevance: expected a SciPy sparse matrix, found {type(relevance).__name__}")
    if not matrix.has_sorted_indices:
        matrix = matrix.sorted_indices()
    same = matrix.indices[1:] == matrix.indices[:-1]
    starts = matrix.indptr[1:-1]
    same[starts[(starts > 0) & (starts <= len(same))] - 1] = False
    if same.any():
        place = _entry(matrix, np.flatnonzero(same)[0])
        raise ValueError(f"relevance: expected an item at most once in a list, found {place} twice")
    require_finite_entries("relevance", matrix)
    return matrix


def _entry(matrix: csr_array, position: int) -> str:
    row = int(np.searchsorted(matrix.indptr, position, side="right")) - 1
    return f"row {row}, column {matrix.indices[position]}"


def check_offsets(offsets: Ints, n_rows: int) -> None:
    """Raise ValueError unless offsets ascend from 0 to ``n_rows``."""
    if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != n_rows:
        raise ValueError(f"offsets: expected numbers from 0 to {n_rows}, found {offsets}")
    back = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(back):
        at = int(back[0])
        raise ValueError(f"offsets: expected none to go back, found {offsets[at]} then {offsets[at + 1]} at list {at}")


def row_range(features: Features, rows: slice) -> Features:
    """Return neighboring rows without copying their values."""
    return features[rows] if isinstance(features, np.ndarray | LazyArray) else sparse_range(features, rows)


def sparse_range(matrix: csr_array, rows: slice) -> csr_array:
    """Return neighboring rows of a CSR matrix; slicing it would copy the values."""
    from scipy.sparse import csr_array

    indptr = matrix.indptr[rows.start : rows.stop + 1]
    first, last = indptr[0], indptr[-1]
    # Handed to the constructor, arrays much smaller than what they are views of would be copied.
    block = csr_array((rows.stop - rows.start, matrix.shape[1]), dtype=matrix.dtype)
    block.data, block.indices, block.indptr = matrix.data[first:last], matrix.indices[first:last], indptr - first
    return block


def bytes_before(features: Features | None, n_rows: int) -> Ints:
    """Return the number of bytes of features before each row and after the last; 8 per row without features."""
    if features is None:
        return 8 * np.arange(n_rows + 1, dtype=np.int64)
    if isinstance(features, np.ndarray):
        return features.nbytes // max(n_rows, 1) * np.arange(n_rows + 1, dtype=np.int64)
    return features.indptr.astype(np.int64) * (features.dtype.itemsize + features.indices.itemsize)


def cut_points(bytes_at: Ints, max_bytes: int) -> list[tuple[int, int]]:
    """Cut lists into runs of at most ``max_bytes``, each as long as possible and never empty.

    Examples
    --------
    >>> cut_points(np.array([0, 4, 8, 30, 31]), 8)
    [(0, 2), (2, 3), (3, 4)]
    """
    if max_bytes < 1:
        raise ValueError(f"max_bytes: expected a whole number >= 1, found {max_bytes}")
    cuts: list[tuple[int, int]] = []
    first, n_lists = 0, bytes_at.size - 1
    while first < n_lists:
        fits = int(np.searchsorted(bytes_at, int(bytes_at[first]) + max_bytes, side="right")) - 1
        last = max(fits, first + 1)
        cuts.append((first, last))
        first = last
    return cuts


Array: TypeAlias = NDArray[Any]
_PLAIN_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def sparse_rows(name: str, values: object) -> csr_array | None:
    """Return a SciPy sparse matrix or array of any format as CSR, or None for everything else.

    Entries keep their order, and may occur twice in a row, except where the format itself adds them up (COO): callers
    that need unique entries check ``has_canonical_format``, which is computed anew. The arrays are shared with the
    matrix where they can be.

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
    "coo": lambda name, matrix: _from_places(name, matrix.shape, np.asarray(matrix.data), matrix.row, matrix.col),
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
