"""Label matrices at the door: 0/1, dense or sparse, or one class per row; and the sets that training aims at."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.rules import shown
from slatewise.core.sparse import sparse_rows


def check_labels(Y: Any, n_rows: int, classes: NDArray[Any] | None = None) -> tuple[Floats, NDArray[Any] | None]:
    """Return Y as (n, N) of 0.0 and 1.0, and the classes where Y was one class per row.

    ``classes`` are those that a model knows: one class per row is then encoded by them.

    Examples
    --------
    >>> check_labels(["b", "a", "b"], 3)[0]
    array([[0., 1.], [1., 0.], [0., 1.]])
    """
    if Y is None:
        raise ValueError(
            "y: expected one row of labels per row of X, found None: "
            "this ranker requires y to be passed, but the target y is None"
        )
    rows = sparse_rows("y", Y)
    labels: NDArray[Any] = _as_array(Y) if rows is None else rows.toarray()
    if labels.dtype.kind == "O" and labels.size:
        labels = _of_one_type(labels)
    column = labels.ndim == 2 and labels.shape[1] == 1 and n_rows > 1 and not isinstance(Y, list | tuple)
    if column and (labels.dtype.kind in "SU" or not np.isin(labels, (0, 1)).all()):
        labels = labels[:, 0]
    refuse_names(labels)
    if labels.ndim not in (1, 2) or len(labels) != n_rows:
        raise ValueError(
            f"y: expected ({n_rows}, labels) or ({n_rows},), found shape {labels.shape}: "
            "inconsistent numbers of samples"
        )
    found = None
    if labels.ndim == 1:
        _require_values(labels)
        found = np.unique(labels) if classes is None else classes
        unknown = ~np.isin(labels, found)
        if unknown.any():
            raise ValueError(f"y: expected classes seen in fit, found {labels[unknown][0]!r}")
        labels = labels[:, None] == found
    elif labels.dtype.kind not in "biuf" or not np.isin(labels, (0, 1)).all():
        raise ValueError(f"y: expected 0 and 1, found {_first_other(labels)}")
    if labels.shape[1] < 2:
        raise ValueError(f"y: expected at least two labels to rank, found {labels.shape[1]} (only one class)")
    return labels.astype(np.float64), found


def _as_array(Y: Any) -> NDArray[Any]:
    try:
        return np.asarray(Y)
    except ValueError:  # rows of different lengths
        rows = np.empty(len(Y), dtype=object)
        rows[:] = list(Y)
        return rows


def refuse_names(labels: NDArray[Any]) -> None:
    """Raise ValueError where a row holds several names: a set or a list of them, or "a|b".

    Taken as they are, each different set would be a class of its own.
    """
    if labels.dtype.kind not in "OSU":
        return
    for row, value in enumerate(cast("list[object]", labels.tolist()) if labels.ndim else ()):
        several = isinstance(value, Collection) and not isinstance(value, str | bytes)
        joined = (isinstance(value, str) and "|" in value) or (isinstance(value, bytes) and b"|" in value)
        if several or joined:
            lists = "[row.split('|') for row in y]" if joined else "y"
            advice = f"; sklearn.preprocessing.MultiLabelBinarizer().fit_transform({lists}) makes 0/1 labels of names"
            expected = "0/1 labels (rows, labels), or one class per row"
            found = f"{value!r} in row {row}{'' if isinstance(value, Mapping) else advice}"
            raise ValueError(f"y: expected {expected}, found {found}")


def _of_one_type(labels: NDArray[Any]) -> NDArray[Any]:
    if labels.ndim == 1:
        refuse_names(labels)
    kinds = {"numbers" if isinstance(value, Real) else type(value).__name__ for value in labels.flat}
    if len(kinds) != 1 or "NoneType" in kinds:
        raise ValueError(f"y: expected classes of one type, found {' and '.join(sorted(kinds))}")
    return np.array(labels.tolist())


def _require_values(labels: NDArray[Any]) -> None:
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise ValueError(f"y: expected one class per row, found {labels[row]} (NaN or infinity) in row {row}")
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        raise ValueError("y: expected classes or 0/1 labels, found continuous numbers: Unknown label type")


def _first_other(labels: NDArray[Any]) -> str:
    if labels.dtype.kind not in "biuf":
        return f"dtype {labels.dtype}"
    row, column = np.argwhere(~np.isin(labels, (0, 1)))[0]
    hint = "" if np.isfinite(labels[row, column]) else " (NaN and infinity are no labels)"
    return f"{labels[row, column]} in row {row}, column {column}{hint}"


def check_names(given: Any, Y: Any, classes: NDArray[Any] | None, n_labels: int) -> NDArray[Any]:
    """Return what the labels are called: as given, by the columns of a data frame, by their classes, or by number.

    Examples
    --------
    >>> check_names(["sea", "sky"], None, None, 2)
    array(['sea', 'sky'], dtype='<U3')
    """
    if classes is not None:
        if given is not None:
            raise ValueError("label_names: expected None with one class per row, found names")
        return classes
    names = frame_columns(Y) if given is None else given
    if names is None:
        return np.arange(n_labels)
    found = np.asarray(names, dtype=object)
    if found.shape != (n_labels,) or not all(isinstance(name, str) for name in found.tolist()):
        raise ValueError(f"label_names: expected {n_labels} strings, found {shown(names)}")
    strings = found.astype(np.str_)
    once, counts = np.unique(strings, return_counts=True)
    if len(once) < n_labels:
        raise ValueError(f"label_names: expected every name once, found {str(once[counts > 1][0])!r} again")
    return strings


def frame_columns(Y: Any, argument: str = "y") -> list[Any] | None:
    """Return the names of a frame's columns where they are strings; None for anything else."""
    if isinstance(Y, np.ndarray | list | tuple):
        return None
    import narwhals as nw  # only for frames
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(Y, eager_only=True, pass_through=True)
    except DuplicateError:
        raise ValueError(f"{argument}: expected every column name once, found some again") from None
    if not isinstance(frame, nw.DataFrame):
        return None
    names: list[Any] = list(frame.columns)
    return names if all(isinstance(name, str) for name in names) else None


