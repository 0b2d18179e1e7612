"""Acts, checked before they are written: known kinds, numbers of things that exist, values in range."""

from __future__ import annotations

import sqlite3
from collections.abc import Container
from numbers import Real
from operator import index
from typing import Any, get_args

from slatewise.core.rules import short_repr
from slatewise.labeling.store.database import counted
from slatewise.labeling.store.records import MOST_MILLISECONDS, Act, ActKind, Given, How

_HOWS, _ACT_KINDS = get_args(How), get_args(ActKind)


def whole(name: str, value: Any) -> int:
    """Return a whole number of Python's or NumPy's as one of Python's."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return index(value)
    except TypeError:
        raise ValueError(f"{name}: expected a whole number, found {short_repr(value)}") from None


class Numbers:
    """The numbers of all items, labels, annotators, models and tokens, as they are during a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._there = {
            "item": range(counted(connection, "items")),
            "label": range(counted(connection, "labels")),
            "annotator": _numbers(connection, "annotators"),
            "model": _numbers(connection, "models"),
            "token": _numbers(connection, "tokens"),
        }

    def check(self, name: str, value: Any) -> int:
        """Return the number of an item, label, annotator, model or token; raise ValueError if there is none."""
        number = whole(name, value)
        if number not in self._there[name]:
            raise ValueError(f"{name}: expected the number of one that is there, found {number}")
        return number

    def insert(self, act: Act, now: int) -> int:
        """Add an act; return its number."""
        row = (
            check_word("kind", act.kind, _ACT_KINDS),
            self.check("item", act.item),
            self.check("annotator", act.annotator),
            _milliseconds("time", now if act.time is None else act.time),
            None if act.milliseconds is None else _milliseconds("milliseconds", act.milliseconds),
            None if act.model is None else self.check("model", act.model),
        )
        given = [self._given(one) for one in act.given]
        if len({one[0] for one in given}) < len(given):
            raise ValueError("given: expected every label once in an act, found one again")
        query = "INSERT INTO acts (kind, item, annotator, time, milliseconds, model) VALUES (?, ?, ?, ?, ?, ?)"
        number = new_number(self._connection.execute(query, row))
        answers = [(number, *one) for one in given]
        self._connection.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?)", answers)
        return number

    def _given(self, given: Given) -> tuple[int, int, str, float | None]:
        value = whole("value", given.value)
        if value not in (1, 0, -1):
            raise ValueError(f"value: expected 1 for yes, 0 for no or -1 for don't know, found {value}")
        how = check_word("how", given.how, _HOWS)
        return self.check("label", given.label), value, how, _probability(given.probability)


def check_name(argument: str, name: Any) -> str:
    """Return a text that can stand in every file: not empty, without blanks around it or control characters."""
    if isinstance(name, str) and name and name == name.strip() and len(name) <= 500 and name.isprintable():
        return name
    expected = "a text of at most 500 printable characters, not empty and without blanks around it"
    raise ValueError(f"{argument}: expected {expected}, found {short_repr(name)}")


def new_number(cursor: sqlite3.Cursor) -> int:
    """Return the number of the row that was added."""
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _numbers(connection: sqlite3.Connection, table: str) -> frozenset[int]:
    return frozenset(number for (number,) in connection.execute(f"SELECT number FROM {table}"))


def check_word(name: str, value: Any, words: Container[str]) -> str:
    """Return a word; raise ValueError if it is not one of the known words."""
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{name}: expected one of {words}, found {short_repr(value)}")
    return value


def _milliseconds(name: str, value: Any) -> int:
    number = whole(name, value)
    if not 0 <= number <= MOST_MILLISECONDS:
        raise ValueError(f"{name}: expected milliseconds from 0 to {MOST_MILLISECONDS}, found {number}")
    return number


def _probability(value: Any) -> float | None:
    if value is None:
        return None
    number = float(value) if isinstance(value, Real) else -1.0
    if not 0 <= number <= 1:
        raise ValueError(f"probability: expected a number from 0 to 1, or None, found {short_repr(value)}")
    return number
