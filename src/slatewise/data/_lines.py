"""Lines of a text file, each with its place, so that every complaint can say file:line:column."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from slatewise.core.errors import DataError, DataWarning
from slatewise.data._source import Problems, Source

Row = TypeVar("Row")
RawLines: TypeAlias = "Iterator[tuple[int, bytes]]"
"""What ``source.lines()`` gives: a header reader may take the first ones and leave the rest."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Line(NamedTuple):
    """One line without its line end."""

    name: str
    number: int
    text: str

    def fault(self, offset: int, expected: str, found: str) -> DataError:
        """Return the error for the token that starts at character ``offset``; columns count bytes."""
        return DataError(self.name, self.number, len(self.text[:offset].encode()) + 1, expected, found)

    @property
    def is_blank(self) -> bool:
        """Whether nothing but blanks and tabs is there."""
        return not self.text or (self.text[0] in " \t" and not self.text.strip(" \t"))


def clean_line(source: Source, number: int, raw: bytes) -> Line:
    """Return a line of UTF-8 text without control characters (tabs may stay), or raise DataError."""
    line = Line(source.name, number, source.decode(raw, number))
    # str.isprintable is many times quicker than a search, and nearly every line passes it.
    if not line.text.isprintable() and (control := _CONTROL.search(line.text)):
        raise line.fault(control.start(), "printable text", f"control character 0x{ord(control[0]):02x}")
    if number == 1 and line.text.startswith("\ufeff"):
        # The source took one off; left alone another would become part of the first id.
        raise line.fault(0, "text without a second byte order mark", "U+FEFF")
    return line


def clean_lines(source: Source, lines: RawLines, problems: Problems) -> Iterator[Line]:
    """Yield the lines that are clean; the others go to ``problems``."""
    for number, raw in lines:
        try:
            line = clean_line(source, number, raw)
        except DataError as error:
            problems.add(error)
        else:
            yield line


def parse_lines(source: Source, lines: RawLines, problems: Problems, parse: Callable[[Line], Row]) -> Iterator[Row]:
    """Yield ``parse(line)`` for every line that is not blank; what it rejects goes to ``problems``."""
    for line in clean_lines(source, lines, problems):
        if line.is_blank:
            continue
        try:
            row = parse(line)
        except DataError as error:
            problems.add(error)
        else:
            yield row


def header_line(source: Source, lines: RawLines, expected: str = "a line that names the columns") -> Line:
    """Take the first line that is not blank."""
    for number, raw in lines:
        line = clean_line(source, number, raw)
        if not line.is_blank:
            return line
    raise DataError(source.name, 1, 1, expected, "an empty file")


def warn_of_header(line: Line, names: Sequence[str]) -> None:
    """Say that a first line was not read as data; the caller's caller asked for the file."""
    shown = ", ".join(repr(name) for name in dict.fromkeys(names))
    warnings.warn(
        f"{line.name}:{line.number}: {shown} read as the names of columns, not as ids "
        "(header=False if they are ids, header=True if not)",
        DataWarning,
        stacklevel=3,
    )
