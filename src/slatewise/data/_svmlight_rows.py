"""Rows of SVMlight text with query ids, whole and in order: what the reader and the block reader share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.errors import Skipped
from slatewise.data._source import Problems, Source
from slatewise.data._svmlight_text import (
    IndexRange,
    Text,
    csr_from_lengths,
    error_list,
    expected,
    ints,
    join_fields,
    map_texts,
    run_twice_if_hard,
)
from slatewise.data.kernels import svmlight as kernels
from slatewise.data.kernels.text import count_byte, gather_bytes
from slatewise.data.records import RowsToRank, Strings
from slatewise.data.scaling import minmax_per_query

_LABEL_AND_BLANKS = re.compile(rb"[^ \t#\r\n]+[ \t]*")


class Part(NamedTuple):
    """Rows read: ``lengths`` counts each row's entries, ``ids`` holds the document ids in UTF-8."""

    y: Floats
    qid: Ints
    lengths: Ints
    indices: NDArray[np.int32]
    values: Floats
    ids: NDArray[np.bytes_]

    @classmethod
    def joined(cls, parts: list[Part]) -> Part:
        """Put parts one after the other and empty the list."""
        return cls(*join_fields(parts))

    def select(self, kept: NDArray[np.bool_]) -> Part:
        """Return some of the rows."""
        entries = np.repeat(kept, self.lengths)
        indices, values = self.indices[entries], self.values[entries]
        return Part(self.y[kept], self.qid[kept], self.lengths[kept], indices, values, self.ids[kept])


_NO_ROWS = Part(np.empty(0), ints(0), ints(0), np.empty(0, np.int32), np.empty(0), np.empty(0, "S1"))


@dataclass(frozen=True)
class Shape:
    """What the reader's arguments say about the result."""

    indices: IndexRange
    n_features: int | None
    scaled: bool

    @classmethod
    def of(cls, n_features: int | None, zero_based: bool, scale: str | None) -> Shape:
        if scale not in (None, "minmax"):
            raise ValueError(f"scale: expected None or 'minmax', found {scale!r}")
        return cls(IndexRange.of(n_features, zero_based), n_features, scale == "minmax")

    def rows(self, parts: list[Part], skipped: Skipped) -> RowsToRank:
        y, qid, lengths, indices, values, ids = Part.joined(parts or [_NO_ROWS])
        X = csr_from_lengths(values, indices, lengths, self.n_features)
        return RowsToRank(minmax_per_query(X, qid) if self.scaled else X, y, qid, _decoded(ids), skipped)


class _Queries:
    """The queries met so far: none may come back, and either all rows have one or none has."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._current = -1
        self._any_row = False

    def faults(self, qid: Ints) -> Iterator[tuple[int, int, int]]:
        """Yield (first row, row after the last, code) of every run of rows that breaks a rule."""
        bounds = [0, *(np.flatnonzero(qid[1:] != qid[:-1]) + 1).tolist(), len(qid)]
        for start, stop in pairwise(bounds if len(qid) else []):
            query = int(qid[start])
            if not self._any_row:
                self._any_row, self._current = True, query
                self._seen.add(query)
            elif query == self._current:
                continue
            elif query == -1:
                yield start, stop, kernels.NO_QID
            elif self._current == -1:
                yield start, stop, kernels.STRAY_QID
            elif query in self._seen:
                yield start, stop, kernels.SPLIT_QUERY
            else:
                self._current = query
                self._seen.add(query)


@dataclass(frozen=True, eq=False)
class _Parsed:
    text: Text
    part: Part
    starts: Ints
    errors: list[tuple[int, int]]
    """(position in the text, code) of each bad row."""


def _parse(rules: kernels.Rules, text: Text) -> _Parsed:
    data = np.frombuffer(text.data, dtype=np.uint8)
    n_lines = count_byte(data, ord("\n"))
    rows = kernels.RankingRows(np.empty(n_lines), *(ints(n_lines) for _ in range(5)))
    errors = kernels.Errors(ints(n_lines), ints(n_lines))
    entries, (size, count, wrong) = run_twice_if_hard(
        text, n_lines, lambda entries: kernels.ranking_rows(data, rules, entries, rows, errors)
    )
    id_starts, id_ends = rows.id_starts[:count], rows.id_ends[:count]
    letters = np.zeros((count, max(1, int((id_ends - id_starts).max(initial=0)))), dtype=np.uint8)
    gather_bytes(data, id_starts, id_ends, letters)
    part = Part(
        rows.labels[:count],
        rows.qids[:count],
        rows.lengths[:count],
        entries.indices[:size],
        entries.values[:size],
        letters.view(f"S{letters.shape[1]}")[:, 0],
    )
    return _Parsed(text, part, rows.starts[:count], error_list(errors, wrong))


def read_parts(source: Source, size: int, rules: kernels.Rules, problems: Problems) -> Iterator[tuple[Part, int]]:
    """Yield (rows that obey every rule, bytes of text they took); what does not goes to ``problems``."""
    queries = _Queries()
    indices = IndexRange(rules.first_index, rules.end_index)
    for parsed in map_texts(source, size, _parse, rules):
        text, part, errors = parsed.text, parsed.part, parsed.errors
        kept = np.ones(len(part.qid), dtype=bool)
        for start, stop, code in queries.faults(part.qid):
            kept[start:stop] = False
            labels = (_LABEL_AND_BLANKS.match(text.data, at) for at in parsed.starts[start:stop].tolist())
            errors.extend((label.end(), code) for label in labels if label)
        for position, code in sorted(errors):
            problems.add(text.error(position, expected(code, indices)))
        if not kept.all():
            part = part.select(kept)
        if len(part.qid):
            np.maximum(part.qid, 0, out=part.qid)  # a file without query ids is one list, called 0
            yield part, len(text.data)


def _decoded(ids: NDArray[np.bytes_]) -> Strings | None:
    if not (ids != b"").any():
        return None
    ascii_only = ids.view(np.uint8).max() < 0x80
    return ids.astype(np.str_) if ascii_only else np.strings.decode(ids, "utf-8")
