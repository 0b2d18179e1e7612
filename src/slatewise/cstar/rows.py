"""Rows to learn from: labels, some of which may be unknown, equal rows, which become one row, and units of columns.

An unknown label is NaN or -1 in a matrix of labels. The likelihood sums it out, as if it were missing at random. Labels
that an annotator volunteered are not: they are mostly yes ("there is a dog"), and hardly ever a no. ``answered`` says
which labels an annotator was to answer for; known labels outside of it count as unknown, because whether they are known
depends on what they are.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Bools, Bytes, Floats, Ints
from slatewise.core.checks import Features, sparse_rows
from slatewise.core.running.executor import Executor
from slatewise.cstar.inference.model import StarPair
from slatewise.data.labels import (
    columns_like,
    first_of_equal,
    frame_columns,
    label_numbers,
    merge_rows,
    read_labels,
    row_keys,
)
from slatewise.data.row_files import RowFormat, RowGroup
from slatewise.data.row_source import RowSource, StoredRows

_ROUNDING = 1e-12
"""A column that differs by less, relative to its values, is constant."""
_LEAST_SPREAD = 1e-150


class LabelTable(NamedTuple):
    """The labels of rows to learn from."""

    known: Bytes
    """(n, labels) of 1, 0, and -1 for an unknown label."""
    names: NDArray[Any]
    """The names of the labels, else their numbers."""
    classes: NDArray[Any] | None
    """The classes if y was one class per row."""


def read_label_table(
    y: Any, n_rows: int, label_names: Any = None, separator: str | None = None, answered: ArrayLike | None = None
) -> LabelTable:
    """Return the labels of ``n_rows`` rows, in any of the forms that ``CStarRanker.fit`` takes.

    Examples
    --------
    >>> read_label_table([[1, 0], [-1, 1]], 2).known
    array([[ 1,  0],
           [-1,  1]], dtype=int8)
    """
    zeros, unknown = split_unknown(y)
    if unknown is not None and label_names is None:
        label_names = frame_columns(y)  # the matrix of zeros has lost them
    values, names, classes = read_labels(zeros, n_rows, label_names, separator)
    known = values.astype(np.int8)
    if answered is not None:
        if classes is not None:
            raise ValueError("answered: expected None with one class per row, found a mask")
        unknown = np.zeros(known.shape, dtype=np.bool_) if unknown is None else unknown
        unknown = unknown | _volunteered(columns_like("answered", answered, names), unknown)
    if unknown is not None and unknown.any():
        known = np.where(unknown, np.int8(-1), known)
    return LabelTable(known, names, classes)


def check_partly_known(known: Bytes) -> None:
    """Warn of unknown labels; raise ValueError if they leave nothing to learn from."""
    unknown = known < 0
    if not unknown.any():
        return
    empty = int(unknown.all(axis=1).sum())
    if empty == len(known):
        raise ValueError("y: expected a row of which some label is known, found none")
    if not (known == 0).any():
        raise ValueError("y: expected 0 for labels that do not apply, found only 1 and unknown ones (-1 or NaN)")
    never = int(unknown.all(axis=0).sum())
    details = f"{empty} rows without a known label are left out; " if empty else ""
    details += f"{never} labels are known in no row and stay at even odds; " if never else ""
    warnings.warn(
        f"y: {int(unknown.sum())} of {unknown.size} labels are not known: {details}the likelihood of the others is "
        "not convex, and lower_bound_ is -inf",
        stacklevel=3,
    )


def refuse_unknown(known: Bytes) -> None:
    """Raise ValueError if a label is unknown."""
    unknown = np.argwhere(known < 0)
    if len(unknown):
        row, label = unknown[0]
        found = f"row {row}, label {label} not known (NaN or -1): CStarRanker learns from partly known labels"
        raise ValueError(f"y: expected 0 and 1, found {found}")


def split_unknown(y: Any) -> tuple[Any, Bools | None]:
    """Return a matrix of labels with 0 for NaN and -1, and where these were; anything else unchanged, and None.

    Examples
    --------
    >>> split_unknown([[1, 0], [-1, 1]])
    (array([[1., 0.], [0., 1.]]), array([[False, False], [ True, False]]))
    """
    matrix = sparse_rows("y", y)
    if matrix is not None and not (np.isnan(matrix.data) | (matrix.data == -1)).any():
        return y, None  # without a matrix of zeros, which may be large
    array = _numbers(y) if matrix is None else matrix.toarray().astype(np.float64)
    if array is None or array.ndim != 2 or array.shape[1] < 2:
        return y, None
    unknown = np.isnan(array) | (array == -1.0)
    if not unknown.any():
        return y, None
    return np.where(unknown, 0.0, array), unknown


def _numbers(y: Any) -> Floats | None:
    try:
        array: NDArray[Any] = np.asarray(y)
    except ValueError:  # rows of different lengths
        return None
    if array.ndim != 2 or array.dtype.kind not in "ifO":
        return None
    if array.dtype.kind == "O":
        flat = [
            np.nan if value is None or type(value).__name__ == "NAType" else value  # of pandas, equal to nothing
            for value in cast("list[object]", array.ravel().tolist())
        ]
        if not all(isinstance(value, int | float) for value in flat):
            return None
        array = np.array(flat, dtype=np.float64).reshape(array.shape)
    return array.astype(np.float64)


def _volunteered(answered: ArrayLike, unknown: Bools) -> Bools:
    """Return the known labels outside of ``answered``, with a warning."""
    expected = f"a matrix of True and False, shape {unknown.shape}"
    try:
        mask = np.asarray(answered)
    except ValueError:
        raise ValueError(f"answered: expected {expected}, found lists of different lengths") from None
    if mask.dtype.kind != "b" or mask.shape != unknown.shape:
        found = type(answered).__name__ if mask.dtype.kind == "O" else f"{mask.dtype} of shape {mask.shape}"
        raise ValueError(f"answered: expected {expected}, found {found}")
    volunteered = ~mask & ~unknown
    if volunteered.any():
        warnings.warn(
            f"answered: {int(volunteered.sum())} of {int((~unknown).sum())} known labels were volunteered and count as "
            "unknown: what people volunteer is mostly yes",
            stacklevel=4,
        )
    return volunteered


def core_of(core: Any, names: NDArray[Any], largest: int | None = None) -> int | Ints:
    """Return the number of core labels, or which, by number; at most ``largest`` of them.

    Examples
    --------
    >>> core_of(["sky"], np.array(["sea", "sky"]))
    array([1])
    """
    given = np.asarray(core)
    if given.ndim == 0:
        size = int(given)
        if largest is not None and size > len(names):
            raise ValueError(f"core: expected 'auto' or a number from 0 to {len(names)} labels, found {size}")
    else:
        numbers = label_numbers("core", given.tolist(), names) if given.dtype.kind in "OU" else given
        given = numbers.astype(np.int64) if given.size == 0 else numbers
        StarPair.of(np.zeros((len(given), len(names))), given)  # refuses unknown labels, and labels that stand twice
        size = len(given)
    if largest is not None and size > largest:
        raise ValueError(f"core: expected at most {largest} labels, found {size}")
    return size if given.ndim == 0 else given.astype(np.int64)


def refuse_beside_source(given: Mapping[str, Any]) -> None:
    """Raise ValueError for arguments of fit that a source has itself."""
    extra = next((name for name, value in given.items() if value is not None), None)
    if extra is not None:
        raise ValueError(f"{extra}: expected None with a source, which names its columns, found a value")


def check_given_scores(X: Any, n_rows: int, n_labels: int) -> None:
    """Raise ValueError unless X has one given score per label."""
    if X.shape != (n_rows, n_labels):
        raise ValueError(f"X: expected one given score per label, shape {(n_rows, n_labels)}, found {X.shape}")


# --- equal rows -------------------------------------------------------------------------------------------------------


def merge_features(X: Features, Y: Bytes, weight: Floats) -> tuple[Features, Bytes, Floats]:
    """Do for sparse rows what :func:`slatewise.data.labels.merge_rows` does for dense ones.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[0.0, 2.0], [1.0, 0.0], [0.0, 2.0]])
    >>> rows, Y, weight = merge_features(X, np.array([[1], [0], [1]], dtype=np.int8), np.ones(3))
    >>> sorted(zip(weight.tolist(), rows.toarray().tolist()))
    [(1.0, [1.0, 0.0]), (2.0, [0.0, 2.0])]
    """
    if isinstance(X, np.ndarray):
        return merge_rows(X.astype(np.float64), Y, weight)
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    # A row is identified by four numbers made of its entries, and found again by the first index that has them.
    digests = [_digest(X.indices[a:b], X.data[a:b]) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    first_row = {digest: row for row, digest in reversed(list(enumerate(digests)))}
    keys = np.frombuffer(b"".join(digests), dtype=np.uint32).reshape(len(digests), -1).astype(np.float64)
    keys, Y, weight = merge_rows(keys, Y, weight)
    chosen = [first_row[row.astype(np.uint32).tobytes()] for row in keys]
    return cast("Features", X[chosen]), Y, weight


def _digest(indices: NDArray[np.integer], data: NDArray[np.floating]) -> bytes:
    entries = indices.astype(np.int64).tobytes() + (data.astype(np.float64) + 0.0).tobytes()
    return hashlib.blake2b(entries, digest_size=16).digest()


class RowsInFiles(NamedTuple):
    """Rows of a source that differ from each other, in the order that the same rows in memory have."""

    features: StoredRows
    numbers: Ints
    """Which rows of the source these are."""
    weight: Floats
    low: float
    """The smallest number in them."""
    high: float
    digest: bytes


def rows_in_files(source: RowSource, known: Bytes, used: NDArray[np.bool_], executor: Executor) -> RowsInFiles:
    """Do for rows in files what :func:`slatewise.data.labels.merge_rows` does for dense ones: all are read once."""
    cuts = source.starts.tolist()
    pieces = [_Piece(group, known[cuts[at] : cuts[at + 1]]) for at, group in enumerate(source.groups)]
    seen = executor.gather(_seen, source.format, pieces)
    keys = np.concatenate([piece.keys for piece in seen])
    rows = np.flatnonzero(used)
    first, weight = first_of_equal(keys[rows], np.ones(len(rows)))
    low, high = min(piece.low for piece in seen), max(piece.high for piece in seen)
    return RowsInFiles(source.features.at(rows[first]), rows[first], weight, low, high, keys.tobytes())


class _Piece(NamedTuple):
    group: RowGroup
    known: Bytes


class _Seen(NamedTuple):
    keys: NDArray[np.bytes_]
    low: float
    high: float


def _seen(rows: RowFormat, piece: _Piece) -> _Seen:
    X = rows.features(piece.group)
    return _Seen(row_keys(X, piece.known), float(X.min(initial=np.inf)), float(X.max(initial=-np.inf)))


# --- units of columns -----------------------------------------------------------------------------------------------


def column_spread(centred: Floats, largest: Floats, weight: Floats) -> Floats:
    """Return the standard deviation of each column, 1 of those that are constant apart from rounding."""
    peak = np.abs(centred).max(axis=0, initial=0.0)
    unit = peak_unit(peak, largest)
    # Divided first: squares of tiny or huge numbers are 0 or infinite.
    return checked_spread(peak, largest, unit * np.sqrt(weight @ (centred / unit) ** 2 / weight.sum()))


def peak_unit(peak: Floats, largest: Floats) -> Floats:
    """Return the largest distance from the center in each column, 1 of those that are constant apart from rounding."""
    return np.where(peak > _ROUNDING * largest, peak, 1.0)


def checked_spread(peak: Floats, largest: Floats, deviation: Floats) -> Floats:
    """Return the standard deviation of each column, 1 of constant ones; refuse extremes."""
    spread = np.where(peak > _ROUNDING * largest, deviation, 1.0)
    wrong = (spread < _LEAST_SPREAD) | (spread > 1.0 / _LEAST_SPREAD)
    if wrong.any():
        column = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"X: expected columns with a standard deviation from {_LEAST_SPREAD} to {1 / _LEAST_SPREAD}, "
            f"found {spread[column]:.3g} in column {column}"
        )
    return spread
