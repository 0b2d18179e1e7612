"""Answers as CSV: *wide*, a row per item and a column per label; or *long*, a row per answer and all its fields.

Wide: the first column has the ids of items; cells are 1, 0, or empty where it is not known. What several people said is
one cell, as ``project.known()`` settles it. Long: ``item`` and the fields of :mod:`slatewise.labeling.exchange.fields`
as columns in any order, of which ``item, label, said`` are needed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from os import PathLike

from slatewise.core.errors import DataError
from slatewise.core.files import atomic_file
from slatewise.data._delimited import Splitter, guess_delimiter, splitter_for
from slatewise.data._lines import Line, header_line, parse_lines
from slatewise.data._source import PathOrFile, Problems, open_source
from slatewise.labeling.exchange.fields import FIELDS, as_fields, statement
from slatewise.labeling.exchange.statements import Names, Statement, statements
from slatewise.labeling.store.project import Project

_COLUMNS = ("item", *FIELDS)
_NEEDED = {"item", "label", "said"}
_CELLS = {1: "1", 0: "0", -1: ""}


def write_wide(project: Project, path: str | PathLike[str]) -> None:
    """Write a row per item and a column per label."""
    items, known = project.items.all(), project.known().values.tolist()
    rows = ([item.id, *map(_CELLS.__getitem__, row)] for item, row in zip(items, known, strict=True))
    _write(path, ["item", *project.labels.names()], rows)


def write_long(project: Project, path: str | PathLike[str]) -> None:
    """Write a row per answer, done and skip."""
    items, labels = project.items.all(), project.labels.names()
    rows = ({"item": items[one.item].id, **as_fields(one, labels)} for one in statements(project))
    _write(path, _COLUMNS, ([row.get(column, "") for column in _COLUMNS] for row in rows))


def read_table(path: PathOrFile, names: Names, annotator: str) -> list[Statement]:
    """Read a wide or a long table, told apart by the header; ``annotator`` said what nobody is named for."""
    with open_source(path) as source:
        lines = source.lines()
        header = header_line(source, lines)
        splitter = splitter_for(guess_delimiter(header.text) or ",")
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
        fields = self._splitter.split(line)
        if len(fields) != len(self.columns):
            at = self._splitter.offset(line, len(self.columns))
            raise line.fault(at, f"{len(self.columns)} fields as in the first line", f"{len(fields)}")
        return fields

    def item(self, line: Line, column: int, text: str) -> int:
        """Return the item that a field names."""
        if text not in self.names.items:
            raise self.fault(line, column, "the id of an item of the project", text)
        return self.names.items[text]

    def fault(self, line: Line, column: int, expected: str, found: str) -> DataError:
        """Return the error for a field."""
        return line.fault(self._splitter.offset(line, column), expected, repr(found))


class _Wide:
    def __init__(self, table: _Table) -> None:
        self._table = table
        self._labels: list[int] = []
        for column, name in enumerate(table.columns[1:], 1):
            label = table.names.labels.get(name)
            if label is None:
                expected = "the name of a label of the project; or a column each called item, label and said"
                raise table.fault(table.header, column, expected, name)
            if label in self._labels:
                raise table.fault(table.header, column, "every label once", name)
            self._labels.append(label)

    def parse(self, line: Line) -> list[Statement]:
        fields = self._table.fields(line)
        item = self._table.item(line, 0, fields[0])
        said: list[Statement] = []
        for column, (text, label) in enumerate(zip(fields[1:], self._labels, strict=True), 1):
            if text not in _CELLS.values():
                raise self._table.fault(line, column, "1, 0 or nothing", text)
            if text:
                said.append(Statement("answer", item, self._table.annotator, label=label, said=int(text)))
        return said


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
        told = {name: value for name, value in text.items() if value}
        return [statement(told, item, table.names.labels, table.annotator, fault)]
