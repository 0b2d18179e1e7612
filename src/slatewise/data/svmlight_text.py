"""What the SVMlight family shares: text cut at line ends, buffers for its numbers, and what each error code means."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, MutableSequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slatewise.core.errors import DataError
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.data.kernels import svmlight as kernels
from slatewise.data.kernels.decimal import powers_of_five
from slatewise.data.kernels.text import count_byte
from slatewise.data.reading import Source

Rules = TypeVar("Rules")
Parsed = TypeVar("Parsed")

CHUNK_BYTES = 1 << 22
MAX_COLUMNS = (1 << 31) - 1
_THREADS_PAY_FROM = 1 << 20
_SHOWN = 40
_TOKEN = re.compile(rb"[^ \t\r\n]+")

Counts: TypeAlias = tuple[int, int, int]
"""Entries, rows and errors that a pass over the text wrote."""

_NUMBER = "a finite decimal number"
_EXPECTED = {
    kernels.LABEL: f"a label, {_NUMBER}",
    kernels.LABEL_OVERFLOW: "a label within the range of float64",
    kernels.QID: "a query id, qid: and digits",
    kernels.QID_OVERFLOW: "a query id below 2^63",
    kernels.INDEX: "a feature, index:value",
    kernels.INDEX_ORDER: "a feature index above the one before it",
    kernels.VALUE: f"a value, {_NUMBER}",
    kernels.VALUE_OVERFLOW: "a value within the range of float64",
    kernels.NUL: "text without NUL bytes",
    kernels.UTF8: "a comment in UTF-8",
    kernels.LONG_ID: f"a document id of at most {kernels.MAX_ID} bytes (doc_ids=False reads past comments)",
    kernels.LABEL_SET: "labels, whole numbers with commas between",
    kernels.LABEL_REPEATED: "every label once",
    kernels.SPLIT_QUERY: "the rows of a query side by side, this one came before",
    kernels.NO_QID: "a query id, qid: and digits",
    kernels.STRAY_QID: "no query id, as the rows before have none",
}


@dataclass(frozen=True)
class Text:
    """Whole lines of a file: ``data`` ends with a line feed, and its first line has this number."""

    name: str
    data: bytes
    first_line: int

    def error(self, position: int, expected: str) -> DataError:
        """Say what was expected at a position of the data."""
        line_start = self.data.rfind(b"\n", 0, position) + 1
        line = self.first_line + self.data.count(b"\n", 0, line_start)
        return DataError(self.name, line, position - line_start + 1, expected, _shown(self.data, position))


def _shown(data: bytes, position: int) -> str:
    """Quote the token at a position, cut short where it is long."""
    token = _TOKEN.match(data, position, position + _SHOWN)
    if token is None:
        return "a blank" if data[position] in b" \t" else "the line end"
    try:
        text = getincrementaldecoder("utf-8")().decode(token[0])  # what is cut off may be half a character
    except UnicodeDecodeError:
        return "binary data"
    return repr(text) if text.isprintable() else "binary data"


def whole_lines(source: Source, size: int) -> Iterator[Text]:
    """Cut a source at line ends, about ``size`` bytes a piece; a longer line is a piece of its own."""
    for first_line, data in source.pieces(size):
        yield Text(source.name, data if data.endswith(b"\n") else data + b"\n", first_line)


def columns(argument: str, count: int | None) -> int:
    """Return how many columns a file may use."""
    if count is None:
        return MAX_COLUMNS
    if not 0 <= count <= MAX_COLUMNS:
        raise ValueError(f"{argument}: expected a whole number from 0 to {MAX_COLUMNS}, found {count}")
    return count


@dataclass(frozen=True)
class IndexRange:
    """Which feature indices a file may use: ``first`` to ``end - 1``."""

    first: int
    end: int

    @classmethod
    def of(cls, n_features: int | None, zero_based: bool) -> IndexRange:
        """Resolve the arguments of a reader."""
        first = 0 if zero_based else 1
        return cls(first, first + columns("n_features", n_features))


def expected(code: int, features: IndexRange, n_labels: int = 0) -> str:
    """Say in words what a row with this error should have had."""
    if code == kernels.INDEX_RANGE:
        return f"a feature index from {features.first} to {features.end - 1}"
    if code == kernels.LABEL_RANGE:
        return f"a label from 0 to {n_labels - 1} (n_labels sets how many there are)"
    return _EXPECTED[code]


def map_texts(source: Source, size: int, parse: Callable[[Rules, Text], Parsed], rules: Rules) -> Iterator[Parsed]:
    """Yield ``parse(rules, text)`` of the pieces of a source in their order; threads where the file is worth them."""
    texts = whole_lines(source, size)
    first = next(texts, None)
    if first is None:
        return
    executor = Executor.of(None) if len(first.data) >= _THREADS_PAY_FROM else ONE_THREAD
    yield from executor.map_blocks(parse, rules, chain([first], texts))


def run_twice_if_hard(
    text: Text, n_lines: int, once: Callable[[kernels.Entries], Counts]
) -> tuple[kernels.Entries, Counts]:
    """Make buffers for the entries and pass over the text; once more if Python had to round some of its numbers."""
    n_entries = count_byte(np.frombuffer(text.data, dtype=np.uint8), ord(":"))
    hard = kernels.Hard(ints(n_entries + n_lines), np.zeros(1, dtype=np.int64), ints(0), np.empty(0))
    entries = kernels.Entries(np.empty(n_entries, dtype=np.int32), np.empty(n_entries), powers_of_five(), hard)
    counts = once(entries)
    if hard.n_found[0]:
        known = hard.found[: hard.n_found[0]].copy()
        values = np.array([_number_at(text.data, position) for position in known.tolist()])
        entries = entries._replace(hard=hard._replace(known=known, values=values))
        counts = once(entries)
    return entries, counts


def _number_at(data: bytes, start: int) -> float:
    end = start
    while data[end] in b"+-.0123456789eE":
        end += 1
    return float(data[start:end])


def ints(n: int) -> NDArray[np.int64]:
    """Make a buffer for n whole numbers."""
    return np.empty(n, dtype=np.int64)


def error_list(errors: kernels.Errors, count: int) -> list[tuple[int, int]]:
    """Return (position, code) of each bad row."""
    return list(zip(errors.positions[:count].tolist(), errors.codes[:count].tolist(), strict=True))


def join_fields(parts: MutableSequence[Any]) -> list[NDArray[Any]]:
    """Join parts field by field and empty the list: pieces go as soon as they are copied, to save memory."""
    fields = [list(pieces) for pieces in zip(*parts, strict=True)]
    parts.clear()
    joined: list[NDArray[Any]] = []
    for pieces in fields:
        joined.append(np.concatenate(pieces) if len(pieces) > 1 else pieces[0])
        pieces.clear()
    return joined


def csr_from_lengths(
    values: NDArray[Any], indices: NDArray[Any], lengths: NDArray[np.int64], n_columns: int | None
) -> csr_array:
    """Return the sparse array whose row i has the next ``lengths[i]`` entries."""
    indptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=indptr[1:])
    if len(values) <= MAX_COLUMNS:
        indptr = indptr.astype(np.int32)  # as wide as the indices, so that scipy copies neither
    if n_columns is None:
        n_columns = int(indices.max()) + 1 if len(indices) else 0
    return csr_array((values, indices, indptr), shape=(len(lengths), n_columns))


def shortest(value: float) -> str:
    """Return the shortest text that reads back as the same float."""
    return repr(value).removesuffix(".0")
