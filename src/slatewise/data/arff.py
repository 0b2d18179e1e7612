"""Multi-label ARFF files as Mulan and MEKA write them: some of the attributes are labels, 0 or 1.

Understood: numeric, real, integer and nominal attributes; dense rows ``v, v, ...`` and sparse rows ``{i v, ...}`` with
indices from 0; names and values in single or double quotes, with a backslash before a quote, backslash or ``%`` inside;
``%`` comments; keywords in any case. Refused: string, date and relational attributes, and missing values.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from xml.etree import ElementTree

import numpy as np
from scipy.sparse import csr_array

from slatewise.core.errors import DataError
from slatewise.data.fields import number, whole
from slatewise.data.reading import (
    MAX_LINE,
    Line,
    OnError,
    PathOrFile,
    Problems,
    RawLines,
    Source,
    clean_line,
    open_source,
    parse_lines,
    text_reader,
)
from slatewise.data.records import MultiLabel

Labels: TypeAlias = "int | str | os.PathLike[str] | Sequence[str] | None"
MEKA = "-C"
"""Stands for what the relation's name says."""
_ENTRY = re.compile(r"[ \t]*([0-9]+)[ \t]+(?=[^ \t])")


@text_reader
def read_arff(
    path: PathOrFile, *, labels: Labels = MEKA, on_error: OnError = "raise", max_line: int = MAX_LINE
) -> MultiLabel:
    r"""Read a multi-label ARFF file.

    A nominal value is stored as its number if all values of the attribute are numbers, otherwise as its place in the
    attribute's list. What a sparse row leaves out is 0, or the first value of a nominal attribute. X is dense where
    all rows are, otherwise CSR.

    Parameters
    ----------
    labels : int, list of str, str, path or None
        Which attributes are labels: the last n, the first n (as -n), those of these names in this order, those named
        in this Mulan XML file, or none of them. By default "-C": as MEKA's option of that name in the relation's name
        says, ``-C 6`` the first six, ``-C -6`` the last six.

    Examples
    --------
    >>> from io import BytesIO
    >>> text = b"@relation r\n@attribute size real\n@attribute sea {0,1}\n@data\n0.5,1\n{0 2}\n"
    >>> data = read_arff(BytesIO(text), labels=1)
    >>> data.X.toarray().tolist(), data.Y.toarray().tolist(), data.label_names.tolist()
    ([[0.5], [2.0]], [[1], [0]], ['sea'])
    """
    problems = Problems(on_error)
    wanted = _wanted(labels)
    with open_source(path, max_line) as source:
        lines = source.lines()
        header = read_header(source, lines)
        label_columns = _label_columns(header, _by_relation(header) if wanted is None else wanted)
        parser = _Parser(_domains(header, label_columns))
        rows = [row for row in parse_lines(source, lines, problems, parser.parse) if row is not None]
    names = np.array(header.names, dtype=np.str_)
    values = _matrix(rows, len(names))
    feature_columns = np.setdiff1d(np.arange(len(names)), label_columns)
    Y = csr_array(values[:, label_columns]).astype(np.int8)
    return MultiLabel(
        values[:, feature_columns], Y, names[label_columns], names[feature_columns], skipped=problems.report()
    )


@dataclass(frozen=True)
class _Row:
    """Values by column; ``columns`` is None in a dense row."""

    columns: list[int] | None
    values: list[float]


class _Parser:
    """Turns a line of the data part into a row, None where the line is a comment."""

    def __init__(self, domains: list[Domain]) -> None:
        self._domains = domains
        self._filled = {column: domain.default for column, domain in enumerate(domains) if domain.default}

    def parse(self, line: Line) -> _Row | None:
        """Read a dense or a sparse row."""
        text = without_comment(line.text).rstrip(" \t")
        start = len(text) - len(text.lstrip(" \t"))
        if not text:
            return None
        return self._sparse(line, text, start) if text[start] == "{" else self._dense(line, text)

    def _dense(self, line: Line, text: str) -> _Row:
        found = pieces(line, text, 0)
        if len(found) != len(self._domains):
            offset = found[len(self._domains)][0] if len(found) > len(self._domains) else len(text)
            raise line.fault(offset, f"{len(self._domains)} values, one an attribute", f"{len(found)}")
        return _Row(None, [_value(line, at, piece, d) for (at, piece), d in zip(found, self._domains, strict=True)])

    def _sparse(self, line: Line, text: str, start: int) -> _Row:
        if text[-1] != "}":
            raise line.fault(start, "a sparse row that ends with '}'", repr(text[start:]))
        body = text[:-1]
        entries = dict(self._filled)
        last = -1
        for offset, piece in pieces(line, body, start + 1) if body[start + 1 :].strip(" \t") else []:
            entry = _ENTRY.match(piece)
            column = whole(entry[1]) if entry else None
            if entry is None or column is None or not last < column < len(self._domains):
                at = offset + len(piece) - len(piece.lstrip(" \t"))
                expected = f"an index from {last + 1} to {len(self._domains) - 1}, a blank and a value"
                raise line.fault(at, expected, repr(piece.strip(" \t")))
            entries[column] = _value(line, offset + entry.end(), piece[entry.end() :], self._domains[column])
            last = column
        columns = sorted(entries)
        return _Row(columns, [entries[column] for column in columns])


