"""The routes of the page: its parts; items, questions and answers; progress, disputes, versions of the model, exports.

A route is a function of a :class:`Call` that returns a body or a response, and runs in a thread; ``ROUTES`` is their
table. :func:`endpoint` makes an endpoint of one, which checks the address and the body. Errors become
``{"detail": "label: expected ..., found ..."}``.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response

from slatewise.core.errors import ProjectError, printable
from slatewise.labeling.exchange.formats import FORMATS, export_answers, format_of
from slatewise.labeling.item_data import ItemData
from slatewise.labeling.page import bodies
from slatewise.labeling.page.page_state import AnnotatorSession, PageState
from slatewise.labeling.retraining import qualities
from slatewise.web.asgi import Receive, Scope, Send
from slatewise.web.codec import JSON, RequestError, checked, codec_of_answer
from slatewise.web.files import send_file
from slatewise.web.tokens import Role, Visitor

_log = logging.getLogger("slatewise.labeling")
_MAX_SHOWN = 400
_FOLDER = Path(__file__).parent / "static"
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_ENDINGS = {"wide": ".csv", "long": ".long.csv", "label-studio": ".label-studio.json"}


@dataclass(frozen=True, eq=False)
class Call:
    """A request: who sent it, its address and its body, both checked."""

    page_state: PageState
    visitor: Visitor
    form_token: str
    address: Any
    body: Any

    def session(self) -> AnnotatorSession:
        """Return the session of the person."""
        return self.page_state.session(self.visitor, self.address.annotator)

    def require(self, role: Role) -> None:
        """Refuse a visitor without the rights of this role."""
        if not self.visitor.may(role):
            raise RequestError("role", f"expected {role}, found {self.visitor.role}", 403)


@dataclass(frozen=True)
class PageRoute:
    """One route, and what goes in and out."""

    method: str
    path: str
    respond: Callable[[Call], msgspec.Struct | Response]
    reply: type[msgspec.Struct] | None = None
    address: type[bodies.Address] = bodies.ForAnnotator
    body: type[bodies.RequestBody] | None = None


# --- labeling --------------------------------------------------------------------------------------------------------


def me(call: Call) -> bodies.Me:
    """Say who one is."""
    page_state, visitor = call.page_state, call.visitor
    snapshot = page_state.state.snapshot
    featured = ItemData.kind_attached(page_state.project) != "nothing"
    return bodies.Me(
        annotator=page_state.name_of(visitor, call.address.annotator),
        local=visitor.who is None,
        role=visitor.role,
        form_token=call.form_token,
        project=page_state.project.name,
        items=len(page_state.project.items),
        labels=snapshot.names,
        names=snapshot.names_number,
        formats=[name for name, format in FORMATS.items() if featured or not format.needs_features],
    )


def next_item(call: Call) -> bodies.TurnBody:
    """Take up the open item again, or leave it and open the best next one."""
    return call.session().next(call.body)


def answer(call: Call) -> bodies.TurnBody:
    """Answer for a label of the open item."""
    return call.session().answer(call.body)


def done(call: Call) -> bodies.TurnBody:
    """End the open item, and open the next one."""
    return call.session().done(call.body)


def skip(call: Call) -> bodies.TurnBody:
    """Leave the open item to others, and open the next one."""
    return call.session().skip(call.body)


def undo(call: Call) -> bodies.TurnBody:
    """Take the last act back, and open its item."""
    return call.session().undo(call.body)


def item(call: Call) -> bodies.ItemBody:
    """Return an item."""
    return bodies.ItemBody.of(call.address.number, call.page_state.project.items[call.address.number])


def file(call: Call) -> Response:
    """Return the picture or the sound of an item."""
    found = call.page_state.project.items[call.address.number]
    if found.folder is None:
        raise RequestError("item", f"expected a picture or a sound, found a {found.kind}", 404)
    return _ItemFile(found.folder, found.content)


class _ItemFile(Response):
    def __init__(self, folder: Path, path: str) -> None:
        super().__init__()
        self._folder, self._path = folder, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_file(scope, send, self._folder, self._path)


# --- overview --------------------------------------------------------------------------------------------------------


def progress(call: Call) -> bodies.ProgressBody:
    """Return counts, pace and questions saved."""
    report, name = call.page_state.report(), call.page_state.name_of(call.visitor, call.address.annotator)
    sees_all = call.visitor.may("reviewer")
    return bodies.ProgressBody.of(report, [one for one in report.progress.people if sees_all or one.name == name])


def agreement(call: Call) -> bodies.AgreementBody:
    """Return how much people agree."""
    call.require("reviewer")
    page_state = call.page_state
    return bodies.AgreementBody.of(
        page_state.report().agreement, page_state.project.labels.names(), page_state.people()
    )


def review(call: Call) -> bodies.ReviewBody:
    """Return the disputes that no reviewer has settled."""
    call.require("reviewer")
    return _disputes(call, call.address.start, call.address.most)


def settle(call: Call) -> bodies.ReviewBody:
    """Settle a dispute; return what is left."""
    call.require("reviewer")
    call.session().settle(call.body)
    call.page_state.recount()
    return _disputes(call)


def _disputes(call: Call, start: int = 0, most: int = 50) -> bodies.ReviewBody:
    page_state = call.page_state
    disputes, project, people = page_state.report().agreement.disputes, page_state.project, page_state.people()
    labels = project.labels.names()
    some = [bodies.DisputeBody.of(dispute, project, labels, people) for dispute in disputes[start : start + most]]
    turn = page_state.turn_of(call.visitor, call.address.annotator)
    return bodies.ReviewBody(turn, len(disputes), some)


def models(call: Call) -> bodies.ModelsBody:
    """Return the versions of the model, and what the trainer does."""
    page_state, project = call.page_state, call.page_state.project
    current, figures = project.models.current(), {one.version: one for one in qualities(project)}
    status = page_state.trainer.status
    versions = [
        bodies.VersionBody(
            version=one.number,
            created=one.created,
            note=one.note,
            in_use=current is not None and one.number == current.number,
            can_be_used=bool(one.path),
            quality=bodies.fill(bodies.QualityBody, figures[one.number]) if one.number in figures else None,
        )
        for one in project.models.all()
    ]
    return bodies.ModelsBody(
        versions=versions,
        basis=page_state.state.snapshot.scored.basis,
        notes=page_state.state.notes(),
        trainer=status.state,
        message=status.message,
        sees=ItemData.kind_attached(project),
    )


def train(call: Call) -> bodies.ModelsBody:
    """Begin to train a new version, unless that is under way."""
    call.require("owner")
    if call.page_state.trainer.start():
        call.page_state.project.audit.add("train", call.session().annotator)
    return models(call)


def use(call: Call) -> bodies.ModelsBody:
    """Put a version in use, an earlier one to roll back."""
    call.require("owner")
    project, version = call.page_state.project, call.body.version
    known = [one.number for one in project.models.all() if one.path]
    if version is not None and version not in known:
        raise RequestError("version", f"expected one of {known}, which have files, found {version}", 404)
    project.models.use(version, call.session().annotator)
    call.page_state.state.refresh()
    return models(call)


def export(call: Call) -> Response:
    """Return all answers as a file; ``X-Lost`` says what the format loses."""
    call.require("owner")
    page_state, format = call.page_state, call.address.format
    project, chosen = page_state.project, FORMATS[format_of("", format)]
    data = page_state.state.item_data() if chosen.needs_features else None
    name = project.name + _ENDINGS.get(format, f".{format}")
    project.audit.add("export", call.session().annotator, format=format)
    folder = Path(tempfile.mkdtemp(prefix="slatewise-"))
    try:
        export_answers(project, folder / name, format, X=None if data is None else data.X)
    except BaseException:
        shutil.rmtree(folder)
        raise
    lost, ended = chosen.lost(project), BackgroundTask(shutil.rmtree, folder)
    return FileResponse(folder / name, headers={"x-lost": lost} if lost else None, filename=name, background=ended)


ROUTES = (
    PageRoute("GET", "/api/me", me, bodies.Me),
    PageRoute("POST", "/api/next", next_item, bodies.TurnBody, body=bodies.NextItem),
    PageRoute("POST", "/api/answer", answer, bodies.TurnBody, body=bodies.Answer),
    PageRoute("POST", "/api/done", done, bodies.TurnBody, body=bodies.Done),
    PageRoute("POST", "/api/skip", skip, bodies.TurnBody, body=bodies.Skip),
    PageRoute("POST", "/api/undo", undo, bodies.TurnBody, body=bodies.Undo),
    PageRoute("GET", "/api/items/{number}", item, bodies.ItemBody, bodies.OfItem),
    PageRoute("GET", "/api/items/{number}/file", file, None, bodies.OfItem),
    PageRoute("GET", "/api/progress", progress, bodies.ProgressBody),
    PageRoute("GET", "/api/agreement", agreement, bodies.AgreementBody, bodies.Address),
    PageRoute("GET", "/api/review", review, bodies.ReviewBody, bodies.OfReview),
    PageRoute("POST", "/api/review", settle, bodies.ReviewBody, body=bodies.Settle),
    PageRoute("GET", "/api/models", models, bodies.ModelsBody, bodies.Address),
    PageRoute("POST", "/api/models/train", train, bodies.ModelsBody, body=bodies.RequestBody),
    PageRoute("POST", "/api/models/use", use, bodies.ModelsBody, body=bodies.Use),
    PageRoute("GET", "/api/export", export, None, bodies.OfExport),
)


# --- parts of the page -----------------------------------------------------------------------------------------------


async def part(request: Request) -> Response:
    """Return a page, a style or a script."""
    name = {"/": "page.html", "/enter": "enter.html"}.get(request.url.path) or str(request.path_params["name"])
    if name not in _parts():
        raise RequestError("path", "expected a part of the page", 404)
    body, kind, tag = _parts()[name]
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers | {"content-type": kind})


@cache
def _parts() -> dict[str, tuple[bytes, str, str]]:
    """Return bytes, kind and tag of every part of the page by its name; they stay in memory."""
    parts: dict[str, tuple[bytes, str, str]] = {}
    for path in sorted(_FOLDER.iterdir()):
        body = path.read_bytes()
        parts[path.name] = body, f"{_KINDS[path.suffix]}; charset=utf-8", f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    return parts


# --- requests and errors ---------------------------------------------------------------------------------------------


def endpoint(route: PageRoute, page_state: PageState) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a route."""

    def respond(request: Request, content: bytes) -> Response:
        address = checked({**request.query_params, **request.path_params}, route.address, strict=False)
        body = None if route.body is None else _read_body(request.headers.get("content-type", ""), content, route.body)
        call = Call(page_state, request.state.visitor, request.state.form_token, address, body)
        reply = route.respond(call)
        if isinstance(reply, Response):
            return reply
        return Response(codec_of_answer(None).encode(reply), media_type=JSON)

    async def answered(request: Request) -> Response:
        content = b"" if route.body is None else await request.body()
        return await run_in_threadpool(respond, request, content)

    return answered


