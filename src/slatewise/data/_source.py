"""Where bytes come from: a path or an open binary file, plain, gzip or xz. Readers never see the codec."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import warnings
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Literal, Protocol, TypeAlias

from slatewise.errors import DataError, DataWarning, Skipped

PathOrFile: TypeAlias = "str | os.PathLike[str] | BinaryIO"
OnError: TypeAlias = Literal["raise", "skip"]

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
    """Decompressed bytes of one file, with the position reached so far for error messages."""

    def __init__(self, stream: _Readable, name: str) -> None:
        self.name = name
        self._stream = stream
        self._lines_read = 0
        self._last_line_length = 0

    def chunks(self, size: int = 1 << 22) -> Iterator[bytes]:
        """Yield the file's bytes; a truncated or corrupt archive is a DataError at the place reached."""
        while chunk := self._read(size):
            yield chunk
            newlines = chunk.count(b"\n")
            if newlines:
                self._lines_read += newlines
                self._last_line_length = len(chunk) - chunk.rfind(b"\n") - 1
            else:
                self._last_line_length += len(chunk)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield (line number from 1, line without its line end)."""
        number, rest = 0, b""
        for chunk in self.chunks():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                number += 1
                yield number, line.removesuffix(b"\r")
        if rest:
            yield number + 1, rest.removesuffix(b"\r")

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

    def _read(self, size: int) -> bytes:
        try:
            return self._stream.read(size)
        except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                self.name, self._lines_read + 1, self._last_line_length + 1, "a complete archive", f"{error}"
            ) from None


@contextmanager
def open_source(path: PathOrFile) -> Generator[Source]:
    """Open a path or a binary file; gzip and xz are recognised by their first bytes, not by the name."""
    if isinstance(path, str | os.PathLike):
        with open(path, "rb") as raw:
            yield Source(_decompressed(raw), os.fspath(path))
    elif isinstance(path, io.TextIOBase):
        raise TypeError("path: expected a path or a file opened in binary mode, found one opened as text")
    else:
        yield Source(_decompressed(path), str(getattr(path, "name", "<stream>")))


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
