"""What files contain and projects keep, in the form between the two: one statement per answer, ``done`` or ``skip``.

A statement has named fields, which CSV writes as columns and JSON as keys; both are read with the same rules: ``label,
answer, annotator, time, milliseconds, how, model, probability``. ``answer`` is yes, no or don't know; without a label
it is done or skip. Other missing fields are unknown; ``time`` is then now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, get_args

from slatewise.core.errors import DataError
from slatewise.core.rules import short_repr
from slatewise.data.fields import number, whole
from slatewise.labeling.store.acts import check_name
from slatewise.labeling.store.project import Project
from slatewise.labeling.store.records import MOST_MILLISECONDS, Act, ActKind, Given, How

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
    value: int = 0
    how: How = "question"
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


def project_statements(project: Project) -> list[Statement]:
    """Return the statements that stand in a project, in the order of acts; a done after the answers it gave."""
    people = {person.number: person.shown for person in project.people.all()}
    ordered = [
        (answer.act, 0, Statement(
            "answer", answer.item, people[answer.annotator], answer.time, answer.milliseconds, answer.model,
            answer.label, answer.value, answer.how, answer.probability,
        ))
        for answer in project.answers()
    ]  # fmt: skip
    ordered += [
        (mark.act, 1, Statement(mark.kind, mark.item, people[mark.annotator], mark.time, mark.milliseconds, mark.model))
        for mark in project.marks()
    ]
    return [statement for _, _, statement in sorted(ordered, key=lambda one: one[:2])]


def record(project: Project, statements: Sequence[Statement], note: str) -> None:
    """Record statements, all or none; versions of models are registered after those that are there."""
    people = {name: project.people.number(name) for name in dict.fromkeys(one.annotator for one in statements)}
    models = project.models.adopt((one.model for one in statements if one.model is not None), note)
    moved = [one if one.model is None else replace(one, model=models[one.model]) for one in statements]
    project.record(_acts(moved, people.__getitem__))


def _acts(statements: Iterable[Statement], person: Callable[[str], int]) -> list[Act]:
    """Turn statements into acts; answers that a ``done`` gave, as their time and how tell, go into it."""
    closing: dict[tuple[object, ...], list[Given]] = {}
    statements = list(statements)
    for one in statements:
        if one.kind == "done" and one.time is not None:
            closing[one.item, one.annotator, one.time] = []
    acts: list[Act] = []
    for one in statements:
        given: list[Given] = []
        if one.kind == "done":
            given = closing.get((one.item, one.annotator, one.time), given)
        elif one.label is not None:
            given = [Given(one.label, one.value, one.how, one.probability)]
            group = closing.get((one.item, one.annotator, one.time))
            if one.how in _IN_DONE and group is not None:
                group += given
                continue
        acts.append(Act(one.kind, one.item, person(one.annotator), tuple(given), one.time, one.milliseconds, one.model))
    return acts


Fault: TypeAlias = "Callable[[str, str], DataError]"
"""Of the field and what was expected there."""

FIELDS = ("label", "answer", "annotator", "time", "milliseconds", "how", "model", "probability")
_MARKS = ("done", "skip")
_WORD_OF = {1: "yes", 0: "no", -1: "don't know"}
_WORDS = {word: value for value, word in _WORD_OF.items()} | {"1": 1, "0": 0, "?": -1}
_HOWS = get_args(How)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MOST_MODELS = 1 << 31


def as_fields(one: Statement, labels: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a statement that are known."""
    is_answer = one.label is not None
    fields = {
        "label": labels[one.label] if one.label is not None else None,
        "answer": _WORD_OF[one.value] if is_answer else one.kind,
        "annotator": one.annotator,
        "time": None if one.time is None else time_text(one.time),
        "milliseconds": one.milliseconds,
        "how": one.how if is_answer else None,
        "model": one.model,
        "probability": one.probability if is_answer else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def statement(
    fields: Mapping[str, Any], item: int, labels: Mapping[str, int], annotator: str, fault: Fault
) -> Statement:
    """Read the fields of a statement, as text or as JSON has them; ``annotator`` if they name nobody."""
    for name in fields:
        if name not in FIELDS:
            raise fault(name, f"no other fields than {', '.join(FIELDS)}")
    read: dict[str, Any] = {"annotator": annotator}
    for name, rule in _RULES.items():
        if name in fields:
            read[name] = rule.read(fields[name])
            if read[name] is None:
                raise fault(name, rule.expected)
    answer, label = fields.get("answer"), fields.get("label")
    if label is None:
        if answer not in _MARKS or "how" in read or "probability" in read:
            raise fault("answer", "done or skip, and neither how nor probability, if there is no label")
        return Statement(answer, item, **read)
    if not isinstance(label, str) or label not in labels:
        raise fault("label", "the name of a label of the project")
    if not isinstance(answer, str) or answer not in _WORDS:
        raise fault("answer", f"one of {', '.join(_WORDS)}")
    return Statement("answer", item, label=labels[label], value=_WORDS[answer], **read)


def time_text(milliseconds: int) -> str:
    """Return a time as ISO 8601 in UTC.

    Examples
    --------
    >>> time_text(1_700_000_000_123)
    '2023-11-14T22:13:20.123Z'
    """
    return (_EPOCH + milliseconds * _MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_of(text: Any) -> int | None:
    """Return the milliseconds since 1970 that ISO 8601 says, without a zone those of UTC; None if it says none.

    Examples
    --------
    >>> time_of("2023-11-14T23:13:20.123+01:00"), time_of("yesterday")
    (1700000000123, None)
    """
    try:
        moment = datetime.fromisoformat(text)
        milliseconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) // _MILLISECOND
    except (TypeError, ValueError, OverflowError):
        return None
    return milliseconds if 0 <= milliseconds <= MOST_MILLISECONDS else None


@dataclass(frozen=True)
class _Rule:
    expected: str
    read: Callable[[Any], Any]
    """The value, None if it is none."""


def _whole_from(least: int, most: int) -> Callable[[Any], int | None]:
    def read(value: Any) -> int | None:
        count = whole(value) if isinstance(value, str) else value
        return count if isinstance(count, int) and not isinstance(count, bool) and least <= count <= most else None

    return read


def _chance(value: Any) -> float | None:
    chance = number(value) if isinstance(value, str) else value
    if not isinstance(chance, int | float) or isinstance(chance, bool) or not 0 <= chance <= 1:
        return None
    return float(chance)


def _name(value: Any) -> str | None:
    try:
        return check_name("annotator", value)
    except ValueError:
        return None


_RULES = {
    "annotator": _Rule("a name, without blanks around it or control characters", _name),
    "time": _Rule("a time such as 2025-12-31T23:59:59.123Z", time_of),
    "milliseconds": _Rule(f"a whole number from 0 to {MOST_MILLISECONDS}", _whole_from(0, MOST_MILLISECONDS)),
    "how": _Rule(f"one of {', '.join(_HOWS)}", lambda value: value if value in _HOWS else None),
    "model": _Rule(f"a whole number from 1 to {_MOST_MODELS}", _whole_from(1, _MOST_MODELS)),
    "probability": _Rule("a number from 0 to 1", _chance),
}
