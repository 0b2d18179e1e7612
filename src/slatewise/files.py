"""Outputs appear whole or not at all: write beside the target, flush to the disk, rename."""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast


def check_target(path: str | os.PathLike[str]) -> Path:
    """Return the file that ``path`` leads to; raise OSError where none can be written there."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "expected a plain file, or nothing, to write to, found something else", str(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, f"expected a file in a folder that exists, found no {target.parent}", str(path)
        )
    return target


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Generator[Path]:
    """Yield a temporary file of the same folder that takes the place of ``path`` when the block ends well.

    If the block raises, ``path`` stays as it was and the temporary file is gone. A file that is replaced hands its
    permissions on; a link is followed, so that it still points to the file afterwards. What is there and is no plain
    file (a folder, a device, a pipe) is an error: a rename would take its place.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     target = Path(folder, "answer.txt")
    ...     with atomic_path(target) as temporary:
    ...         _ = temporary.write_text("42")
    ...         before = target.exists()
    ...     before, target.read_text()
    (False, '42')
    """
    target = check_target(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        # Made with the mode of a plain open(), which the umask narrows; tempfile would leave 0600 behind.
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError as error:
        # The caller knows the path, not the temporary name beside it.
        raise type(error)(error.errno, error.strerror, str(path)) from None
    try:
        if target.exists():
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        yield temporary
        _flush(temporary, os.O_RDWR)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    if os.name == "posix":  # elsewhere a folder cannot be opened, and needs no flush
        _flush(target.parent, os.O_RDONLY)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Generator[BinaryIO]:
    """Yield a binary file to write; ``path`` appears when the block ends well. ``.gz`` and ``.xz`` are compressed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder, "answer.txt.gz")) as file:
    ...         _ = file.write(b"42")
    ...     gzip.decompress(Path(folder, "answer.txt.gz").read_bytes())
    b'42'
    """
    ending = Path(path).suffix
    with atomic_path(path) as temporary, open(temporary, "wb") as raw:
        if ending == ".gz":
            # No name and no time inside: the same content gives the same bytes.
            with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
                yield cast(BinaryIO, file)
        elif ending == ".xz":
            with lzma.LZMAFile(raw, "wb") as file:
                yield cast(BinaryIO, file)
        else:
            yield raw


def _flush(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
