"""A slow reference parser for multi-label ARFF: tokens first, then the grammar over them."""

from __future__ import annotations

import re

from tests.data.reference_text import NUMBER, bits, lines
from tests.fuzz import Rejected

TOKEN = re.compile(
    r"""(?P<blank>[ \t]+)|(?P<mark>[,{}])|(?P<bare>[^ \t,{}%'"]+)"""
    r"""|'(?P<single>([^'\\]|\\.)*)'|"(?P<double>([^"\\]|\\.)*)\""""
)


def tokens(text: str, line: int) -> list[tuple[str, str]]:
    """Cut a line into (kind, text) with kind blank, mark, quoted or bare; a comment ends it."""
    found: list[tuple[str, str]] = []
    place = 0
    while place < len(text) and text[place] != "%":
        match = TOKEN.match(text, place)
        if match is None:
            raise Rejected(line)
        kind = str(match.lastgroup)
        if match["single"] is not None or match["double"] is not None:
            inside = match["single"] if match["single"] is not None else match["double"]
            if re.sub(r"\\['\"\\%]", "", inside).count("\\"):
                raise Rejected(line)
            kind, value = "quoted", re.sub(r"\\(.)", r"\1", inside)
        else:
            value = match[0]
        found.append((kind, value))
        place = match.end()
    return found


def groups(found: list[tuple[str, str]], line: int) -> list[list[tuple[str, str]]]:
    """Cut at commas and drop blanks at the ends of each group."""
    result: list[list[tuple[str, str]]] = [[]]
    for token in found:
        if token == ("mark", ","):
            result.append([])
        else:
            result[-1].append(token)
    return [trim(group) for group in result]


def trim(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    while found and found[0][0] == "blank":
        found = found[1:]
    while found and found[-1][0] == "blank":
        found = found[:-1]
    return found


def finite(text: str) -> float | None:
    if not NUMBER.fullmatch(text) or abs(float(text)) == float("inf"):
        return None
    return float(text)


class Column:
    def __init__(self, name: str, values: list[str] | None, line: int) -> None:
        self.name, self.values, self.line = name, values, line
        self.numbers = [finite(value) for value in values or []]
        self.is_number = None not in self.numbers

    def read(self, token: tuple[str, str], line: int) -> float:
        kind, text = token
        if kind not in ("bare", "quoted") or (kind == "bare" and text == "?"):
            raise Rejected(line)
        if self.values is None:
            value = finite(text)
        elif text in self.values:
            place = self.values.index(text)
            value = self.numbers[place] if self.is_number else float(place)
        else:
            value = None
        if value is None:
            raise Rejected(line)
        return value

    def default(self) -> float:
        return float(self.numbers[0] or 0.0) if self.values and self.is_number else 0.0


def declared(found: list[tuple[str, str]], line: int) -> Column:
    """Read the tokens after ``@attribute``."""
    if len(found) < 3 or found[0][0] != "blank" or found[1][0] not in ("bare", "quoted"):
        raise Rejected(line)
    name, rest = found[1][1], found[2:]
    kind = trim(rest)
    if len(kind) == 1 and kind[0][0] == "bare" and rest[0][0] == "blank":
        if kind[0][1].lower() in ("numeric", "real", "integer"):
            return Column(name, None, line)
    elif len(kind) >= 2 and kind[0] == ("mark", "{") and kind[-1] == ("mark", "}"):
        values: list[str] = []
        for group in groups(kind[1:-1], line):
            if len(group) != 1 or group[0][0] not in ("bare", "quoted") or group[0][1] in values:
                raise Rejected(line)
            values.append(group[0][1])
        return Column(name, values, line)
    raise Rejected(line)


def reference_arff(data: bytes, n_labels: int) -> object:
    """Read a file whose last ``n_labels`` attributes are labels."""
    columns: list[Column] = []
    has_relation, has_data, line = False, False, 1
    rows: list[list[float]] = []
    sparse = False
    for line, text in lines(data):
        found = tokens(text, line)
        body = trim(found)
        if not body:
            continue
        if has_data:
            is_sparse = body[0] == ("mark", "{")
            rows.append(sparse_row(body, columns, line) if is_sparse else dense_row(body, columns, line))
            sparse |= is_sparse
            if any(value not in (0.0, 1.0) for value in rows[-1][-n_labels:]):
                raise Rejected(line)
            continue
        keyword = body[0][1].lower() if body[0][0] == "bare" else ""
        if keyword == "@relation" and not has_relation:
            if len(body) != 3 or body[1][0] != "blank" or body[2][0] not in ("bare", "quoted"):
                raise Rejected(line)
            has_relation = True
        elif keyword == "@attribute" and has_relation:
            column = declared(body[1:], line)
            if column.name in [other.name for other in columns]:
                raise Rejected(line)
            columns.append(column)
        elif keyword == "@data" and columns and len(body) == 1:
            has_data = True
            if len(columns) <= n_labels:
                raise Rejected(line)
            for column in columns[-n_labels:]:
                if not column.is_number or any(value not in (0.0, 1.0) for value in column.numbers):
                    raise Rejected(column.line)
        else:
            raise Rejected(line)
    if not has_data:
        raise Rejected(line)
    names = tuple(column.name for column in columns)
    features = tuple(tuple(stored(row[:-n_labels], sparse)) for row in rows)
    return names, sparse, features, tuple(tuple(int(value) for value in row[-n_labels:]) for row in rows)


def stored(row: list[float], sparse: bool) -> list[bytes]:
    """Return the bits of a row; what a sparse matrix does not store is plus zero."""
    return [bits([value + 0.0 if sparse and value == 0.0 else value]) for value in row]


def dense_row(body: list[tuple[str, str]], columns: list[Column], line: int) -> list[float]:
    cells = groups(body, line)
    if len(cells) != len(columns) or any(len(cell) != 1 for cell in cells):
        raise Rejected(line)
    return [column.read(cell[0], line) for column, cell in zip(columns, cells, strict=True)]


def sparse_row(body: list[tuple[str, str]], columns: list[Column], line: int) -> list[float]:
    if len(body) < 2 or body[-1] != ("mark", "}"):
        raise Rejected(line)
    row = [column.default() for column in columns]
    last = -1
    inside = trim(body[1:-1])
    for cell in groups(inside, line) if inside else []:
        if len(cell) != 3 or cell[0][0] != "bare" or cell[1][0] != "blank":
            raise Rejected(line)
        index = re.fullmatch(r"0*([0-9]{1,9})", cell[0][1])
        if index is None or not last < int(index[1]) < len(columns):
            raise Rejected(line)
        last = int(index[1])
        row[last] = columns[last].read(cell[2], line)
    return row
