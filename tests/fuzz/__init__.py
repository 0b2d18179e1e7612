"""Mutated files against slow reference parsers: ``python -m tests.fuzz --files N [--format NAME] [--seed S]``.

To add a format, write ``tests/fuzz/format_<name>.py`` with ``FORMATS: list[Format]``; the harness finds it by its name.
"""

from __future__ import annotations

import pkgutil
import random
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import BinaryIO


class Rejected(Exception):
    """What a reference parser raises: the file is wrong, first on this line (counted from 1)."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


@dataclass(frozen=True)
class Format:
    """One reader beside its slow independent judge.

    Both return a value that ``==`` compares: nested tuples of ints, strings and bytes (floats by their bits, for
    example ``array.tobytes()``, so that -0.0 is not 0.0). On a bad file ``read`` must raise DataError with a name, a
    line and a column, and ``reference`` must raise :class:`Rejected` with the same line. Files that are no text have
    no lines: then all of these are 0.
    """

    name: str
    seeds: tuple[bytes, ...]
    """Valid files, small (at most about 1 kB) and varied: every case is a mutation of one of them."""
    read: Callable[[BinaryIO], object]
    """Calls the reader on an open file that has a ``name`` (plain bytes, gzip or xz)."""
    reference: Callable[[bytes], object]
    """Gets the plain bytes: the harness has unpacked the archive with the standard library."""
    tokens: tuple[bytes, ...] = ()
    """Pieces of this format worth splicing in anywhere, beside those common to all formats."""
    containers: bool = True
    """Whether the reader also takes gzip and xz."""
    is_text: bool = True
    """Whether the file has lines."""
    mutate: Callable[[random.Random, bytes], bytes] | None = None
    """What changes a seed instead of the harness, whose changes a checksum would give away."""
    slow: int = 1
    """About how many times longer a file takes than one of text: the harness makes that many fewer."""


def collect() -> list[Format]:
    """Import every ``format_*`` module of this folder and return their formats."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name.startswith("format_"))
    formats: list[Format] = []
    for name in names:
        formats.extend(import_module(f"{__name__}.{name}").FORMATS)
    return formats
