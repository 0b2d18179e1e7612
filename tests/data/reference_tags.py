"""Slow reference parsers of tagged rows, which share no code with the package."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.data.reference_text import bits, cut, first_delimiter, is_blank, is_id, lines, to_float, to_ids
from tests.fuzz import Rejected


def is_tag(text: object) -> bool:
    return isinstance(text, str) and text != "" and text.strip() == text


def answer(names: list[str] | None, rows: list[tuple[Any, list[str], str | None]]) -> object:
    """Features as they come, the flags of each row, names of labels, ids."""
    labels = sorted({tag for _, tags, _ in rows for tag in tags}) if names is None else names
    flags = tuple(tuple(int(name in tags) for name in labels) for _, tags, _ in rows)
    ids = to_ids([name for _, _, name in rows if name is not None]) if rows and rows[0][2] is not None else None
    return tuple(features for features, _, _ in rows), flags, tuple(labels), ids


def reference_tag_table(data: bytes, prefix: str | None = None) -> object:
    """Columns that start with the prefix; or a column "tags", cut at "|", and one "id"."""
    header: list[str] | None = None
    delimiter, rows = ",", list[tuple[Any, list[str], str | None]]()
    for line, text in lines(data):
        if is_blank(text):
            continue
        if header is None:
            if re.match(r"[ \t]*{", text):
                raise Rejected(line)
            delimiter = first_delimiter(text) or ","
            header = cut(text, delimiter, line)
            labels = [name for name in header if prefix and name.startswith(prefix)]
            own = labels if prefix else ["tags", "id"]
            wrong = any(not is_id(name) or header.count(name) > 1 for name in header)
            if wrong or not own or not set(own) < set(header) or prefix in header:
                raise Rejected(line)
            continue
        fields = cut(text, delimiter, line)
        if len(fields) != len(header):
            raise Rejected(line)
        row = dict(zip(header, fields, strict=True))
        features = bits([to_float(value, line) for name, value in row.items() if name not in own])
        if prefix:
            if any(re.fullmatch("0|1|[tT]rue|[fF]alse", row[name]) is None for name in labels):
                raise Rejected(line)
            tags, name = [name[len(prefix) :] for name in labels if row[name] in ("1", "true", "True")], None
        else:
            tags, name = row["tags"].split("|") if row["tags"] else [], row["id"]
            known = [before for _, _, before in rows]
            if not all(map(is_tag, tags)) or len(set(tags)) < len(tags) or not is_id(name) or name in known:
                raise Rejected(line)
        rows.append((features, tags, name))
    if header is None:
        raise Rejected(1)
    return answer([name[len(prefix) :] for name in labels] if prefix else None, rows)


def reference_tag_json(data: bytes) -> object:
    rows: list[tuple[Any, list[str], str | None]] = []
    shapes: set[object] = set()
    is_empty = True
    for line, text in lines(data):
        if is_blank(text):
            continue
        if is_empty and not re.match(r"[ \t]*{", text):
            raise Rejected(line)
        is_empty = False
        try:
            row = json.loads(text, object_pairs_hook=_once, parse_constant=_no, parse_int=_Whole, parse_float=_Real)
        except (ValueError, RecursionError):
            raise Rejected(line) from None
        if not isinstance(row, dict) or not {"features", "tags"} <= set(row) <= {"features", "tags", "id"}:
            raise Rejected(line)
        features, tags, name = row["features"], row["tags"], row.get("id")
        if isinstance(features, dict):
            found = tuple(sorted((key, bits([_number(value, line)])) for key, value in features.items()))
            if "" in features or any(map(_unsafe, features)):
                raise Rejected(line)
            shapes.add(("by name", "id" in row))
        elif isinstance(features, list):
            found = bits([_number(value, line) for value in features])
            shapes.add((len(features), "id" in row))
        else:
            raise Rejected(line)
        if not isinstance(tags, list) or not all(map(is_tag, tags)) or len(set(tags)) < len(tags):
            raise Rejected(line)
        if "id" in row and not isinstance(name, _Whole) and (not is_tag(name) or type(name) is not str):
            raise Rejected(line)
        name = None if name is None else str.__str__(name)
        again = name is not None and name in [before for _, _, before in rows]
        if len(shapes) > 1 or again or any(map(_unsafe, [*tags, name or ""])):
            raise Rejected(line)
        if any(isinstance(tag, _Whole | _Real) for tag in tags):
            raise Rejected(line)
        rows.append((found, tags, name))
    if is_empty:
        raise Rejected(1)
    return answer(None, rows)


class _Whole(str):
    """A whole number as it is written."""


class _Real(str):
    """Another number as it is written."""


def _number(value: object, line: int) -> float:
    if not isinstance(value, _Whole | _Real):
        raise Rejected(line)
    return to_float(str(value), line)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def _no(text: str) -> None:
    raise ValueError(text)


def _unsafe(text: str) -> bool:
    return any(ord(letter) < 32 or ord(letter) == 127 or 0xD800 <= ord(letter) < 0xE000 for letter in text)
