"""Labels by name, as people have them: sets of names per row, texts of joined names, columns of a frame.

Whatever comes is turned into 0/1 rows and the names of their columns. A name is a string that is not empty and has no
blanks around it; one that only differs by them would be another label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import real
from slatewise.core.label_sets import check_labels, check_names, frame_columns
from slatewise.core.rules import shown

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
        told = real("known", known)
        answers = np.full((len(told), len(names)), -1.0)
        answers[:, label_numbers("known", columns, names)] = told
        return answers
    rows = _listed(known)
    if rows is None or not any(isinstance(row, Mapping | set | frozenset) or _has_text(row) for row in rows):
        return known
    if len(rows) != n_rows:
        raise ValueError(f"known: expected answers for each of {n_rows} rows, found {len(rows)}")
    answers = np.full((n_rows, len(names)), -1, dtype=np.int8)
    for number, row in enumerate(rows):
        told, values = _answers(row, number)
        answers[number, label_numbers("known", told, names, f" in row {number}")] = values
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
                f"found {shown(row)} in row {number}; separator='|' cuts such texts into names"
            )
    if not any(isinstance(row, set | frozenset) or _has_text(row) for row in rows):
        return None
    return [_names_of(row, number) for number, row in enumerate(rows)]


def separator_for(y: Any, separator: str | None) -> str | None:
    """Return the separator where y has texts, one per row; so a fitted one does not get in the way of other forms."""
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
                f"y: expected a text of names in every row, for separator, found {shown(row)} in row {number}; "
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
            f"found {shown(cast('object', row))} in row {number}"
        )
    names = list(cast("Sequence[Any]", row))
    for name in names:
        if not isinstance(name, str) or not name or name != name.strip():
            raise ValueError(
                f"y: expected names that are texts, not empty and without blanks around them, "
                f"found {shown(name)} in row {number}{how}"
            )
    if len(set(names)) < len(names):
        again = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"y: expected every name once per row, found {shown(again)} again in row {number}{how}")
    return names


def _answers(row: Any, number: int) -> tuple[list[Any], list[Any]]:
    """Return the names of one row's labels that are known, and what is known of them."""
    if isinstance(row, set | frozenset | list | tuple):
        names = list(cast("Sequence[Any]", row))
        return names, [1] * len(names)
    if not isinstance(row, Mapping):
        found = f"{shown(row)} in row {number}"
        raise ValueError(f"known: expected a mapping or a set of names in every row, found {found}")
    told = dict(cast("Mapping[Any, Any]", row))
    for name, answer in told.items():
        if not isinstance(answer, Real | np.bool_) or answer not in (-1, 0, 1):
            raise ValueError(
                f"known: expected -1, 0 or 1, found {shown(cast('object', answer))} of {shown(name)} in row {number}"
            )
    return list(told), list(told.values())


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
    return ", ".join(shown(name) for name in names[:_SHOWN]) + more
