"""Run an application with uvicorn (extra ``label`` or ``serve``): slow and greedy clients harm themselves only."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from slatewise.web.asgi import App

if TYPE_CHECKING:
    from uvicorn import Config

HEAD_SECONDS = 10.0
"""Within which a client must have sent the head of a request that it began."""
TAKE_SECONDS = 60.0
"""Within which a client must have taken what it was sent."""


def server_config(
    app: App,
    host: str,
    port: int,
    *,
    head_seconds: float = HEAD_SECONDS,
    take_seconds: float = TAKE_SECONDS,
    most_connections: int = 500,
    grace_seconds: int = 5,
    idle_seconds: int = 5,
) -> Config:
    """Return settings for ``uvicorn.Server``: limits, no word about what serves, and no trust in forwarded headers.

    What was accepted has ``grace_seconds`` to end when the server stops; a connection without a request is closed after
    ``idle_seconds``. Behind a proxy the guard reads what the proxy says; see :class:`slatewise.web.site.Site`.
    """
    import uvicorn

    return uvicorn.Config(
        cast("Any", app),
        host=host,
        port=port,
        http=cast("Any", _protocol(head_seconds, take_seconds)),
        ws="none",
        loop="asyncio",  # whatever else is installed: how a server stops depends on it
        lifespan="auto",
        log_config=None,  # its own would write plain text beside the logs of whoever runs it
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=most_connections,
        timeout_keep_alive=idle_seconds,
        timeout_graceful_shutdown=grace_seconds,
        h11_max_incomplete_event_size=1 << 14,
    )


def _protocol(head_seconds: float, take_seconds: float) -> type:
    """Return uvicorn's protocol with two more rules, which no middleware could have.

    A head that does not come within a time ends the connection: an application is only called when it is there. So does
    an answer that is not taken: it would stay in memory, and its connection be nobody else's, for as long as the client
    likes.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        _cancel: Callable[[], None] | None = None
        _taken: Callable[[], None] = staticmethod(lambda: None)

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            before: Any = self.cycle
            super().data_received(data)
            if self.cycle is not before:
                self._stop()
            elif self._cancel is None and (before is None or before.response_complete):
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            self._taken()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._taken = self.loop.call_later(take_seconds, self._drop).cancel

        def resume_writing(self) -> None:
            self._taken()
            super().resume_writing()

        def _drop(self) -> None:
            """End the connection, and what the system keeps for it: else it would go on to offer that."""
            now = struct.pack("ii", 1, 0)
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
            self.transport.abort()

        def _wait(self) -> None:
            self._cancel = self.loop.call_later(head_seconds, self.transport.close).cancel

        def _stop(self) -> None:
            if self._cancel is not None:
                self._cancel()
                self._cancel = None

    return Impatient
