"""What goes wrong, as a reply that says where and what was expected."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from slatewise.core.errors import ProjectError, printable
from slatewise.core.rules import short_repr

_log = logging.getLogger("slatewise.labeling")
_MOST = 400


class Refusal(BaseModel):
    """Why something was not done."""

    detail: str


DESCRIPTIONS: Mapping[int, str] = {
    400: "The request is not one that a page of ours, or an honest program, would send.",
    401: "A token is expected.",
    403: "Another role, origin or form token is expected.",
    404: "There is no such thing.",
    408: "The body did not come in time.",
    409: "Something else was done meanwhile, or somebody else has the item.",
    413: "The body is too large.",
    421: "Another name leads here than that of this server.",
    422: "A value is not as expected.",
    429: "Too many wrong tokens were shown.",
    503: "The project cannot be written to at the moment; nothing was recorded, and the same can be sent again.",
}
_BY_THE_GUARD = {400, 401, 403, 408, 413, 421, 429}
"""Before the application sees a request: plain text."""
_TEXT: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal, "description": text} | ({"content": _TEXT} if status in _BY_THE_GUARD else {})
    for status, text in DESCRIPTIONS.items()
}


class Refused(Exception):
    """Raised where a request cannot be followed."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


def answer_in_words(app: FastAPI) -> None:
    """Make an application answer with these words for whatever is raised in its routes."""
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(ValueError, _not_valid)
    app.add_exception_handler(IndexError, _not_there)
    app.add_exception_handler(ProjectError, _cannot_write)
    app.add_exception_handler(OSError, _cannot_write)


def _answer(status: int, text: str, **headers: str) -> JSONResponse:
    return JSONResponse({"detail": printable(text, _MOST)}, status, headers=headers or None)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return _answer(error.status, error.text)


async def _not_valid(_: Request, error: Exception) -> JSONResponse:
    if isinstance(error, RequestValidationError):
        return _answer(422, "; ".join(_in_words(one) for one in error.errors()[:3]))
    return _answer(422, str(error))


async def _not_there(_: Request, error: Exception) -> JSONResponse:
    return _answer(404, str(error))


async def _cannot_write(_: Request, error: Exception) -> JSONResponse:
    _log.warning("%s", error)
    return _answer(503, str(error), **{"Retry-After": "5"})


def _in_words(error: Mapping[str, Any]) -> str:
    """Return what pydantic found as ``name: expected ..., found ...``.

    Examples
    --------
    >>> _in_words({"loc": ("body", "label"), "type": "int_type", "msg": "Input should be a number", "input": "a"})
    "label: expected a number, found 'a'"
    """
    place = ".".join(str(part) for part in error["loc"][1:]) or str(error["loc"][0])
    match error["type"]:
        case "missing":
            return f"{place}: expected, found nothing"
        case "extra_forbidden":
            return f"{place}: expected no such name"
        case "json_invalid":
            return f"body: expected JSON, found another text at character {error['loc'][-1]}"
        case _:
            expected = str(error["msg"]).removeprefix("Input should be ")
            return f"{place}: expected {expected}, found {short_repr(error.get('input'))}"
