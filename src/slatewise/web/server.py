"""Run an application with uvicorn (extra ``label`` or ``serve``): slow and greedy clients harm themselves only."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from slatewise.web.asgi import App, Message, Receive, Scope, Send, header

if TYPE_CHECKING:
    from uvicorn import Config

HEAD_SECONDS = 10.0
"""Within which a client must have sent the head of a request that it began."""
TAKE_SECONDS = 60.0
"""Within which a client must have taken what it was sent."""
REST_SECONDS, REST_BYTES = 10.0, 1 << 28
"""How long, and up to how many bytes, the rest of a body is read and dropped after an answer that did not need it."""


def server_config(
    app: App,
    host: str,
    port: int,
    *,
    head_seconds: float = HEAD_SECONDS,
    take_seconds: float = TAKE_SECONDS,
    rest_seconds: float = REST_SECONDS,
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
        cast("Any", reading_the_rest(app, seconds=rest_seconds)),
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


def reading_the_rest(app: App, most_bytes: int = REST_BYTES, seconds: float = REST_SECONDS) -> App:
    """Return an application that reads and drops the rest of a body after an answer that came before it.

    The system resets a connection that is closed while the client is still sending, and the answer is lost with it: a
    client whose body is too large would never see its 413. So all of the answer is sent at once, but it ends, and the
    connection may be closed, only after the rest of the body has arrived, or ``most_bytes`` or ``seconds`` of it.
    """

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        ended = header(scope, "transfer-encoding") is None and header(scope, "content-length") in (None, "0")

        async def receiving() -> Message:
            nonlocal ended
            message = await receive()
            ended = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def drop_rest() -> None:
            n_bytes = 0
            while not ended and n_bytes < most_bytes:
                n_bytes += len((await receiving()).get("body", b""))

        async def sending(message: Message) -> None:
            if ended or message["type"] != "http.response.body" or message.get("more_body", False):
                await send(message)
                return
            await send({**message, "more_body": True})
            with suppress(TimeoutError):
                await asyncio.wait_for(drop_rest(), seconds)
            await send({"type": "http.response.body", "body": b""})

        await app(scope, receiving, sending)

    return answered


def _protocol(head_seconds: float, take_seconds: float) -> type:
    """Return uvicorn's protocol with more rules, which no middleware could have.

    A head that does not come within a time ends the connection: an application is only called when it is there. So does
    an answer that is not taken: it would stay in memory, and its connection be nobody else's, for as long as the client
    likes. A request whose body turns out to be malformed is over for the application too: what it still sends goes
    nowhere. Upgrades are not offered, and need no warning: the request is answered without one.
    """
    from h11 import IDLE, SEND_RESPONSE
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

        def send_400_response(self, msg: str) -> None:
            cycle: Any = self.cycle
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
            state: Any = self.conn.our_state
            if state is IDLE or (state is SEND_RESPONSE and self.scope["method"] != "HEAD"):
                super().send_400_response(msg)
            else:  # an answer has begun, or may have no body
                self.transport.close()

        def _should_upgrade(self) -> bool:
            return False

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
