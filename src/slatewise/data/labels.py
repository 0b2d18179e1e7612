"""Labels of rows in every form that users have them, as 0/1 rows and the names of their columns.

The forms: a 0/1 matrix, dense or sparse; one class per row; sets or lists of names per row; texts of joined names;
columns of a frame. A name is a string that is not empty and has no blanks around it, because a name that differs only
by blanks would be another label.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import real, sparse_rows
from slatewise.core.rules import short_repr

Names: TypeAlias = NDArray[Any]
_SHOWN = 5


class Labels(NamedTuple):
    """Rows of 0 and 1, what their columns are called, and the classes where there was one class per row."""

    values: Floats
    names: Names
    classes: NDArray[Any] | None


def read_labels(y: Any, n_rows: int, label_names: Any = None, separator: str | None = None) -> Labels:
    """Return the labels of rows to learn from; ``label_names`` and ``separator`` as in ``CStarRanker.fit``.

    Examples
    --------
    >>> labels = read_labels([{"sky", "sea"}, set(), ["sea"]], 3)
    >>> labels.names.tolist(), labels.values.tolist()
    (['sea', 'sky'], [[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    >>> read_labels(["sky|sea", "sea"], 2, separator="|").names.tolist()
    ['sea', 'sky']
    """
    rows = named_rows(y, separator)
    if rows is None:
        values, classes = check_labels(y, n_rows)
        return Labels(values, check_names(label_names, y, classes, values.shape[1]), classes)
    _require_rows(rows, n_rows)
    if label_names is None:
        names = np.array(sorted({name for row in rows for name in row}), dtype=np.str_)
    else:
        names = check_names(label_names, None, None, len(label_names))
    if len(names) < 2:
        raise ValueError(f"y: expected at least two labels to rank, found {len(names)}: {names.tolist()}")
    return Labels(_flags(rows, names), names, None)


def labels_like(
    y: Any, n_rows: int, names: Names, classes: NDArray[Any] | None = None, separator: str | None = None
) -> Floats:
    """Return the labels of rows by what a model knows: ``names``, and its ``classes`` where rows have one each.

    Columns of a frame are found by their names, in any order.

    Examples
    --------
    >>> labels_like([["sea"], []], 2, np.array(["sea", "sky"]))
    array([[1., 0.], [0., 0.]])
    """
    rows = named_rows(y, separator)
    if rows is not None:
        if classes is not None or names.dtype.kind != "U":
            expected = "one class per row" if classes is not None else "0/1 labels"
            raise ValueError(f"y: expected {expected}, as in fit, found names of several labels per row")
        _require_rows(rows, n_rows)
        return _flags(rows, names)
    columns = frame_columns(y) if names.dtype.kind == "U" and classes is None else None
    if columns is not None and len(columns) > 1:
        _require_same("y", columns, names)
    labels, found = check_labels(y, n_rows, classes)
    shape = (n_rows, len(names))
    if labels.shape != shape or (classes is None and found is not None):
        what = f"shape {labels.shape}" if found is None else "one class per row"
        raise ValueError(f"y: expected 0/1 labels as in fit, shape {shape}, found {what}")
    return labels if columns is None else labels[:, [columns.index(str(name)) for name in names]]


def known_like(known: Any, n_rows: int, names: Names) -> Any:
    """Return answers by name as an (n, N) array of 1 yes, 0 no, -1 unknown; anything else as it came.

    By name are one mapping per row, ``{"sky": 1, "sea": 0}``; one set or list of names per row, which are yes; and the
    columns of a frame. What they do not mention is unknown.

    Examples
    --------
    >>> known_like([{"sky": 1}, {}], 2, np.array(["sea", "sky"]))
    array([[-1,  1], [-1, -1]], dtype=int8)
    """
    if known is None or isinstance(known, np.ndarray):
        return cast("Any", known)
    columns = frame_columns(known, "known") if names.dtype.kind == "U" else None
    if columns is not None:
        given = real("known", known)
        answers = np.full((len(given), len(names)), -1.0)
        answers[:, label_numbers("known", columns, names)] = given
        return answers
    rows = _listed(known)
    if rows is None or not any(isinstance(row, Mapping | set | frozenset) or _has_text(row) for row in rows):
        return known
    if len(rows) != n_rows:
        raise ValueError(f"known: expected answers for each of {n_rows} rows, found {len(rows)}")
    answers = np.full((n_rows, len(names)), -1, dtype=np.int8)
    for number, row in enumerate(rows):
        given, values = _answers(row, number)
        answers[number, label_numbers("known", given, names, f" in row {number}")] = values
    return answers


def columns_like(argument: str, frame: Any, names: Names) -> Any:
    """Return the columns of a frame in the order of names, which must be theirs; anything else as it came."""
    columns = frame_columns(frame, argument) if names.dtype.kind == "U" else None
    if columns is None:
        return frame
    _require_same(argument, columns, names)
    return np.asarray(frame)[:, [columns.index(str(name)) for name in names]]


def label_numbers(argument: str, given: Sequence[Any], names: Names, place: str = "") -> Ints:
    """Return which labels are called so; unknown names are an error that says them.

    Examples
    --------
    >>> label_numbers("core", ["sky"], np.array(["sea", "sky"]))
    array([1])
    """
    numbers = {name: number for number, name in enumerate(names.tolist())}
    unknown = [name for name in given if not isinstance(name, str | Real) or name not in numbers]
    if unknown:
        raise ValueError(f"{argument}: expected names of labels that fit saw, found {_some(unknown)}{place}")
    return np.array([numbers[name] for name in given], dtype=np.int64)


def named_rows(y: Any, separator: Any = None) -> list[list[str]] | None:
    """Return the names of each row; None where rows hold something else than names of several labels."""
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise ValueError(f"separator: expected a text that is not empty, or None, found {separator!r}")
    rows = _listed(y)
    if separator is not None:
        texts = _texts(rows)
        return [split_names(text, separator, row) for row, text in enumerate(texts)]
    if rows is None:
        return None
    for number, row in enumerate(rows):
        if isinstance(row, str) and "|" in row:
            raise ValueError(
                "y: expected 0/1 labels (rows, labels), lists or sets of names, or one class per row, "
                f"found {short_repr(row)} in row {number}; separator='|' cuts such texts into names"
            )
    if not any(isinstance(row, set | frozenset) or _has_text(row) for row in rows):
        return None
    return [_names_of(row, number) for number, row in enumerate(rows)]


def separator_for(y: Any, separator: str | None) -> str | None:
    """Return the separator if y has one text per row, else None: other forms do not need it."""
    rows = None if separator is None else _listed(y)
    return separator if rows and all(isinstance(row, str) for row in rows) else None


def split_names(text: str, separator: str, row: int) -> list[str]:
    """Cut a text into names; an empty one has none."""
    return _names_of(text.split(separator), row, f" (cut at {separator!r})") if text else []


def _listed(y: Any) -> list[Any] | None:
    """Return the rows of what has one value per row, of any type but numbers; None for matrices and numbers."""
    if isinstance(y, list | tuple):
        return list(cast("Sequence[Any]", y))
    if not isinstance(y, np.ndarray):
        frame_columns(y)  # says where a column comes twice
        import narwhals as nw  # only for frames

        found: Any = nw.from_native(y, allow_series=True, eager_only=True, pass_through=True)
        if isinstance(found, nw.DataFrame):
            columns = list(cast("nw.DataFrame[Any]", found).iter_columns())
            found = columns[0] if len(columns) == 1 else np.empty((0, 0))
        if isinstance(found, nw.Series):
            series = cast("nw.Series[Any]", found)
            return None if series.dtype.is_numeric() or series.dtype == nw.Boolean else series.to_list()
        y = found
    array: NDArray[Any] = np.asarray(cast("Any", y))
    return array.tolist() if array.ndim == 1 and array.dtype.kind in "OU" else None


def _texts(rows: list[Any] | None) -> list[str]:
    if rows is None:
        raise ValueError("separator: expected one text per row in y, found something else: leave separator out")
    for number, row in enumerate(rows):
        if not isinstance(row, str):
            raise ValueError(
                f"y: expected a text of names in every row, for separator, found {short_repr(row)} in row {number}; "
                "an empty text is a row without labels"
            )
    return rows


def _has_text(row: Any) -> bool:
    if isinstance(row, np.ndarray):
        row = cast("NDArray[Any]", row).tolist()
    return isinstance(row, list | tuple) and any(isinstance(name, str) for name in cast("Sequence[Any]", row))


def _names_of(row: Any, number: int, how: str = "") -> list[str]:
    if isinstance(row, np.ndarray):
        row = cast("NDArray[Any]", row).tolist()
    if not isinstance(row, list | tuple | set | frozenset):
        raise ValueError(
            f"y: expected a list, tuple or set of names in every row (an empty one where there are no labels), "
            f"found {short_repr(cast('object', row))} in row {number}"
        )
    names = list(cast("Sequence[Any]", row))
    for name in names:
        if not isinstance(name, str) or not name or name != name.strip():
            raise ValueError(
                f"y: expected names that are texts, not empty and without blanks around them, "
                f"found {short_repr(name)} in row {number}{how}"
            )
    if len(set(names)) < len(names):
        again = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"y: expected every name once per row, found {short_repr(again)} again in row {number}{how}")
    return names


def _answers(row: Any, number: int) -> tuple[list[Any], list[Any]]:
    """Return the names of one row's labels that are known, and what is known of them."""
    if isinstance(row, set | frozenset | list | tuple):
        names = list(cast("Sequence[Any]", row))
        return names, [1] * len(names)
    if not isinstance(row, Mapping):
        found = f"{short_repr(row)} in row {number}"
        raise ValueError(f"known: expected a mapping or a set of names in every row, found {found}")
    given = dict(cast("Mapping[Any, Any]", row))
    for name, answer in given.items():
        if not isinstance(answer, Real | np.bool_) or answer not in (-1, 0, 1):
            raise ValueError(
                f"known: expected -1, 0 or 1, found {short_repr(cast('object', answer))} of {short_repr(name)} "
                f"in row {number}"
            )
    return list(given), list(given.values())


def _flags(rows: list[list[str]], names: Names) -> Floats:
    flags = np.zeros((len(rows), len(names)))
    numbers = {name: number for number, name in enumerate(names.tolist())}
    unknown = sorted({name for row in rows for name in row if name not in numbers})
    if unknown:
        row = next(number for number, row in enumerate(rows) if unknown[0] in row)
        raise ValueError(f"y: expected the labels {_some(names.tolist())}, found {_some(unknown)}, first in row {row}")
    for number, row in enumerate(rows):
        flags[number, [numbers[name] for name in row]] = 1.0
    return flags


def _require_rows(rows: list[list[str]], n_rows: int) -> None:
    if len(rows) != n_rows:
        raise ValueError(f"y: expected names for {n_rows} rows, found {len(rows)}: inconsistent numbers of samples")


def _require_same(argument: str, columns: list[str], names: Names) -> None:
    """Raise ValueError unless a frame has exactly the columns that fit saw."""
    strange, missing = [name for name in columns if name not in names], [name for name in names if name not in columns]
    if strange or missing:
        found = " and ".join(
            [f"{_some(strange)} too"] * bool(strange)
            + [f"none called {_some([str(n) for n in missing])}"] * bool(missing)
        )
        raise ValueError(f"{argument}: expected the columns that fit saw, found {found}")


def _some(names: Sequence[Any]) -> str:
    """Return the first few names for a message."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(short_repr(name) for name in names[:_SHOWN]) + more


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
        raise ValueError(f"label_names: expected {n_labels} strings, found {short_repr(names)}")
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
