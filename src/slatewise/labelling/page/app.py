"""The page of a project as an ASGI application: routes of FastAPI behind the guard."""

from __future__ import annotations

import os

from slatewise.web.asgi import App
from slatewise.web.site import Site


def make_app(project: str | os.PathLike[str], *, site: Site | None = None) -> App:
    """Open a project to serve it, and return its page; the lifespan of the application ends with the project closed.

    Parameters
    ----------
    project
        The file of the project. A second server of it is refused.
    site
        The addresses that browsers know the server by. Default: port 8765 of this machine.
    """
    raise NotImplementedError
