"""One process of the service: the application behind the guard, on a socket that several workers may share.

A worker that must stop first answers that it is not ready and closes connections after their next answer, then accepts
the connections that wait on the socket, and closes it; every accepted request is answered.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slatewise.core.running.blas import one_blas_thread
from slatewise.serve.app import COUNTED, PUBLIC, Service, make_routes
from slatewise.serve.batching import install_warning_hook
from slatewise.serve.metrics import Metrics
from slatewise.serve.models import ModelCache, Models, Version
from slatewise.serve.settings import Settings, TokenFile
from slatewise.serve.supervisor import WorkerReadiness
from slatewise.web.asgi import App, Message, Receive, Scope, Send
from slatewise.web.guard import Guard
from slatewise.web.logs import write_logs
from slatewise.web.server import Server, server_config
from slatewise.web.tokens import Digests

_log = logging.getLogger("slatewise.serve")
_MAX_CONNECTIONS = 2000
_IDLE_SECONDS = 75
"""Longer than proxies and clients keep a connection, so that they close it, and no request meets a closed one."""


def make_service(settings: Settings, number: int = 0, on_ready: Callable[[], None] = lambda: None) -> Service:
    """Return the service of these settings, which loads its models when it runs; ``on_ready`` is called once."""
    metrics = Metrics()
    readiness = None
    if settings.workers > 1:
        readiness = WorkerReadiness(Path(settings.ready_folder), settings.workers, number)

    def on_change(before: Version | None, name: str, result: str) -> None:
        metrics.swaps.labels(name, result).inc()
        now = models.get(name)
        if now is not None and now is not before:
            metrics.show_version(before, now)
        if before is None and models.ready:  # once, because a model stays ready
            if readiness is not None:
                readiness.mark_ready()
            on_ready()

    cache = ModelCache(Path(settings.cache_folder))
    models = Models(settings.files(), cache, settings.limits, settings.n_jobs, on_change)
    return Service(models, settings.limits, metrics, readiness, look_every=settings.look_every)


def make_app(settings: Settings, service: Service) -> App:
    """Return the whole application: routes behind the guard."""
    keys = Digests(list) if settings.token_file is None else TokenFile(Path(settings.token_file)).keys
    routes: Any = make_routes(service, settings.address)
    # The secret signs nothing: there are no pages, and no cookies.
    app = Guard(routes, settings.site(), keys, secrets.token_bytes(32), settings.rules(PUBLIC))

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        """Count requests and errors of the guard; a stopping service closes connections after their next answer."""
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        service.taken += 1
        state = scope.setdefault("state", {})

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                if COUNTED not in state:
                    service.metrics.count_error(message["status"])
                if service.stopping:
                    own = [pair for pair in message["headers"] if pair[0] != b"connection"]
                    message = {**message, "headers": [*own, (b"connection", b"close")]}
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                service.answered += 1

        await app(scope, receive, sending)

    return counted


def run_worker(
    settings: Settings,
    listening: socket.socket,
    number: int = 0,
    *,
    wait_until_ready: bool = False,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal comes; a replacement of a dead worker waits until its models are ready.

    ``on_ready`` is called, in another thread, when all models answer.
    """
    write_logs()
    install_warning_hook()
    service = make_service(settings, number, on_ready)
    config = server_config(
        make_app(settings, service),
        settings.host,
        settings.port,
        most_connections=_MAX_CONNECTIONS,
        grace_seconds=int(settings.limits.seconds) + 5,
        idle_seconds=_IDLE_SECONDS,
    )
    with one_blas_thread():
        if wait_until_ready:
            service.models.look()
        Server(config, settings.drain_seconds, service.stop, service.log_stop).run(sockets=[listening])


def main() -> None:
    """Run as a worker of a supervisor: settings, the descriptor of the socket, the number, and whether to wait."""
    settings, listener, number, when = Settings.from_json(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

    def end_with_parent() -> None:
        os.read(0, 1)  # returns when the supervisor has ended
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()
    run_worker(settings, socket.socket(fileno=listener), number, wait_until_ready=when == "wait")


if __name__ == "__main__":
    main()
