"""Answers as tables: CSV, wide or long; and rows of features with label sets, which ``slatewise fit`` reads.

Wide: a row per item and a column per label. The first column has the ids of items; cells are 1, 0, or empty if unknown.
Answers of several people are one cell, as ``project.known()`` settles it. Long: a row per answer, with ``item`` and the
fields of :mod:`slatewise.labeling.exchange.statements` as columns in any order; ``item, label, answer`` are required.

Of the formats with features, npz distinguishes unknown labels, multi-label SVMlight does not.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_array

from slatewise.core.checks import feature_rows
from slatewise.core.errors import DataError, DataWarning
from slatewise.core.files import atomic_file
from slatewise.core.rules import short_repr
from slatewise.data import read_npz, write_multilabel_svmlight, write_npz
from slatewise.data.fields import Splitter
from slatewise.data.reading import Line, PathOrFile, Problems, header_line, open_source, parse_lines
from slatewise.data.records import MultiLabel
from slatewise.labeling.exchange.statements import FIELDS, Names, Statement, as_fields, project_statements, statement
from slatewise.labeling.store.project import Project

_COLUMNS = ("item", *FIELDS)
_NEEDED = {"item", "label", "answer"}
_CELLS = {1: "1", 0: "0", -1: ""}


def write_wide(project: Project, path: str | PathLike[str]) -> None:
    """Write a row per item and a column per label."""
    items, known = project.items.all(), project.known().values.tolist()
    rows = ([item.id, *map(_CELLS.__getitem__, row)] for item, row in zip(items, known, strict=True))
    _write(path, ["item", *project.labels.names()], rows)


def write_long(project: Project, path: str | PathLike[str]) -> None:
    """Write a row per answer, done and skip."""
    items, labels = project.items.all(), project.labels.names()
    rows = ({"item": items[one.item].id, **as_fields(one, labels)} for one in project_statements(project))
    _write(path, _COLUMNS, ([row.get(column, "") for column in _COLUMNS] for row in rows))


def read_table(path: PathOrFile, names: Names, annotator: str) -> list[Statement]:
    """Read a wide or a long table, distinguished by its header; ``annotator`` gave the answers without a name."""
    with open_source(path) as source:
        lines = source.lines()
        header = header_line(source, lines)
        splitter = Splitter.of(None, header, default=",")
        table = _Table(header, splitter, names, annotator)
        rows = _Long(table) if set(table.columns) >= _NEEDED else _Wide(table)
        return [one for row in parse_lines(source, lines, Problems("raise"), rows.parse) for one in row]


def _write(path: str | PathLike[str], header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    with atomic_file(path) as file:
        file.write(text.getvalue().encode())


class _Table:
    """A header, and the fields of the lines below it."""

    def __init__(self, header: Line, splitter: Splitter, names: Names, annotator: str) -> None:
        self.header, self.names, self.annotator = header, names, annotator
        self._splitter, self.columns = splitter, splitter.split(header)
        again = [name for place, name in enumerate(self.columns) if name in self.columns[:place]]
        if again:
            raise header.fault(0, "every column once", f"{again[0]!r} again")

    def fields(self, line: Line) -> list[str]:
        """Return as many fields as there are columns."""
        return self._splitter.split(line, len(self.columns))

    def item(self, line: Line, column: int, text: str) -> int:
        """Return the item that a field names."""
        if text not in self.names.items:
            raise self.fault(line, column, "the id of an item of the project", text)
        return self.names.items[text]

    def fault(self, line: Line, column: int, expected: str, found: str) -> DataError:
        """Return the error for a field."""
        return self._splitter.fault(line, column, expected, repr(found))


class _Wide:
    def __init__(self, table: _Table) -> None:
        self._table = table
        self._labels: list[int] = []
        for column, name in enumerate(table.columns[1:], 1):
            label = table.names.labels.get(name)
            if label is None:
                expected = "the name of a label of the project; or the columns item, label and answer"
                raise table.fault(table.header, column, expected, name)
            if label in self._labels:
                raise table.fault(table.header, column, "every label once", name)
            self._labels.append(label)

    def parse(self, line: Line) -> list[Statement]:
        fields = self._table.fields(line)
        item = self._table.item(line, 0, fields[0])
        found: list[Statement] = []
        for column, (text, label) in enumerate(zip(fields[1:], self._labels, strict=True), 1):
            if text not in _CELLS.values():
                raise self._table.fault(line, column, "1, 0 or nothing", text)
            if text:
                found.append(Statement("answer", item, self._table.annotator, label=label, value=int(text)))
        return found


class _Long:
    def __init__(self, table: _Table) -> None:
        self._table = table
        for column, name in enumerate(table.columns):
            if name not in _COLUMNS:
                raise table.fault(table.header, column, f"no other columns than {', '.join(_COLUMNS)}", name)

    def parse(self, line: Line) -> list[Statement]:
        table = self._table
        text = dict(zip(table.columns, table.fields(line), strict=True))

        def fault(name: str, expected: str) -> DataError:
            return table.fault(line, table.columns.index(name), expected, text[name])

        item = table.item(line, table.columns.index("item"), text.pop("item"))
        given = {name: value for name, value in text.items() if value}
        return [statement(given, item, table.names.labels, table.annotator, fault)]


def labeled_rows(project: Project, X: Any) -> MultiLabel:
    """Return the items with features X, one row per item, and what is known of their labels."""
    known = project.known()
    rows = feature_rows("X", X)
    if rows.shape[0] != len(known.values):
        raise ValueError(f"X: expected a row per item, {len(known.values)}, found {rows.shape[0]}")
    return MultiLabel(
        cast("csr_array", rows),
        csr_array((known.values == 1).astype(np.int8)),
        np.array(project.labels.names(), dtype=np.str_),
        ids=np.array([item.id for item in project.items.all()], dtype=np.str_),
        known=known.values >= 0,
        answered=known.answered,
    )


def write_answers_npz(project: Project, path: str | PathLike[str], X: Any) -> None:
    """Write features, labels, and which labels are known."""
    write_npz(path, labeled_rows(project, X))


def write_answers_svmlight(project: Project, path: str | PathLike[str], X: Any) -> None:
    """Write features and labels by number; what is not known counts as no, with a warning."""
    lost = lost_in_svmlight(project)
    if lost:
        warnings.warn(lost, DataWarning, stacklevel=3)
    write_multilabel_svmlight(path, labeled_rows(project, X))


def lost_in_svmlight(project: Project) -> str:
    """Return what the format cannot say of a project, in words; nothing if it says all."""
    known = project.known().values >= 0
    unknown = known.size - int(known.sum())
    if not unknown:
        return ""
    return f"{unknown} of {known.size} labels are not known and count as no; npz keeps them apart"


def read_answers_npz(path: PathOrFile, names: Names, annotator: str) -> list[Statement]:
    """Read what is known, by the ids of rows and the names of labels."""
    rows = read_npz(path)
    name = str(getattr(path, "name", path))
    items, labels = (
        _numbers(name, "ids", rows.ids, names.items),
        _numbers(name, "label_names", rows.label_names, names.labels),
    )
    yes = rows.Y.toarray()
    known = np.ones(yes.shape, dtype=np.bool_) if rows.known is None else rows.known
    answered = known if rows.answered is None else rows.answered
    return [
        Statement(
            "answer", items[row], annotator, label=labels[column], value=int(yes[row, column]),
            how="question" if answered[row, column] else "volunteered",
        )
        for row, column in np.argwhere(known).tolist()
    ]  # fmt: skip


def _numbers(file: str, member: str, given: Any, known: dict[str, int]) -> list[int]:
    if given is None:
        raise DataError(f"{file}[{member}]", 0, 0, "the ids of the rows", "none")
    texts = [str(name) for name in given.tolist()]
    strange = [text for text in texts if text not in known]
    if strange:
        raise DataError(f"{file}[{member}]", 0, 0, "names that the project has", short_repr(strange[0]))
    return [known[text] for text in texts]
