"""What goes into the routes and what comes out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from slatewise.labeling.agreement import Agreement, Dispute
from slatewise.labeling.calibration_set import Quality
from slatewise.labeling.item_data import Seen
from slatewise.labeling.item_state import ItemView, ListedLabel, Question, Word
from slatewise.labeling.plan import By
from slatewise.labeling.progress_report import PersonCount, ProgressReport
from slatewise.labeling.scored_items import Basis
from slatewise.labeling.store.project import Project
from slatewise.labeling.store.records import Item, Kind
from slatewise.web.tokens import Role

MOST_NUMBER = 2**31 - 1
_MOST_MILLISECONDS = 86_400_000
Number = Annotated[int, Field(ge=0, le=MOST_NUMBER)]
Milliseconds = Annotated[int | None, Field(ge=0, le=_MOST_MILLISECONDS, description="How long the person took.")]
Turn = Annotated[
    int | None,
    Field(ge=0, le=2**53, description="Of the last reply; if it is left out, what is sent twice is recorded twice."),
]


class _Asked(BaseModel):
    """What is sent: nothing that is not known, and no text where a number is meant."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NextItem(_Asked):
    """Ask for an item."""

    item: Number | None = Field(None, description="The item to leave. If another one is open, that one stays.")
    by: By | None = Field(None, description="What is best; default: as the plan of the project says.")


class Answer(_Asked):
    """Answer for a label; one that was not asked for counts as volunteered."""

    item: Number = Field(description="Opened first if it is not open.")
    label: Number
    said: Word
    milliseconds: Milliseconds = None
    turn: Turn = None


class Skip(_Asked):
    """Leave an item to others."""

    item: Number
    milliseconds: Milliseconds = None
    turn: Turn = None


class Done(_Asked):
    """Be done with an item."""

    item: Number
    shown: list[Number] | None = Field(
        None,
        max_length=100_000,
        description="Labels that were listed: those without an answer are a no. Default: those of the reply.",
    )
    milliseconds: Milliseconds = None
    turn: Turn = None


class Undo(_Asked):
    """Take the last act back."""

    turn: Turn = None


class Settle(_Asked):
    """Decide what people disagree about."""

    item: Number
    label: Number
    said: Word
    turn: Turn = None


class Use(_Asked):
    """Put a version of the model in use."""

    version: Number | None = Field(description="None: no model.")


class Nothing(_Asked):
    """An empty body."""


class Me(BaseModel):
    """Who one is, and what does not change while one labels."""

    annotator: str
    local: bool = Field(description="Whether this is a machine of one's own, where ?annotator=... says who labels.")
    role: Role
    form_token: str = Field(description="To send as X-Form-Token with everything that changes something.")
    project: str
    items: int
    labels: list[str]
    names: int = Field(description="Another number once labels are renamed or added.")
    formats: list[str] = Field(
        description="In which everything can be exported; npz and svmlight if there are features."
    )


class ItemBody(BaseModel):
    """Something to label."""

    number: int
    id: str
    kind: Kind
    text: str | None = Field(description="Of a text.")
    link: str | None = Field(description="Of a link.")
    file: str | None = Field(description="Where the picture or sound is served.")


class PushBody(BaseModel):
    """What another label did to the log-odds of the one that is asked for."""

    name: str
    by: float
    because: str


class QuestionBody(BaseModel):
    """The label that is asked for, and why."""

    label: int
    name: str
    probability: float | None
    before: float | None = Field(description="How likely it was before the first answer.")
    reason: str
    pushes: list[PushBody]


class LabelBody(BaseModel):
    """A label of a list."""

    label: int
    name: str
    probability: float | None
    said: Word | None


class ViewBody(BaseModel):
    """An item as it stands for the person."""

    question: QuestionBody | None = Field(description="None: nothing is left to ask.")
    listed: list[LabelBody] = Field(description="What is there, then what is likely.")
    answered: list[LabelBody] = Field(description="What the person said.")
    asked: int = Field(description="How many questions the person answered.")
    instead_of: int = Field(description="How many there would be without a model.")
    chance: float | None = Field(description="That nothing that was not asked is there.")
    enough: bool = Field(description="Whether that is as much as the plan wants.")
    calibrated: bool
    honest: bool = Field(description="Whether the item is labelled without the model, so that it can be measured.")
    basis: Basis
    version: int | None
    notes: list[str] = Field(description="What the person should know.")


class TurnBody(BaseModel):
    """Where a person stands."""

    annotator: str
    turn: int = Field(description="The number of the person's last act, to send back.")
    item: ItemBody | None
    view: ViewBody | None
    message: str = Field(description="What was done, or why there is no item; often empty.")
    names: int = Field(description="As of /api/me: if it is another, ask there for the names of the labels.")


class LabelCountBody(BaseModel):
    """What everybody said of a label."""

    name: str
    yes: int
    no: int
    not_known: int


class PersonBody(BaseModel):
    """What a person did."""

    name: str
    answers: int
    asked: int
    done: int
    skipped: int
    seconds_per_answer: float | None
    items_per_hour: float | None


class ProgressBody(BaseModel):
    """How far the project is; at most some seconds old."""

    items: int
    finished: int
    begun: int
    questions: float | None = Field(description="Median over visits that are done with the model.")
    instead_of: int
    saved: int
    hours_left: float | None
    honest_done: int
    honest: int
    disputes: int
    last_act: int = Field(description="The last act that is counted; later ones may not be.")
    labels: list[LabelCountBody]
    people: list[PersonBody] = Field(description="Everybody for a reviewer, oneself for an annotator.")


class PairBody(BaseModel):
    """How much two people agree."""

    people: tuple[str, str]
    n_common: int
    same: float
    kappa: float | None


