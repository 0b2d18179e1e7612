"""A statement as named fields, which CSV writes as columns and JSON as keys; read with the same rules from both.

``label, said, annotator, time, milliseconds, how, model, probability``: ``said`` is yes, no or don't know, and where
there is no label done or skip. Whatever else is left out is not known; ``time`` is then now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, get_args

from slatewise.core.errors import DataError
from slatewise.data._tokens import number, whole
from slatewise.labeling.exchange.statements import Statement
from slatewise.labeling.store.acts import check_name
from slatewise.labeling.store.records import MOST_MILLISECONDS, How

Fault: TypeAlias = "Callable[[str, str], DataError]"
"""Of the field and what was expected there."""

FIELDS = ("label", "said", "annotator", "time", "milliseconds", "how", "model", "probability")
_MARKS = ("done", "skip")
_SAID = {1: "yes", 0: "no", -1: "don't know"}
_WORDS = {word: said for said, word in _SAID.items()} | {"1": 1, "0": 0, "?": -1}
_HOWS = get_args(How)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MOST_MODELS = 1 << 31


def as_fields(one: Statement, labels: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a statement that are known."""
    fields: dict[str, Any] = {"said": one.kind}
    if one.label is not None:
        fields = {"label": labels[one.label], "said": _SAID[one.said], "how": one.how, "probability": one.probability}
    fields["annotator"] = one.annotator
    fields["time"] = None if one.time is None else time_text(one.time)
    fields |= {"milliseconds": one.milliseconds, "model": one.model}
    return {name: fields[name] for name in FIELDS if fields.get(name) is not None}


def statement(
    fields: Mapping[str, Any], item: int, labels: Mapping[str, int], annotator: str, fault: Fault
) -> Statement:
    """Read the fields of a statement, as text or as JSON has them; ``annotator`` where they name nobody."""
    for name in fields:
        if name not in FIELDS:
            raise fault(name, f"no other fields than {', '.join(FIELDS)}")
    read: dict[str, Any] = {"annotator": annotator}
    for name, rule in _RULES.items():
        if name in fields:
            read[name] = rule.read(fields[name])
            if read[name] is None:
                raise fault(name, rule.expected)
    said, label = fields.get("said"), fields.get("label")
    if label is None:
        if said not in _MARKS or "how" in read or "probability" in read:
            raise fault("said", "done or skip, and neither how nor probability, where there is no label")
        return Statement(said, item, **read)
    if not isinstance(label, str) or label not in labels:
        raise fault("label", "the name of a label of the project")
    if not isinstance(said, str) or said not in _WORDS:
        raise fault("said", f"one of {', '.join(_WORDS)}")
    return Statement("answer", item, label=labels[label], said=_WORDS[said], **read)


def time_text(milliseconds: int) -> str:
    """Return a time as ISO 8601 in UTC.

    Examples
    --------
    >>> time_text(1_700_000_000_123)
    '2023-11-14T22:13:20.123Z'
    """
    return (_EPOCH + milliseconds * _MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_of(text: Any) -> int | None:
    """Return the milliseconds since 1970 that ISO 8601 says, without a zone those of UTC; None where it says none.

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
    """The value, None where it is none."""


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