def _read_body(content_type: str, content: bytes, kind: type[bodies.RequestBody]) -> Any:
    if content_type.partition(";")[0].strip().lower() != JSON:
        raise RequestError("content-type", f"expected {JSON}, found {content_type[:100]!r}")
    try:
        value = json.loads(content)
    except json.JSONDecodeError as error:
        raise RequestError("body", f"expected JSON, found another text at character {error.pos}") from None
    except (ValueError, RecursionError) as error:  # no UTF-8, thousands of digits, or nested too deeply
        raise RequestError("body", f"expected JSON that can be read, found {error}", 400) from None
    return checked(value, kind)


def error_reply(request: Request, error: Exception) -> Response:
    """Return an error as a reply."""
    del request
    headers: Mapping[str, str] = {}
    match error:
        case RequestError():
            status, text = error.status, str(error)
        case HTTPException():
            status, text, headers = error.status_code, error.detail, error.headers or {}
        case ClientDisconnect():
            status, text = 400, "body: expected a whole one"
        case ProjectError() | OSError():
            _log.warning("%s", error)
            status, text, headers = 503, str(error), {"Retry-After": "5"}
        case IndexError():
            status, text = 404, str(error)
        case _:
            status, text = 422, str(error)
    body = codec_of_answer(None).encode(bodies.ErrorBody(printable(text, _MAX_SHOWN)))
    return Response(body, status, headers, JSON)


HANDLED = (RequestError, HTTPException, ClientDisconnect, ProjectError, OSError, IndexError, ValueError)
"""Errors that have a reply; all others are failures of the server."""
