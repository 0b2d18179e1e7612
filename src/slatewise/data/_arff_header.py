"""The header of an ARFF file: what each column may hold, and how words and quotes are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from slatewise.data._lines import Line, RawLines, clean_line
from slatewise.data._source import Source
from slatewise.data._tokens import number

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
