"""Rows to rank that stay in their files: Parquet, read a row group at a time by whoever needs its rows.

Nobody holds all rows. What is known of them is a number or two per list (:class:`ListTable`), gathered once by reading
the columns of ids and relevances. Files follow each other, and a query may be cut by the end of a row group or of a
file; what stands apart from the rest of its query is an error.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.checks import require_in_range
from slatewise.core.errors import DataError
from slatewise.core.executor import Executor

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


class RowGroup(NamedTuple):
    """A piece of a file."""

    path: str
    number: int
    first_row: int
    """In the file."""
    n_rows: int


class Rows(NamedTuple):
    """Rows that were read."""

    X: Floats
    y: Floats


@dataclass(frozen=True, eq=False)
class ListTable:
    """What is known of every list without its features: list l owns ``offsets[l]:offsets[l + 1]`` of all rows."""

    ids: NDArray[Any]
    """(L,) what the lists are called."""
    offsets: Ints
    least: Floats
    """(L,) the smallest relevance in each list."""
    most: Floats
    grades: Floats
    """All relevances there are, rising."""
    sha256: str
    """Of ids and relevances, and of what the files are."""

    def __len__(self) -> int:
        return len(self.least)


@dataclass(frozen=True)
class RowSource:
    """Parquet files of rows to rank, and which of their columns are what; made by ``slatewise.cluster.source``."""

    paths: tuple[str, ...]
    features: tuple[str, ...]
    labels: str | None
    """None: nothing is known of the rows."""
    qid: str
    groups: tuple[RowGroup, ...] = field(repr=False)

    @classmethod
    def of(cls, paths: Sequence[str], features: Sequence[str] | None, labels: str | None, qid: str) -> RowSource:
        """Look into the files, without reading a row; what they lack is an error."""
        from slatewise.data.frames import Columns
        from slatewise.data.parquet import row_groups

        if not paths:
            raise ValueError("paths: expected at least one file, found none")
        groups: list[RowGroup] = []
        chosen: tuple[str, ...] | None = None if features is None else tuple(features)
        for path in paths:
            names, sizes = row_groups(path)
            found = Columns.among(names, path, labels, qid, None, chosen).features
            chosen = found if chosen is None else chosen
            groups += _groups(path, sizes)
        if not groups:
            raise DataError(paths[0], 0, 0, "rows", "none")
        return cls(tuple(paths), chosen or (), labels, qid, tuple(groups))

    @classmethod
    def to_rank(cls, paths: Sequence[str], qid: str, label: str, *, judged: bool) -> RowSource:
        """Look into files whose rows are to be ranked: every column but these two is a feature."""
        from slatewise.data.parquet import row_groups

        names, _ = row_groups(paths[0])
        return cls.of(paths, [name for name in names if name not in (qid, label)], label if judged else None, qid)

    def __array__(self, dtype: object = None, copy: object = None) -> NDArray[Any]:
        """Refuse to become an array: whoever asks for one does not take a source."""
        raise ValueError(
            "X: expected arrays, found a source: only MarginRanker.fit takes one, and others, as the base of a "
            "CStarRanker, need their rows in memory"
        )

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return sum(group.n_rows for group in self.groups)

    def lists(self, executor: Executor) -> ListTable:
        """Read ids and relevances, on the workers where there are some, and say where lists begin and end."""
        runs = executor.gather(_runs_of, (self.qid, self.labels), self.groups)
        joined = _joined(self, [_Runs(*run) for run in runs])
        digest = sha256(repr((self.features, self.labels, self.qid)).encode())
        for path in self.paths:
            seen = os.stat(path)
            digest.update(f"{seen.st_size} {seen.st_mtime_ns}".encode())
        for run in runs:
            digest.update(run.digest)
        offsets = np.concatenate(([0], np.cumsum(joined.sizes))).astype(np.int64)
        grades = np.unique(np.concatenate([run.grades for run in runs]))
        return ListTable(joined.ids, offsets, joined.least, joined.most, grades, digest.hexdigest())


def groups_of(paths: Sequence[str], column: str) -> list[RowGroup]:
    """Return the row groups of files that have a column."""
    from slatewise.data.frames import Columns
    from slatewise.data.parquet import row_groups

    found: list[RowGroup] = []
    for path in paths:
        names, sizes = row_groups(path)
        Columns.among(names, path, None, column, None, ())
        found += _groups(path, sizes)
    return found


def _groups(path: str, sizes: Sequence[int]) -> list[RowGroup]:
    starts = np.concatenate(([0], np.cumsum(sizes))).tolist()
    return [RowGroup(path, at, starts[at], size) for at, size in enumerate(sizes) if size]


class _Runs(NamedTuple):
    """The lists of a row group, of which the first and the last may go on elsewhere."""

    ids: NDArray[Any]
    sizes: Ints
    least: Floats
    most: Floats
    grades: Floats
    digest: bytes


def _runs_of(columns: tuple[str, str | None], group: RowGroup) -> _Runs:
    from slatewise.data.frames import ids_of, numbers_of
    from slatewise.data.parquet import read_group

    qid, labels = columns
    table = read_group(group.path, group.number, [qid] if labels is None else [qid, labels])
    ids = ids_of(table[qid], group.path, group.first_row)
    y = np.zeros(len(ids)) if labels is None else numbers_of(table[labels], group.path, group.first_row)
    starts = np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1))
    digest = sha256(np.ascontiguousarray(ids).tobytes() + y.tobytes()).digest()
    least, most = np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts)
    return _Runs(ids[starts], np.diff(np.append(starts, len(ids))), least, most, np.unique(y), digest)


def _joined(source: RowSource, runs: Sequence[_Runs]) -> _Runs:
    """Put the lists of all row groups together; one that a group cut is one list."""
    ids, sizes, least, most = (np.concatenate(parts) for parts in list(zip(*runs, strict=True))[:4])
    first = np.concatenate(([True], ids[1:] != ids[:-1]))
    starts = np.flatnonzero(first)
    names = ids[starts]
    _, where, times = np.unique(names, return_index=True, return_counts=True)
    if (times > 1).any():
        again = names[where[times > 1][0]]
        place = f"{source.paths[0]} and the files after it, column {source.qid!r}"
        raise DataError(place, 0, 0, "the rows of a query together", f"query {again.item()!r} again after another")
    return _Runs(
        names,
        np.add.reduceat(sizes, starts),
        np.minimum.reduceat(least, starts),
        np.maximum.reduceat(most, starts),
        np.empty(0),
        b"",
    )


class RowReader:
    """Reads runs of rows of a source; the row group that was read last is kept, for the run that comes next."""

    def __init__(self, source: RowSource) -> None:
        self._source = source
        self._kept: tuple[int, Rows] | None = None

    @cached_property
    def _starts(self) -> Ints:
        return np.concatenate(([0], np.cumsum([group.n_rows for group in self._source.groups]))).astype(np.int64)

    def read(self, first: int, last: int) -> Rows:
        """Return rows ``first`` to ``last - 1`` of all."""
        begin = int(np.searchsorted(self._starts, first, side="right")) - 1
        end = int(np.searchsorted(self._starts, last, side="left"))
        parts: list[Rows] = []
        for number in range(begin, end):
            rows, start = self._group(number), int(self._starts[number])
            cut = slice(max(first - start, 0), min(last - start, len(rows.y)))
            parts.append(Rows(rows.X[cut], rows.y[cut]))
        return Rows(np.concatenate([part.X for part in parts]), np.concatenate([part.y for part in parts]))

    def _group(self, number: int) -> Rows:
        if self._kept is None or self._kept[0] != number:
            self._kept = None  # free it first
            self._kept = (number, _rows_of(self._source, self._source.groups[number]))
        return self._kept[1]


def _rows_of(source: RowSource, group: RowGroup) -> Rows:
    from slatewise.data.frames import numbers_of
    from slatewise.data.parquet import read_group

    own = [] if source.labels is None else [source.labels]
    table = read_group(group.path, group.number, list(dict.fromkeys([*source.features, *own])))
    X = np.empty((group.n_rows, len(source.features)))
    for place, feature in enumerate(source.features):
        X[:, place] = numbers_of(table[feature], group.path, group.first_row)
    require_in_range(group.path, X)
    y = np.zeros(len(X)) if source.labels is None else numbers_of(table[source.labels], group.path, group.first_row)
    return Rows(X, y)
