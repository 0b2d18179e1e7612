"""Tokens of a service: a file with one per line, or with digests, so that the file itself opens nothing.

Lines that are empty or start with # are comments; what stands behind the first word is one too. The file is read again
when it changes, so that a token that is taken out ends at once.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

from slatewise.core.errors import printable
from slatewise.serve.plain_file import open_plain
from slatewise.web.tokens import Digests, Visitor, digest_of, make_token

_log = logging.getLogger("slatewise.serve")
_TOKEN = re.compile(r"slw_[A-Za-z0-9_-]{43}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class TokenFile:
    """The tokens of a file, as it is now."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._now: tuple[tuple[int, ...], list[tuple[str, Visitor]]] = (), []
        self._refused: str | None = None
        self.keys = Digests(self.stored)

    def stored(self) -> list[tuple[str, Visitor]]:
        """Return the digests; a file that cannot be read now opens nothing, and the log says why."""
        before, stored = self._now
        try:
            found = os.stat(self._path)
            seen = found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
            if seen == before:
                return stored
            stored, refused = read_tokens(self._path), None
        except (OSError, ValueError) as error:
            stored, refused, seen = list[tuple[str, Visitor]](), printable(str(error), 400), (0,)
        if refused is None and before:
            _log.info("tokens", extra={"fields": {"file": str(self._path), "tokens": len(stored)}})
        elif refused != self._refused:
            _log.error("tokens refused", extra={"fields": {"file": str(self._path), "reason": refused}})
        self._refused = refused
        self._now = seen, stored  # at once: threads that read two files must not leave tokens of one as of the other
        return stored


def check_tokens(path: Path) -> None:
    """Refuse a file that opens nothing before a service starts; one that runs goes on when it becomes such."""
    if not read_tokens(path):
        raise ValueError(f"{path}: expected at least one token, found none: make one with --make-token")


def read_tokens(path: Path) -> list[tuple[str, Visitor]]:
    """Read the digests of a file."""
    digests: list[tuple[str, Visitor]] = []
    try:
        with open(path, encoding="utf-8", opener=open_plain) as file:
            lines = file.read().splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: expected text in UTF-8, found other bytes") from None
    for number, line in enumerate(lines, 1):
        word = line.split()[0] if line.split() else "#"
        if word.startswith("#"):
            continue
        if not _TOKEN.fullmatch(word) and not _DIGEST.fullmatch(word):
            raise ValueError(f"{path}:{number}:1: expected a token (slw_...) or its sha256, found another word")
        digests.append((digest_of(word) if word.startswith("slw_") else word, Visitor("annotator", number)))
    return digests


def add_token(path: Path) -> str:
    """Make a token, keep its digest in a file that only its owner reads, and return the token: it is seen once."""
    new = make_token()
    with open(path, "a+b", opener=open_plain) as file:
        file.seek(max(file.tell() - 1, 0))
        before = "" if file.read() in (b"", b"\n") else "\n"  # the last line may have no end
        file.write(f"{before}{new.digest}\n".encode())
    return new.token
