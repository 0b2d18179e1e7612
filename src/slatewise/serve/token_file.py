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
from slatewise.web.tokens import Digests, Visitor, digest_of, make_token

_log = logging.getLogger("slatewise.serve")
_TOKEN = re.compile(r"slw_[A-Za-z0-9_-]{43}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class TokenFile:
    """The tokens of a file, as it is now."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._stored: list[tuple[str, Visitor]] = []
        self._refused: str | None = None
        self.keys = Digests(self.stored)
        if not self.stored():
            raise ValueError(f"{path}: expected at least one token, found none: make one with --make-token")

    def stored(self) -> list[tuple[str, Visitor]]:
        """Return the digests; a file that cannot be read now opens nothing, and the log says why."""
        try:
            found = os.stat(self._path)
            seen = found.st_ino, found.st_size, found.st_mtime_ns
            if seen == self._seen:
                return self._stored
            stored, refused = read_tokens(self._path), None
        except (OSError, ValueError) as error:
            if self._seen is None:
                raise
            stored, refused, seen = list[tuple[str, Visitor]](), printable(str(error), 400), (0, 0, 0)
        if refused is None and self._seen is not None:
            _log.info("tokens", extra={"fields": {"file": str(self._path), "tokens": len(stored)}})
        elif refused != self._refused:
            _log.error("tokens refused", extra={"fields": {"file": str(self._path), "reason": refused}})
        self._stored, self._refused, self._seen = stored, refused, seen
        return stored


def read_tokens(path: Path) -> list[tuple[str, Visitor]]:
    """Read the digests of a file."""
    digests: list[tuple[str, Visitor]] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
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
    number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with open(number, "a", encoding="utf-8") as file:
        file.write(f"{new.digest}\n")
    return new.token
