"""Rows that stay in their files and are read a piece at a time where they are needed.

No process holds all rows. Of the lists of a ranker only a few numbers each are in memory (:class:`ListTable`), gathered
once by reading ids and relevances. Files follow each other, and the end of a piece or of a file may cut a query; rows
that are apart from the rest of their query are an error.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints, LazyArray
from slatewise.core.errors import DataError
from slatewise.core.groups import concatenate_ranges
from slatewise.core.running.executor import Executor
from slatewise.data.row_files import ParquetRows, RowFormat, RowGroup, format_of


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
    """Files of rows, and which of their columns are what; made by ``slatewise.cluster.source``."""

    paths: tuple[str, ...]
    format: RowFormat
    groups: tuple[RowGroup, ...] = field(repr=False)

    @classmethod
    def of(
        cls,
        paths: Sequence[str],
        features: str | int | Sequence[str] | None,
        labels: str | Sequence[str] | None,
        qid: str | None,
    ) -> RowSource:
        """Look into the files, without reading a feature; what they lack is an error."""
        if not paths:
            raise ValueError("paths: expected at least one file, found none")
        for path, times in Counter(paths).items():
            if times > 1:
                raise ValueError(f"paths: expected every file once, found {path} {times} times")
        return cls._of(paths, format_of(paths[0], features, labels, qid))

    @classmethod
    def to_rank(
        cls, paths: Sequence[str], qid: str, label: str, features: Sequence[str] | None, *, judged: bool
    ) -> RowSource:
        """Look into Parquet files whose rows are to be ranked; features: by default every column but these two."""
        from slatewise.data.parquet import row_groups

        if features is None:
            features = [name for name in row_groups(paths[0]).names if name not in (qid, label)]
        return cls._of(paths, ParquetRows.of(paths[0], features, label if judged else None, qid))

    @classmethod
    def _of(cls, paths: Sequence[str], rows: RowFormat) -> RowSource:
        groups = [group for path in paths for group in rows.groups(path)]
        if not groups:
            raise DataError(paths[0], 0, 0, "rows", f"none in {len(paths)} files")
        return cls(tuple(paths), rows, tuple(groups))

    def __array__(self, dtype: object = None, copy: object = None) -> NDArray[Any]:
        """Raise ValueError: an estimator that needs an array does not take a source."""
        raise ValueError(
            "X: expected arrays, found a source: MarginRanker, MatchingRanker, CStarRanker, CStarMarginRanker and "
            "MetricRanker take one, and others, as the base of a CStarRanker, need their rows in memory"
        )

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.starts[-1])

    @property
    def n_features(self) -> int:
        """How many features a row has."""
        return self.format.n_features

    @cached_property
    def starts(self) -> Ints:
        """The first row of each piece among all, and how many rows there are."""
        return np.concatenate(([0], np.cumsum([group.n_rows for group in self.groups]))).astype(np.int64)

    @property
    def features(self) -> StoredRows:
        """The features of all rows, unread."""
        return StoredRows.of(self, np.zeros(1, dtype=np.int64), np.array([self.n_rows]), AS_THEY_ARE)

    def read(self, first: int, last: int) -> Rows:
        """Return rows ``first`` to ``last - 1`` of all."""
        where = (np.array([first]), np.array([last - first]))
        X, y = StoredRows.read_all([StoredRows.of(self, *where, make) for make in (AS_THEY_ARE, Relevances())])
        return Rows(X, y)

    def lists(self, executor: Executor) -> ListTable:
        """Read ids and relevances, on the workers where there are some, and say where lists begin and end."""
        if not self.format.has_qid:
            raise ValueError("qid: expected a source with query ids, found one without")
        runs = executor.gather(_runs_of, self.format, self.groups)
        joined = _joined(self, [_Runs(*run) for run in runs])
        offsets = np.concatenate(([0], np.cumsum(joined.sizes))).astype(np.int64)
        grades = np.unique(np.concatenate([run.grades for run in runs]))
        digest = self.sha256(*(run.digest for run in runs))
        return ListTable(joined.ids, offsets, joined.least, joined.most, grades, digest)

    def require_labels(self) -> None:
        """Raise ValueError where nothing is known of the rows."""
        if not self.format.has_labels:
            raise ValueError("labels: expected a source with labels, found one without")

    def relevances(self, executor: Executor) -> Floats:
        """Read one relevance per row."""
        return np.concatenate(executor.gather(type(self.format).numbers, self.format, self.groups))

    def labels(self, executor: Executor) -> NDArray[Any]:
        """Read the labels of all rows: a matrix, or a class per row."""
        self.require_labels()
        return np.concatenate(executor.gather(type(self.format).labels, self.format, self.groups))

    def sha256(self, *content: bytes) -> str:
        """Return a hash of which columns of which files these are, and of some content."""
        digest = sha256(repr(self.format).encode())
        for path in self.paths:
            seen = os.stat(path)
            digest.update(f"{seen.st_size} {seen.st_mtime_ns}".encode())
        for part in content:
            digest.update(part)
        return digest.hexdigest()


class Make(Protocol):
    """What is made of rows when they are read."""

    def shape(self, n_features: int) -> tuple[int, ...]:
        """Say what shape a row has."""
        ...

    @property
    def dtype(self) -> str:
        """Of the numbers."""
        ...

    def of(self, rows: RowFormat, group: RowGroup) -> NDArray[Any]:
        """Read a piece, and make it."""
        ...


@dataclass(frozen=True, eq=False)
class AsTheyAre:
    """Features."""

    dtype: str = "float64"

    def shape(self, n_features: int) -> tuple[int, ...]:
        """One number per feature."""
        return (n_features,)

    def of(self, rows: RowFormat, group: RowGroup) -> Floats:
        """Return them."""
        return rows.features(group)


AS_THEY_ARE = AsTheyAre()


@dataclass(frozen=True, eq=False)
class Shifted:
    """Features minus a center."""

    centre: Floats
    dtype: str = "float64"

    def shape(self, n_features: int) -> tuple[int, ...]:
        """One number per feature."""
        return (n_features,)

    def of(self, rows: RowFormat, group: RowGroup) -> Floats:
        """Subtract the center."""
        return rows.features(group) - self.centre


@dataclass(frozen=True, eq=False)
class Relevances:
    """Relevances."""

    dtype: str = "float64"

    def shape(self, n_features: int) -> tuple[int, ...]:
        """One number."""
        del n_features
        return ()

    def of(self, rows: RowFormat, group: RowGroup) -> Floats:
        """Return them."""
        return rows.numbers(group)


@dataclass(frozen=True, eq=False)
class StoredRows(LazyArray):
    """Some rows of a source, in some order, not read yet; they are sliced like an array."""

    source: RowSource
    first: Ints
    """Rows come in runs of neighbors: the first of each, and how many they are."""
    sizes: Ints
    make: Make
    shape: tuple[int, ...]

    @classmethod
    def of(cls, source: RowSource, first: Ints, sizes: Ints, make: Make) -> StoredRows:
        """Take runs of rows."""
        return cls(source, first, sizes, make, (int(sizes.sum()), *make.shape(source.n_features)))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, places: slice | NDArray[Any]) -> StoredRows:
        """Return some rows, by a slice, by number or by a boolean each, in the order given."""
        return self.at(self.numbers[places])

    def at(self, numbers: Ints) -> StoredRows:
        """Return rows of the source by their numbers."""
        begins = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
        sizes = np.diff(np.append(begins, len(numbers)))
        return StoredRows.of(self.source, numbers[begins], sizes.astype(np.int64), self.make)

    def made(self, make: Make) -> StoredRows:
        """Return the same rows, of which something else is made."""
        return StoredRows.of(self.source, self.first, self.sizes, make)

    @property
    def numbers(self) -> Ints:
        """Which rows of the source these are."""
        return concatenate_ranges(self.first, self.sizes)[0]

    def read(self, executor: Executor) -> NDArray[Any]:
        """Read them, on the workers where there are some."""
        numbers, starts = self.numbers, self.source.starts
        order = np.argsort(numbers, kind="stable")
        edges = np.searchsorted(numbers[order], starts).tolist()
        parts = [order[first:last] for first, last in pairwise(edges)]
        wanted = [
            _Picked(self.source.groups[at], numbers[part] - starts[at]) for at, part in enumerate(parts) if len(part)
        ]
        found = np.empty(self.shape, dtype=self.make.dtype)
        read = executor.gather(_picked, (self.source.format, self.make), wanted)
        for part, rows in zip((part for part in parts if len(part)), read, strict=True):
            found[part] = rows
        return found

    @classmethod
    def read_all(cls, wanted: Sequence[StoredRows]) -> list[NDArray[Any]]:
        """Read several: every piece once for all of them; those with the same content are views of one array."""
        alike: dict[tuple[int, int], list[int]] = {}
        for at, one in enumerate(wanted):
            alike.setdefault((id(one.source), id(one.make)), []).append(at)
        found: list[Any] = [None] * len(wanted)
        fillings: dict[int, list[_Filling]] = {}
        for places in alike.values():
            filling = _Filling.of([wanted[at] for at in places])
            ends = np.cumsum([len(wanted[at]) for at in places]).tolist()
            for at, end in zip(places, ends, strict=True):
                found[at] = filling.out[end - len(wanted[at]) : end]
            fillings.setdefault(id(filling.source), []).append(filling)
        for same in fillings.values():
            _fill(same)
        return found


class _Filling(NamedTuple):
    """An array that is filled piece by piece."""

    source: RowSource
    make: Make
    out: NDArray[Any]
    numbers: Ints
    """Rows of the source, rising."""
    places: Ints
    """Where each goes."""

    @classmethod
    def of(cls, wanted: Sequence[StoredRows]) -> _Filling:
        source, make = wanted[0].source, wanted[0].make
        numbers = np.concatenate([one.numbers for one in wanted])
        out = np.empty((len(numbers), *make.shape(source.n_features)), dtype=make.dtype)
        places = np.argsort(numbers, kind="stable")
        return cls(source, make, out, numbers[places], places)


def _fill(fillings: Sequence[_Filling]) -> None:
    source = fillings[0].source
    edges = [np.searchsorted(one.numbers, source.starts) for one in fillings]
    for at, group in enumerate(source.groups):
        for filling, cuts in zip(fillings, edges, strict=True):
            run = slice(int(cuts[at]), int(cuts[at + 1]))
            if run.start < run.stop:
                piece = filling.make.of(source.format, group)
                filling.out[filling.places[run]] = piece[filling.numbers[run] - source.starts[at]]


class _Picked(NamedTuple):
    """Rows of a piece."""

    group: RowGroup
    rows: Ints


def _picked(how: tuple[RowFormat, Make], wanted: _Picked) -> NDArray[Any]:
    rows, make = how
    return make.of(rows, wanted.group)[wanted.rows]


def groups_of(paths: Sequence[str], column: str) -> list[RowGroup]:
    """Return the row groups of Parquet files that have a column of ids."""
    found = [group for path in paths for group in ParquetRows((), None, column).groups(path)]
    if not found:
        raise DataError(paths[0], 0, 0, "rows", f"none in {len(paths)} files")
    return found


class _Runs(NamedTuple):
    """The lists of a piece; the first and the last may be parts of lists that other pieces continue."""

    ids: NDArray[Any]
    sizes: Ints
    least: Floats
    most: Floats
    grades: Floats
    digest: bytes


def _runs_of(rows: RowFormat, group: RowGroup) -> _Runs:
    ids, y = rows.ids(group), rows.numbers(group)
    starts = np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1))
    digest = sha256(np.ascontiguousarray(ids).tobytes() + y.tobytes()).digest()
    least, most = np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts)
    return _Runs(ids[starts], np.diff(np.append(starts, len(ids))), least, most, np.unique(y), digest)


def _joined(source: RowSource, runs: Sequence[_Runs]) -> _Runs:
    """Put the lists of all pieces together; one that a piece cut is one list."""
    place = f"{source.paths[0]} and the files after it, query ids"
    if len({run.ids.dtype.kind for run in runs}) > 1:
        raise DataError(place, 0, 0, "integers in all files, or strings", "both")
    ids, sizes, least, most = (np.concatenate(parts) for parts in list(zip(*runs, strict=True))[:4])
    first = np.concatenate(([True], ids[1:] != ids[:-1]))
    starts = np.flatnonzero(first)
    names = ids[starts]
    _, where, times = np.unique(names, return_index=True, return_counts=True)
    if (times > 1).any():
        again = names[where[times > 1][0]]
        raise DataError(place, 0, 0, "the rows of a query together", f"query {again.item()!r} again after another")
    return _Runs(
        names,
        np.add.reduceat(sizes, starts),
        np.minimum.reduceat(least, starts),
        np.maximum.reduceat(most, starts),
        np.empty(0),
        b"",
    )
