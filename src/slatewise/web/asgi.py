"""The few words of ASGI that the others share."""

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


@dataclass(frozen=True)
class Answer:
    """A short answer of plain text: a refusal, or a redirection."""

    status: int
    text: str
    headers: Headers = ()

    async def send(self, send: Send) -> None:
        """Send it."""
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
    """Return a header of the request, None where it is missing; one that comes twice counts as its first value."""
    found = values(scope, name)
    return found[0] if found else None
