"""Outputs appear whole or not at all: write beside the target, flush to the disk, rename.

A writer that is killed leaves its temporary file, ``.NAME.????????.part``, behind. The next writer of the same target
removes it: a writer holds a lock on its file while it lives, and the system ends the lock with the process, so a file
that can be locked has no writer. Without such locks (Windows, some network folders), it stays.
"""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import re
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
def atomic_path(path: str | os.PathLike[str], *, new: bool = False) -> Generator[Path]:
    """Yield a temporary file of the same folder that takes the place of ``path`` when the block ends well.

    If the block raises, ``path`` stays as it was and the temporary file is gone. A file that is replaced hands its
    permissions on; a link is followed, so that it still points to the file afterwards. What is there and is no plain
    file (a folder, a device, a pipe) is an error: a rename would take its place. ``new``: so is a file, also one that
    appeared meanwhile, FileExistsError; in folders without hard links only one that is there at the end.

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
    try:
        _remove_left_behind(target)
        temporary, held = _made_beside(target)
    except OSError as error:
        # The caller knows the path, not the temporary name beside it.
        raise type(error)(error.errno, error.strerror, str(path)) from None
    lock: int | None = held
    try:
        if target.exists():
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        yield temporary
        _flush(temporary, os.O_RDWR)
        if os.name != "posix":
            os.close(lock)  # elsewhere an open file cannot be renamed
            lock = None
        if new:
            _link(temporary, target)
        else:
            os.replace(temporary, target)
    finally:
        if lock is not None:
            os.close(lock)
        temporary.unlink(missing_ok=True)
    if os.name == "posix":  # elsewhere a folder cannot be opened, and needs no flush
        _flush(target.parent, os.O_RDONLY)


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, new: bool = False) -> Generator[BinaryIO]:
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
    with atomic_path(path, new=new) as temporary, open(temporary, "wb") as raw:
        if ending == ".gz":
            # No name and no time inside: the same content gives the same bytes.
            with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
                yield cast(BinaryIO, file)
        elif ending == ".xz":
            with lzma.LZMAFile(raw, "wb") as file:
                yield cast(BinaryIO, file)
        else:
            yield raw


def _link(temporary: Path, target: Path) -> None:
    """Give a file its name, unless another file has it."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # no hard links here: of two writers at the same moment the last one wins
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        os.replace(temporary, target)


def _made_beside(target: Path) -> tuple[Path, int]:
    """Make a new temporary file; return it, and the open file whose lock says that its writer lives."""
    while True:
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        # Made with the mode of a plain open(), which the umask narrows; tempfile would leave 0600 behind.
        lock = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        _locked(lock, wait=True)
        if temporary.exists():
            return temporary, lock
        os.close(lock)  # another writer saw the file before it was locked, and took it for one left behind


def _remove_left_behind(target: Path) -> None:
    """Remove the temporary files of this target whose writers are gone."""
    if os.name != "posix":
        return
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.part", re.DOTALL)
    try:
        found = [entry for entry in os.listdir(target.parent) if name.fullmatch(entry)]
    except PermissionError:  # a folder may allow to write and not to look
        return
    for path in map(target.with_name, found):
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                continue
            file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # gone meanwhile, or another user's
            continue
        try:
            if _locked(file, wait=False):
                path.unlink(missing_ok=True)
        finally:
            os.close(file)


def _locked(file: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed; return whether that worked."""
    if os.name != "posix":
        return False
    from fcntl import LOCK_EX, LOCK_NB, flock

    try:
        flock(file, LOCK_EX if wait else LOCK_EX | LOCK_NB)
    except OSError:  # held by a writer, or a folder without locks
        return False
    return True


def _flush(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
