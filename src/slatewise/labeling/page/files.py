"""Parts of the page, and files of items."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

from slatewise.labeling.page.errors import Refused
from slatewise.web.asgi import Receive, Scope, Send
from slatewise.web.files import send_file

router = APIRouter(include_in_schema=False)
_FOLDER = Path(__file__).parent / "static"
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@router.get("/", response_class=Response)
async def page(request: Request) -> Response:
    """Return the page."""
    return _part(request, "page.html")


@router.get("/enter", response_class=Response)
async def enter(request: Request) -> Response:
    """Return the form for a token."""
    return _part(request, "enter.html")


@router.get("/static/{name}", response_class=Response)
async def static(request: Request, name: str) -> Response:
    """Return a style or a script."""
    return _part(request, name)


def file_answer(folder: Path, path: str) -> Response:
    """Return a file below a folder."""
    return _FileAnswer(folder, path)


class _FileAnswer(Response):
    def __init__(self, folder: Path, path: str) -> None:
        super().__init__()
        self._folder, self._path = folder, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_file(scope, send, self._folder, self._path)


@cache
def _parts() -> dict[str, tuple[bytes, str, str]]:
    """Return bytes, kind and tag of every part of the page by its name; they stay in memory."""
    parts: dict[str, tuple[bytes, str, str]] = {}
    for path in sorted(_FOLDER.iterdir()):
        body = path.read_bytes()
        parts[path.name] = body, f"{_KINDS[path.suffix]}; charset=utf-8", f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    return parts


def _part(request: Request, name: str) -> Response:
    if name not in _parts():
        raise Refused(404, "path: expected a part of the page")
    body, kind, tag = _parts()[name]
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers | {"content-type": kind})
