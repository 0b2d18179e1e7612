"""SVMlight with query ids, as LETOR writes it: ``label qid:Q index:value ... # comment``, a row per line.

The rules, all of them checked:

- A number is ``[+-]?(digits[.digits?]|.digits)([eE][+-]?digits)?`` in ASCII, within the range of float64, and becomes
  the float that Python's ``float`` makes of it: no ``nan``, no ``inf``, no hexadecimal, no underscores.
- ``Q`` is digits, below 2^63. The rows of a query stand side by side.
- Indices are digits, from 1 (from 0 with ``zero_based=True``) on, and ascend within a row; there are fewer than
  2^31 columns. Zeros that the file spells out stay stored.
- Blanks and tabs separate tokens; ``#`` starts a comment, in UTF-8, anywhere. Lines may end in LF or CR LF, the last
  one without either. Blank lines and lines with only a comment carry nothing.
- The comment of a row is its document id: X where it reads ``docid = X ...``, otherwise all of it, at most 255 bytes.
  Rows without a comment have the id "".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import feature_rows, numbers
from slatewise.core.errors import Skipped
from slatewise.core.files import atomic_file
from slatewise.core.groups import group_rows
from slatewise.data.kernels import svmlight as kernels
from slatewise.data.kernels.text import count_byte, gather_bytes
from slatewise.data.reading import MAX_LINE, OnError, PathOrFile, Problems, Source, open_source, text_reader
from slatewise.data.records import RowsToRank, Strings
from slatewise.data.scaling import minmax_per_query
from slatewise.data.svmlight_text import (
    CHUNK_BYTES,
    IndexRange,
    Text,
    csr_from_lengths,
    error_list,
    expected,
    ints,
    join_fields,
    map_texts,
    run_twice_if_hard,
    shortest,
)

Scale: TypeAlias = Literal["minmax"]

_UNSAFE_ID = re.compile(r"^[ \t]|[ \t]$|[\x00\n\r\ud800-\udfff]")
_LOOKS_LIKE_LETOR = re.compile(r"docid[ \t]*=[ \t]*[^ \t]")


@text_reader
def read_svmlight(
    path: PathOrFile,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    require_qid: bool = True,
    doc_ids: bool = True,
    scale: Scale | None = None,
    on_error: OnError = "raise",
    max_line: int = MAX_LINE,
) -> RowsToRank:
    r"""Read a file with one row per line, its query and its features; the module's text has the rules.

    Parameters
    ----------
    n_features : int, optional
        Number of columns of X; an index beyond is an error. None: as many as the largest index needs.
    zero_based : bool
        Whether index 0 is the first column. Otherwise index 1 is, and index 0 an error.
    require_qid : bool
        Whether every row must have a query id. If False, a file without any is one list, with qid 0; a file where
        some rows have one and some have none is an error in either case.
    doc_ids : bool
        Whether to keep comments as document ids.
    scale : {"minmax"}, optional
        Scale every feature to [0, 1] within each query, see :func:`~slatewise.data.scaling.minmax_per_query`.

    Examples
    --------
    >>> from io import BytesIO
    >>> rows = read_svmlight(BytesIO(b"2 qid:7 1:0.5 3:1 #docid = d1\n0 qid:7 2:4 #docid = d2\n"))
    >>> rows.dense()
    array([[0.5, 0. , 1. ],
           [0. , 4. , 0. ]])
    >>> rows.y, rows.qid, rows.doc_ids
    (array([2., 0.]), array([7, 7]), array(['d1', 'd2'], dtype='<U2'))
    """
    shape = Shape.of(n_features, zero_based, scale)
    rules = kernels.Rules(shape.indices.first, shape.indices.end, require_qid, doc_ids)
    problems = Problems(on_error)
    with open_source(path, max_line) as source:
        parts = [part for part, _ in read_parts(source, CHUNK_BYTES, rules, problems)]
    return shape.rows(parts, problems.report())


def iter_svmlight(
    path: PathOrFile,
    *,
    n_features: int,
    max_bytes: int = 1 << 26,
    zero_based: bool = False,
    doc_ids: bool = True,
    scale: Scale | None = None,
    on_error: OnError = "raise",
    max_line: int = MAX_LINE,
) -> Iterator[RowsToRank]:
    r"""Read a file larger than memory: one :class:`RowsToRank` after the other, each with whole queries.

    Every row needs a query id, and ``n_features`` must be given so that all blocks have the same columns. Memory
    holds one block, the few pieces being parsed, and the query ids met so far.

    Parameters
    ----------
    path, zero_based, doc_ids, scale, on_error, max_line
        As for :func:`read_svmlight`; the last block's ``skipped`` counts the rows left out of the whole file.
    n_features : int
        Number of columns; an index beyond is an error.
    max_bytes : int
        About how much text makes a block; a query with more text than this is a block of its own.

    Examples
    --------
    >>> from io import BytesIO
    >>> file = BytesIO(b"1 qid:1 1:2\n0 qid:1 1:3\n1 qid:2 1:5\n")
    >>> [block.y.tolist() for block in iter_svmlight(file, n_features=1, max_bytes=10)]
    [[1.0, 0.0], [1.0]]
    """
    if max_bytes < 1:
        raise ValueError(f"max_bytes: expected a whole number >= 1, found {max_bytes}")
    shape = Shape.of(n_features, zero_based, scale)
    rules = kernels.Rules(shape.indices.first, shape.indices.end, True, doc_ids)
    problems = Problems(on_error)
    held: list[Part] = []
    held_bytes = 0
    with open_source(path, max_line) as source:
        for part, n_bytes in read_parts(source, min(CHUNK_BYTES, max_bytes), rules, problems):
            held.append(part)
            held_bytes += n_bytes
            # Queries are contiguous: equal ends mean that nothing but one query, perhaps unfinished, is held.
            if held_bytes >= max_bytes and held[0].qid[0] != part.qid[-1]:
                block = Part.joined(held)
                last = int(np.flatnonzero(block.qid != block.qid[-1])[-1]) + 1
                rows = np.arange(len(block.qid))
                yield shape.rows([block.select(rows < last)], Skipped())
                held, held_bytes = [block.select(rows >= last)], 0
    skipped = problems.report()
    if held:
        yield shape.rows(held, skipped)


def write_svmlight(path: str | os.PathLike[str], ranking: RowsToRank, *, zero_based: bool = False) -> None:
    r"""Write rows so that :func:`read_svmlight` gives them back bit for bit; the file appears whole or not at all.

    Parameters
    ----------
    path : str or path
        ``.gz`` and ``.xz`` are compressed.
    ranking : RowsToRank
        Finite numbers, query ids that are whole numbers >= 0 with the rows of a query side by side.
    zero_based : bool
        Whether the first column is index 0.

    Examples
    --------
    >>> from io import BytesIO
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> rows = read_svmlight(BytesIO(b"2 qid:7 1:0.50 3:1 #docid = d1\n"))
    >>> with TemporaryDirectory() as folder:
    ...     write_svmlight(Path(folder, "rows.txt"), rows)
    ...     Path(folder, "rows.txt").read_text()
    '2 qid:7 1:0.5 3:1 #docid = d1\n'
    """
    matrix, y = feature_rows("X", ranking.X), numbers("y", ranking.y, 1)
    if isinstance(matrix, np.ndarray):
        raise ValueError("X: expected a SciPy sparse matrix, found a dense one")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if not np.isfinite(y).all():
        raise ValueError(f"y: expected finite numbers, found {y[~np.isfinite(y)][0]}")
    qid = np.asarray(ranking.qid)
    for name, column in (("y", y), ("qid", qid), ("doc_ids", ranking.doc_ids)):
        if column is not None and column.shape != matrix.shape[:1]:
            raise ValueError(f"{name}: expected one per row of X, {matrix.shape[0]}, found shape {column.shape}")
    if qid.dtype.kind not in "iu" or (len(qid) and (qid.min() < 0 or qid.max() > np.iinfo(np.int64).max)):
        raise ValueError("qid: expected whole numbers from 0 to 2^63 - 1, found others")
    if group_rows(qid, len(qid)).order is not None:
        raise ValueError("qid: expected the rows of a query side by side, found a query that comes back")
    comments = [""] * len(qid) if ranking.doc_ids is None else [_comment(str(doc_id)) for doc_id in ranking.doc_ids]
    indices = (matrix.indices.astype(np.int64) + (0 if zero_based else 1)).tolist()
    texts = [shortest(value) for value in matrix.data.tolist()]
    ends = matrix.indptr.tolist()
    with atomic_file(path) as file:
        for i, (label, query) in enumerate(zip(y.tolist(), qid.tolist(), strict=True)):
            entries = range(ends[i], ends[i + 1])
            features = "".join(f" {indices[e]}:{texts[e]}" for e in entries)
            file.write(f"{shortest(label)} qid:{query}{features}{comments[i]}\n".encode())


def _comment(doc_id: str) -> str:
    if not doc_id:
        return ""
    has_blanks = " " in doc_id or "\t" in doc_id
    is_misread = has_blanks and _LOOKS_LIKE_LETOR.match(doc_id)
    if _UNSAFE_ID.search(doc_id) or is_misread or len(doc_id.encode()) > kernels.MAX_ID:
        raise ValueError(f"doc_ids: expected ids that a comment of the file can hold, found {doc_id!r}")
    return f" #{doc_id}" if has_blanks else f" #docid = {doc_id}"


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
        """Check the arguments."""
        if scale not in (None, "minmax"):
            raise ValueError(f"scale: expected None or 'minmax', found {scale!r}")
        return cls(IndexRange.of(n_features, zero_based), n_features, scale == "minmax")

    def rows(self, parts: list[Part], skipped: Skipped) -> RowsToRank:
        """Put parts together."""
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
