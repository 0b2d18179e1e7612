"""SVMlight read slowly, line by line with regular expressions: the judge of the fast reader. Shares no code with it."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass, field

from tests.fuzz import Rejected

_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_QID = re.compile(rb"qid:([0-9]+)")
_FEATURE = re.compile(rb"([0-9]+):(.*)", re.DOTALL)
_DOCUMENT = re.compile(rb"docid[ \t]*=[ \t]*([^ \t]+)")


class Bad(Exception):
    """A row that breaks a rule."""


@dataclass
class Result:
    """Rows read so far, as lists."""

    labels: list = field(default_factory=list)
    qids: list[int | None] = field(default_factory=list)
    rows: list[tuple[tuple[int, float], ...]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)


def number(token: bytes) -> float:
    if not _NUMBER.fullmatch(token):
        raise Bad
    value = float(token)
    if math.isinf(value):
        raise Bad
    return value


def split_lines(data: bytes) -> list[bytes]:
    lines = (data[3:] if data[:3] == b"\xef\xbb\xbf" else data).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def tokens_and_comment(line: bytes) -> tuple[list[bytes], bytes]:
    body, _, comment = line.partition(b"#")
    try:
        comment.decode("utf-8")
    except UnicodeDecodeError:
        raise Bad from None
    if 0 in comment:
        raise Bad
    return [token for token in re.split(rb"[ \t]", body) if token], comment.strip(b" \t\r")


def feature_row(tokens: list[bytes], first: int, last: int) -> tuple[tuple[int, float], ...]:
    row: list[tuple[int, float]] = []
    for token in tokens:
        match = _FEATURE.fullmatch(token)
        if not match:
            raise Bad
        index = int(match[1]) if len(match[1].lstrip(b"0")) < 20 else last + 1
        if not first <= index <= last or (row and index - first <= row[-1][0]):
            raise Bad
        row.append((index - first, number(match[2])))
    return tuple(row)


def read(
    data: bytes,
    *,
    skip: bool = False,
    n_features: int | None = None,
    zero_based: bool = False,
    require_qid: bool = True,
) -> Result:
    """Read a ranking file; raise Rejected at the first bad line, or leave it out."""
    result = Result()
    first = 0 if zero_based else 1
    last = first + (2**31 - 1 if n_features is None else n_features) - 1
    for line_number, line in enumerate(split_lines(data), start=1):
        try:
            _read_row(line, result, first, last, require_qid)
        except Bad:
            if not skip:
                raise Rejected(line_number) from None
            result.skipped.append(line_number)
    return result


def _read_row(line: bytes, result: Result, first: int, last: int, require_qid: bool) -> None:
    tokens, comment = tokens_and_comment(line)
    if not tokens:
        return
    label = number(tokens[0])
    qid = None
    rest = tokens[1:]
    if rest and rest[0].startswith(b"qid:"):
        match = _QID.fullmatch(rest[0])
        if not match or len(match[1].lstrip(b"0")) > 19 or int(match[1]) >= 2**63:
            raise Bad
        qid = int(match[1])
        rest = rest[1:]
    if qid is None and require_qid:
        raise Bad
    row = feature_row(rest, first, last)
    match = _DOCUMENT.match(comment)
    doc_id = match[1] if match else comment
    if len(doc_id) > 255:
        raise Bad
    if result.qids and qid != result.qids[-1] and (qid is None or qid in result.qids or result.qids[-1] is None):
        raise Bad
    result.labels.append(label)
    result.qids.append(qid)
    result.rows.append(row)
    result.comments.append(doc_id.decode("utf-8"))


def bits(values: list[float]) -> bytes:
    return struct.pack(f"={len(values)}d", *values)


def comparable(result: Result) -> tuple[object, ...]:
    """Return what :func:`tests.fuzz.format_svmlight.comparable` makes of the fast reader's result."""
    return (
        bits(result.labels),
        tuple(qid or 0 for qid in result.qids),
        tuple(len(row) for row in result.rows),
        tuple(index for row in result.rows for index, _ in row),
        bits([value for row in result.rows for _, value in row]),
        tuple(result.comments) if any(result.comments) else None,
        len(result.skipped),
        tuple(result.skipped[:5]),
    )
