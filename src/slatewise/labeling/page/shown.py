"""Sessions and reports as the bodies of replies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from slatewise.labeling.agreement import Agreement, Dispute
from slatewise.labeling.item_view import ItemView, ListedLabel, Question
from slatewise.labeling.page import bodies
from slatewise.labeling.page.report import Report
from slatewise.labeling.progress_report import PersonCount
from slatewise.labeling.quality import Quality
from slatewise.labeling.store.project import Project
from slatewise.labeling.store.records import Item


def number(value: float | None) -> float | None:
    """Return a number that JSON has: None for NaN and infinity."""
    return float(value) if value is not None and math.isfinite(value) else None


def item_body(place: int, item: Item) -> bodies.ItemBody:
    """Return an item as the page shows it."""
    return bodies.ItemBody(
        number=place,
        id=item.id,
        kind=item.kind,
        text=item.content if item.kind == "text" else None,
        link=item.content if item.kind == "link" else None,
        file=f"/api/items/{place}/file" if item.folder is not None else None,
    )


def view_body(view: ItemView) -> bodies.ViewBody:
    """Return what a person sees of an item."""
    return bodies.ViewBody(
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


def progress_body(counted: Report, people: Iterable[PersonCount]) -> bodies.ProgressBody:
    """Return how far the project is, with what these people did."""
    report = counted.progress
    return bodies.ProgressBody(
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
        labels=[bodies.LabelCountBody(**label._asdict()) for label in report.labels],
        people=[_person(person) for person in people],
    )


def agreement_body(agreement: Agreement, labels: list[str], people: Mapping[int, str]) -> bodies.AgreementBody:
    """Return how much people agree."""
    pairs = [
        bodies.PairBody(
            people=(people[pair.annotators[0]], people[pair.annotators[1]]),
            n_common=pair.n_common,
            same=pair.same,
            kappa=number(pair.kappa),
        )
        for pair in agreement.pairs
    ]
    by_label = zip(labels, agreement.alpha_by_label.tolist(), strict=False)  # a label may have been added since
    return bodies.AgreementBody(
        n_units=agreement.n_units,
        alpha=number(agreement.alpha),
        labels=[bodies.LabelAlphaBody(name=name, alpha=number(alpha)) for name, alpha in by_label],
        pairs=pairs,
    )


def dispute_body(
    dispute: Dispute, project: Project, labels: list[str], people: Mapping[int, str]
) -> bodies.DisputeBody:
    """Return what people disagree about."""
    return bodies.DisputeBody(
        item=item_body(dispute.item, project.items[dispute.item]),
        label=dispute.label,
        name=labels[dispute.label],
        yes=[people[one] for one in dispute.yes],
        no=[people[one] for one in dispute.no],
    )


def quality_body(quality: Quality | None) -> bodies.QualityBody | None:
    """Return what a version is worth."""
    if quality is None:
        return None
    return bodies.QualityBody(
        n_items=quality.n_items,
        break_even=number(quality.break_even),
        stopped=number(quality.stopped),
        missed=number(quality.missed),
        questions=number(quality.questions),
    )


def _question(question: Question) -> bodies.QuestionBody:
    reason = question.reason
    return bodies.QuestionBody(
        label=question.label,
        name=question.name,
        probability=number(question.probability),
        before=number(reason.before),
        reason=reason.text,
        pushes=[bodies.PushBody(name=push.name, by=push.by, because=push.because) for push in reason.pushes],
    )


def _labels(labels: Iterable[ListedLabel]) -> list[bodies.LabelBody]:
    return [
        bodies.LabelBody(label=one.label, name=one.name, probability=number(one.probability), said=one.said)
        for one in labels
    ]


def _person(person: PersonCount) -> bodies.PersonBody:
    return bodies.PersonBody(
        name=person.name,
        answers=person.answers,
        asked=person.asked,
        done=person.done,
        skipped=person.skipped,
        seconds_per_answer=number(person.seconds_per_answer),
        items_per_hour=number(person.items_per_hour),
    )
