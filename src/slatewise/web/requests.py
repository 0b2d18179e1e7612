"""What a request may be: checks of its head, each of which returns an error or None, and limits of its body."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass

from slatewise.web.asgi import SAFE_METHODS, Answer, Message, Receive, Scope, header, values
from slatewise.web.site import Site

METHODS = SAFE_METHODS | {"POST", "PUT", "PATCH", "DELETE"}
_ONCE = ("host", "origin", "content-length", "content-type", "cookie", "authorization", "transfer-encoding")
_STRANGE = re.compile(r"[\x00-\x1f\x7f\\]|(^|/)\.\.?(/|$)|//")
_LONGEST_PATH = 2000
GONE = Answer(400, "body: expected a whole one", (("connection", "close"),))
_PROXIES = ("x-forwarded-for", "x-forwarded-host", "forwarded")


def refused(scope: Scope, site: Site, *, any_name: bool = False) -> Answer | None:
    """Return the error of a request that is refused for all senders, or None."""
    if scope["method"] not in METHODS:
        return Answer(405, "method: expected one that is known", (("allow", ", ".join(sorted(METHODS))),))
    if (answer := _path(scope) or _headers(scope)) is not None:
        return answer
    named = None if any_name else _host(scope, site) or _passed_on(scope, site)
    return named or _from_elsewhere(scope)


def refused_change(scope: Scope, site: Site) -> Answer | None:
    """Return the error of a change that does not come from a page of this site, or None."""
    origin = header(scope, "origin")
    if origin is None or origin.lower() not in site.origins:
        return Answer(403, "Origin: expected a page of this server")
    return None


def _path(scope: Scope) -> Answer | None:
    """Refuse paths that lead up or are encoded twice: the application sees paths in their plain form."""
    raw = bytes(scope.get("raw_path") or b"").lower()
    path = str(scope["path"])
    twice_encoded = b"%25" in raw and re.search(r"%(2e|2f|5c|00)", path, re.IGNORECASE) is not None
    if len(path) > _LONGEST_PATH or _STRANGE.search(path) or b"%2f" in raw or twice_encoded:
        return Answer(400, "path: expected a plain one")
    return None


def _headers(scope: Scope) -> Answer | None:
    """Refuse headers that two programs on the way could read differently."""
    for name in _ONCE:
        if len(values(scope, name)) > 1:
            return Answer(400, f"{name}: expected at most once")
    length = header(scope, "content-length")
    if length is not None and header(scope, "transfer-encoding") is not None:
        return Answer(400, "content-length: expected none beside transfer-encoding", (("connection", "close"),))
    if length is not None and not (length.isascii() and length.isdigit() and len(length) < 16):
        return Answer(400, "content-length: expected a whole number")
    return None


def _host(scope: Scope, site: Site) -> Answer | None:
    """Refuse other host names, by which a foreign page could read our answers (DNS rebinding)."""
    host = header(scope, "host")
    if site.origins and (host is None or host.lower() not in site.hosts):
        return Answer(421, "Host: expected the address of this server")
    return None


def _passed_on(scope: Scope, site: Site) -> Answer | None:
    """Refuse proxied requests on a site without tokens: all users of the proxy would count as local."""
    if not site.needs_token and any(header(scope, name) is not None for name in _PROXIES):
        return Answer(421, "expected a request from this machine, found one of a proxy, for which tokens are needed")
    return None


def _from_elsewhere(scope: Scope) -> Answer | None:
    """Refuse requests of other sites except plain navigation (https://web.dev/articles/fetch-metadata)."""
    where = header(scope, "sec-fetch-site")
    if where in (None, "same-origin", "none"):
        return None
    leads_here = header(scope, "sec-fetch-mode") == "navigate" and header(scope, "sec-fetch-dest") == "document"
    if scope["method"] == "GET" and leads_here:
        return None
    return Answer(403, "expected a request from a page of this server")


@dataclass(frozen=True)
class BodyLimits:
    """How large a body may be, and how long it may take to arrive."""

    bytes: int = 1 << 20
    seconds: float = 20.0

    @property
    def too_large(self) -> Answer:
        """Return the answer to a larger body."""
        return Answer(413, f"body: expected at most {self.bytes} bytes, found more", (("connection", "close"),))

    @property
    def too_slow(self) -> Answer:
        """Return the answer to a slower body."""
        return Answer(408, f"body: expected all of it within {self.seconds:g} s", (("connection", "close"),))


class BodyRefused(Exception):
    """Raised in an application that reads a body beyond the limits; the guard sends the answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.text)
        self.answer = answer


class LimitedBody:
    """A ``receive`` that stops at the limits, with the answer in ``refusal``."""

    def __init__(self, scope: Scope, receive: Receive, limits: BodyLimits) -> None:
        self._receive, self._limits = receive, limits
        self._read, self._whole = 0, False
        self._deadline = time.monotonic() + limits.seconds
        length = header(scope, "content-length")
        self.refusal: Answer | None = None
        if length is not None and int(length) > limits.bytes:
            self.refusal = limits.too_large

    async def __call__(self) -> Message:
        """Return the next part of the body."""
        if self._whole:  # the next message is the disconnect of the client, at any time
            return await self._receive()
        if self.refusal is not None:
            raise BodyRefused(self.refusal)
        try:
            message = await asyncio.wait_for(self._receive(), max(self._deadline - time.monotonic(), 0.0))
        except TimeoutError:
            raise self._refused(self._limits.too_slow) from None
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._read > self._limits.bytes:
                raise self._refused(self._limits.too_large)
        return message

    def _refused(self, answer: Answer) -> BodyRefused:
        self.refusal = answer
        return BodyRefused(answer)
