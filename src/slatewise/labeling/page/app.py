"""The page of a project as an ASGI application behind the guard, and the server that runs it until it is stopped."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from slatewise.labeling.page import routes
from slatewise.labeling.page.access_tokens import project_keys, project_secret
from slatewise.labeling.page.openapi import document
from slatewise.labeling.page.page_state import PageState
from slatewise.labeling.store.project import Project
from slatewise.web.asgi import App
from slatewise.web.codec import JSON
from slatewise.web.guard import Guard, Rules
from slatewise.web.server import Server, bind, server_config
from slatewise.web.site import Site

HOST, PORT = "127.0.0.1", 8765
_HERE = ("127.0.0.1", "localhost", "::1")
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
    site = Site.local(PORT) if site is None else site
    page_state = PageState(project)
    try:
        _require_tokens(page_state.project, site)
        secret = project_secret(page_state.project)
    except BaseException:
        page_state.close()
        raise
    rules = Rules(public=_PUBLIC, audit=page_state.audit)
    return Guard(cast("App", _routed(page_state)), site, project_keys(page_state.project), secret, rules)


def _routed(page_state: PageState) -> Starlette:
    """Return the application behind the guard."""

    async def openapi(_: Request) -> Response:
        return Response(document(), media_type=JSON)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        ended = asyncio.Event()
        looking = asyncio.create_task(_run_maintenance(page_state, ended))
        try:
            yield
        finally:
            ended.set()
            await looking
            await asyncio.to_thread(page_state.close)

    table = [Route(path, routes.part) for path in ("/", "/enter", "/static/{name}")]
    table.append(Route("/openapi.json", openapi))
    table += [Route(one.path, routes.endpoint(one, page_state), methods=[one.method]) for one in routes.ROUTES]
    for route in table:
        if route.methods is not None:
            route.methods.discard("HEAD")
    app = Starlette(
        routes=table, lifespan=lifespan, exception_handlers=dict.fromkeys(routes.HANDLED, routes.error_reply)
    )
    app.state.page_state = page_state
    return app


async def _run_maintenance(page_state: PageState, ended: asyncio.Event) -> None:
    """Run until ``ended``, to the end of a call: a trainer that is started later would not be stopped."""
    while not ended.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), _LOOK_SECONDS)
            return
        await asyncio.to_thread(page_state.run_maintenance)


def _require_tokens(project: Project, site: Site) -> None:
    """Refuse a site that nobody could enter."""
    if site.needs_token and all(token.revoked for token in project.tokens.all()):
        raise ValueError(
            f"{project.path}: expected a token, without which nobody can enter from other machines, found none: "
            "make one with slatewise label token"
        )


def serve(
    project: str | os.PathLike[str],
    *,
    host: str = HOST,
    port: int = PORT,
    origin: str | None = None,
    behind_proxy: bool = False,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the labeling page of a project; returns when the process receives a signal to end.

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
    with bind(host, port) as listener:
        number = listener.getsockname()[1]
        site = _site(host, number, origin, behind_proxy)
        app = make_app(project, site=site)
        server = Server(server_config(app, host, number))
        ready(origin or f"http://{_in_address(host)}:{number}")
        server.run(sockets=[listener])


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
