"""How far a project is: counts, pace and questions saved, as plain numbers that a page or a notebook can show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Ints
from slatewise.labeling.calibration_set import CalibrationSet
from slatewise.labeling.item_data import ItemData
from slatewise.labeling.plan import Plan
from slatewise.labeling.store.known_labels import Votes
from slatewise.labeling.store.project import Project
from slatewise.labeling.store.records import Mark

PAUSE = 120_000
"""Milliseconds between two acts of a person; after a longer gap the person was away."""
_HOUR = 3_600_000


class LabelCount(NamedTuple):
    """The answers to one label."""

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
    questions: int
    """Of these, answers to questions."""
    done: int
    skipped: int
    seconds_per_answer: float
    """The median, NaN if nothing was measured."""
    items_per_hour: float
    """While the person worked, NaN if that is not known."""


@dataclass(frozen=True, eq=False)
class ProgressReport:
    """How far a project is."""

    items: int
    finished: int
    """Items that the plan's number of people are done with."""
    begun: int
    """Items with an answer."""
    labels: tuple[LabelCount, ...]
    people: tuple[PersonCount, ...]
    questions: float
    """The median number of questions per person and item that are done with the model; NaN before the first."""
    labels_without_model: int
    """The number of questions without a model: one per label."""
    saved: int
    """The number of questions that the model made unnecessary, in all."""
    hours_left: float
    """Hours of work of one person, at the pace of everybody so far; NaN if that is not known."""
    calibration_done: int
    """Items of the calibration set that are finished."""
    calibration_items: int

    @classmethod
    def of(cls, project: Project) -> ProgressReport:
        """Count what was done in a project; it reads all answers."""
        plan, votes, marks = Plan.of(project), project.votes(), project.marks()
        items, names = project.items.all(), project.labels.names()
        in_calibration_set = CalibrationSet.of(project, plan).members
        done = [mark for mark in marks if mark.kind == "done"]
        ends = np.bincount(np.array([mark.item for mark in done], dtype=np.int64), minlength=len(items))
        finished = ends >= plan.overlap
        has_scores = ItemData.kind_attached(project) == "log-odds"
        with_model = [  # a version of the project's, or given scores, which have no number
            mark for mark in done if not in_calibration_set[mark.item] and (mark.model is not None or has_scores)
        ]
        questions = _questions(votes, with_model, len(items))
        people = _people(project, votes, marks)
        paces = [person.items_per_hour for person in people if person.items_per_hour > 0]
        n_left = int(np.maximum(plan.overlap - ends, 0).sum())
        return cls(
            items=len(items),
            finished=int(finished.sum()),
            begun=len(np.unique(votes.item)),
            labels=_labels(votes, names),
            people=people,
            questions=float(np.median(questions)) if len(questions) else np.nan,
            labels_without_model=len(names),
            saved=int((len(names) - questions).sum()),
            hours_left=n_left / float(np.mean(paces)) if paces else np.nan,
            calibration_done=int((finished & in_calibration_set).sum()),
            calibration_items=int(in_calibration_set.sum()),
        )

    def __str__(self) -> str:
        """Say it in one line."""
        saved = f", {self.questions:g} questions instead of {self.labels_without_model}" if self.saved else ""
        return f"{self.finished} of {self.items} items{saved}"


def _questions(votes: Votes, done: list[Mark], n_items: int) -> Ints:
    """Return the number of questions before each mark."""
    is_question = votes.are("question")
    keys = votes.annotator[is_question] * n_items + votes.item[is_question]
    found = dict(zip(*(column.tolist() for column in np.unique(keys, return_counts=True)), strict=True))
    return np.array([found.get(mark.annotator * n_items + mark.item, 0) for mark in done], dtype=np.int64)


def _labels(votes: Votes, names: list[str]) -> tuple[LabelCount, ...]:
    columns = (np.bincount(votes.label[votes.value == value], minlength=len(names)).tolist() for value in (1, 0, -1))
    return tuple(LabelCount(*row) for row in zip(names, *columns, strict=True))


def _people(project: Project, votes: Votes, marks: list[Mark]) -> tuple[PersonCount, ...]:
    one_by_one = ~votes.are("closed") & ~votes.are("confirmed")
    found: list[PersonCount] = []
    for person in project.people.all():
        own = one_by_one & (votes.annotator == person.number)
        kinds = [mark.kind for mark in marks if mark.annotator == person.number]
        took = votes.milliseconds[own & (votes.milliseconds >= 0)]
        times = [*votes.time[own].tolist(), *(mark.time for mark in marks if mark.annotator == person.number)]
        gaps = np.diff(np.sort(np.array(times, dtype=np.int64)))
        hours = int(gaps[gaps <= PAUSE].sum()) / _HOUR
        found.append(
            PersonCount(
                person.number,
                person.shown,
                int(own.sum()),
                int((own & votes.are("question")).sum()),
                kinds.count("done"),
                kinds.count("skip"),
                float(np.median(took)) / 1000.0 if len(took) else np.nan,
                kinds.count("done") / hours if hours > 0 else np.nan,
            )
        )
    return tuple(found)
