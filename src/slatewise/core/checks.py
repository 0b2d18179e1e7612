"""The door: arrays as the kernels want them, or an error that names the argument and the place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Ints
from slatewise.core.sparse import sparse_rows
from slatewise.core.stored import Stored

if TYPE_CHECKING:
    from scipy.sparse import csr_array, sparray, spmatrix

    Sparse: TypeAlias = sparray | spmatrix

Float: TypeAlias = NDArray[np.floating[Any]]
Features: TypeAlias = "Float | csr_array"
BLOCK_BYTES = 1 << 22
LARGEST = 1e50
"""Weights beyond, of either sign, are refused: a product of six of them stays in range, and every float32 is below."""


def real(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return an array of real numbers as they come; complex numbers, texts, objects and ragged lists are refused."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name}: expected numbers in a regular shape, found lists of different lengths") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected numbers, found dtype {array.dtype}")
    return array


def real_numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return real numbers of any shape as C-contiguous float64: NaN and infinities too, for a caller that looks."""
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
    """Refuse NaN, infinities and numbers larger than :data:`LARGEST` in an array of any shape."""
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
    """Refuse NaN and infinities in a 2-D array; ``place`` puts the row into words."""
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        found = values[row, column]
        raise ValueError(f"{name}: expected finite numbers, found {found} at {place(int(row))}, column {column}")


def require_finite_entries(name: str, matrix: csr_array) -> None:
    """Refuse NaN and infinities among the stored entries."""
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
    """Refuse offsets that do not run from 0 to ``n_rows`` without going back."""
    if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != n_rows:
        raise ValueError(f"offsets: expected numbers from 0 to {n_rows}, found {offsets}")
    back = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(back):
        at = int(back[0])
        raise ValueError(f"offsets: expected none to go back, found {offsets[at]} then {offsets[at + 1]} at list {at}")


def row_range(features: Features, rows: slice) -> Features:
    """Return neighbouring rows without copying their values."""
    return features[rows] if isinstance(features, np.ndarray | Stored) else sparse_range(features, rows)


def sparse_range(matrix: csr_array, rows: slice) -> csr_array:
    """Return neighbouring rows of a CSR matrix; slicing it would copy the values."""
    from scipy.sparse import csr_array

    indptr = matrix.indptr[rows.start : rows.stop + 1]
    first, last = indptr[0], indptr[-1]
    # Handed to the constructor, arrays much smaller than what they are views of would be copied.
    block = csr_array((rows.stop - rows.start, matrix.shape[1]), dtype=matrix.dtype)
    block.data, block.indices, block.indptr = matrix.data[first:last], matrix.indices[first:last], indptr - first
    return block


def bytes_before(features: Features | None, n_rows: int) -> Ints:
    """Return how many bytes of features stand before each row, and after the last; 8 per row where there are none."""
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
