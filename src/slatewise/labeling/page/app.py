"""The page of a project as an ASGI application: routes of FastAPI behind the guard."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import cast

from fastapi import FastAPI

from slatewise._version import __version__
from slatewise.labeling.entrance import project_keys, project_secret
from slatewise.labeling.page import files, labeling_routes, overview_routes
from slatewise.labeling.page.desk import Desk
from slatewise.labeling.page.refusals import RESPONSES, answer_in_words
from slatewise.labeling.store.project import Project
from slatewise.web.asgi import App
from slatewise.web.guard import Guard, Rules
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
    for router in (files.router, labeling_routes.router, overview_routes.router):
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
