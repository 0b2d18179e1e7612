"""The page of a project as an ASGI application behind the guard, and the server that runs it until it is stopped."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import cast

from fastapi import FastAPI

from slatewise._version import __version__
from slatewise.core.rules import short_repr
from slatewise.labeling.page import files, routes
from slatewise.labeling.page.access_tokens import project_keys, project_secret
from slatewise.labeling.page.errors import RESPONSES, answer_in_words
from slatewise.labeling.page.page_state import Desk
from slatewise.labeling.store.project import Project
from slatewise.web.asgi import App
from slatewise.web.guard import Guard, Rules
from slatewise.web.server import server_config
from slatewise.web.site import Site

_LOOK_SECONDS = 2.0
_PUBLIC = ("/enter", "/static/")


def make_app(project: str | os.PathLike[str], *, site: Site | None = None) -> App:
    """Open a project to serve it, and return its page; the lifespan of the application ends with the project closed.

    Parameters
    ----------
    project
        The file of the project. A second server of it is refused.
    site
        The addresses that browsers know the server by. Default: port 8765 of this machine.
    """
    site = Site.local(8765) if site is None else site
    desk = Desk(project)
    try:
        _require_tokens(desk.project, site)
        secret = project_secret(desk.project)
    except BaseException:
        desk.close()
        raise
    app = FastAPI(
        title="slatewise labeling",
        version=__version__,
        description="Label items by answering the best next question.",
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        responses=RESPONSES,
    )
    app.state.desk = desk
    answer_in_words(app)
    for router in (files.router, routes.router):
        app.include_router(router)
    rules = Rules(public=_PUBLIC, audit=desk.told)
    return Guard(cast("App", app), site, project_keys(desk.project), secret, rules)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None]:
    desk = cast("Desk", app.state.desk)
    ended = asyncio.Event()
    looking = asyncio.create_task(_look_after(desk, ended))
    try:
        yield
    finally:
        ended.set()
        await looking
        await asyncio.to_thread(desk.close)


async def _look_after(desk: Desk, ended: asyncio.Event) -> None:
    """To the end of what it does at the moment: a trainer that is started after the others were stopped would stay."""
    while not ended.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), _LOOK_SECONDS)
            return
        await asyncio.to_thread(desk.look_after)


def _require_tokens(project: Project, site: Site) -> None:
    """Refuse a site that nobody could enter."""
    if site.needs_token and all(token.revoked for token in project.tokens.all()):
        raise ValueError(
            f"{project.path}: expected a token, without which nobody can enter from other machines, found none: "
            "make one with slatewise label token"
        )


HOST, PORT = "127.0.0.1", 8765
_HERE = ("127.0.0.1", "localhost", "::1")


def serve(
    project: str | os.PathLike[str],
    *,
    host: str = HOST,
    port: int = PORT,
    origin: str | None = None,
    behind_proxy: bool = False,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the labeling page of a project; returns when the process is asked to end.

    Parameters
    ----------
    project
        The file of the project. A second server of it is refused.
    host
        Where to listen. Anything but this machine requires tokens, see ``slatewise label token``.
    port
        0: one that is free.
    origin
        The address that browsers use, as ``https://label.example.org``, if it is another than ``http://HOST:PORT``;
        then tokens are required on this machine too.
    behind_proxy
        Whether a proxy on this machine passes requests to ``origin`` on, and says in ``X-Forwarded-For`` whose.
    ready
        Called with the address when the server listens.
    """
    import uvicorn

    with _listening(host, port) as listener:
        number = listener.getsockname()[1]
        site = _site(host, number, origin, behind_proxy)
        app = make_app(project, site=site)
        server = uvicorn.Server(server_config(app, host, number))
        ready(origin or f"http://{_in_address(host)}:{number}")
        server.run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens, so that what is wrong with the place is said before anything is loaded."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except (OSError, OverflowError) as error:
        raise ValueError(f"host: expected an address of this machine, found {short_repr(host)}: {error}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(256)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ValueError(f"port: expected one that is free at {host}, found {port}: {error}; 0 takes any") from None
    return listener


def _site(host: str, port: int, origin: str | None, behind_proxy: bool) -> Site:
    if behind_proxy and origin is None:
        raise ValueError("origin: expected the address that browsers use, as https://label.example.org, found None")
    if origin is not None:
        return Site.public(origin, behind_proxy=behind_proxy)
    if host in _HERE:
        return Site.local(port)
    if host in ("0.0.0.0", "::"):
        raise ValueError(f"origin: expected the address that browsers use, as http://192.168.1.5:{port}, found None")
    return Site.public(f"http://{_in_address(host)}:{port}")


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host
