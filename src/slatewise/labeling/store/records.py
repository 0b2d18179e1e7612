"""What a project holds, one frozen record per kind of row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.web.tokens import Role

MOST_MILLISECONDS = 253402300799999
"""Of times and lengths of time: the end of the year 9999."""


class Between(NamedTuple):
    """What a number may be, both ends included."""

    least: float
    most: float


# What is noted beside a type, a table whose numbers it has or what it is between, is checked of every row that is read.
ItemNumber: TypeAlias = Annotated[int, "items"]
LabelNumber: TypeAlias = Annotated[int, "labels"]
PersonNumber: TypeAlias = Annotated[int, "annotators"]
ModelNumber: TypeAlias = Annotated[int, "models"]
Milliseconds: TypeAlias = Annotated[int, Between(0, MOST_MILLISECONDS)]
Chance: TypeAlias = Annotated[float, Between(0.0, 1.0)]
Kind: TypeAlias = Literal["image", "text", "audio", "link"]
AnswerValue: TypeAlias = Literal[1, 0, -1]
"""Yes, no, don't know."""
How: TypeAlias = Literal["question", "volunteered", "closed", "confirmed", "reviewed"]
"""Why there is an answer.

``question``: it answers a question. ``volunteered``: it answers none. ``closed``: the label was listed, and the person
was done without an answer to it, which is a no. ``confirmed``: the person volunteered it, and was then done with a list
that showed it. ``reviewed``: a reviewer settled it.
"""
ActKind: TypeAlias = Literal["answer", "done", "skip"]


@dataclass(frozen=True)
class Item:
    """Something to label: a file below ``folder`` (image, audio), a text, or the address of a link."""

    id: str
    kind: Kind
    content: str
    folder: Path | None = None

    @property
    def path(self) -> Path:
        """Where the file is."""
        if self.folder is None:
            raise ValueError(f"path: expected an item that is a file, found the {self.kind} {self.id!r}")
        return self.folder / self.content


class Given(NamedTuple):
    """An answer of an act to one label."""

    label: int
    value: int
    how: How = "question"
    probability: float | None = None
    """What the model believed before."""


@dataclass(frozen=True)
class Act:
    """One thing that one annotator did to one item."""

    kind: ActKind
    item: int
    annotator: int
    given: tuple[Given, ...] = ()
    time: int | None = None
    """Milliseconds since 1970, UTC; None: now."""
    milliseconds: int | None = None
    """How long the person took."""
    model: int | None = None
    """The version of the model that was in use; None: none was."""


class Answer(NamedTuple):
    """One answer with all that is known of how it came about."""

    item: ItemNumber
    annotator: PersonNumber
    label: LabelNumber
    value: AnswerValue
    how: How
    probability: Chance | None
    time: Milliseconds
    milliseconds: Milliseconds | None
    model: ModelNumber | None
    act: int
    undone: bool = False


class Mark(NamedTuple):
    """An item that an annotator is done with, or skipped."""

    item: ItemNumber
    annotator: PersonNumber
    kind: Literal["done", "skip"]
    time: Milliseconds
    milliseconds: Milliseconds | None
    model: ModelNumber | None
    act: int


class Recorded(NamedTuple):
    """An act as it was recorded, with label and value if it is an answer."""

    act: int
    kind: Literal["answer", "done", "skip", "undo"]
    item: ItemNumber
    label: LabelNumber | None
    value: AnswerValue | None


class Undone(NamedTuple):
    """The act that an undo took back."""

    act: int
    kind: ActKind
    item: int
    labels: tuple[int, ...]


class Person(NamedTuple):
    """Somebody who answers; a name that was removed is None."""

    number: int
    name: str | None
    pseudonym: str

    @property
    def shown(self) -> str:
        """What to call the person."""
        return self.pseudonym if self.name is None else self.name


class ModelVersion(NamedTuple):
    """A version of the model, and the last act that it had seen when it was trained."""

    number: int
    path: str
    created: Milliseconds
    note: str
    last_act: int


class Token(NamedTuple):
    """Somebody's right to enter: the digest of a secret that is kept nowhere."""

    number: int
    digest: str
    role: Role
    annotator: PersonNumber
    created: Milliseconds
    revoked: Milliseconds | None


class Logged(NamedTuple):
    """A line of the audit log."""

    number: int
    time: Milliseconds
    annotator: PersonNumber | None
    what: str
    detail: dict[str, object]


@dataclass(frozen=True, eq=False)
class ItemAnswers:
    """Where one annotator stands with one item."""

    values: NDArray[np.int8]
    """(labels,) 1 yes, 0 no, -1 unknown or "don't know"."""
    answered: NDArray[np.bool_]
    """(labels,) whether there is an answer; "don't know" is one."""
    mark: Literal["open", "done", "skip"]
