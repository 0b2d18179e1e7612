"""Tagged rows as JSON lines: ``{"id": "a", "features": [0.5, 2], "tags": ["sky"]}``, one object per line.

The grammar is that of RFC 8259, cut down to what such a row can hold, so that every fault has a column, and nothing
nests deeper than two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import isfinite

from slatewise.core.errors import DataError
from slatewise.data._lines import Line
from slatewise.data._tag_columns import TaggedRow, Wanted, tag_fault

_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")
_BLANKS = re.compile(r"[ \t]*")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_FEATURES = "features"


class JsonRows:
    """Turns lines into rows; the first good one settles how many features there are, and whether rows have ids."""

    def __init__(self, first: Line, wanted: Wanted) -> None:
        if wanted.labels is not None or wanted.separator is not None or isinstance(wanted.features, str):
            expected = "a line that names columns (labels, separator and a prefix of features are for tables)"
            raise first.fault(0, expected, repr(first.text))
        self._wanted = wanted
        self.label_names, self.feature_names = wanted.label_names, wanted.features
        self._tags, self._id = wanted.tags or "tags", wanted.id or "id"
        self._known = None if self.feature_names is None else frozenset(self.feature_names)
        self._first: TaggedRow | None = None
        self._seen: set[str] = set()

    def parse(self, line: Line) -> TaggedRow:
        """Read one object."""
        text = _Text(line)
        features: list[float] | dict[str, float] | None = None
        tags: list[str] | None = None
        name: str | None = None
        places: dict[str, int] = {}
        for key in text.items("{", "}"):
            at = text.at
            if key in places:
                raise text.fault("every key once", f"{key!r} again", text.key_at)
            places[key] = at
            if key == _FEATURES:
                features = self._features(text)
            elif key == self._tags:
                tags = self._names(text)
            elif key == self._id:
                name = _id(text)
            else:
                expected = f"no other keys than {_FEATURES!r}, {self._tags!r} and {self._id!r}"
                raise text.fault(expected, repr(key), text.key_at)
        text.end()
        if features is None:
            raise text.fault(f"the key {_FEATURES!r}", "none")
        if tags is None and self._wanted.require_labels:
            raise text.fault(f"the key {self._tags!r}, a list of names", "none")
        row = TaggedRow(features, tags or [], name)
        self._compare(text, row, places)
        return row

    def _features(self, text: _Text) -> list[float] | dict[str, float]:
        if text.peek() != "{":
            return [text.number() for _ in text.items("[", "]")]
        found: dict[str, float] = {}
        for name in text.items("{", "}"):
            if not name or name in found or (self._known is not None and name not in self._known):
                expected = "every feature once, by a name that is not empty" + " and known" * (self._known is not None)
                raise text.fault(expected, repr(name), text.key_at)
            found[name] = text.number()
        return found

    def _names(self, text: _Text) -> list[str]:
        names: dict[str, None] = {}
        for _ in text.items("[", "]"):
            at, name = text.at, text.string()
            wrong = tag_fault(name, names, self._wanted)
            if wrong is not None:
                raise text.fault(*wrong, at)
            names[name] = None
        return list(names)

    def _compare(self, text: _Text, row: TaggedRow, places: dict[str, int]) -> None:
        """Raise DataError unless the row is like those before it; remember it where it is."""
        first = self._first or row
        if isinstance(row.features, dict) != isinstance(first.features, dict):
            raise text.fault("features all by place, or all by name", "both", places[_FEATURES])
        width = len(first.features if self.feature_names is None else self.feature_names)
        if isinstance(row.features, list) and len(row.features) != width:
            raise text.fault(f"{width} features", f"{len(row.features)}", places[_FEATURES])
        if (row.id is None) != (first.id is None) or (row.id is None and self._wanted.id is not None):
            raise text.fault(f"the key {self._id!r} in every row, or in none", "both" if self._first else "none")
        if row.id is not None and row.id in self._seen:
            raise text.fault("every id once", f"{row.id!r} again", places[self._id])
        self._seen.add(row.id or "")
        self._first = first


def _id(text: _Text) -> str:
    at = text.at
    if text.peek() == '"':
        name = text.string()
        if not name or name != name.strip():
            raise text.fault("an id, not empty and without blanks around it", repr(name), at)
        return name
    return text.token(_WHOLE, "an id: a text or a whole number")


class _Text:
    """One line, read from left to right."""

    def __init__(self, line: Line) -> None:
        self._line, self._text = line, line.text
        self.at = 0
        self.key_at = 0
        self._skip()

    def fault(self, expected: str, found: str, at: int | None = None) -> DataError:
        """Return the error for what stands at ``at``, by default here."""
        return self._line.fault(self.at if at is None else at, expected, found)

    def peek(self) -> str:
        return self._text[self.at : self.at + 1]

    def items(self, start: str, end: str) -> Iterator[str]:
        """Walk an array or an object: yield the key, "" in an array, and stand at the value."""
        self.take(start)
        while self.peek() != end:
            key = ""
            if end == "}":
                self.key_at = self.at
                key = self.string()
                self.take(":")
            yield key
            if self.peek() not in (",", end):
                raise self.fault(f"',' or {end!r}", self._rest())
            if self.peek() == ",":
                self.take(",")
                if self.peek() == end:
                    raise self.fault("something after ','", self._rest())
        self.take(end)

    def take(self, expected: str) -> None:
        if self.peek() != expected:
            raise self.fault(repr(expected), self._rest())
        self.at += 1
        self._skip()

    def string(self) -> str:
        at = self.at
        value: str = json.loads(self.token(_STRING, "a text in double quotes"))
        if _UNSAFE.search(value):
            raise self.fault("printable text", repr(value), at)
        return value

    def number(self) -> float:
        at = self.at
        token = self.token(_NUMBER, "a number")
        value = float(token)
        if not isfinite(value):
            raise self.fault("a finite number", token, at)
        return value

    def token(self, pattern: re.Pattern[str], expected: str) -> str:
        match = pattern.match(self._text, self.at)
        if match is None:
            raise self.fault(expected, self._rest())
        self.at = match.end()
        self._skip()
        return match[0]

    def end(self) -> None:
        if self.at < len(self._text):
            raise self.fault("the end of the line after an object", self._rest())

    def _skip(self) -> None:
        blanks = _BLANKS.match(self._text, self.at)
        self.at = blanks.end() if blanks else self.at

    def _rest(self) -> str:
        return repr(self._text[self.at :]) if self.at < len(self._text) else "the end of the line"
