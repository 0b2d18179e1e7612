"""What a model answers: for each question a door, with a type that checks a request and documents it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

Request: TypeAlias = Any
"""An instance of a door's request type, whose fields depend on the model."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A request that passed the door."""

    request: Request
    size: int
    """How many queries it has."""
    key: Hashable | None
    """Requests with the same key can be answered together; None: alone."""
    warnings: tuple[str, ...] = ()
    parts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the check has made of the request, for those who answer."""


@dataclass(frozen=True, eq=False)
class Door:
    """One question that one version of a model answers."""

    name: str
    """As in the path: rank, scores, explain, next_question."""
    request: type[msgspec.Struct]
    part: type[msgspec.Struct]
    """What it answers for one query."""
    check: Callable[[Request], Asked]
    """Raises :class:`RequestError` where something is wrong that the type cannot say."""
    respond: Callable[[Sequence[Asked]], list[list[Any]]]
    """Answers requests of one key, each with a list of one part per query."""
    form: str
    """What its queries are: ids, sessions, rows or documents."""
    example: Request
    """A real request that the warm start makes, and the document shows."""
    summary: str = ""
    others: Sequence[Request] = ()
    """Requests that go other ways through the estimator: the warm start makes them too, so that no switch is compiled
    while somebody waits."""
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else there is to say of the model: how many items it ranks, and what their ids are."""


Doors: TypeAlias = Mapping[str, Door]
