"""The OpenAPI document of the page, made from the table of routes and the types of their bodies."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import msgspec

from slatewise._version import __version__
from slatewise.labeling.page.bodies import ErrorBody
from slatewise.labeling.page.routes import ROUTES, PageRoute
from slatewise.web.codec import JSON

_REF = "#/components/schemas/{name}"
_ERRORS = {
    400: "The request is not one that our page, or an honest program, would send.",
    401: "A token is expected.",
    403: "Another role, origin or form token is expected.",
    404: "There is no such thing.",
    408: "The body did not come in time.",
    409: "Something else was done meanwhile, or somebody else has the item.",
    413: "The body is too large.",
    421: "The server does not have this name.",
    422: "A value is not as expected.",
    429: "Too many wrong tokens were shown.",
    503: "The project cannot be written to at the moment; nothing was recorded, and the same can be sent again.",
}
_BY_THE_GUARD = {400, 401, 403, 408, 413, 421, 429}
"""Sent before the application sees a request: plain text."""


@cache
def document() -> bytes:
    """Return the document as JSON."""
    kinds = [kind for route in ROUTES for kind in (route.reply, route.body) if kind is not None]
    _, schemas = msgspec.json.schema_components([*kinds, ErrorBody], ref_template=_REF)
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    written = {
        "openapi": "3.1.0",
        "info": {
            "title": "slatewise labeling",
            "version": __version__,
            "description": "Label items by answering the best next question.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }
    return msgspec.json.encode(written)


def _operation(route: PageRoute) -> dict[str, Any]:
    summary = inspect.getdoc(route.respond)
    success: dict[str, Any] = {"description": summary}
    if route.reply is not None:
        success["content"] = _json(route.reply)
    operation: dict[str, Any] = {
        "summary": summary,
        "operationId": f"{route.method.lower()}_{route.respond.__name__}",
        "parameters": _parameters(route),
        "responses": {"200": success} | {str(status): _error(status, text) for status, text in _ERRORS.items()},
    }
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _json(route.body)}
    return operation


def _parameters(route: PageRoute) -> list[dict[str, Any]]:
    schema = msgspec.json.schema_components([route.address])[1][route.address.__name__]
    found: list[dict[str, Any]] = []
    for name, one in schema.get("properties", {}).items():
        is_path = f"{{{name}}}" in route.path
        place = "path" if is_path else "query"
        found.append({"name": name, "in": place, "required": is_path, "schema": one})
    return found


def _json(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {JSON: {"schema": {"$ref": _REF.format(name=kind.__name__)}}}


def _error(status: int, text: str) -> dict[str, Any]:
    content = _json(ErrorBody)
    if status in _BY_THE_GUARD:
        content["text/plain"] = {"schema": {"type": "string"}}
    return {"description": text, "content": content}
