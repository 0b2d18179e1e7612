"""Where bytes come from: a path or an open binary file, plain, gzip or xz. Readers never see the codec."""

from __future__ import annotations

import gzip
import inspect
import io
import lzma
import os
import re
import warnings
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from slatewise.core.errors import DataError, DataWarning, Skipped

PathOrFile: TypeAlias = "str | os.PathLike[str] | BinaryIO"
OnError: TypeAlias = Literal["raise", "skip"]

MAX_LINE = 1 << 26
"""Bytes a line of a text file may have unless the caller says otherwise: a small archive can hold a huge one."""
TABLE_MAGIC = (b"PAR1", b"ARROW1")
"""How Parquet and Arrow files start."""
_BOM = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
_XZ_MAGIC = b"\xfd7zXZ\x00"


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Xz:
    """All streams of an xz file; ``lzma.LZMAFile`` takes a damaged second one for the end, and says nothing."""

    _CHUNK = 1 << 16

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._stream = lzma.LZMADecompressor(lzma.FORMAT_XZ)

    def read(self, size: int, /) -> bytes:
        while True:
            fed = b""
            if self._stream.eof:
                fed = self._after_padding(self._stream.unused_data)
                if not fed:
                    return b""
                self._stream = lzma.LZMADecompressor(lzma.FORMAT_XZ)
            elif self._stream.needs_input:
                fed = self._raw.read(self._CHUNK)
                if not fed:
                    raise EOFError("the end of the file inside a stream")
            if data := self._stream.decompress(fed, size):
                return data

    def _after_padding(self, rest: bytes) -> bytes:
        """Return what follows the zeros that may stand between streams, b"" at the end of the file."""
        while not (rest := rest.lstrip(b"\0")):
            rest = self._raw.read(self._CHUNK)
            if not rest:
                return b""
        return rest


