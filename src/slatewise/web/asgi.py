"""ASGI types, short answers of plain text, and the security headers of every answer.

The headers let a browser do nearly nothing with an answer but show it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = "tuple[tuple[str, str], ...]"

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Scripts and styles are our own files, never inline or from elsewhere; frames are not allowed."""
FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"
"""For files of users: opened directly, they run nothing (an SVG may contain a script)."""

_ALWAYS: Headers = (
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),  # with no-referrer a form of ours would be sent with "Origin: null"
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ("cache-control", "no-store"),
)
_ENCRYPTED: Headers = (("strict-transport-security", "max-age=31536000"),)


@dataclass(frozen=True)
class Answer:
    """A short answer of plain text: an error or a redirection."""

    status: int
    text: str
    headers: Headers = ()

    async def send(self, send: Send) -> None:
        """Send the answer."""
        body = f"{self.text}\n".encode()
        kinds = (("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body))))
        await start(send, self.status, (*kinds, *self.headers))
        await send({"type": "http.response.body", "body": body})


async def start(send: Send, status: int, headers: Iterable[tuple[str, str]]) -> None:
    """Send the status and the headers of an answer."""
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": encoded})


def values(scope: Scope, name: str) -> list[str]:
    """Return all values of a header of the request."""
    wanted = name.encode("latin-1")
    return [value.decode("latin-1") for found, value in scope["headers"] if found.lower() == wanted]


def header(scope: Scope, name: str) -> str | None:
    """Return the first value of a header of the request, or None."""
    found = values(scope, name)
    return found[0] if found else None


def with_headers(send: Send, *, secure: bool) -> Send:
    """Return a ``send`` that adds the security headers that an answer does not have already."""
    wanted = [(name.encode(), value.encode()) for name, value in _ALWAYS + (_ENCRYPTED if secure else ())]

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", ()))
            there = {name.lower() for name, _ in own}
            message = {**message, "headers": own + [pair for pair in wanted if pair[0] not in there]}
        await send(message)

    return sending
