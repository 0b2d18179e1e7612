"""Who asks, and of which desk: what the routes read from a request. Routes are plain functions, run in threads."""

from __future__ import annotations

from typing import Annotated, TypeAlias, cast

from fastapi import Query, Request

from slatewise.labeling.page.desk import Desk
from slatewise.labeling.page.seat import Seat
from slatewise.web.tokens import Visitor

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
