"""Rows with tags, as people keep them: CSV and TSV, JSON lines, Parquet and Arrow."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import isfinite
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from slatewise.core.arrays import Floats
from slatewise.core.errors import DataError, Skipped
from slatewise.core.rules import short_repr
from slatewise.data.fields import Splitter, as_ids, check_delimiter, number
from slatewise.data.reading import (
    MAX_LINE,
    Line,
    OnError,
    PathOrFile,
    Problems,
    header_line,
    is_table,
    open_source,
    parse_lines,
)
from slatewise.data.records import MultiLabel, Strings

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
    r"""Read rows of features with tags: CSV or TSV, JSON lines, Parquet or Arrow; the content decides which.

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
        from slatewise.data.tag_table import read_tag_table  # pyarrow, which need not be there

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
        self._splitter = Splitter.of(delimiter, header, default=",")
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
        fields = self._splitter.split(line, self._width)
        features: list[float] = []
        for index in self._features:
            value = number(fields[index])
            if value is None:
                expected = "a finite number (features names the columns that are features)"
                raise self._splitter.fault(line, index, expected, repr(fields[index]))
            features.append(value)
        return TaggedRow(features, self._row_tags(line, fields), self._row_id(line, fields))

    def _row_tags(self, line: Line, fields: list[str]) -> list[str]:
        found: dict[str, None] = {}
        for index, label in self._labels:
            flag = _FLAGS.get(fields[index])
            if flag is None:
                raise self._splitter.fault(line, index, "a label, 0 or 1", repr(fields[index]))
            if flag:
                found[label] = None
        if self._tags is not None and fields[self._tags]:
            for tag in fields[self._tags].split(self._wanted.separator):
                wrong = tag_fault(tag, found, self._wanted)
                if wrong is not None:
                    raise self._splitter.fault(line, self._tags, *wrong)
                found[tag] = None
        return list(found)

    def _row_id(self, line: Line, fields: list[str]) -> str | None:
        if self._id is None:
            return None
        name = fields[self._id]
        self._splitter.check_id(line, self._id, name)
        if name in self._seen:
            raise self._splitter.fault(line, self._id, "every id once", f"{name!r} again")
        self._seen.add(name)
        return name


def _names(names: Names) -> str | tuple[str, ...] | None:
    return names if names is None or isinstance(names, str) else tuple(names)


Fault: TypeAlias = "Callable[[str, str], DataError]"
"""Of what was expected and what was found, at the place of the names of columns."""


@dataclass(frozen=True)
class Wanted:
    """What the caller says of a file of tagged rows; see :func:`slatewise.data.read_tags`."""

    labels: str | tuple[str, ...] | None
    tags: str | None
    separator: str | None
    id: str | None
    features: str | tuple[str, ...] | None
    label_names: tuple[str, ...] | None
    require_labels: bool

    def __post_init__(self) -> None:
        if self.labels is not None and self.tags is not None:
            raise ValueError("labels, tags: expected one of them, found both")
        if self.separator == "":
            raise ValueError("separator: expected a text that is not empty, found ''")
        for argument, names in (
            ("labels", self.labels),
            ("features", self.features),
            ("label_names", self.label_names),
        ):
            if names is not None and (not names or (not isinstance(names, str) and len(set(names)) < len(names))):
                expected = "names, each once" if argument == "label_names" else "a prefix, or names, each once"
                raise ValueError(f"{argument}: expected {expected}, found {short_repr(names)}")

    @cached_property
    def known_labels(self) -> frozenset[str]:
        """The labels that may occur, if the caller lists them."""
        return frozenset(self.label_names or ())


