"""One process of the service: the application behind the guard, on a socket that others may share.

Told to stop, it first says that it is not ready and closes connections after their next answer, goes on to take what
comes, then takes what still waits on the socket, and only then closes it; whatever was taken is answered.
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
from slatewise.serve.crew import Crew
from slatewise.serve.hearing import hear_warnings
from slatewise.serve.measures import Measures
from slatewise.serve.models import Models, Version
from slatewise.serve.settings import Settings
from slatewise.serve.spool import Spool
from slatewise.serve.token_file import TokenFile
from slatewise.web.asgi import App, Message, Receive, Scope, Send
from slatewise.web.guard import Guard
from slatewise.web.logs import write_logs
from slatewise.web.server import Server, server_config
from slatewise.web.tokens import Digests

_log = logging.getLogger("slatewise.serve")
_MOST_CONNECTIONS = 2000
_IDLE_SECONDS = 75
"""Longer than proxies and clients keep a connection, so that it is they who close it, and no request meets that."""


def make_service(settings: Settings, place: int = 0, ready: Callable[[], None] = lambda: None) -> Service:
    """Return the service of these settings; its models are loaded when it runs. ``ready`` is called when all answer."""
    measures = Measures()
    crew = None if settings.workers == 1 else Crew(Path(settings.warm), settings.workers, place)

    def told(before: Version | None, name: str, result: str) -> None:
        measures.swaps.labels(name, result).inc()
        now = models.get(name)
        if now is not None and now is not before:
            measures.answers_now(before, now)
        if before is None and models.ready:  # once: a model that answers never stops to
            if crew is not None:
                crew.say_warm()
            ready()

    models = Models(settings.files(), Spool(Path(settings.spool)), settings.limits, settings.n_jobs, told)
    return Service(models, settings.limits, measures, crew, look_every=settings.look_every)


def make_app(settings: Settings, service: Service) -> App:
    """Return the whole application: routes behind the guard."""
    keys = Digests(list) if settings.token_file is None else TokenFile(Path(settings.token_file)).keys
    routes: Any = make_routes(service, settings.address)
    # Nothing is signed by the secret: there are no pages, and no cookies.
    guard = Guard(routes, settings.site(), keys, secrets.token_bytes(32), settings.rules(PUBLIC))
    return _counting(guard, service)


def _counting(app: App, service: Service) -> App:
    """Count requests and what the guard refuses; who asks one that stops is told to come on a new connection."""

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        service.taken += 1
        state = scope.setdefault("state", {})

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                if COUNTED not in state:
                    service.measures.refused_at_the_door(message["status"])
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
    place: int = 0,
    *,
    wait_until_ready: bool = False,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal comes; a worker that takes a dead one's place takes no requests before it can answer.

    ``ready`` is called, in another thread, when all models answer.
    """
    write_logs()
    hear_warnings()
    service = make_service(settings, place, ready)
    grace = int(settings.limits.seconds) + 5
    config = server_config(
        make_app(settings, service),
        settings.host,
        settings.port,
        most_connections=_MOST_CONNECTIONS,
        grace_seconds=grace,
        idle_seconds=_IDLE_SECONDS,
    )
    with one_blas_thread():
        if wait_until_ready:
            service.models.look()
        Server(config, settings.drain_seconds, service.stop).run(sockets=[listening])
    figures = {"requests": service.taken, "answered": service.answered}
    _log.info("stopped", extra={"fields": figures})


def main() -> None:
    """Be a worker of a supervisor: settings, the number of its socket, its place and whether to wait are given."""
    settings, number, place, wait = (
        Settings.read(sys.argv[1]),
        int(sys.argv[2]),
        int(sys.argv[3]),
        sys.argv[4] == "wait",
    )

    def end_with_parent() -> None:
        os.read(0, 1)  # ends when nobody holds the other end
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()
    run_worker(settings, socket.socket(fileno=number), place, wait_until_ready=wait)


if __name__ == "__main__":
    main()