def as_sets(chosen: NDArray[np.bool_]) -> Ints:
    """Turn (n, N) flags into (n, largest count) label numbers, ascending, -1 after the last.

    Examples
    --------
    >>> as_sets(np.array([[True, False, True], [False, True, False]]))
    array([[ 0,  2], [ 1, -1]])
    """
    counts = chosen.sum(axis=1)
    sets = np.full((len(chosen), int(counts.max(initial=0))), -1, dtype=np.int64)
    rows, labels = np.nonzero(chosen)
    starts = np.cumsum(counts) - counts
    sets[rows, np.arange(len(rows)) - starts[rows]] = labels
    return sets


def merge_rows(X: Floats, Y: NDArray[np.int8], weight: Floats) -> tuple[Floats, NDArray[np.int8], Floats]:
    """Join equal rows and add up their weights, in an order that depends on the rows alone.

    So a weight of 2 is the same as a row given twice, to the last bit, and the order of the rows does not matter.
    """
    first, weight = first_of_equal(row_keys(X, Y), weight)
    return X[first], Y[first], weight


def row_keys(X: Floats, Y: NDArray[np.int8]) -> NDArray[np.bytes_]:
    """Return what equal rows have in common, and others do not."""
    return np.array([_digest(x, y) for x, y in zip(X, Y, strict=True)], dtype="S16")


def first_of_equal(keys: NDArray[np.bytes_], weight: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return the first row of each key, in the order of the keys, and the weight of all that have it."""
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    return first, np.bincount(number, weights=weight, minlength=len(first)).astype(np.float64)


def _digest(x: Floats, y: NDArray[np.int8]) -> bytes:
    # The 1 at the end keeps NumPy from dropping zero bytes there. Adding 0.0 makes -0.0 equal to 0.0.
    entries = (x + 0.0).tobytes() + y.astype(np.float64).tobytes()
    return hashlib.blake2b(entries, digest_size=15).digest() + b"1"
