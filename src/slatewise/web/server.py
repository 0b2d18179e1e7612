"""Run an application with uvicorn (extra ``label`` or ``serve``): slow and greedy clients harm themselves only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from slatewise.web.asgi import App

if TYPE_CHECKING:
    from uvicorn import Config

HEAD_SECONDS = 10.0
"""Within which a client must have sent the head of a request that it began."""


def server_config(
    app: App,
    host: str,
    port: int,
    *,
    head_seconds: float = HEAD_SECONDS,
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
        http=cast("Any", _protocol(head_seconds)),
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


def _protocol(head_seconds: float) -> type:
    """Return uvicorn's protocol with one more rule: a head that does not come within a time ends the connection.

    An application is only called when the head is there, so no middleware can see who sends it a byte at a time.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        _cancel: Callable[[], None] | None = None

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
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._cancel = self.loop.call_later(head_seconds, self.transport.close).cancel

        def _stop(self) -> None:
            if self._cancel is not None:
                self._cancel()
                self._cancel = None

    return Impatient
