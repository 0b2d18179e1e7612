"""Items, questions and answers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from slatewise.labeling.exchange.formats import FORMATS
from slatewise.labeling.item_data import ItemData
from slatewise.labeling.page import bodies
from slatewise.labeling.page.asking import AnnotatorQuery, desk_of, seat_of, visitor_of
from slatewise.labeling.page.files import file_answer
from slatewise.labeling.page.refusals import Refused
from slatewise.labeling.page.shown import item_body

router = APIRouter(prefix="/api", tags=["labeling"])
ItemNumber = Annotated[int, Path(ge=0, le=bodies.MOST_NUMBER)]


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
