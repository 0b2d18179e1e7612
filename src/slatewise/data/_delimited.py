"""How a line is cut into fields: at blanks, at a delimiter, or at a delimiter outside double quotes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from slatewise.data._lines import Line
from slatewise.data._tokens import word_offset, words

_DELIMITERS = "\t,;| "
_QUOTED = re.compile(r'"([^"]*(?:""[^"]*)*)"')


class Splitter(Protocol):
    """Cuts lines into fields, and finds a field again where a message must point to it."""

    def split(self, line: Line) -> list[str]:
        """Return the fields."""
        ...

    def offset(self, line: Line, index: int) -> int:
        """Return the character at which field ``index`` starts, or the line's end where there are fewer."""
        ...


@dataclass(frozen=True)
class Blanks:
    """Fields are separated by runs of blanks and tabs."""

    def split(self, line: Line) -> list[str]:
        """Return the fields."""
        return words(line.text)

    def offset(self, line: Line, index: int) -> int:
        """Return the character at which field ``index`` starts."""
        return word_offset(line.text, index)


@dataclass(frozen=True)
class Plain:
    """Fields are separated by one delimiter; no quoting."""

    delimiter: str

    def split(self, line: Line) -> list[str]:
        """Return the fields."""
        return line.text.split(self.delimiter)

    def offset(self, line: Line, index: int) -> int:
        """Return the character at which field ``index`` starts."""
        before = self.split(line)[:index]
        return min(sum(len(field) + 1 for field in before), len(line.text))


@dataclass(frozen=True)
class Quoted:
    """Fields as in RFC 4180: a field in double quotes may hold the delimiter, and a double quote as two of them.

    A quoted field ends on its own line.
    """

    delimiter: str

    def split(self, line: Line) -> list[str]:
        """Return the fields."""
        if '"' not in line.text:
            return line.text.split(self.delimiter)
        return [field for _, field in self._scan(line)]

    def offset(self, line: Line, index: int) -> int:
        """Return the character at which field ``index`` starts."""
        starts = [start for start, _ in self._scan(line)]
        return starts[index] if index < len(starts) else len(line.text)

    def _scan(self, line: Line) -> list[tuple[int, str]]:
        text, fields, start = line.text, list[tuple[int, str]](), 0
        while True:
            if text.startswith('"', start):
                quoted = _QUOTED.match(text, start)
                if quoted is None:
                    raise line.fault(start, "a closing double quote on the same line", repr(text[start:]))
                field, end = quoted[1].replace('""', '"'), quoted.end()
                if end < len(text) and text[end] != self.delimiter:
                    raise line.fault(end, f"{self.delimiter!r} or the line's end after a quoted field", repr(text[end]))
            else:
                end = text.find(self.delimiter, start)
                end = len(text) if end < 0 else end
                field = text[start:end]
                if '"' in field:
                    raise line.fault(start + field.index('"'), "double quotes around a whole field", repr(field))
            fields.append((start, field))
            if end == len(text):
                return fields
            start = end + 1


def check_delimiter(delimiter: str | None) -> None:
    """Raise ValueError unless the argument is one of the known delimiters or None."""
    if delimiter is not None and (len(delimiter) != 1 or delimiter not in _DELIMITERS):
        raise ValueError(f"delimiter: expected one of {', '.join(map(repr, _DELIMITERS))} or None, found {delimiter!r}")


def splitter_for(delimiter: str) -> Splitter:
    """Return what cuts lines at a delimiter."""
    # The registered type text/tab-separated-values knows no quotes, and titles in such files often start with one.
    return {" ": Blanks(), "\t": Plain("\t")}.get(delimiter) or Quoted(delimiter)


def guess_delimiter(text: str) -> str | None:
    """Return the first of tab, comma and semicolon that the line has, or None."""
    return next((delimiter for delimiter in "\t,;" if delimiter in text), None)


def check_id(splitter: Splitter, line: Line, index: int, text: str) -> None:
    """Raise DataError unless field ``index`` is an id: not empty, no blanks at its ends."""
    if not text.strip(" \t"):
        raise line.fault(splitter.offset(line, index), "an id", repr(text))
    if text[0] in " \t" or text[-1] in " \t":
        raise line.fault(splitter.offset(line, index), "an id without blanks around it", repr(text))
