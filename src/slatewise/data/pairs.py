"""Pair files: one (query, item) per line, in two columns of a CSV, TSV or blank-separated file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from slatewise.core.errors import DataError
from slatewise.data.fields import (
    Splitter,
    as_ids,
    check_delimiter,
    is_plain_integer,
    name_columns,
    number,
)
from slatewise.data.reading import (
    MAX_LINE,
    Line,
    OnError,
    PathOrFile,
    Problems,
    header_line,
    open_source,
    parse_lines,
    text_reader,
    warn_of_header,
)
from slatewise.data.records import Pairs

Column: TypeAlias = "int | str"
IF_HEADER = "header=True if this line names the columns, header=False if it is data"


@text_reader
def read_pairs(
    path: PathOrFile,
    *,
    columns: tuple[Column, Column] = (0, 1),
    weight: Column | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    on_error: OnError = "raise",
    max_line: int = MAX_LINE,
) -> Pairs:
    r"""Read (query, item) pairs, with weights if ``weight`` names their column.

    Every line has as many fields as the first. A column of ids becomes int64 if all of its values are integers as
    ``str`` would write them (no plus, no leading zeros, within int64), otherwise strings. Blank lines carry nothing.

    Parameters
    ----------
    columns : tuple of two int or str
        The query's and the item's column: index from 0, or name with ``header=True``.
    weight : int or str, optional
        The column of weights, finite numbers.
    delimiter : {"\\t", ",", ";", "|", " "}, optional
        By default tab, comma or semicolon, whichever comes first in that order in the first line, otherwise blanks.
        ``" "`` stands for runs of blanks and tabs. Fields may stand in double quotes as in RFC 4180, on one line,
        except between tabs or blanks.
    header : bool, optional
        Whether the first line names the columns. By default it does where both ids are well-known names of columns
        ("user", "item", "song_id", ..) and no number is beside them, which is a warning; otherwise it is data, and an
        error if it looks like names: text above a column of integers.

    Examples
    --------
    >>> from io import BytesIO
    >>> pairs = read_pairs(BytesIO(b"user,artist,plays\n7,a1,3\n8,a2,1.5\n"), weight="plays", header=True)
    >>> pairs.queries.tolist(), pairs.items.tolist(), pairs.weights.tolist()
    ([7, 8], ['a1', 'a2'], [3.0, 1.5])
    """
    wanted = _check_columns(columns, weight, header)
    check_delimiter(delimiter)
    problems = Problems(on_error)
    with open_source(path, max_line) as source:
        lines = source.lines()
        layout = _layout(header_line(source, lines), wanted, delimiter) if header else None
        parser = _Parser(wanted, delimiter, header, layout)
        rows = [row for row in parse_lines(source, lines, problems, parser.parse) if row is not None]
    if parser.names is not None:
        warn_of_header(*parser.names)
    elif header is None and (error := parser.header_error(rows)) is not None:
        problems.add(error)
        rows = rows[1:]
    return Pairs(
        as_ids([row[0] for row in rows]),
        as_ids([row[1] for row in rows]),
        None if weight is None else np.array([row[2] for row in rows], dtype=np.float64),
        problems.report(),
    )


@dataclass(frozen=True)
class _Layout:
    """What the first line settles: how to cut, how many fields, which of them are wanted."""

    splitter: Splitter
    width: int
    indices: tuple[int, ...]


class _Parser:
    """Turns lines into rows; the first line it sees settles the layout unless a header did."""

    def __init__(
        self, wanted: tuple[Column, ...], delimiter: str | None, header: bool | None, layout: _Layout | None
    ) -> None:
        self._wanted, self._delimiter, self._header = wanted, delimiter, header
        self._layout = layout
        self._first: Line | None = None
        self.names: tuple[Line, Sequence[str]] | None = None
        """The first line, where it was recognized to name the columns, and what it calls those of the ids."""

    def parse(self, line: Line) -> tuple[str, str, float] | None:
        """Return the query, the item and the weight (0 where none is wanted); None of a line that names the columns."""
        if self._layout is None:
            self._layout = _layout(line, self._wanted, self._delimiter)
            if self._header is None and self._is_header(line, self._layout):
                return None
        layout = self._layout
        fields = layout.splitter.split(line, layout.width)
        query, item, *weights = (fields[index] for index in layout.indices)
        layout.splitter.check_id(line, layout.indices[0], query)
        layout.splitter.check_id(line, layout.indices[1], item)
        weight = 0.0
        for text in weights:
            value = number(text)
            if value is None:
                hint = f" ({IF_HEADER})" if self._first is None and self._header is None and self.names is None else ""
                raise layout.splitter.fault(line, layout.indices[2], f"a finite weight{hint}", repr(text))
            weight = value
        if self._first is None:
            self._first = line
        return query, item, weight

    def _is_header(self, line: Line, layout: _Layout) -> bool:
        fields = layout.splitter.split(line)
        ids = [fields[index] for index in layout.indices[:2]]
        if name_columns(ids, [text for index, text in enumerate(fields) if index not in layout.indices[:2]]):
            self.names = (line, ids)
        return self.names is not None

    def header_error(self, rows: Sequence[tuple[str, str, float]]) -> DataError | None:
        """Return an error if the first row holds text above a column of integers."""
        if self._first is None or self._layout is None or len(rows) < 2:
            return None
        queries, items = [row[0] for row in rows], [row[1] for row in rows]
        for index, (head, *rest) in zip(self._layout.indices, (queries, items), strict=False):
            if not is_plain_integer(head) and as_ids(rest).dtype.kind == "i":
                expected = f"an integer id as in all other lines ({IF_HEADER})"
                return self._layout.splitter.fault(self._first, index, expected, repr(head))
        return None


def _layout(line: Line, wanted: tuple[Column, ...], delimiter: str | None) -> _Layout:
    splitter = Splitter.of(delimiter, line)
    names = splitter.split(line)
    indices = tuple(_index(line, splitter, names, column) for column in wanted)
    return _Layout(splitter, len(names), indices)


def _index(line: Line, splitter: Splitter, names: list[str], column: Column) -> int:
    if isinstance(column, int):
        if column >= len(names):
            raise line.fault(len(line.text), f"at least {column + 1} fields", f"{len(names)}")
        return column
    if names.count(column) != 1:
        raise line.fault(0, f"one column called {column!r}", f"the columns {', '.join(map(repr, names))}")
    return names.index(column)


def _check_columns(columns: tuple[Column, ...], weight: Column | None, header: bool | None) -> tuple[Column, ...]:
    """Return the columns to read."""
    if len(columns) != 2:
        raise ValueError(f"columns: expected two, the query's and the item's, found {columns!r}")
    wanted = tuple(columns) if weight is None else (*columns, weight)
    for argument, column in zip(("columns[0]", "columns[1]", "weight"), wanted, strict=False):
        if isinstance(column, int):
            if column < 0:
                raise ValueError(f"{argument}: expected an index >= 0 or a name, found {column}")
        elif not header:
            raise ValueError(f"{argument}: expected an index, or header=True so that names exist, found {column!r}")
    return wanted