class Source:
    """Decompressed bytes of one file, with the position reached so far for error messages.

    A byte order mark of UTF-8 at the start is not part of the text.
    """

    def __init__(self, stream: _Readable, name: str, max_line: int = MAX_LINE) -> None:
        if max_line < 1:
            raise ValueError(f"max_line: expected a whole number >= 1, found {max_line}")
        self.name = name
        self.max_line = max_line
        self._stream = stream
        self._lines_read = 0
        self._last_line_length = 0

    def chunks(self, size: int = 1 << 22) -> Iterator[bytes]:
        """Yield the file's bytes; a truncated or corrupt archive is a DataError at the place reached."""
        chunk = self._start(size)
        while chunk:
            yield chunk
            newlines = chunk.count(b"\n")
            if newlines:
                self._lines_read += newlines
                self._last_line_length = len(chunk) - chunk.rfind(b"\n") - 1
            else:
                self._last_line_length += len(chunk)
            chunk = self._read(size)

    def pieces(self, size: int) -> Iterator[tuple[int, bytes]]:
        """Yield (number of the first line, whole lines), about ``size`` bytes a piece; the last line may lack its end.

        A line longer than ``max_line`` bytes is a DataError as soon as that is seen. The parts of a long line are
        joined once, so that time grows with its length and not with its square.
        """
        parts: list[bytes] = []
        held, number = 0, 1
        for chunk in self.chunks(size):
            cut = chunk.rfind(b"\n") + 1
            if cut == 0:
                parts.append(chunk)
                held += len(chunk)
                if held > self.max_line + 1:  # the line end may begin with a carriage return
                    raise self.too_long(number)
                continue
            data = b"".join([*parts, chunk[:cut]])
            self._require_short(data, number)
            yield number, data
            number += data.count(b"\n")
            parts, held = [chunk[cut:]], len(chunk) - cut
        if rest := b"".join(parts):
            self._require_short(rest, number)
            yield number, rest

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield (line number from 1, line without its line end)."""
        for first, data in self.pieces(1 << 22):
            for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), first):
                yield number, line.removesuffix(b"\r")

    def too_long(self, number: int) -> DataError:
        """Return the error for a line with more bytes than are allowed."""
        expected = f"a line of at most {self.max_line} bytes (max_line sets how many)"
        return DataError(self.name, number, 1, expected, "a longer one")

    def text_lines(self) -> Iterator[tuple[int, str]]:
        """Yield (line number, text); bytes that are not UTF-8 are a DataError."""
        for number, line in self.lines():
            yield number, self.decode(line, number)

    def decode(self, line: bytes, number: int) -> str:
        """Decode one line strictly."""
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                self.name, number, error.start + 1, "UTF-8 text", f"byte 0x{line[error.start]:02x}"
            ) from None

    def _require_short(self, data: bytes, first: int) -> None:
        if len(data) <= self.max_line:  # nearly always
            return
        for number, line in enumerate(data.split(b"\n"), first):
            if len(line.removesuffix(b"\r")) > self.max_line:
                raise self.too_long(number)

    def _start(self, size: int) -> bytes:
        """Read the first chunk, without a byte order mark."""
        start = self._read(size)
        while start and len(start) < len(_BOM) and _BOM.startswith(start) and (more := self._read(size)):
            start += more
        return start.removeprefix(_BOM) or (self._read(size) if start else b"")

    def _read(self, size: int) -> bytes:
        try:
            return self._stream.read(size)
        except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                self.name, self._lines_read + 1, self._last_line_length + 1, "a complete archive", f"{error}"
            ) from None


@contextmanager
def open_source(path: PathOrFile, max_line: int = MAX_LINE) -> Generator[Source]:
    """Open a path or a binary file; gzip and xz are recognized by their first bytes, not by the name."""
    if isinstance(path, str | os.PathLike):
        with open(path, "rb") as raw:
            yield Source(_decompressed(raw), os.fspath(path), max_line)
    elif isinstance(path, io.TextIOBase):
        raise TypeError("path: expected a path or a file opened in binary mode, found one opened as text")
    else:
        yield Source(_decompressed(path), str(getattr(path, "name", "<stream>")), max_line)


def is_table(path: PathOrFile) -> bool:
    """Tell Parquet and Arrow files from text by how they start; a pipe is text."""
    if isinstance(path, str | os.PathLike):
        with open(path, "rb") as file:
            return file.seekable() and file.read(8).startswith(TABLE_MAGIC)
    if isinstance(path, io.TextIOBase) or not path.seekable():
        return False
    start = path.tell()
    magic = path.read(8)
    path.seek(start)
    return magic.startswith(TABLE_MAGIC)


def _decompressed(file: BinaryIO) -> _Readable:
    raw = file if file.seekable() else io.BytesIO(file.read())  # a pipe cannot be looked at twice
    start = raw.tell()
    magic = raw.read(len(_XZ_MAGIC))
    raw.seek(start)
    if magic.startswith(_GZIP_MAGIC):
        return gzip.GzipFile(fileobj=raw, mode="rb")
    if magic == _XZ_MAGIC:
        return _Xz(raw)
    return raw


class Problems:
    """What to do with a bad row: raise at once, or leave it out, count it and say so at the end."""

    _KEPT = 5

    def __init__(self, on_error: OnError) -> None:
        if on_error not in ("raise", "skip"):
            raise ValueError(f"on_error: expected 'raise' or 'skip', found {on_error!r}")
        self._raise = on_error == "raise"
        self._count = 0
        self._first: list[DataError] = []

    def add(self, error: DataError) -> None:
        """Raise the error, or remember it."""
        if self._raise:
            raise error
        self._count += 1
        if len(self._first) < self._KEPT:
            self._first.append(error)

    def report(self) -> Skipped:
        """Return what was left out; warn if anything was."""
        if self._count:
            rows = "row" if self._count == 1 else "rows"
            warnings.warn(f"left out {self._count} {rows}; the first: {self._first[0]}", DataWarning, stacklevel=3)
        return Skipped(self._count, tuple(self._first))


Row = TypeVar("Row")
Reader = TypeVar("Reader", bound=Callable[..., object])
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


def read_lines(
    path: PathOrFile, on_error: OnError, max_line: int, parse: Callable[[Line], Row]
) -> tuple[list[Row], Problems]:
    """Read a file without a header: one row per line that is not blank."""
    problems = Problems(on_error)
    with open_source(path, max_line) as source:
        rows = list(parse_lines(source, source.lines(), problems, parse))
    return rows, problems


def header_line(source: Source, lines: RawLines, expected: str = "a line that names the columns") -> Line:
    """Take the first line that is not blank."""
    for number, raw in lines:
        line = clean_line(source, number, raw)
        if not line.is_blank:
            return line
    raise DataError(source.name, 1, 1, expected, "an empty file")


def warn_of_header(line: Line, names: Sequence[str]) -> None:
    """Warn that the first line was not read as data; the warning points to the caller of the reader."""
    shown = ", ".join(repr(name) for name in dict.fromkeys(names))
    warnings.warn(
        f"{line.name}:{line.number}: {shown} read as the names of columns, not as ids "
        "(header=False if they are ids, header=True if not)",
        DataWarning,
        stacklevel=3,
    )


_PATH_TEXT = """path : str, path or binary file
    Plain, gzip or xz.
"""
_SHARED_TEXT = """on_error : {"raise", "skip"}
    Whether a bad line stops the reading, or is left out and counted in ``skipped``. A bad header or a damaged archive
    always stops it.
max_line : int
    The largest number of bytes of a line; a longer one stops the reading, whatever ``on_error`` is.

Raises
------
DataError
    At the first bad line, with file:line:column and what was expected.
"""


def text_reader(function: Reader) -> Reader:
    """Write into the docstring the parameters that all readers of text share."""
    if function.__doc__ is not None:  # python -OO
        before, _, examples = inspect.cleandoc(function.__doc__).partition("Examples\n--------\n")
        summary, title, own = before.partition("Parameters\n----------\n")
        title = title or "Parameters\n----------\n"
        shared = f"{_PATH_TEXT}{own.rstrip()}\n{_SHARED_TEXT}" if own else f"{_PATH_TEXT}{_SHARED_TEXT}"
        function.__doc__ = f"{summary}{title}{shared}\nExamples\n--------\n{examples}\n"
    return function
