"""Slow reference parsers for the text formats: one regular expression a shape, no code shared with the package.

Each takes plain bytes and returns nested tuples (floats as their bits), or raises Rejected with the first bad line.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from datetime import UTC, datetime

from tests.fuzz import Rejected

NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
PLAIN = re.compile(r"0|-?[1-9][0-9]*")


def bits(values: list[float]) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)


def lines(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield (number, text) of every line; control characters, bad UTF-8 and a second byte order mark are rejected."""
    data = data[3:] if data[:3] == b"\xef\xbb\xbf" else data
    for number, match in enumerate(re.finditer(rb"([^\n]*)\n|([^\n]+)\Z", data), start=1):
        raw = match[1] if match[1] is not None else match[2]
        raw = raw[:-1] if raw.endswith(b"\r") else raw
        try:
            text = str(raw, "utf-8")
        except UnicodeError:
            raise Rejected(number) from None
        if any((ord(letter) < 32 and letter != "\t") or ord(letter) == 127 for letter in text):
            raise Rejected(number)
        if number == 1 and text[:1] == "\ufeff":
            raise Rejected(number)
        yield number, text


def is_blank(text: str) -> bool:
    return re.fullmatch(r"[ \t]*", text) is not None


def to_float(text: str, line: int) -> float:
    if not NUMBER.fullmatch(text) or abs(float(text)) == float("inf"):
        raise Rejected(line)
    return float(text)


def to_int(text: str, line: int) -> int:
    match = re.fullmatch(r"([+-]?)0*([0-9]+)", text)
    if match is None or len(match[2]) > 19:
        raise Rejected(line)
    value = int(match[2]) * (-1 if match[1] == "-" else 1)
    if not -(2**63) <= value < 2**63:
        raise Rejected(line)
    return value


def is_plain(text: str) -> bool:
    return PLAIN.fullmatch(text) is not None and len(text) <= 20 and -(2**63) <= int(text) < 2**63


def to_ids(texts: list[str]) -> tuple[int, ...] | tuple[str, ...]:
    return tuple(map(int, texts)) if all(map(is_plain, texts)) else tuple(texts)


def reference_run(data: bytes) -> object:
    shape = re.compile(r"[ \t]*" + r"[ \t]+".join([r"([^ \t]+)"] * 6) + r"[ \t]*")
    rows: dict[tuple[str, str], float] = {}
    tags: list[str] = []
    for line, text in lines(data):
        if is_blank(text):
            continue
        match = shape.fullmatch(text)
        if match is None or (match[1], match[3]) in rows or (tags and match[6] != tags[-1]):
            raise Rejected(line)
        to_int(match[4], line)
        rows[match[1], match[3]] = to_float(match[5], line)
        tags.append(match[6])
    return tuple(rows), bits(list(rows.values())), tags[0] if tags else "slatewise"


def reference_qrels(data: bytes) -> object:
    shape = re.compile(r"[ \t]*" + r"[ \t]+".join([r"([^ \t]+)"] * 4) + r"[ \t]*")
    rows: dict[tuple[str, str], int] = {}
    for line, text in lines(data):
        if is_blank(text):
            continue
        match = shape.fullmatch(text)
        if match is None or (match[1], match[3]) in rows:
            raise Rejected(line)
        rows[match[1], match[3]] = to_int(match[4], line)
    return tuple(rows.items())


def cut(text: str, delimiter: str, line: int) -> list[str]:
    """Cut a line of a pair file into fields."""
    if delimiter == " ":
        return re.findall(r"[^ \t]+", text)
    if delimiter == "\t":
        return re.split("\t", text)
    comma = re.escape(delimiter)
    field = rf'(?:"((?:[^"]|"")*)"|([^"{comma}]*))'
    if not re.fullmatch(f"{field}(?:{comma}{field})*", text):
        raise Rejected(line)
    fields = re.finditer(rf"(?:^|{comma}){field}(?={comma}|$)", text)
    return [match[2] if match[1] is None else match[1].replace('""', '"') for match in fields]


def is_id(text: str) -> bool:
    return re.fullmatch(r"[^ \t](.*[^ \t])?", text) is not None