@dataclass(frozen=True)
class _ZeroOne:
    """A label's column: the domain it was declared with, narrowed to 0 and 1."""

    declared: Domain
    expected: str = "a label, 0 or 1"

    @property
    def default(self) -> float:
        return self.declared.default

    def bare(self, text: str) -> float | None:
        return _if_zero_one(self.declared.bare(text))

    def quoted(self, text: str) -> float | None:
        return _if_zero_one(self.declared.quoted(text))


def _if_zero_one(value: float | None) -> float | None:
    return value if value in (0.0, 1.0) else None


def _value(line: Line, offset: int, piece: str, domain: Domain) -> float:
    value = domain.bare(piece.strip(" \t"))
    if value is not None:  # nearly always: quotes and faults take the slow way
        return value
    offset, text, in_quotes = word(line, offset, piece)
    if text == "?" and not in_quotes:
        raise line.fault(offset, f"{domain.expected} (missing values are not understood)", "'?'")
    value = domain.quoted(text) if in_quotes else domain.bare(text)
    if value is None:
        raise line.fault(offset, domain.expected, repr(text))
    return value


def _matrix(rows: list[_Row], n_columns: int) -> csr_array | np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    if all(row.columns is None for row in rows):
        return np.array([row.values for row in rows], dtype=np.float64).reshape(len(rows), n_columns)
    every = list(range(n_columns))
    columns = [every if row.columns is None else row.columns for row in rows]
    indices = np.fromiter((column for row in columns for column in row), dtype=np.int64)
    values = np.fromiter((value for row in rows for value in row.values), dtype=np.float64)
    indptr = np.cumsum([0, *map(len, columns)], dtype=np.int64)
    matrix = csr_array((values, indices, indptr), shape=(len(rows), n_columns))
    matrix.eliminate_zeros()
    return matrix


def _domains(header: Header, label_columns: list[int]) -> list[Domain]:
    domains: list[Domain] = [attribute.domain for attribute in header.attributes]
    for column in label_columns:
        label = header.attributes[column]
        if not label.zero_one:
            raise label.declared.fault(0, "a label with the values 0 and 1", f"attribute {label.name!r}")
        domains[column] = _ZeroOne(label.domain)
    return domains


def _label_columns(header: Header, wanted: int | list[str]) -> list[int]:
    places = {name: column for column, name in enumerate(header.names)}
    n_labels = abs(wanted) if isinstance(wanted, int) else len(wanted)
    if n_labels >= len(places):
        raise header.end.fault(0, f"more than {n_labels} attributes, for labels={wanted}", f"{len(places)}")
    if isinstance(wanted, int):
        columns = list(places.values())
        return columns[-wanted:] if wanted > 0 else columns[:-wanted]
    for name in wanted:
        if name not in places:
            raise header.end.fault(0, f"an attribute for the label {name!r}", "none of that name")
    return [places[name] for name in wanted]


def labels_in_relation(path: PathOrFile) -> bool:
    """Tell whether the relation's name says which attributes are labels."""
    with open_source(path) as source:
        return read_header(source, source.lines()).n_labels is not None


def _by_relation(header: Header) -> int:
    """Return MEKA's number as ``labels`` has it, where the first are negative."""
    n_labels = header.n_labels
    if not n_labels:
        found = repr(header.relation)
        raise header.declared.fault(
            0, "a relation's name with -C and a number of labels, or labels to say which", found
        )
    return -n_labels


def _wanted(labels: Labels) -> int | list[str] | None:
    """Return a count, names, or None for what the relation's name says."""
    if labels is None:
        return []
    if isinstance(labels, str) and labels == MEKA:
        return None
    wanted = labels if isinstance(labels, int) else _names(labels)
    if not wanted or (isinstance(wanted, list) and len(set(wanted)) != len(wanted)):
        raise ValueError(f"labels: expected a count that is not 0, or names, each once, found {wanted}")
    return wanted