@dataclass(frozen=True)
class Columns:
    """Names of columns by what they serve as."""

    labels: dict[str, str]
    """Label by column."""
    tags: str | None
    id: str | None
    features: list[str]

    @classmethod
    def among(cls, names: Sequence[str], wanted: Wanted, fault: Fault) -> Columns:
        """Find the columns of a table that has these."""
        for name in names:
            if not name or name != name.strip(" \t"):
                raise fault("names of columns, not empty and without blanks around them", repr(name))
        if len(set(names)) < len(names):
            raise fault("every column name once", f"{first_again(names)!r} again")
        if wanted.labels is None and wanted.tags is None and wanted.require_labels:
            raise fault("labels or tags to say where a table has its labels, or a JSON object", _listed(names))
        labels = _label_columns(names, wanted, fault)
        tags = wanted.tags
        if tags is not None and tags not in names and not wanted.require_labels:
            tags = None
        own = [name for name in (*labels, tags, wanted.id) if name is not None]
        _require(names, own, fault)
        features = _feature_columns(names, own, wanted, fault)
        served = [*own, *features]
        if len(set(served)) < len(served):
            raise fault("every column to serve as one thing", f"{first_again(served)!r} as two")
        return cls(labels, tags, wanted.id, features)


def _label_columns(names: Sequence[str], wanted: Wanted, fault: Fault) -> dict[str, str]:
    if wanted.labels is None:
        return {}
    if isinstance(wanted.labels, str):
        prefix = wanted.labels
        labels = {name: name.removeprefix(prefix) for name in names if name.startswith(prefix)}
        if "" in labels.values():
            raise fault(f"a label's name after {prefix!r}", repr(prefix))
        if not labels and wanted.require_labels:
            raise fault(f"columns whose names start with {prefix!r}", _listed(names))
    else:
        labels = {name: name for name in wanted.labels}
        if not wanted.require_labels and not set(labels) & set(names):
            return {}
        _require(names, labels, fault)
    if labels and wanted.label_names is not None:
        column = {label: name for name, label in labels.items()}
        if set(column) != set(wanted.label_names):
            raise fault(f"columns of the labels {_listed(wanted.label_names)}", f"those of {_listed(list(column))}")
        labels = {column[label]: label for label in wanted.label_names}
    return labels


def _feature_columns(names: Sequence[str], own: Sequence[str], wanted: Wanted, fault: Fault) -> list[str]:
    taken = set(own)
    if wanted.features is None:
        features = [name for name in names if name not in taken]
    elif isinstance(wanted.features, str):
        features = [name for name in names if name.startswith(wanted.features) and name not in taken]
    else:
        features = list(wanted.features)
        _require(names, features, fault)
    if not features:
        raise fault("at least one column of features", f"none in {_listed(names)}")
    return features


