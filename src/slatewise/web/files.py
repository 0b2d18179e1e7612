"""Files of a registered folder, and none outside it, whatever path or links are used."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from slatewise.web.asgi import FILE_POLICY, Answer, Scope, Send, header, start

_KINDS = {
    ".avif": "image/avif", ".bmp": "image/bmp", ".gif": "image/gif", ".jpeg": "image/jpeg", ".jpg": "image/jpeg",
    ".png": "image/png", ".svg": "image/svg+xml", ".webp": "image/webp",
    ".flac": "audio/flac", ".m4a": "audio/mp4", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".opus": "audio/ogg",
    ".wav": "audio/wav",
}  # fmt: skip
_UNKNOWN = "application/octet-stream"
_RANGE = re.compile(r"bytes=([0-9]{1,15})?-([0-9]{1,15})?")
_CHUNK = 1 << 18
_NOT_FOUND = Answer(404, "file: expected one that is there")


@dataclass(frozen=True)
class OpenFile:
    """An open file of the folder; the caller closes the descriptor ``number``."""

    number: int
    size: int
    tag: str
    """The entity tag, which changes with the file."""


def open_inside(folder: Path, path: str) -> OpenFile:
    """Open a plain file below a folder for reading; raise FileNotFoundError for everything else.

    Links that stay inside are followed. The file is opened first and then compared with the resolved path, so that it
    cannot be replaced in between.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as name:
    ...     _ = Path(name, "a.txt").write_text("hello")
    ...     file = open_inside(Path(name), "a.txt")
    ...     os.read(file.number, 10), os.close(file.number)
    ...     open_inside(Path(name), "../a.txt")
    Traceback (most recent call last):
    FileNotFoundError: path: expected a file inside the folder, found '../a.txt'
    """
    missing = FileNotFoundError(f"path: expected a file inside the folder, found {path!r}")
    parts = PurePosixPath(path).parts
    if not parts or ".." in parts or path.startswith("/") or set(path) & {"\0", "\\", ":"}:
        raise missing
    home = os.path.realpath(folder)
    try:
        real = os.path.realpath(os.path.join(home, *parts))
        if os.path.commonpath([home, real]) != home:
            raise missing
        number = os.open(os.path.join(home, *parts), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        raise missing from None
    try:
        found, there = os.fstat(number), os.lstat(real)
        if not stat.S_ISREG(found.st_mode) or (found.st_dev, found.st_ino) != (there.st_dev, there.st_ino):
            raise missing
    except BaseException as error:
        os.close(number)
        raise missing from (None if isinstance(error, OSError) else error)
    return OpenFile(number, found.st_size, f'"{found.st_mtime_ns:x}-{found.st_size:x}-{found.st_ino:x}"')


async def send_file(scope: Scope, send: Send, folder: Path, path: str) -> None:
    """Answer a request with a file below a folder, or one range of it (for audio players), or with 404."""
    try:
        file = await asyncio.to_thread(open_inside, folder, path)
    except FileNotFoundError:
        await _NOT_FOUND.send(send)
        return
    try:
        await _send(scope, send, file, _KINDS.get(PurePosixPath(path).suffix.lower(), _UNKNOWN))
    finally:
        os.close(file.number)


async def _send(scope: Scope, send: Send, file: OpenFile, kind: str) -> None:
    headers = [
        ("content-type", kind),
        ("content-security-policy", FILE_POLICY),
        ("cache-control", "private, no-cache"),
        ("etag", file.tag),
        ("accept-ranges", "bytes"),
    ]
    if kind == _UNKNOWN:
        headers.append(("content-disposition", "attachment"))
    if header(scope, "if-none-match") == file.tag:
        await start(send, 304, headers)
        await send({"type": "http.response.body", "body": b""})
        return
    first, end, status = _range(header(scope, "range"), file.size)
    if status == 416:
        await Answer(416, "range: expected one inside the file", (("content-range", f"bytes */{file.size}"),)).send(
            send
        )
        return
    if status == 206:
        headers.append(("content-range", f"bytes {first}-{end - 1}/{file.size}"))
    await start(send, status, [*headers, ("content-length", str(end - first))])
    while first < end and scope["method"] != "HEAD":
        chunk = await asyncio.to_thread(os.pread, file.number, min(_CHUNK, end - first), first)
        if not chunk:  # the file became shorter: the client notices that the answer ends early
            break
        first += len(chunk)
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _range(wanted: str | None, size: int) -> tuple[int, int, int]:
    """Return the start, end and status of the range; a request for several ranges gets the whole file."""
    match = None if wanted is None else _RANGE.fullmatch(wanted.strip())
    if match is None or (match[1] is None and match[2] is None):
        return 0, size, 200
    if match[1] is None:
        first, end = max(size - int(match[2]), 0), size
    else:
        first, end = int(match[1]), size if match[2] is None else min(int(match[2]) + 1, size)
    return (first, end, 206) if first < end else (0, 0, 416)
