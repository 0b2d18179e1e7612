"""Tagged rows of a Parquet or Arrow file: label columns, lists of tags, or texts of tags."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.errors import DataError
from slatewise.data.frames import column_fault, ids_of, numbers_of
from slatewise.data.parquet import read_table
from slatewise.data.reading import PathOrFile
from slatewise.data.records import Ids, MultiLabel
from slatewise.data.tags import Columns, Wanted, label_matrix, tag_fault


def read_tag_table(path: PathOrFile, wanted: Wanted) -> MultiLabel:
    """Read the columns that are wanted."""
    found: list[Columns] = []

    def chosen(names: list[str], name: str) -> list[str]:
        columns = Columns.among(names, wanted, lambda expected, other: DataError(name, 0, 0, expected, other))
        found.append(columns)
        own = [column for column in (columns.tags, columns.id) if column is not None]
        return [*columns.labels, *own, *columns.features]

    table, name = read_table(path, chosen)
    columns = found[0]
    X = np.column_stack([numbers_of(table[feature], name, 0) for feature in columns.features])
    if columns.labels:
        labels = list(columns.labels.values())
        flags = np.column_stack([_flags(table[column], name) for column in columns.labels])
        tags = [[labels[place] for place in np.flatnonzero(row)] for row in flags]
    else:
        none: list[list[str]] = [[]] * len(table)
        tags = none if columns.tags is None else _tags(table[columns.tags], name, wanted)
        labels = wanted.label_names or sorted({tag for row in tags for tag in row})
    ids = None if columns.id is None else _ids(table[columns.id], name)
    return MultiLabel(
        X,
        label_matrix(tags, labels),
        np.array(labels, dtype=np.str_),
        np.array(columns.features, dtype=np.str_),
        ids=ids,
    )


def _flags(series: nw.Series[Any], name: str) -> Floats:
    values = numbers_of(series, name, 0)
    wrong = np.flatnonzero((values != 0) & (values != 1))
    if len(wrong):
        raise column_fault(series, name, 0, int(wrong[0]), "a label, 0 or 1", f"{values[wrong[0]]:g}")
    return values


def _tags(series: nw.Series[Any], name: str, wanted: Wanted) -> list[list[str]]:
    is_text = isinstance(series.dtype, nw.String | nw.Categorical | nw.Enum)
    is_list = isinstance(series.dtype, nw.List | nw.Array) and series.dtype.inner == nw.String
    if not is_text and not is_list:
        raise column_fault(series, name, 0, 0, "lists of texts, or texts", f"a column of {series.dtype}")
    if is_text != (wanted.separator is not None):
        expected = "with a column of texts" if wanted.separator is None else "None with a column of lists"
        raise ValueError(
            f"separator: expected {expected}, as {name} has in {series.name!r}, found {wanted.separator!r}"
        )
    rows: list[list[str]] = []
    for number, value in enumerate(series.to_list()):
        if value is None:
            raise column_fault(series, name, 0, number, "tags, or none of them", "a missing value")
        names: dict[str, None] = {}
        found: list[Any] = (value.split(wanted.separator) if value else []) if is_text else list(value)
        for tag in found:
            wrong = tag_fault(tag, names, wanted)
            if wrong is not None:
                raise column_fault(series, name, 0, number, *wrong)
            names[tag] = None
        rows.append(list(names))
    return rows


def _ids(series: nw.Series[Any], name: str) -> Ids:
    ids = ids_of(series, name, 0)
    seen: set[object] = set()
    for number, value in enumerate(ids.tolist()):
        if value in seen or value == "":
            raise column_fault(series, name, 0, number, "every id once, none empty", repr(value))
        seen.add(value)
    return ids