def first_delimiter(text: str) -> str | None:
    return "\t" if "\t" in text else "," if "," in text else ";" if ";" in text else None


def reference_pairs(data: bytes, names: tuple[str, str, str] | None = None) -> object:
    """Columns 0 and 1 without header; or, with names, a header and the columns of those names, the last of weights."""
    delimiter, width, places = None, 0, (0, 1)
    rows: list[tuple[int, list[str]]] = []
    for line, text in lines(data):
        if is_blank(text):
            continue
        if delimiter is None:
            delimiter = first_delimiter(text) or " "
            fields = cut(text, delimiter, line)
            width = len(fields)
            if width < 2 or (names and any(fields.count(name) != 1 for name in names)):
                raise Rejected(line)
            if names:
                places = tuple(map(fields.index, names))
                continue
        fields = cut(text, delimiter, line)
        if len(fields) != width:
            raise Rejected(line)
        chosen = [fields[place] for place in places]
        if not is_id(chosen[0]) or not is_id(chosen[1]):
            raise Rejected(line)
        if names:
            to_float(chosen[2], line)
        rows.append((line, chosen))
    if names and delimiter is None:
        raise Rejected(1)
    columns = [[chosen[place] for _, chosen in rows] for place in (0, 1)]
    for column in columns:
        if not names and len(column) > 1 and not is_plain(column[0]) and all(map(is_plain, column[1:])):
            raise Rejected(rows[0][0])
    weights = bits([float(chosen[2]) for _, chosen in rows]) if names else None
    return to_ids(columns[0]), to_ids(columns[1]), weights


def reference_sessions(data: bytes) -> object:
    loose = re.split(rb"\n", data)
    guesses = (first_delimiter(str(raw, "utf-8", "replace")) for raw in loose)
    delimiter = next((guess for guess in guesses if guess), " ")
    sessions: list[list[str]] = []
    first = 0
    for line, text in lines(data):
        fields = re.findall(r"[^ \t]+", text) if delimiter == " " else re.split(re.escape(delimiter), text)
        if is_blank(text) or '"' in text or not all(map(is_id, fields)):
            raise Rejected(line)
        sessions.append(fields)
        first = line if len(sessions) == 1 else first
    others = [item for session in sessions[1:] for item in session]
    if others and not any(map(NUMBER.fullmatch, sessions[0])) and all(map(is_plain, others)):
        raise Rejected(first)
    return to_ids([item for session in sessions for item in session]), tuple(map(len, sessions))


def reference_events(data: bytes) -> object:
    """A table whose header names session and item, and maybe time: items by time, then by line."""
    delimiter, names = None, list[str]()
    rows: list[tuple[str, float, str]] = []
    dates: bool | None = None
    line = 0
    for line, text in lines(data):
        if is_blank(text):
            continue
        if delimiter is None:
            delimiter = first_delimiter(text) or " "
            names = cut(text, delimiter, line)
            head = line
            wanted = [name for name in ("session", "item", "time") if name in names]
            if any(names.count(name) > 1 for name in wanted) or not {"session", "item"} <= set(wanted):
                raise Rejected(line)
            continue
        fields = cut(text, delimiter, line)
        if len(fields) != len(names) or not all(is_id(fields[names.index(name)]) for name in wanted if name != "time"):
            raise Rejected(line)
        when = 0.0
        if "time" in wanted:
            when, is_date = to_time(fields[names.index("time")], line)
            if dates not in (None, is_date):
                raise Rejected(line)
            dates = is_date
        rows.append((fields[names.index("session")], when, fields[names.index("item")]))
    if not rows:
        raise Rejected(1 if delimiter is None else head + 1)
    sessions: dict[str, list[tuple[float, int]]] = {}
    for number, (session, when, _) in enumerate(rows):
        sessions.setdefault(session, []).append((when, number))
    items, ids = to_ids([row[2] for row in rows]), to_ids([row[0] for row in rows])
    ordered = [sorted(events) for events in sessions.values()]
    return tuple(tuple(items[number] for _, number in events) for events in ordered), tuple(dict.fromkeys(ids))


def to_time(text: str, line: int) -> tuple[float, bool]:
    if NUMBER.fullmatch(text):
        return to_float(text, line), False
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise Rejected(line) from None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp(), True
