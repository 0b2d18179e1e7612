"""The routes of the page: items, questions and answers; progress, disputes, versions of the model, and exports."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated, TypeAlias, cast

from fastapi import APIRouter, Query, Request
from fastapi import Path as PathField
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from slatewise.labeling.exchange.formats import FORMATS, export_answers, format_of
from slatewise.labeling.item_data import ItemData
from slatewise.labeling.page import responses as bodies
from slatewise.labeling.page.errors import Refused
from slatewise.labeling.page.files import file_answer
from slatewise.labeling.page.page_state import Desk, Seat
from slatewise.labeling.page.responses import agreement_body, dispute_body, item_body, progress_body, quality_body
from slatewise.labeling.retraining import qualities
from slatewise.web.tokens import Visitor

router = APIRouter(prefix="/api", tags=["labeling"])
ItemNumber = Annotated[int, PathField(ge=0, le=bodies.MOST_NUMBER)]


@router.get("/me")
def me(request: Request, annotator: AnnotatorQuery = None) -> bodies.Me:
    """Say who one is."""
    desk, visitor = desk_of(request), visitor_of(request)
    bench = desk.workbench.bench
    featured = ItemData.kind_attached(desk.project) != "nothing"
    return bodies.Me(
        annotator=desk.name_of(visitor, annotator),
        local=visitor.who is None,
        role=visitor.role,
        form_token=request.state.form_token,
        project=desk.project.name,
        items=len(desk.project.items),
        labels=bench.names,
        names=bench.names_number,
        formats=[name for name, format in FORMATS.items() if featured or not format.needs_features],
    )


@router.post("/next")
def next_item(request: Request, said: bodies.NextItem, annotator: AnnotatorQuery = None) -> bodies.TurnBody:
    """Take up the open item again, or leave it and open the best next one."""
    return seat_of(request, annotator).next(said.item, said.by)


@router.post("/answer")
def answer(request: Request, said: bodies.Answer, annotator: AnnotatorQuery = None) -> bodies.TurnBody:
    """Answer for a label of the open item."""
    return seat_of(request, annotator).answer(said)


@router.post("/done")
def done(request: Request, said: bodies.Done, annotator: AnnotatorQuery = None) -> bodies.TurnBody:
    """End the open item, and open the next one."""
    return seat_of(request, annotator).done(said)


@router.post("/skip")
def skip(request: Request, said: bodies.Skip, annotator: AnnotatorQuery = None) -> bodies.TurnBody:
    """Leave the open item to others, and open the next one."""
    return seat_of(request, annotator).skip(said)


@router.post("/undo")
def undo(request: Request, said: bodies.Undo, annotator: AnnotatorQuery = None) -> bodies.TurnBody:
    """Take the last act back, and open its item."""
    return seat_of(request, annotator).undo(said)


@router.get("/items/{number}")
def item(request: Request, number: ItemNumber) -> bodies.ItemBody:
    """Return an item."""
    return item_body(number, desk_of(request).project.items[number])


@router.get("/items/{number}/file", response_class=Response)
def file(request: Request, number: ItemNumber) -> Response:
    """Return the picture or the sound of an item."""
    found = desk_of(request).project.items[number]
    if found.folder is None:
        raise Refused(404, f"item: expected a picture or a sound, found a {found.kind}")
    return file_answer(found.folder, found.content)


_ENDINGS = {"wide": ".csv", "long": ".long.csv", "label-studio": ".label-studio.json"}


@router.get("/progress")
def progress(request: Request, annotator: AnnotatorQuery = None) -> bodies.ProgressBody:
    """Return counts, pace and questions saved."""
    desk, visitor = desk_of(request), visitor_of(request)
    report, name, sees_all = desk.report(), desk.name_of(visitor, annotator), visitor.may("reviewer")
    return progress_body(report, [one for one in report.progress.people if sees_all or one.name == name])


@router.get("/agreement")
def agreement(request: Request) -> bodies.AgreementBody:
    """Return how much people agree."""
    desk = desk_of(request)
    desk.require(visitor_of(request), "reviewer")
    return agreement_body(desk.report().agreement, desk.project.labels.names(), _people(desk))


@router.get("/review")
def review(
    request: Request,
    start: Annotated[int, Query(ge=0, le=bodies.MOST_NUMBER)] = 0,
    most: Annotated[int, Query(ge=1, le=200)] = 50,
    annotator: AnnotatorQuery = None,
) -> bodies.ReviewBody:
    """Return what people disagree about and no reviewer has settled."""
    desk, visitor = desk_of(request), visitor_of(request)
    desk.require(visitor, "reviewer")
    disputes = desk.report().agreement.disputes
    labels, people = desk.project.labels.names(), _people(desk)
    some = [dispute_body(dispute, desk.project, labels, people) for dispute in disputes[start : start + most]]
    return bodies.ReviewBody(turn=desk.turn_of(visitor, annotator), total=len(disputes), disputes=some)


@router.post("/review")
def settle(request: Request, said: bodies.Settle, annotator: AnnotatorQuery = None) -> bodies.ReviewBody:
    """Settle what people disagree about; return what is left."""
    desk = desk_of(request)
    desk.require(visitor_of(request), "reviewer")
    seat_of(request, annotator).settle(said)
    desk.recount()
    return review(request, annotator=annotator)


@router.get("/models")
def models(request: Request) -> bodies.ModelsBody:
    """Return the versions of the model, and what the trainer does."""
    desk = desk_of(request)
    current, figures = desk.project.models.current(), {one.version: one for one in qualities(desk.project)}
    status, bench = desk.trainer.status, desk.workbench.bench
    versions = [
        bodies.VersionBody(
            version=one.number,
            created=one.created,
            note=one.note,
            in_use=current is not None and one.number == current.number,
            can_be_used=bool(one.path),
            quality=quality_body(figures.get(one.number)),
        )
        for one in desk.project.models.all()
    ]
    return bodies.ModelsBody(
        versions=versions,
        basis=bench.scored.basis,
        notes=list(desk.workbench.notes()),
        trainer=status.state,
        message=status.message,
        sees=ItemData.kind_attached(desk.project),
    )


@router.post("/models/train")
def train(request: Request, _: bodies.Nothing, annotator: AnnotatorQuery = None) -> bodies.ModelsBody:
    """Begin to train a new version, unless that is under way."""
    desk = desk_of(request)
    desk.require(visitor_of(request), "owner")
    if desk.trainer.start():
        desk.project.audit.add("train", seat_of(request, annotator).annotator)
    return models(request)


@router.post("/models/use")
def use(request: Request, said: bodies.Use, annotator: AnnotatorQuery = None) -> bodies.ModelsBody:
    """Put a version in use, an earlier one to roll back."""
    desk = desk_of(request)
    desk.require(visitor_of(request), "owner")
    there = [one.number for one in desk.project.models.all() if one.path]
    if said.version is not None and said.version not in there:
        raise Refused(404, f"version: expected one of {there}, of which there are files, found {said.version}")
    desk.project.models.use(said.version, seat_of(request, annotator).annotator)
    desk.workbench.refresh()
    return models(request)


@router.get("/export", response_class=FileResponse)
def export(
    request: Request, format: Annotated[str, Query(max_length=20)] = "long", annotator: AnnotatorQuery = None
) -> FileResponse:
    """Return everything that was said as a file; ``X-Lost`` says what the format cannot."""
    desk = desk_of(request)
    desk.require(visitor_of(request), "owner")
    chosen = FORMATS[format_of("", format)]
    data = desk.workbench.item_data() if chosen.needs_features else None
    name = desk.project.name + _ENDINGS.get(format, f".{format}")
    desk.project.audit.add("export", seat_of(request, annotator).annotator, format=format)
    folder = Path(tempfile.mkdtemp(prefix="slatewise-"))
    try:
        export_answers(desk.project, folder / name, format, X=None if data is None else data.X)
    except BaseException:
        shutil.rmtree(folder)
        raise
    lost, ended = chosen.lost(desk.project), BackgroundTask(shutil.rmtree, folder)
    return FileResponse(folder / name, headers={"x-lost": lost} if lost else None, filename=name, background=ended)


def _people(desk: Desk) -> dict[int, str]:
    return {person.number: person.shown for person in desk.project.people.all()}


AnnotatorQuery: TypeAlias = Annotated[
    str | None,
    Query(alias="annotator", max_length=100, description="Who labels, on a machine of one's own; else the token says."),
]


def desk_of(request: Request) -> Desk:
    """Return the desk of the application."""
    return cast("Desk", request.app.state.desk)


def visitor_of(request: Request) -> Visitor:
    """Return who was let in."""
    return cast("Visitor", request.state.visitor)


def seat_of(request: Request, annotator: str | None) -> Seat:
    """Return the seat of the person who asks."""
    return desk_of(request).seat(visitor_of(request), annotator)
