"""Run an application with uvicorn (extra ``label`` or ``serve``): limits for slow clients, and a graceful stop."""

from __future__ import annotations

import asyncio
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import uvicorn
from h11 import IDLE, SEND_RESPONSE
from uvicorn.protocols.http.h11_impl import H11Protocol

from slatewise.web.asgi import App, Message, Receive, Scope, Send, header

HEAD_SECONDS = 10.0
"""A client must have sent the head of a request within this time of its start."""
TAKE_SECONDS = 60.0
"""A client must have received what was sent to it within this time."""
REST_SECONDS, REST_BYTES = 10.0, 1 << 28
"""How long, and up to how many bytes, the rest of a body is read and dropped after an early answer."""
_LATE_SECONDS = 0.3
"""How long a new connection may still send its request after the socket was closed."""


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket, so that a wrong address is an error before anything is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio sends small packets at once; else the end of an answer waits 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        message = f"expected an address of this machine and a free port, found {error.strerror}"
        raise OSError(error.errno, message, f"{host}:{port}") from None
    return listening


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
) -> uvicorn.Config:
    """Return settings for :class:`Server`: limits, no server header, and no trust in forwarded headers.

    Accepted requests have ``grace_seconds`` to finish when the server stops; a connection without a request is closed
    after ``idle_seconds``. The guard reads the headers of a proxy; see :class:`slatewise.web.site.Site`.
    """
    return uvicorn.Config(
        cast("Any", reading_the_rest(app, seconds=rest_seconds)),
        host=host,
        port=port,
        http=cast("Any", _protocol(head_seconds, take_seconds)),
        ws="none",
        loop="asyncio",  # even if others are installed: the graceful stop depends on it
        lifespan="auto",
        log_config=None,  # the default would write plain text between the JSON lines of logs.py
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
    """Return an application that reads and drops the rest of a body after an early answer.

    The system resets a connection that is closed while the client is still sending, and the answer is lost: a client
    whose body is too large would never see its 413. So the answer is sent at once, but it ends only after the rest of
    the body has arrived, or ``most_bytes`` or ``seconds`` of it.
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
    """Return uvicorn's protocol with rules that no middleware could add.

    A connection is closed if the head of a request, or the client's reading of an answer, takes too long. A request
    whose body is malformed ends for the application too. Requests to upgrade are answered without an upgrade.
    """

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
            self._taken = self.loop.call_later(take_seconds, self._reset).cancel

        def resume_writing(self) -> None:
            self._taken()
            super().resume_writing()

        def _reset(self) -> None:
            """Reset the connection, so that the system drops the unsent answer too."""
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


class Server(uvicorn.Server):
    """Uvicorn's server, which answers every request that it has accepted before it stops.

    Parameters
    ----------
    config
        Of :func:`server_config`.
    drain_seconds
        How long the server still accepts connections after ``on_stop``, so that load balancers notice.
    on_stop
        Called when the server begins to stop.
    on_end
        Called when all requests are answered.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        drain_seconds: float = 0.0,
        on_stop: Callable[[], None] = lambda: None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(config)
        self._drain_seconds, self._on_stop, self._on_end = drain_seconds, on_stop, on_end

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop at the first signal, and at once at the second Ctrl-C; a requested stop is not a failure."""
        del frame
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, accept the connections that wait on the socket, close it, and finish all requests."""
        self._on_stop()
        if not self.force_exit:
            await asyncio.sleep(self._drain_seconds)
        for server in self.servers:
            await self._close_listening(server)
        late = asyncio.get_running_loop().time() + _LATE_SECONDS
        while any(cast("Any", one).cycle is None for one in self.server_state.connections):  # without a request yet
            if asyncio.get_running_loop().time() > late:
                break
            await asyncio.sleep(0.01)
        await super().shutdown(sockets)
        self._on_end()

    async def _close_listening(self, server: asyncio.Server) -> None:
        """Close the socket after accepting all connections that wait there."""
        loop = asyncio.get_running_loop()
        copies = [socket.socket(fileno=socket.dup(one.fileno())) for one in server.sockets]
        server.close()
        for copy in copies:
            copy.setblocking(False)
            while True:
                try:
                    connection, _ = copy.accept()
                except (BlockingIOError, OSError):
                    break
                connection.setblocking(False)
                await loop.connect_accepted_socket(self._protocol, connection)
            copy.close()

    def _protocol(self) -> Any:
        kind: Any = self.config.http_protocol_class
        return kind(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
