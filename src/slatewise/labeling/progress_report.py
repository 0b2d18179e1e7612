"""How far a project is: counts, pace and questions saved, as plain numbers that a page or a notebook can show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Bools, Ints
from slatewise.labeling.calibration_set import HonestShare, draws
from slatewise.labeling.item_data import ItemData
from slatewise.labeling.plan import Plan
from slatewise.labeling.store.known_labels import Votes
from slatewise.labeling.store.project import Project
from slatewise.labeling.store.records import Mark

PAUSE = 120_000
"""Milliseconds between two acts of a person; whoever takes longer was away."""
_HOUR = 3_600_000


class LabelCount(NamedTuple):
    """What everybody said of one label."""

    name: str
    yes: int
    no: int
    not_known: int


class PersonCount(NamedTuple):
    """What one person did."""

    annotator: int
    name: str
    answers: int
    """Given one by one: without labels that were closed as no when the person was done."""
    asked: int
    """Of these, to questions."""
    done: int
    skipped: int
    seconds_per_answer: float
    """The median, NaN where nothing was measured."""
    items_per_hour: float
    """While the person worked, NaN where that is not known."""


@dataclass(frozen=True, eq=False)
class ProgressReport:
    """How far a project is."""

    items: int
    finished: int
    """Items that as many people are done with as the plan wants."""
    begun: int
    """Items that somebody said something of."""
    labels: tuple[LabelCount, ...]
    people: tuple[PersonCount, ...]
    questions: float
    """Median over visits that are done, with the model: how many questions were asked; NaN before the first."""
    instead_of: int
    """How many there would be without a model: one per label."""
    saved: int
    """Questions that the model made unnecessary, over all these visits."""
    hours_left: float
    """Hours of work of one person, at the pace of everybody so far; NaN where that is not known."""
    honest_done: int
    """Items of the share without the model that are finished."""
    honest: int

    @classmethod
    def of(cls, project: Project) -> ProgressReport:
        """Count what was done in a project; it reads all answers."""
        plan, votes, marks = Plan.of(project), project.votes(), project.marks()
        items, names = project.items.all(), project.labels.names()
        inside = HonestShare(draws((item.id for item in items), plan.seed), plan.share).inside
        done = [mark for mark in marks if mark.kind == "done"]
        ends = np.bincount(np.array([mark.item for mark in done], dtype=np.int64), minlength=len(items))
        finished = ends >= plan.overlap
        has_scores = ItemData.kind_attached(project) == "log-odds"
        asked = _questions(votes, _with_model(done, inside, has_scores), len(items))
        people = _people(project, votes, marks)
        paces = [person.items_per_hour for person in people if person.items_per_hour > 0]
        visits_left = int(np.maximum(plan.overlap - ends, 0).sum())
        return cls(
            items=len(items),
            finished=int(finished.sum()),
            begun=len(np.unique(votes.item)),
            labels=_labels(votes, names),
            people=people,
            questions=float(np.median(asked)) if len(asked) else np.nan,
            instead_of=len(names),
            saved=int((len(names) - asked).sum()),
            hours_left=visits_left / float(np.mean(paces)) if paces else np.nan,
            honest_done=int((finished & inside).sum()),
            honest=int(inside.sum()),
        )

    def __str__(self) -> str:
        """Say it in one line."""
        saved = f", {self.questions:g} questions instead of {self.instead_of}" if self.saved else ""
        return f"{self.finished} of {self.items} items{saved}"


def _with_model(done: list[Mark], inside: Bools, has_scores: bool) -> list[Mark]:
    """Return the ends of visits with a model: a version of the project's, or, without number, that of given scores."""
    return [mark for mark in done if not inside[mark.item] and (mark.model is not None or has_scores)]


def _questions(votes: Votes, done: list[Mark], n_items: int) -> Ints:
    """Return how many questions were asked in each visit that is done."""
    asked = votes.are("asked")
    visits, counts = np.unique(votes.annotator[asked] * n_items + votes.item[asked], return_counts=True)
    found = dict(zip(visits.tolist(), counts.tolist(), strict=True))
    return np.array([found.get(mark.annotator * n_items + mark.item, 0) for mark in done], dtype=np.int64)


def _labels(votes: Votes, names: list[str]) -> tuple[LabelCount, ...]:
    columns = (np.bincount(votes.label[votes.said == said], minlength=len(names)).tolist() for said in (1, 0, -1))
    return tuple(LabelCount(*row) for row in zip(names, *columns, strict=True))


def _people(project: Project, votes: Votes, marks: list[Mark]) -> tuple[PersonCount, ...]:
    one_by_one = ~votes.are("closed") & ~votes.are("confirmed")
    found: list[PersonCount] = []
    for person in project.people.all():
        own = one_by_one & (votes.annotator == person.number)
        kinds = [mark.kind for mark in marks if mark.annotator == person.number]
        took = votes.milliseconds[own & (votes.milliseconds >= 0)]
        times = [*votes.time[own].tolist(), *(mark.time for mark in marks if mark.annotator == person.number)]
        hours = _worked(np.array(times, dtype=np.int64)) / _HOUR
        found.append(
            PersonCount(
                person.number,
                person.shown,
                int(own.sum()),
                int((own & votes.are("asked")).sum()),
                kinds.count("done"),
                kinds.count("skip"),
                float(np.median(took)) / 1000.0 if len(took) else np.nan,
                kinds.count("done") / hours if hours > 0 else np.nan,
            )
        )
    return tuple(found)


def _worked(times: Ints) -> int:
    """Return milliseconds between acts without pauses."""
    gaps = np.diff(np.sort(times))
    return int(gaps[gaps <= PAUSE].sum())
