"""Run the page of a project until somebody stops it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from slatewise.core.rules import short_repr
from slatewise.labeling.page.app import make_app
from slatewise.web.server import server_config
from slatewise.web.site import Site

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
