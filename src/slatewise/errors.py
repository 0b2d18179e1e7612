"""What slatewise raises and warns with. Every message says where and what was expected."""

from __future__ import annotations

from dataclasses import dataclass, field


class DataError(ValueError):
    """A file does not follow its format: ``name:line:column: expected ..., found ...``.

    Lines count from 1; columns count bytes from 1, so that an editor can jump there. A file that is not text has no
    lines: then both are 0, the message leaves them out, and ``name`` says which member, or column and row, is meant.
    """

    def __init__(self, name: str, line: int, column: int, expected: str, found: str) -> None:
        super().__init__(name, line, column, expected, found)
        self.name, self.line, self.column = name, line, column
        self.expected, self.found = expected, found

    def __str__(self) -> str:
        place = f":{self.line}:{self.column}" if self.line else ""
        return f"{self.name}{place}: expected {self.expected}, found {self.found}"


class ModelFileError(ValueError):
    """A model file is damaged, of an unknown version, or not a slatewise model."""


class DataWarning(UserWarning):
    """Rows were left out because the caller asked for ``on_error="skip"``."""


@dataclass(frozen=True)
class Skipped:
    """How many rows a reader left out, and the first few reasons."""

    count: int = 0
    first: tuple[DataError, ...] = field(default=())