def _names(labels: str | os.PathLike[str] | Sequence[str]) -> list[str]:
    """Resolve names, or the path of a Mulan XML file: ``<labels><label name="..."/>...</labels>``."""
    if not isinstance(labels, str | os.PathLike):
        return list(labels)
    with open_source(labels) as source:
        content = b"".join(source.chunks())
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        line, column = error.position
        raise DataError(source.name, line, column + 1, "well-formed XML", str(error)) from None
    elements = [element for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
    names = [element.get("name", "") for element in elements]
    if not names or "" in names:
        raise DataError(source.name, 1, 1, "<label name='...'> elements, each with a name", f"{len(names)} elements")
    return names


_QUOTED = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\""""
_BARE = r"""[^ \t,{}%'"]+"""
_WORD = re.compile(rf"{_QUOTED}|{_BARE}")
_BARE_WORD = re.compile(_BARE)
_PIECE = re.compile(rf"""(?:{_QUOTED}|[^,'"])*+""")
_BEFORE_COMMENT = re.compile(rf"""(?:{_QUOTED}|[^%])*+""")
_ESCAPE = re.compile(r"\\(.)")
_KEYWORD = re.compile(r"@[A-Za-z]+")
_MEKA = re.compile(r"(?:^|[ \t:])-C[ \t]+(-?[0-9]{1,9})(?=[ \t]|$)")
_NUMERIC = frozenset({"numeric", "real", "integer"})


class Domain(Protocol):
    """What a column may hold, and the number each value is stored as."""

    @property
    def expected(self) -> str:
        """What a message calls a good value."""
        ...

    @property
    def default(self) -> float:
        """What a sparse row means by leaving the column out."""
        ...

    def bare(self, text: str) -> float | None:
        """Return the number of a value written without quotes, None if it is no value."""
        ...

    def quoted(self, text: str) -> float | None:
        """Return the number of a value written in quotes, None if it is no value."""
        ...


@dataclass(frozen=True)
class Numeric:
    """Any finite number."""

    expected: str = "a finite number"
    default: float = 0.0

    def bare(self, text: str) -> float | None:
        """Return the number."""
        return number(text)

    def quoted(self, text: str) -> float | None:
        """Return the number: quotes change nothing."""
        return number(text)


@dataclass(frozen=True)
class Nominal:
    """One of a list of values, stored as its number if all values are numbers, otherwise as its place in the list."""

    codes: Mapping[str, float]
    bare_codes: Mapping[str, float]
    """The values that need no quotes."""
    is_number: bool
    default: float
    expected: str = "one of the attribute's values"

    @classmethod
    def of(cls, values: list[str]) -> Nominal:
        """Number the values."""
        numbers = [number(value) for value in values]
        known = [value for value in numbers if value is not None]
        is_number = len(known) == len(values)
        codes = dict(zip(values, known if is_number else map(float, range(len(values))), strict=True))
        # A bare question mark is a missing value, whatever the list says.
        bare = {text: code for text, code in codes.items() if text != "?" and _BARE_WORD.fullmatch(text)}
        return cls(codes, bare, is_number, codes[values[0]])

    def bare(self, text: str) -> float | None:
        """Return the value's number."""
        return self.bare_codes.get(text)

    def quoted(self, text: str) -> float | None:
        """Return the value's number."""
        return self.codes.get(text)


@dataclass(frozen=True)
class Attribute:
    """One declared column."""

    name: str
    domain: Domain
    zero_one: bool
    """Whether nothing but the numbers 0 and 1 can be meant: a numeric column, or a list of them."""
    declared: Line


@dataclass(frozen=True)
class Header:
    """The declared columns, the line with ``@data``, and what the relation is called, with its line."""

    attributes: list[Attribute]
    end: Line
    relation: str
    declared: Line

    @property
    def names(self) -> list[str]:
        """The attributes' names."""
        return [attribute.name for attribute in self.attributes]

    @property
    def n_labels(self) -> int | None:
        """How many attributes are labels by MEKA's ``-C`` in the relation's name: the first, of -n the last."""
        found = _MEKA.search(self.relation)
        return None if found is None else int(found[1])


def read_header(source: Source, lines: RawLines) -> Header:
    """Read up to and with ``@data``; the lines left are the rows."""
    attributes: dict[str, Attribute] = {}
    has_relation, relation = False, ""
    line = declared = Line(source.name, 1, "")
    for row, raw in lines:
        line = clean_line(source, row, raw)
        text = without_comment(line.text)
        start = len(text) - len(text.lstrip(" \t"))
        if start == len(text):
            continue
        found = _KEYWORD.match(text, start)
        keyword, after = (found[0].lower(), found.end()) if found else ("", start)
        if keyword == "@relation" and not has_relation:
            _, relation, end = _name(line, text, after)
            _nothing_left(line, text, end)
            has_relation, declared = True, line
        elif keyword == "@attribute" and has_relation:
            at, name, end = _name(line, text, after)
            if name in attributes:
                raise line.fault(at, "every attribute once", f"{name!r} again")
            attributes[name] = _attribute(line, text, name, end)
        elif keyword == "@data" and attributes:
            _nothing_left(line, text, after)
            return Header(list(attributes.values()), line, relation, declared)
        else:
            wanted = "@relation" if not has_relation else "@attribute or @data" if attributes else "@attribute"
            raise line.fault(start, wanted, repr(text[start:]))
    raise line.fault(len(line.text), "@data", "the end of the file")


def without_comment(text: str) -> str:
    """Return the text before the first ``%`` outside quotes."""
    if "%" not in text:
        return text
    before = _BEFORE_COMMENT.match(text)
    return before[0] if before else text


def pieces(line: Line, text: str, start: int) -> list[tuple[int, str]]:
    """Cut ``text[start:]`` at commas outside quotes; each piece comes with the offset at which it starts."""
    found: list[tuple[int, str]] = []
    if "'" not in text and '"' not in text:
        for piece in text[start:].split(","):
            found.append((start, piece))
            start += len(piece) + 1
        return found
    while True:
        match = _PIECE.match(text, start)
        end = match.end() if match else start
        if end < len(text) and text[end] != ",":
            raise line.fault(end, "a closing quote on the same line", repr(text[end:]))
        found.append((start, text[start:end]))
        if end == len(text):
            return found
        start = end + 1


def word(line: Line, offset: int, piece: str) -> tuple[int, str, bool]:
    """Read a piece as one word: where it starts, what it says, and whether it stood in quotes."""
    offset += len(piece) - len(piece.lstrip(" \t"))
    text = piece.strip(" \t")
    if not _WORD.fullmatch(text):
        raise line.fault(offset, "one word, or one in quotes", repr(text))
    if text[0] not in "'\"":
        return offset, text, False
    return offset, _unquoted(line, offset, text), True


def _unquoted(line: Line, offset: int, text: str) -> str:
    for escape in _ESCAPE.finditer(text, 1, len(text) - 1):
        if escape[1] not in "'\"\\%":
            raise line.fault(offset + escape.start(), "a backslash before a quote, backslash or %", repr(escape[0]))
    return _ESCAPE.sub(r"\1", text[1:-1])


def _name(line: Line, text: str, position: int) -> tuple[int, str, int]:
    """Read the name after a keyword: where it starts, what it says, where it ends."""
    start = position + len(text[position:]) - len(text[position:].lstrip(" \t"))
    found = _WORD.match(text, start)
    if found is None or start == position:
        raise line.fault(position, "a blank and a name, in quotes unless it is one word", repr(text[position:]))
    _, name, _ = word(line, start, found[0])
    return start, name, found.end()


def _attribute(line: Line, text: str, name: str, end: int) -> Attribute:
    start = end + len(text[end:]) - len(text[end:].lstrip(" \t"))
    kind = text[start:].rstrip(" \t")
    if kind.startswith("{") and kind.endswith("}"):
        nominal = Nominal.of(_values(line, text[: start + len(kind) - 1], start + 1))
        zero_one = nominal.is_number and set(nominal.codes.values()) <= {0.0, 1.0}
        return Attribute(name, nominal, zero_one, line)
    if start == end or kind.lower() not in _NUMERIC:
        raise line.fault(start, "a type: numeric, real, integer or {value, ...}", repr(kind))
    return Attribute(name, Numeric(), True, line)


def _values(line: Line, text: str, start: int) -> list[str]:
    values: dict[str, None] = {}
    for offset, piece in pieces(line, text, start):
        offset, value, _ = word(line, offset, piece)
        if value in values:
            raise line.fault(offset, "every value once", f"{value!r} again")
        values[value] = None
    return list(values)


def _nothing_left(line: Line, text: str, position: int) -> None:
    if rest := text[position:].strip(" \t"):
        raise line.fault(text.index(rest, position), "the end of the line", repr(rest))
