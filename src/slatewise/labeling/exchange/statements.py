"""What files say and projects keep, in the form between the two: one statement per answer, ``done`` or ``skip``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from slatewise.core.rules import short_repr
from slatewise.labeling.store.project import Project
from slatewise.labeling.store.records import Act, ActKind, Given, How

_IN_DONE = ("closed", "confirmed")


@dataclass(frozen=True)
class Statement:
    """An answer of somebody to one label of an item; or that somebody is done with it, or skipped it."""

    kind: ActKind
    item: int
    annotator: str
    time: int | None = None
    milliseconds: int | None = None
    model: int | None = None
    label: int | None = None
    """Of answers."""
    said: int = 0
    how: How = "asked"
    probability: float | None = None


class Names:
    """What a project calls its items and labels, for readers of files.

    A label is found by its name, by a name that it had before, and by what ``labels`` says: a mapping of names in the
    file to names in the project.
    """

    def __init__(self, project: Project, labels: Mapping[str, str] | None = None) -> None:
        items = project.items.all()
        self.items = {item.id: number for number, item in enumerate(items)}
        contents = Counter(item.content for item in items)
        self.contents = {item.content: n for n, item in enumerate(items) if contents[item.content] == 1}
        self.labels = project.labels.by_name()
        for name, meant in (labels or {}).items():
            if meant not in self.labels:
                raise ValueError(f"labels: expected names of labels as values, found {short_repr(meant)}")
            self.labels[name] = self.labels[meant]


def statements(project: Project) -> list[Statement]:
    """Return what stands in a project, in the order in which it was said; a done after the answers it gave."""
    people = {person.number: person.shown for person in project.people.all()}
    told = [
        (answer.act, 0, Statement(
            "answer", answer.item, people[answer.annotator], answer.time, answer.milliseconds, answer.model,
            answer.label, answer.said, answer.how, answer.probability,
        ))
        for answer in project.answers()
    ]  # fmt: skip
    told += [
        (mark.act, 1, Statement(mark.kind, mark.item, people[mark.annotator], mark.time, mark.milliseconds, mark.model))
        for mark in project.marks()
    ]
    return [statement for _, _, statement in sorted(told, key=lambda one: one[:2])]


def record(project: Project, said: Sequence[Statement], note: str) -> None:
    """Record statements, all or none; versions of models are registered after those that are there."""
    people = {name: project.people.number(name) for name in dict.fromkeys(one.annotator for one in said)}
    models = project.models.adopt((one.model for one in said if one.model is not None), note)
    moved = [one if one.model is None else replace(one, model=models[one.model]) for one in said]
    project.record(_acts(moved, people.__getitem__))


def _acts(said: Iterable[Statement], person: Callable[[str], int]) -> list[Act]:
    """Turn statements into acts; answers that a ``done`` gave, as their time and how tell, go into it."""
    closing: dict[tuple[object, ...], list[Given]] = {}
    said = list(said)
    for one in said:
        if one.kind == "done" and one.time is not None:
            closing[one.item, one.annotator, one.time] = []
    acts: list[Act] = []
    for one in said:
        given: list[Given] = []
        if one.kind == "done":
            given = closing.get((one.item, one.annotator, one.time), given)
        elif one.label is not None:
            given = [Given(one.label, one.said, one.how, one.probability)]
            group = closing.get((one.item, one.annotator, one.time))
            if one.how in _IN_DONE and group is not None:
                group += given
                continue
        acts.append(Act(one.kind, one.item, person(one.annotator), tuple(given), one.time, one.milliseconds, one.model))
    return acts
