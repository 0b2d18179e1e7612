"""Tokens: 256 random bits that are shown once and kept as a digest; the cookie they travel in; wrong attempts counted.

A digest without salt or stretching is enough: nobody guesses 256 bits, and no two tokens are the same.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Literal, NamedTuple, Protocol, TypeAlias, get_args

from slatewise.web.asgi import Scope, header
from slatewise.web.site import Site

Role: TypeAlias = Literal["annotator", "reviewer", "owner"]
ROLES: tuple[Role, ...] = get_args(Role)
"""In ascending order: each role may do all that the roles before it may."""
_BYTES = 32
_PREFIX = "slw_"  # lets secret scanners recognize a token
_TOKEN = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{43}}")
_COOKIE_VALUE = re.compile(r"[A-Za-z0-9_-]+")
_YEAR = 31_536_000
_MAX_CLIENTS = 10_000


class NewToken(NamedTuple):
    """A token to show once, and the digest to keep."""

    token: str
    digest: str


@dataclass(frozen=True)
class Visitor:
    """The sender of an accepted request."""

    role: Role
    who: int | None = None
    """The number of the person; None on a local site, which needs no tokens."""

    def may(self, role: Role) -> bool:
        """Return whether the visitor has the rights of this role.

        Examples
        --------
        >>> Visitor("reviewer").may("annotator"), Visitor("reviewer").may("owner")
        (True, False)
        """
        return ROLES.index(self.role) >= ROLES.index(role)


class Keys(Protocol):
    """Finds the owner of a token."""

    def find(self, token: str) -> Visitor | None:
        """Return the owner of the token, or None."""
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
    """Return the digest of a token, which is all that is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


class Digests:
    """Keys by digests that are read again for every request, so that revoking a token takes effect at once."""

    def __init__(self, stored: Callable[[], Iterable[tuple[str, Visitor]]]) -> None:
        self._stored = stored

    def find(self, token: str) -> Visitor | None:
        """Compare with all digests, so that the time taken reveals nothing about them."""
        if _TOKEN.fullmatch(token) is None:
            return None
        presented, found = digest_of(token), None
        for digest, visitor in self._stored():
            if hmac.compare_digest(presented, digest):
                found = visitor
        return found


def form_token(secret: bytes, token: str) -> str:
    """Return the value that a page sends with every change; other sites cannot read it."""
    return hmac.new(secret, b"form:" + token.encode(), hashlib.sha256).hexdigest()


def is_form_token(secret: bytes, token: str, presented: str | None) -> bool:
    """Return whether a request has the right form token, in constant time."""
    return presented is not None and hmac.compare_digest(form_token(secret, token).encode(), presented.encode())


class TokenCookie:
    """The cookie with a token: scripts cannot read it, and other sites cannot make a browser send it.

    Its name depends on ``secret``, because browsers share cookies between the ports of a machine.
    """

    def __init__(self, site: Site, secret: bytes) -> None:
        name = f"slatewise-{hashlib.sha256(b'cookie:' + secret).hexdigest()[:8]}"
        self.name = f"__Host-{name}" if site.secure else name
        self._attributes = "Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if site.secure else "")

    def read(self, scope: Scope) -> str | None:
        """Return the token in the cookie of a request, or None."""
        for part in (header(scope, "cookie") or "").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self.name:
                return value
        return None

    def written(self, token: str) -> tuple[str, str]:
        """Return the header that stores a token in the browser."""
        if _COOKIE_VALUE.fullmatch(token) is None:
            raise ValueError("token: expected letters, digits, - and _")
        return "set-cookie", f"{self.name}={token}; Max-Age={_YEAR}; {self._attributes}"

    def removed(self) -> tuple[str, str]:
        """Return the header that removes it from the browser."""
        return "set-cookie", f"{self.name}=; Max-Age=0; {self._attributes}"


class WrongTokens:
    """Count wrong tokens per client and block a client with too many, even with a right one, for a while.

    Memory is bounded: the clients with the oldest attempts are forgotten.

    Parameters
    ----------
    most
        The number of wrong tokens that a client may send within ``seconds``.
    seconds
        How long a wrong token counts.
    clock
        A monotonic clock, in seconds.

    Examples
    --------
    >>> wrong = WrongTokens(most=2, seconds=60)
    >>> for _ in range(2):
    ...     wrong.add("203.0.113.7")
    >>> wrong.wait("203.0.113.7") > 0, wrong.wait("203.0.113.8")
    (True, 0)
    """

    def __init__(self, most: int = 10, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = Lock()

    def add(self, client: str) -> None:
        """Count a wrong token of a client."""
        with self._lock:
            times = self._times.setdefault(client, deque(maxlen=self._most))
            times.append(self._clock())
            self._times.move_to_end(client)
            if len(self._times) > _MAX_CLIENTS:
                self._times.popitem(last=False)

    def wait(self, client: str) -> int:
        """Return the number of seconds for which the client is blocked, 0 if it is not."""
        with self._lock:
            times = self._times.get(client)
            if times is None or len(times) < self._most:
                return 0
            left = times[0] + self._seconds - self._clock()
            return max(int(left) + 1, 0) if left > 0 else 0
