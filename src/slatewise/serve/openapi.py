"""The OpenAPI document of the loaded models, with their own schemas, and with examples that they have answered."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType

from slatewise._version import __version__
from slatewise.serve.endpoints.base import Endpoint
from slatewise.serve.models import Models, Version
from slatewise.serve.settings import Limits
from slatewise.web.codec import JSON, MESSAGEPACK

QUESTIONS = ("rank", "scores", "explain", "next_question")
_REF = "#/components/schemas/{name}"


class Error(msgspec.Struct):
    """Why a request was not answered."""

    place: str
    message: str


class Model(msgspec.Struct):
    """A model of the service; more fields describe one that is ready."""

    name: str
    ready: bool
    refused: Annotated[str | None, Meta(description="Why the file that is there now was refused.")]
    version: Annotated[str, Meta(description="The start of the sha256 of the file.")] | UnsetType = UNSET
    estimator: str | UnsetType = UNSET
    routes: list[str] | UnsetType = UNSET


class AllModels(msgspec.Struct):
    """All models."""

    models: list[Model]


class Status(msgspec.Struct):
    """The process is alive."""

    status: str


class Readiness(msgspec.Struct):
    """Whether requests are welcome, and what is missing: the numbers of models and workers."""

    status: Literal["starting", "ready", "stopping"]
    waits_for: list[str]


_ERRORS = {
    "400": "The body is not JSON or MessagePack, or the request is not valid HTTP.",
    "404": "There is no such model, or it does not answer this.",
    "415": "The body is of another type, or compressed.",
    "422": "A field is wrong; place names it.",
    "429": "The queue is full, or there were too many wrong tokens: Retry-After says when to try again.",
    "500": "The server failed; its log says why.",
    "503": "The model is not loaded yet, or there are too many connections.",
    "504": "There was no answer in time.",
}
_GUARD_ERRORS = {
    "400": "The request is not valid HTTP.",
    "401": "A token is missing or wrong.",
    "403": "The request comes from another site.",
    "405": "The method is not allowed.",
    "408": "The body came too slowly.",
    "413": "The body is too large.",
    "421": "The server does not have this name.",
}


def document(models: Models, limits: Limits, address: str) -> dict[str, Any]:
    """Return the document of the moment; models that are not loaded yet have no paths."""
    paths: dict[str, Any] = _common_paths([models.about(name) for name in models.names])
    schemas: dict[str, Any] = msgspec.json.schema_components([Error, AllModels, Status, Readiness], ref_template=_REF)[
        1
    ]
    for name in models.names:
        version = models.get(name)
        if version is not None:
            for endpoint in version.endpoints.values():
                paths[f"/v1/models/{name}/{endpoint.name}"] = {"post": _operation(version, endpoint, schemas)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "slatewise", "version": __version__, "description": _description(limits)},
        "servers": [{"url": address}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _description(limits: Limits) -> str:
    return (
        f"One request: at most {limits.queries} queries, lists of {limits.k} items, {limits.numbers} scores in all, "
        f"lists of {limits.ids} ids, {limits.body_bytes} bytes, {limits.seconds:g} s. At most {limits.waiting} of them "
        f"wait for a model, and {limits.large} with large bodies are answered at the same time. Requests are answered "
        f"together where they can be, {limits.batch} queries at most, and none waits for that."
    )


def _operation(version: Version, endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    """Describe an endpoint; its types are named by the model, because their limits depend on it."""
    prefix = f"{version.name}_"
    (request, part), found = msgspec.json.schema_components([endpoint.request, endpoint.part], ref_template=_REF)
    schemas.update({f"{prefix}{name}": _renamed(schema, prefix, found) for name, schema in found.items()})
    request, part = _renamed(request, prefix, found), _renamed(part, prefix, found)
    answer = {
        "type": "object",
        "properties": {
            "model": {"const": version.name},
            "version": {"type": "string"},
            "answers": {"type": "array", "items": part},
            "warnings": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["model", "version", "answers", "warnings"],
    }
    example = msgspec.to_builtins(endpoint.example)
    answered: dict[str, Any] = {
        "model": version.name,
        "version": version.version,
        "answers": msgspec.json.decode(msgspec.json.encode(version.examples[endpoint.name])),
        "warnings": [],
    }
    return {
        "summary": endpoint.summary,
        "operationId": f"{version.name}_{endpoint.name}",
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": request, "example": example}, MESSAGEPACK: {"schema": request}},
        },
        "responses": {
            "200": {
                "description": endpoint.summary,
                "content": {JSON: {"schema": answer, "example": answered}, MESSAGEPACK: {"schema": answer}},
            },
            **_errors(_ERRORS),
        },
    }


def _errors(own: dict[str, str]) -> dict[str, Any]:
    """Return the error responses: ours in JSON or MessagePack, those of the guard in plain text."""
    both = {**_both(Error), "text/plain": {"schema": {"type": "string"}}}
    later = {"Retry-After": {"schema": {"type": "string"}, "description": "Seconds."}}
    answers: dict[str, Any] = {}
    for status, description in sorted((_GUARD_ERRORS | own).items()):
        answers[status] = {"description": description, "content": both}
        if status in ("429", "503"):
            answers[status]["headers"] = later
    return answers


def _renamed(schema: Any, prefix: str, names: Any) -> Any:
    """Add a prefix to the names in references."""
    if isinstance(schema, dict):
        parts = cast("dict[str, Any]", schema)
        return {key: _renamed(value, prefix, names) for key, value in parts.items()}
    if isinstance(schema, list):
        return [_renamed(value, prefix, names) for value in cast("list[Any]", schema)]
    start = _REF.format(name="")
    if isinstance(schema, str) and schema.startswith(start) and schema.removeprefix(start) in names:
        return _REF.format(name=prefix + schema.removeprefix(start))
    return schema


def _common_paths(about: list[dict[str, Any]]) -> dict[str, Any]:
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}, "example": about[0]["name"]}
    nothing = {"404": _ERRORS["404"], "429": _ERRORS["429"], "503": _ERRORS["503"]}
    yes: dict[str, Any] = {"status": "ready", "waits_for": []}
    not_yet = {"503": "Models or workers are loading, or it stops."}
    ready = _get("Whether requests are welcome.", _both(Readiness, yes), {"429": _ERRORS["429"], **not_yet})
    ready["responses"]["503"]["content"] = _both(Readiness)
    ready["responses"]["503"]["content"]["text/plain"] = {"schema": {"type": "string"}}  # too many connections
    return {
        "/health": {"get": _get("Whether the process lives.", _both(Status, {"status": "alive"}), nothing)},
        "/ready": {"get": ready},
        "/metrics": {"get": _get("Figures for Prometheus.", {"text/plain": {"schema": {"type": "string"}}}, nothing)},
        "/openapi.json": {"get": _get("This document.", {JSON: {"schema": {"type": "object"}}}, nothing)},
        "/v1/models": {"get": _get("All models.", _both(AllModels, {"models": about}), nothing)},
        "/v1/models/{name}": {"get": _get("One model.", _both(Model, about[0]), nothing), "parameters": [name]},
    }


def _both(kind: type[msgspec.Struct], example: Any = None) -> dict[str, Any]:
    """Return the content of an answer, a type of the document, in both formats."""
    schema, examples = {"$ref": _REF.format(name=kind.__name__)}, {} if example is None else {"example": example}
    return {JSON: {"schema": schema, **examples}, MESSAGEPACK: {"schema": schema}}


def _get(summary: str, content: dict[str, Any], own: dict[str, str]) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": {"description": summary, "content": content}, **_errors(own)}}
