"""Tokens: 256 random bits that a person is shown once, of which only a digest is kept.

A digest without salt or stretching is enough: nobody guesses 256 bits, and no two tokens are the same.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias, get_args

Role: TypeAlias = Literal["annotator", "reviewer", "owner"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may."""
_BYTES = 32
_PREFIX = "slw_"
"""So that tools that look for secrets in public places know one."""
_TOKEN = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{43}}")


class NewToken(NamedTuple):
    """A token to show once, and the digest to keep."""

    token: str
    digest: str


@dataclass(frozen=True)
class Visitor:
    """Somebody who was let in."""

    role: Role
    who: int | None = None
    """The number of the person; None on a machine of one's own, where nobody is asked."""

    def may(self, role: Role) -> bool:
        """Whether the visitor may do what this role may.

        Examples
        --------
        >>> Visitor("reviewer").may("annotator"), Visitor("reviewer").may("owner")
        (True, False)
        """
        return ROLES.index(self.role) >= ROLES.index(role)


class Keys(Protocol):
    """Knows whose a token is."""

    def find(self, token: str) -> Visitor | None:
        """Return who holds the token, None where nobody does."""
        ...


def make_token() -> NewToken:
    """Make a token.

    Examples
    --------
    >>> new = make_token()
    >>> len(new.token), new.digest == digest_of(new.token)
    (47, True)
    """
    token = _PREFIX + secrets.token_urlsafe(_BYTES)
    return NewToken(token, digest_of(token))


def digest_of(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


class Digests:
    """Keys by the digests that a store has now; asked anew every time, so that a revoked token ends at once."""

    def __init__(self, stored: Callable[[], Iterable[tuple[str, Visitor]]]) -> None:
        self._stored = stored

    def find(self, token: str) -> Visitor | None:
        """Compare with every digest, to the end: the time it takes tells nothing of which one is near."""
        if _TOKEN.fullmatch(token) is None:
            return None
        presented, found = digest_of(token), None
        for digest, visitor in self._stored():
            if hmac.compare_digest(presented, digest):
                found = visitor
        return found


def form_token(secret: bytes, token: str) -> str:
    """Return what a page must send with every change: only a page of ours could read it."""
    return hmac.new(secret, b"form:" + token.encode(), hashlib.sha256).hexdigest()


def is_form_token(secret: bytes, token: str, presented: str | None) -> bool:
    """Whether a request brought the right one."""
    return presented is not None and hmac.compare_digest(form_token(secret, token).encode(), presented.encode())
