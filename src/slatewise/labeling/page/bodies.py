"""Bodies of the page's requests and replies, and the parameters in addresses: types that check, document and encode.

Requests are strict: no unknown names, no text instead of a number. Replies have the attributes of what they are made
from (:func:`fill`); NaN is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Meta, Struct

from slatewise.labeling.agreement import Agreement, Dispute
from slatewise.labeling.item_data import Seen
from slatewise.labeling.item_state import ListedLabel, Question, Word
from slatewise.labeling.plan import By
from slatewise.labeling.progress_report import PersonCount, ProgressReport
from slatewise.labeling.scored_items import Basis
from slatewise.labeling.store.project import Project
from slatewise.labeling.store.records import Item, Kind
from slatewise.web.tokens import Role

_Body = TypeVar("_Body", bound=Struct)
_MAX_NUMBER, _MAX_MILLISECONDS = 2**31 - 1, 86_400_000
Number: TypeAlias = Annotated[int, Meta(ge=0, le=_MAX_NUMBER)]
Milliseconds: TypeAlias = Annotated[
    Annotated[int, Meta(ge=0, le=_MAX_MILLISECONDS)] | None, Meta(description="How long the person took.")
]
Turn: TypeAlias = Annotated[
    Annotated[int, Meta(ge=0, le=2**53)] | None,
    Meta(description="Of the last reply; without it a request that is sent twice is recorded twice."),
]


def fill(kind: type[_Body], source: object, **others: Any) -> _Body:
    """Return a body with the attributes of an object, and with others."""
    names = [name for name in kind.__struct_fields__ if name not in others]
    return kind(**{name: getattr(source, name) for name in names}, **others)


# --- requests --------------------------------------------------------------------------------------------------------


class Address(Struct):
    """The parameters of an address: of its path and of its query."""


class ForAnnotator(Address):
    """A person."""

    annotator: (
        Annotated[str, Meta(max_length=100, description="Who labels, on a machine of one's own; else the token says.")]
        | None
    ) = None


class OfItem(Address):
    """An item."""

    number: Number


class OfReview(ForAnnotator):
    """A part of the disputes."""

    start: Number = 0
    most: Annotated[int, Meta(ge=1, le=200)] = 50


class OfExport(ForAnnotator):
    """A format."""

    format: Annotated[str, Meta(max_length=20)] = "long"


class RequestBody(Struct, forbid_unknown_fields=True):
    """An empty body."""


class NextItem(RequestBody):
    """Ask for an item."""

    item: Annotated[Number | None, Meta(description="The item to leave; if another one is open, that stays.")] = None
    by: Annotated[By | None, Meta(description="Which item is best; default: the order of the project's plan.")] = None


class Answer(RequestBody):
    """Answer for a label; if it is not the label of the question, the answer counts as volunteered."""

    item: Annotated[Number, Meta(description="Opened first if it is not open.")]
    label: Number
    answer: Word
    milliseconds: Milliseconds = None
    turn: Turn = None


class Skip(RequestBody):
    """Leave an item to others."""

    item: Number
    milliseconds: Milliseconds = None
    turn: Turn = None


class Done(RequestBody):
    """Be done with an item."""

    item: Number
    shown: Annotated[
        Annotated[list[Number], Meta(max_length=100_000)] | None,
        Meta(description="Labels that were listed: without an answer they are a no. Default: those of the reply."),
    ] = None
    milliseconds: Milliseconds = None
    turn: Turn = None


class Undo(RequestBody):
    """Take the last act back."""

    turn: Turn = None


class Settle(RequestBody):
    """Settle a dispute."""

    item: Number
    label: Number
    answer: Word
    turn: Turn = None


class Use(RequestBody):
    """Put a version of the model in use."""

    version: Annotated[Number | None, Meta(description="None: no model.")]


# --- replies ---------------------------------------------------------------------------------------------------------


class ErrorBody(Struct):
    """Why something was not done."""

    detail: str


class Me(Struct):
    """Who one is, and what does not change while one labels."""

    annotator: str
    local: Annotated[bool, Meta(description="Whether this is a machine of one's own, where ?annotator=... says who.")]
    role: Role
    form_token: Annotated[str, Meta(description="To send as X-Form-Token with everything that changes something.")]
    project: str
    items: int
    labels: list[str]
    names: Annotated[int, Meta(description="Another number once labels are renamed or added.")]
    formats: Annotated[list[str], Meta(description="Formats of exports; npz and svmlight if there are features.")]


class ItemBody(Struct):
    """Something to label."""

    number: int
    id: str
    kind: Kind
    text: Annotated[str | None, Meta(description="Of a text.")]
    link: Annotated[str | None, Meta(description="Of a link.")]
    file: Annotated[str | None, Meta(description="Where the picture or sound is served.")]

    @classmethod
    def of(cls, number: int, item: Item) -> ItemBody:
        """Return an item as the page shows it."""
        text, link = (item.content if item.kind == kind else None for kind in ("text", "link"))
        file = None if item.folder is None else f"/api/items/{number}/file"
        return cls(number, item.id, item.kind, text, link, file)


class ViewBody(Struct):
    """An item as it stands for the person."""

    question: Annotated[Question | None, Meta(description="None: nothing is left to ask.")]
    listed: Annotated[tuple[ListedLabel, ...], Meta(description="Labels with a yes, then the likely ones.")]
    answered: Annotated[tuple[ListedLabel, ...], Meta(description="The labels that the person answered.")]
    n_questions: Annotated[int, Meta(description="How many questions the person answered.")]
    labels_without_model: Annotated[int, Meta(description="How many questions there would be without a model.")]
    chance: Annotated[float | None, Meta(description="That no label without an answer is relevant.")]
    enough: Annotated[bool, Meta(description="Whether that is as much as the plan wants.")]
    calibrated: bool
    for_calibration: Annotated[bool, Meta(description="Whether the item is labeled without the model, to measure it.")]
    basis: Basis
    version: int | None
    notes: Annotated[tuple[str, ...], Meta(description="What the person should know.")]


class TurnBody(Struct):
    """Where a person stands."""

    annotator: str
    turn: Annotated[int, Meta(description="The number of the person's last act, to send back.")]
    item: ItemBody | None
    view: ViewBody | None
    message: Annotated[str, Meta(description="What was done, or why there is no item; often empty.")]
    names: Annotated[int, Meta(description="As of /api/me: if it is another, ask there for the names of the labels.")]


class LabelCountBody(Struct):
    """The answers to a label."""

    name: str
    yes: int
    no: int
    not_known: int


class PersonBody(Struct):
    """What a person did."""

    name: str
    answers: int
    questions: int
    done: int
    skipped: int
    seconds_per_answer: float | None
    items_per_hour: float | None


class Report(NamedTuple):
    """How far the project is: everything that is counted over all answers, at once."""

    last_act: int
    """The last act that is counted for sure."""
    progress: ProgressReport
    agreement: Agreement


class ProgressBody(Struct):
    """How far the project is; at most some seconds old."""

    items: int
    finished: int
    begun: int
    questions: Annotated[float | None, Meta(description="The median per item that is done with the model.")]
    labels_without_model: int
    saved: int
    hours_left: float | None
    calibration_done: int
    calibration_items: int
    disputes: int
    last_act: Annotated[int, Meta(description="The last act that is counted; later ones may not be.")]
    labels: list[LabelCountBody]
    people: Annotated[list[PersonBody], Meta(description="Everybody for a reviewer, oneself for an annotator.")]

    @classmethod
    def of(cls, report: Report, people: Iterable[PersonCount]) -> ProgressBody:
        """Return how far the project is, with what these people did."""
        return fill(
            cls,
            report.progress,
            disputes=len(report.agreement.disputes),
            last_act=report.last_act,
            labels=[fill(LabelCountBody, label) for label in report.progress.labels],
            people=[fill(PersonBody, person) for person in people],
        )


class PairBody(Struct):
    """How much two people agree."""

    people: tuple[str, str]
    n_common: int
    same: float
    kappa: float | None


class LabelAlphaBody(Struct):
    """How much people agree about a label."""

    name: str
    alpha: float | None


class AgreementBody(Struct):
    """How much people agree."""

    n_units: int
    alpha: float | None
    labels: list[LabelAlphaBody]
    pairs: list[PairBody]

    @classmethod
    def of(cls, agreement: Agreement, labels: list[str], people: Mapping[int, str]) -> AgreementBody:
        """Return how much people agree, with the names of labels and people."""
        by_label = zip(labels, agreement.alpha_by_label.tolist(), strict=False)  # a label may have been added since
        pairs = [
            fill(PairBody, pair, people=(people[pair.annotators[0]], people[pair.annotators[1]]))
            for pair in agreement.pairs
        ]
        return fill(cls, agreement, labels=[LabelAlphaBody(name, alpha) for name, alpha in by_label], pairs=pairs)


class DisputeBody(Struct):
    """A label of an item that people disagree about."""

    item: ItemBody
    label: int
    name: str
    yes: list[str]
    no: list[str]

    @classmethod
    def of(cls, dispute: Dispute, project: Project, labels: list[str], people: Mapping[int, str]) -> DisputeBody:
        """Return a dispute, with the names of labels and people."""
        yes, no = ([people[one] for one in answered] for answered in (dispute.yes, dispute.no))
        item = ItemBody.of(dispute.item, project.items[dispute.item])
        return cls(item, dispute.label, labels[dispute.label], yes, no)


class ReviewBody(Struct):
    """The disputes that are left to settle."""

    turn: Annotated[int, Meta(description="The number of the person's last act, to send back.")]
    total: int
    disputes: list[DisputeBody]


class QualityBody(Struct):
    """What a version is worth on items labeled without it."""

    n_items: int
    break_even: float | None
    stopped: float | None
    missed: float | None
    questions: float | None


class VersionBody(Struct):
    """A version of the model."""

    version: int
    created: Annotated[int, Meta(description="Milliseconds since 1970, UTC.")]
    note: str
    in_use: bool
    can_be_used: Annotated[bool, Meta(description="Whether there is a file of it.")]
    quality: QualityBody | None


class ModelsBody(Struct):
    """The versions, the oldest first, and what the trainer does."""

    versions: list[VersionBody]
    basis: Annotated[Basis, Meta(description="What says at the moment how likely labels are.")]
    notes: tuple[str, ...]
    trainer: Literal["idle", "training", "trained", "failed"]
    message: str
    sees: Annotated[
        Seen, Meta(description="The data of an item for a model; without any it learns which labels come together.")
    ]