def _require(names: Sequence[str], wanted: Iterable[str], fault: Fault) -> None:
    present = set(names)
    for name in wanted:
        if name not in present:
            raise fault(f"a column called {name!r}", _listed(names))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def first_again(names: Iterable[str]) -> str | None:
    """Return the first name that comes a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def tag_fault(name: object, before: Container[str], wanted: Wanted) -> tuple[str, str] | None:
    """Return what is wrong with a tag that comes after others of its row, None where nothing is."""
    if not isinstance(name, str) or not name or name != name.strip():
        return "a tag, not empty and without blanks around it", repr(name)
    if name in before:
        return "every tag once per row", f"{name!r} again"
    if wanted.label_names is not None and name not in wanted.known_labels:
        return "a tag that is known", repr(name)
    return None


@dataclass(frozen=True)
class TaggedRow:
    """One row: its features by place or by name, its tags, and its id where there is one."""

    features: list[float] | dict[str, float]
    tags: list[str]
    id: str | None


def tagged_rows(
    rows: Sequence[TaggedRow],
    label_names: Sequence[str] | None,
    feature_names: Sequence[str] | None,
    skipped: Skipped,
) -> MultiLabel:
    """Put rows together; without ``label_names`` the labels are the tags that occur, in order."""
    names = sorted({tag for row in rows for tag in row.tags}) if label_names is None else list(label_names)
    ids = None if not rows or rows[0].id is None else as_ids([row.id or "" for row in rows])
    X, columns = _features(rows, feature_names)
    return MultiLabel(
        X,
        label_matrix([row.tags for row in rows], names),
        np.array(names, dtype=np.str_),
        columns,
        skipped=skipped,
        ids=ids,
    )


def label_matrix(tags: Sequence[Sequence[str]], names: Sequence[str]) -> csr_array:
    """Return (rows, names) with a 1 for every tag of a row."""
    places = {name: place for place, name in enumerate(names)}
    indices = [place for row in tags for place in sorted(places[tag] for tag in row)]
    indptr = np.cumsum([0, *map(len, tags)], dtype=np.int64)
    ones = np.ones(len(indices), dtype=np.int8)
    return csr_array((ones, np.array(indices, dtype=np.int64), indptr), shape=(len(tags), len(names)))


def _features(
    rows: Sequence[TaggedRow], feature_names: Sequence[str] | None
) -> tuple[csr_array | Floats, Strings | None]:
    named = [row.features for row in rows if isinstance(row.features, dict)]
    names = sorted({name for row in named for name in row}) if named and feature_names is None else feature_names
    columns = None if names is None else np.array(names, dtype=np.str_)
    if named and names is not None:
        places = {name: place for place, name in enumerate(names)}
        entries = [sorted((places[name], value) for name, value in row.items()) for row in named]
        indices = np.array([place for row in entries for place, _ in row], dtype=np.int64)
        values = np.array([value for row in entries for _, value in row], dtype=np.float64)
        indptr = np.cumsum([0, *map(len, entries)], dtype=np.int64)
        return csr_array((values, indices, indptr), shape=(len(rows), len(names))), columns
    width = len(rows[0].features) if rows else len(names or ())
    return np.array([row.features for row in rows], dtype=np.float64).reshape(len(rows), width), columns


_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")
_BLANKS = re.compile(r"[ \t]*")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_FEATURES = "features"


class JsonRows:
    """Turns lines into rows; the first good one settles how many features there are, and whether rows have ids."""

    def __init__(self, first: Line, wanted: Wanted) -> None:
        if wanted.labels is not None or wanted.separator is not None or isinstance(wanted.features, str):
            expected = "a line that names columns (labels, separator and a prefix of features are for tables)"
            raise first.fault(0, expected, repr(first.text))
        self._wanted = wanted
        self.label_names, self.feature_names = wanted.label_names, wanted.features
        self._tags, self._id = wanted.tags or "tags", wanted.id or "id"
        self._known = None if self.feature_names is None else frozenset(self.feature_names)
        self._first: TaggedRow | None = None
        self._seen: set[str] = set()

    def parse(self, line: Line) -> TaggedRow:
        """Read one object."""
        text = _Text(line)
        features: list[float] | dict[str, float] | None = None
        tags: list[str] | None = None
        name: str | None = None
        places: dict[str, int] = {}
        for key in text.items("{", "}"):
            at = text.at
            if key in places:
                raise text.fault("every key once", f"{key!r} again", text.key_at)
            places[key] = at
            if key == _FEATURES:
                features = self._features(text)
            elif key == self._tags:
                tags = self._names(text)
            elif key == self._id:
                name = _id(text)
            else:
                expected = f"no other keys than {_FEATURES!r}, {self._tags!r} and {self._id!r}"
                raise text.fault(expected, repr(key), text.key_at)
        text.end()
        if features is None:
            raise text.fault(f"the key {_FEATURES!r}", "none")
        if tags is None and self._wanted.require_labels:
            raise text.fault(f"the key {self._tags!r}, a list of names", "none")
        row = TaggedRow(features, tags or [], name)
        self._compare(text, row, places)
        return row

    def _features(self, text: _Text) -> list[float] | dict[str, float]:
        if text.peek() != "{":
            return [text.number() for _ in text.items("[", "]")]
        found: dict[str, float] = {}
        for name in text.items("{", "}"):
            if not name or name in found or (self._known is not None and name not in self._known):
                expected = "every feature once, by a name that is not empty" + " and known" * (self._known is not None)
                raise text.fault(expected, repr(name), text.key_at)
            found[name] = text.number()
        return found

    def _names(self, text: _Text) -> list[str]:
        names: dict[str, None] = {}
        for _ in text.items("[", "]"):
            at, name = text.at, text.string()
            wrong = tag_fault(name, names, self._wanted)
            if wrong is not None:
                raise text.fault(*wrong, at)
            names[name] = None
        return list(names)

    def _compare(self, text: _Text, row: TaggedRow, places: dict[str, int]) -> None:
        """Raise DataError unless the row is like those before it; remember it where it is."""
        first = self._first or row
        if isinstance(row.features, dict) != isinstance(first.features, dict):
            raise text.fault("features all by place, or all by name", "both", places[_FEATURES])
        width = len(first.features if self.feature_names is None else self.feature_names)
        if isinstance(row.features, list) and len(row.features) != width:
            raise text.fault(f"{width} features", f"{len(row.features)}", places[_FEATURES])
        if (row.id is None) != (first.id is None) or (row.id is None and self._wanted.id is not None):
            raise text.fault(f"the key {self._id!r} in every row, or in none", "both" if self._first else "none")
        if row.id is not None and row.id in self._seen:
            raise text.fault("every id once", f"{row.id!r} again", places[self._id])
        self._seen.add(row.id or "")
        self._first = first


def _id(text: _Text) -> str:
    at = text.at
    if text.peek() == '"':
        name = text.string()
        if not name or name != name.strip():
            raise text.fault("an id, not empty and without blanks around it", repr(name), at)
        return name
    return text.token(_WHOLE, "an id: a text or a whole number")


class _Text:
    """One line, read from left to right."""

    def __init__(self, line: Line) -> None:
        self._line, self._text = line, line.text
        self.at = 0
        self.key_at = 0
        self._skip()

    def fault(self, expected: str, found: str, at: int | None = None) -> DataError:
        """Return the error for what stands at ``at``, by default here."""
        return self._line.fault(self.at if at is None else at, expected, found)

    def peek(self) -> str:
        return self._text[self.at : self.at + 1]

    def items(self, start: str, end: str) -> Iterator[str]:
        """Walk an array or an object: yield the key, "" in an array, and stand at the value."""
        self.take(start)
        while self.peek() != end:
            key = ""
            if end == "}":
                self.key_at = self.at
                key = self.string()
                self.take(":")
            yield key
            if self.peek() not in (",", end):
                raise self.fault(f"',' or {end!r}", self._rest())
            if self.peek() == ",":
                self.take(",")
                if self.peek() == end:
                    raise self.fault("something after ','", self._rest())
        self.take(end)

    def take(self, expected: str) -> None:
        if self.peek() != expected:
            raise self.fault(repr(expected), self._rest())
        self.at += 1
        self._skip()

    def string(self) -> str:
        at = self.at
        value: str = json.loads(self.token(_STRING, "a text in double quotes"))
        if _UNSAFE.search(value):
            raise self.fault("printable text", repr(value), at)
        return value

    def number(self) -> float:
        at = self.at
        token = self.token(_NUMBER, "a number")
        value = float(token)
        if not isfinite(value):
            raise self.fault("a finite number", token, at)
        return value

    def token(self, pattern: re.Pattern[str], expected: str) -> str:
        match = pattern.match(self._text, self.at)
        if match is None:
            raise self.fault(expected, self._rest())
        self.at = match.end()
        self._skip()
        return match[0]

    def end(self) -> None:
        if self.at < len(self._text):
            raise self.fault("the end of the line after an object", self._rest())

    def _skip(self) -> None:
        blanks = _BLANKS.match(self._text, self.at)
        self.at = blanks.end() if blanks else self.at

    def _rest(self) -> str:
        return repr(self._text[self.at :]) if self.at < len(self._text) else "the end of the line"
