"""Rows with tags, as people keep them: CSV and TSV, JSON lines, Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TypeAlias

from slatewise.data._delimited import check_delimiter, check_id, guess_delimiter, splitter_for
from slatewise.data._lines import Line, header_line, parse_lines
from slatewise.data._source import MAX_LINE, OnError, PathOrFile, Problems, is_table, open_source
from slatewise.data._tag_columns import Columns, TaggedRow, Wanted, tag_fault, tagged_rows
from slatewise.data._tag_json import JsonRows
from slatewise.data._tokens import number
from slatewise.data.records import MultiLabel

Names: TypeAlias = "str | Sequence[str] | None"
_FLAGS = {"0": False, "1": True, "false": False, "true": True, "False": False, "True": True}


def read_tags(
    path: PathOrFile,
    *,
    labels: Names = None,
    tags: str | None = None,
    separator: str | None = None,
    id: str | None = None,
    features: Names = None,
    label_names: Sequence[str] | None = None,
    require_labels: bool = True,
    delimiter: str | None = None,
    on_error: OnError = "raise",
    max_line: int = MAX_LINE,
) -> MultiLabel:
    r"""Read rows of features with tags: CSV or TSV, JSON lines, Parquet or Arrow, told apart by their content.

    CSV and TSV have a line that names the columns. Labels are columns of 0 and 1 (or true and false), or one column of
    tags. All other columns are features, finite numbers. JSON lines are objects with ``features``, a list of numbers or
    an object of name and number, what is left out being 0; ``tags``, a list of texts; and ``id``, a text or a whole
    number, in every row or in none.

    Parameters
    ----------
    path : str, path or binary file
        Text may be plain, gzip or xz.
    labels : str or list of str, optional
        The columns of labels: what their names start with, which is no part of the label's name; or their names.
    tags : str, optional
        The column of tags instead: lists of texts in a Parquet file, else one text, cut at ``separator``; an empty one
        is a row without tags. Of JSON lines, the key, by default "tags".
    separator : str, optional
        What stands between two tags of a text, as ``"|"``; needed with one column of texts.
    id : str, optional
        The column of row ids, each once. Of JSON lines, the key, by default "id".
    features : str or list of str, optional
        The columns of features: what their names start with, or their names; other columns are left out then. Of
        JSON lines, all names that there may be, in the order of X.
    label_names : list of str, optional
        The labels that there are, in the order of Y: other tags are an error. Default: the columns, or the tags that
        occur, in alphabetical order.
    require_labels : bool
        Whether labels must be there; else a file may lack them.
    delimiter : {"\\t", ",", ";", "|", " "}, optional
        Of CSV and TSV; by default tab, comma or semicolon, whichever comes first in that order in the first line.
        Fields may stand in double quotes as in RFC 4180, on one line, except between tabs or blanks.
    on_error : {"raise", "skip"}
        Whether a bad line stops the reading, or is left out and counted in ``skipped``. A bad header always stops it.
    max_line : int
        Most bytes a line may have; a longer one stops the reading, whatever ``on_error`` says.

    Raises
    ------
    DataError
        At the first bad line, with file:line:column (of a Parquet file, the column and the row from 0) and what was
        expected.

    Examples
    --------
    >>> from io import BytesIO
    >>> text = b"photo,blue,tags\na.jpg,0.9,sky|sea\nb.jpg,0.1,\n"
    >>> rows = read_tags(BytesIO(text), tags="tags", separator="|", id="photo")
    >>> rows.X.tolist(), rows.Y.toarray().tolist(), rows.label_names.tolist(), rows.ids.tolist()
    ([[0.9], [0.1]], [[1, 1], [0, 0]], ['sea', 'sky'], ['a.jpg', 'b.jpg'])
    >>> read_tags(BytesIO(b"blue,is:sea,is:sky\n0.9,1,0\n"), labels="is:").label_names.tolist()
    ['sea', 'sky']
    >>> read_tags(BytesIO(b'{"features": {"blue": 0.9}, "tags": ["sky"]}\n')).feature_names.tolist()
    ['blue']
    """
    wanted = Wanted(
        _names(labels),
        tags,
        separator,
        id,
        _names(features),
        None if label_names is None else tuple(label_names),
        require_labels,
    )
    check_delimiter(delimiter)
    problems = Problems(on_error)
    if is_table(path):
        from slatewise.data._tag_table import read_tag_table  # pyarrow, which need not be there

        if on_error != "raise":
            raise ValueError("on_error: expected 'raise' with a Parquet or Arrow file, found 'skip'")
        return read_tag_table(path, wanted)
    with open_source(path, max_line) as source:
        lines = source.lines()
        first = header_line(source, lines, "a line that names the columns, or a JSON object")
        if first.text.lstrip(" \t").startswith("{"):
            parser = JsonRows(first, wanted)
            lines = chain([(first.number, first.text.encode())], lines)
        else:
            parser = _TextRows(first, wanted, delimiter)
        rows = list(parse_lines(source, lines, problems, parser.parse))
    return tagged_rows(rows, parser.label_names, parser.feature_names, problems.report())


class _TextRows:
    """Turns lines below a header into rows."""

    def __init__(self, header: Line, wanted: Wanted, delimiter: str | None) -> None:
        self._splitter = splitter_for(delimiter or guess_delimiter(header.text) or ",")
        names = self._splitter.split(header)
        columns = Columns.among(names, wanted, lambda expected, found: header.fault(0, expected, found))
        if columns.tags is not None and wanted.separator is None:
            raise ValueError(
                f"separator: expected what stands between two tags in {columns.tags!r}, as '|', found None"
            )
        self._wanted, self._width = wanted, len(names)
        places = {name: index for index, name in enumerate(names)}
        self._labels = [(places[column], label) for column, label in columns.labels.items()]
        self._tags = None if columns.tags is None else places[columns.tags]
        self._id = None if columns.id is None else places[columns.id]
        self._features = [places[column] for column in columns.features]
        self._seen: set[str] = set()
        self.label_names = [label for _, label in self._labels] or wanted.label_names
        self.feature_names = columns.features

    def parse(self, line: Line) -> TaggedRow:
        """Return the row of a line."""
        fields = self._splitter.split(line)
        if len(fields) != self._width:
            offset = self._splitter.offset(line, self._width)
            raise line.fault(offset, f"{self._width} fields as in the first line", f"{len(fields)}")
        features: list[float] = []
        for index in self._features:
            value = number(fields[index])
            if value is None:
                expected = "a finite number (features names the columns that are features)"
                raise line.fault(self._splitter.offset(line, index), expected, repr(fields[index]))
            features.append(value)
        return TaggedRow(features, self._row_tags(line, fields), self._row_id(line, fields))

    def _row_tags(self, line: Line, fields: list[str]) -> list[str]:
        found: dict[str, None] = {}
        for index, label in self._labels:
            flag = _FLAGS.get(fields[index])
            if flag is None:
                raise line.fault(self._splitter.offset(line, index), "a label, 0 or 1", repr(fields[index]))
            if flag:
                found[label] = None
        if self._tags is not None and fields[self._tags]:
            for tag in fields[self._tags].split(self._wanted.separator):
                wrong = tag_fault(tag, found, self._wanted)
                if wrong is not None:
                    raise line.fault(self._splitter.offset(line, self._tags), *wrong)
                found[tag] = None
        return list(found)

    def _row_id(self, line: Line, fields: list[str]) -> str | None:
        if self._id is None:
            return None
        name = fields[self._id]
        check_id(self._splitter, line, self._id, name)
        if name in self._seen:
            raise line.fault(self._splitter.offset(line, self._id), "every id once", f"{name!r} again")
        self._seen.add(name)
        return name


def _names(names: Names) -> str | tuple[str, ...] | None:
    return names if names is None or isinstance(names, str) else tuple(names)
