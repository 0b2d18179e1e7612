"""Errors and warnings of slatewise. Every message names the place and what was expected."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field

_MOST_SHOWN = 400
"""Characters of a quotation in a message: a token of a hostile file can be as long as its line."""


def printable(text: str, most: int | None = None) -> str:
    r"""Return text that a terminal only shows: what is no visible character or blank is escaped as ``repr`` does.

    Names and content of files reach messages, and must not move the cursor, hide text or color it. ``most`` cuts the
    end off longer text, and says so.

    Examples
    --------
    >>> printable("a name\x1b[2J.txt"), printable("aaaaaaaaaa", 4)
    ('a name\\x1b[2J.txt', 'aaaa... (10 characters)')
    """
    if most is not None and len(text) > most:
        text = f"{text[:most]}... ({len(text)} characters)"
    if text.isprintable():  # nearly always
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def levels_to_caller() -> int:
    """Return the ``stacklevel`` with which a warning names the line of the user's code, outside this library."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "slatewise":
        frame, level = frame.f_back, level + 1
    return level


class _Message(Exception):
    """A message that is safe to print, whatever it quotes."""

    def __str__(self) -> str:
        return printable(super().__str__())


class DataError(ValueError):
    """A file does not follow its format: ``name:line:column: expected ..., found ...``.

    Lines count from 1; columns count bytes from 1, so that an editor can jump there. A file that is not text has no
    lines: then both are 0, the message leaves them out, and ``name`` says which member, or column and row, is meant.
    """

    def __init__(self, name: str, line: int, column: int, expected: str, found: str) -> None:
        expected, found = printable(expected, _MOST_SHOWN), printable(found, _MOST_SHOWN)
        super().__init__(name, line, column, expected, found)
        self.name, self.line, self.column = name, line, column
        self.expected, self.found = expected, found

    def __str__(self) -> str:
        place = f":{self.line}:{self.column}" if self.line else ""
        return f"{printable(self.name)}{place}: expected {self.expected}, found {self.found}"


class ModelFileError(_Message, ValueError):
    """A model file is damaged, of an unknown version, or not a slatewise model."""


class ProjectError(_Message, RuntimeError):
    """A labeling project cannot be opened, or cannot store an answer; then nothing was written."""


class ClusterError(_Message, RuntimeError):
    """A cluster cannot be reached, is not what this process is, or lost a worker for good."""


class DataWarning(_Message, UserWarning):
    """Rows or queries were left out; the message says how many."""


@dataclass(frozen=True)
class Skipped:
    """How many rows a reader left out, and the first few reasons."""

    count: int = 0
    first: tuple[DataError, ...] = field(default=())