class LabelAlphaBody(BaseModel):
    """How much people agree about a label."""

    name: str
    alpha: float | None


class AgreementBody(BaseModel):
    """How much people agree."""

    n_units: int
    alpha: float | None
    labels: list[LabelAlphaBody]
    pairs: list[PairBody]


class DisputeBody(BaseModel):
    """A label of an item that people disagree about."""

    item: ItemBody
    label: int
    name: str
    yes: list[str]
    no: list[str]


class ReviewBody(BaseModel):
    """What is left to settle."""

    turn: int = Field(description="The number of the person's last act, to send back.")
    total: int
    disputes: list[DisputeBody]


class QualityBody(BaseModel):
    """What a version is worth on items labelled without it."""

    n_items: int
    break_even: float | None
    stopped: float | None
    missed: float | None
    questions: float | None


class VersionBody(BaseModel):
    """A version of the model."""

    version: int
    created: int = Field(description="Milliseconds since 1970, UTC.")
    note: str
    in_use: bool
    can_be_used: bool = Field(description="Whether there is a file of it.")
    quality: QualityBody | None


class ModelsBody(BaseModel):
    """The versions, the oldest first, and what the trainer does."""

    versions: list[VersionBody]
    basis: Basis = Field(description="Who says at the moment how likely labels are.")
    notes: list[str]
    trainer: Literal["idle", "training", "trained", "failed"]
    message: str
    sees: Seen = Field(
        description="What a model sees of an item; without anything it learns which labels come together."
    )


class Report(NamedTuple):
    """How far the project is."""

    last_act: int
    """The last act that is counted for sure."""
    progress: ProgressReport
    agreement: Agreement


def number(value: float | None) -> float | None:
    """Return a number that JSON has: None for NaN and infinity."""
    return float(value) if value is not None and math.isfinite(value) else None


def item_body(place: int, item: Item) -> ItemBody:
    """Return an item as the page shows it."""
    return ItemBody(
        number=place,
        id=item.id,
        kind=item.kind,
        text=item.content if item.kind == "text" else None,
        link=item.content if item.kind == "link" else None,
        file=f"/api/items/{place}/file" if item.folder is not None else None,
    )


def view_body(view: ItemView) -> ViewBody:
    """Return what a person sees of an item."""
    return ViewBody(
        question=None if view.question is None else _question(view.question),
        listed=_labels(view.listed),
        answered=_labels(view.answered),
        asked=view.asked,
        instead_of=view.instead_of,
        chance=number(view.chance),
        enough=view.enough,
        calibrated=view.calibrated,
        honest=view.honest,
        basis=view.basis,
        version=view.version,
        notes=list(view.notes),
    )


def progress_body(counted: Report, people: Iterable[PersonCount]) -> ProgressBody:
    """Return how far the project is, with what these people did."""
    report = counted.progress
    return ProgressBody(
        items=report.items,
        finished=report.finished,
        begun=report.begun,
        questions=number(report.questions),
        instead_of=report.instead_of,
        saved=report.saved,
        hours_left=number(report.hours_left),
        honest_done=report.honest_done,
        honest=report.honest,
        disputes=len(counted.agreement.disputes),
        last_act=counted.last_act,
        labels=[LabelCountBody(**label._asdict()) for label in report.labels],
        people=[_person(person) for person in people],
    )


def agreement_body(agreement: Agreement, labels: list[str], people: Mapping[int, str]) -> AgreementBody:
    """Return how much people agree."""
    pairs = [
        PairBody(
            people=(people[pair.annotators[0]], people[pair.annotators[1]]),
            n_common=pair.n_common,
            same=pair.same,
            kappa=number(pair.kappa),
        )
        for pair in agreement.pairs
    ]
    by_label = zip(labels, agreement.alpha_by_label.tolist(), strict=False)  # a label may have been added since
    return AgreementBody(
        n_units=agreement.n_units,
        alpha=number(agreement.alpha),
        labels=[LabelAlphaBody(name=name, alpha=number(alpha)) for name, alpha in by_label],
        pairs=pairs,
    )


def dispute_body(dispute: Dispute, project: Project, labels: list[str], people: Mapping[int, str]) -> DisputeBody:
    """Return what people disagree about."""
    return DisputeBody(
        item=item_body(dispute.item, project.items[dispute.item]),
        label=dispute.label,
        name=labels[dispute.label],
        yes=[people[one] for one in dispute.yes],
        no=[people[one] for one in dispute.no],
    )


def quality_body(quality: Quality | None) -> QualityBody | None:
    """Return what a version is worth."""
    if quality is None:
        return None
    return QualityBody(
        n_items=quality.n_items,
        break_even=number(quality.break_even),
        stopped=number(quality.stopped),
        missed=number(quality.missed),
        questions=number(quality.questions),
    )


def _question(question: Question) -> QuestionBody:
    reason = question.reason
    return QuestionBody(
        label=question.label,
        name=question.name,
        probability=number(question.probability),
        before=number(reason.before),
        reason=reason.text,
        pushes=[PushBody(name=push.name, by=push.by, because=push.because) for push in reason.pushes],
    )


def _labels(labels: Iterable[ListedLabel]) -> list[LabelBody]:
    return [
        LabelBody(label=one.label, name=one.name, probability=number(one.probability), said=one.said) for one in labels
    ]


def _person(person: PersonCount) -> PersonBody:
    return PersonBody(
        name=person.name,
        answers=person.answers,
        asked=person.asked,
        done=person.done,
        skipped=person.skipped,
        seconds_per_answer=number(person.seconds_per_answer),
        items_per_hour=number(person.items_per_hour),
    )
