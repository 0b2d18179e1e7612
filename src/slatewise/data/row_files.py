"""Files of rows, read piece by piece: row groups of Parquet, ranges of lines of SVMlight, ranges of rows of npz.

A piece knows its place in a file and its number of rows, and is read by itself. A format knows which columns of a file
are features, labels and query ids; all files of a source have one format.
"""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from slatewise.core.arrays import Floats
from slatewise.core.checks import LARGEST
from slatewise.core.errors import DataError
from slatewise.data.npz import DAMAGE

PIECE_BYTES = 1 << 24
"""Of text, or of features, that a piece has where a format has no pieces of its own."""
_MOST_DEFLATED = 1032
"""Bytes that one byte of an archive can unpack to."""


class RowGroup(NamedTuple):
    """A piece of a file."""

    path: str
    number: int
    """Of the row group; of text, how many lines are before it."""
    first_row: int
    """In the file."""
    n_rows: int
    n_bytes: int
    """Of the whole file, when the piece was found."""
    start: int = 0
    """The first byte, of text."""
    stop: int = 0

    def require_same(self) -> None:
        """Raise DataError if the file has changed: a worker may read it long after the driver."""
        found = os.stat(self.path).st_size
        if found != self.n_bytes:
            expected = f"a file of {self.n_bytes} bytes, as when it was looked into"
            raise DataError(self.path, 0, 0, expected, f"{found} bytes")


class RowFormat(Protocol):
    """The meaning of the columns of a file, and how to read a piece."""

    @property
    def n_features(self) -> int:
        """The number of features of a row."""
        ...

    @property
    def has_labels(self) -> bool:
        """Whether rows have labels or relevances."""
        ...

    @property
    def has_qid(self) -> bool:
        """Whether rows belong to queries."""
        ...

    @property
    def label_names(self) -> list[str] | None:
        """The names of labels, if each has a column."""
        ...

    def groups(self, path: str) -> list[RowGroup]:
        """Return the pieces of a file; a missing column is an error."""
        ...

    def features(self, group: RowGroup) -> Floats:
        """Read finite features, (n, d)."""
        ...

    def numbers(self, group: RowGroup) -> Floats:
        """Read one relevance per row."""
        ...

    def labels(self, group: RowGroup) -> NDArray[Any]:
        """Read a matrix of labels, 1, 0, or -1 if unknown, or a class per row."""
        ...

    def ids(self, group: RowGroup) -> NDArray[Any]:
        """Read the query of each row."""
        ...


def format_of(
    path: str, features: str | int | Sequence[str] | None, labels: str | Sequence[str] | None, qid: str | None
) -> RowFormat:
    """Tell a file's format by how it starts, and say which of its columns are what."""
    with open(path, "rb") as file:
        magic = file.read(4)
    if magic == b"PAR1":
        names = None if features is None else _listed(path, features)
        return ParquetRows.of(path, names, labels, qid)
    if magic[:2] == b"PK":
        if not isinstance(features, str | None) or not isinstance(labels, str | None):
            raise ValueError(f"features, labels: expected names of members of {path}, found {features!r}, {labels!r}")
        return NpzRows.of(path, "X" if features is None else features, labels, qid)
    if magic[:2] == b"\x1f\x8b" or magic == b"\xfd7zX":
        raise DataError(path, 0, 0, "plain text, of which any range can be read", "a compressed file")
    if labels is not None or qid is not None:
        raise ValueError(
            f"labels, qid: expected None for SVMlight, whose lines have both, or Parquet or npz files, found "
            f"{labels!r}, {qid!r} and {path}, which is neither"
        )
    if isinstance(features, bool) or not isinstance(features, int) or features < 1:
        raise ValueError(f"features: expected how many there are for SVMlight ({path}), found {features!r}")
    return SvmlightRows(features)


def _listed(path: str, features: str | int | Sequence[str]) -> list[str]:
    if isinstance(features, int | str):
        raise ValueError(f"features: expected a list of columns for Parquet ({path}), found {features!r}")
    return list(features)


@dataclass(frozen=True)
class ParquetRows:
    """Columns of Parquet files; pieces are row groups."""

    columns: tuple[str, ...]
    label_columns: str | tuple[str, ...] | None
    qid: str | None

    @classmethod
    def of(
        cls, path: str, features: Sequence[str] | None, labels: str | Sequence[str] | None, qid: str | None
    ) -> ParquetRows:
        """Look into the first file; features are by default all columns that serve as nothing else."""
        from slatewise.data.parquet import row_groups

        label_columns = labels if isinstance(labels, str | None) else tuple(labels)
        if features is None:
            own = {qid, *([label_columns] if isinstance(label_columns, str | None) else label_columns)}
            features = [name for name in row_groups(path).names if name not in own]
        if not features:
            raise DataError(path, 0, 0, "a column of features", "none beside those that serve as something else")
        found = cls(tuple(features), label_columns, qid)
        found.groups(path)
        return found

    @property
    def n_features(self) -> int:
        """How many columns of features."""
        return len(self.columns)

    @property
    def has_labels(self) -> bool:
        """Whether there is a column of labels."""
        return self.label_columns is not None

    @property
    def has_qid(self) -> bool:
        """Whether there is a column of ids."""
        return self.qid is not None

    @property
    def label_names(self) -> list[str] | None:
        """The columns of labels, where there are several."""
        return list(self.label_columns) if isinstance(self.label_columns, tuple) else None

    def groups(self, path: str) -> list[RowGroup]:
        """Take row groups as they are."""
        from slatewise.data.frames import floats_of, ids_of, require_columns
        from slatewise.data.parquet import row_groups

        names, sizes, nothing, _ = row_groups(path)
        labels = [self.label_columns] if isinstance(self.label_columns, str | None) else self.label_columns
        require_columns(names, path, [name for name in (*labels, self.qid, *self.columns) if name is not None])
        for what, chosen in (("features", self.columns), ("labels", labels)):
            if len(set(chosen)) != len(chosen):
                raise ValueError(f"{what}: expected every column once, found {list(chosen)}")
        starts = np.concatenate(([0], np.cumsum(sizes))).tolist()
        if starts[-1]:  # a file without rows may say nothing of their kinds
            for name in self.columns:
                floats_of(nothing[name], path, 0)
            if self.qid is not None:
                ids_of(nothing[self.qid], path, 0)
        n_bytes = os.stat(path).st_size
        return [RowGroup(path, at, starts[at], size, n_bytes) for at, size in enumerate(sizes) if size]

    def features(self, group: RowGroup) -> Floats:
        """Read the columns of features."""
        from slatewise.data.frames import numbers_of

        table = _table(group, self.columns)
        X = np.empty((group.n_rows, len(self.columns)))
        for place, feature in enumerate(self.columns):
            X[:, place] = numbers_of(table[feature], group.path, group.first_row)
        _require_in_range(X, group, self.columns)
        return X

    def numbers(self, group: RowGroup) -> Floats:
        """Read the column of relevances; without one all are 0."""
        from slatewise.data.frames import numbers_of

        name = self.label_columns
        if name is None:
            return np.zeros(group.n_rows)
        if not isinstance(name, str):
            raise ValueError(f"labels: expected one column of relevances, found {list(name)}")
        return numbers_of(_table(group, [name])[name], group.path, group.first_row)

    def labels(self, group: RowGroup) -> NDArray[Any]:
        """Read a column for each label, or the one of classes."""
        from slatewise.data.frames import floats_of, ids_of

        if isinstance(self.label_columns, str):
            return ids_of(_table(group, [self.label_columns])[self.label_columns], group.path, group.first_row)
        names = self.label_columns or ()
        table = _table(group, names)
        labels = np.empty((group.n_rows, len(names)), dtype=np.int8)
        for place, name in enumerate(names):
            values = floats_of(table[name], group.path, group.first_row)
            labels[:, place] = _known_labels(values, f"{group.path}, column {name!r}", group.first_row)
        return labels

    def ids(self, group: RowGroup) -> NDArray[Any]:
        """Read the column of ids."""
        from slatewise.data.frames import ids_of

        if self.qid is None:
            raise ValueError("qid: expected a column of query ids, found None")
        return ids_of(_table(group, [self.qid])[self.qid], group.path, group.first_row)


def _table(group: RowGroup, columns: Sequence[str]) -> Any:
    from slatewise.data.parquet import read_group

    group.require_same()
    return read_group(group.path, group.number, columns)


def _require_in_range(X: Floats, group: RowGroup, names: Sequence[object]) -> None:
    """Raise DataError, with the file's own row, where a feature is not finite or too large."""
    wrong = np.argwhere(~(np.abs(X) <= LARGEST))  # NaN too
    if len(wrong):
        row, column = wrong[0].tolist()
        place = f"{group.path}, column {names[column]!r}, row {group.first_row + row}"
        expected = f"at most {LARGEST:g} in size" if np.isfinite(X[row, column]) else "a finite number"
        raise DataError(place, 0, 0, expected, str(X[row, column]))


def _known_labels(values: NDArray[Any], place: str, first_row: int) -> NDArray[np.int8]:
    """Return labels as 1, 0, and -1 for what is not known: NaN or -1."""
    unknown = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=np.bool_)
    unknown |= values == -1
    wrong = np.argwhere(~unknown & (values != 0) & (values != 1))
    if len(wrong):
        at = tuple(wrong[0].tolist())
        raise DataError(f"{place}, row {first_row + at[0]}", 0, 0, "0, 1, or a missing value", str(values[at]))
    return np.where(unknown, -1, values).astype(np.int8)


class _Named(io.BytesIO):
    """Bytes of a file, for a reader that tells where an error is."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name


@dataclass(frozen=True)
class SvmlightRows:
    """Lines ``label qid:Q index:value ...`` of plain text; pieces are ranges of lines."""

    n_features: int
    has_labels: bool = True
    has_qid: bool = True
    label_names: None = None

    def groups(self, path: str) -> list[RowGroup]:
        """Count lines that are rows, without reading what they say."""
        found: list[RowGroup] = []
        rows = lines = start = 0
        with open(path, "rb") as file:
            n_bytes = os.fstat(file.fileno()).st_size
            while text := file.read(PIECE_BYTES) + file.readline():
                n_lines, n_rows = _counted(text)
                if n_rows:
                    found.append(RowGroup(path, lines, rows, n_rows, n_bytes, start, start + len(text)))
                rows, lines, start = rows + n_rows, lines + n_lines, start + len(text)
        return found

    def features(self, group: RowGroup) -> Floats:
        """Parse a range."""
        X = self._read(group).X.toarray().astype(np.float64)
        _require_in_range(X, group, range(1, self.n_features + 1))
        return X

    def numbers(self, group: RowGroup) -> Floats:
        """Return the numbers in front."""
        return self._read(group).y

    def labels(self, group: RowGroup) -> NDArray[Any]:
        """Refuse: a line has one number."""
        raise ValueError(f"labels: expected Parquet or npz for sets of labels, found SVMlight ({group.path})")

    def ids(self, group: RowGroup) -> NDArray[Any]:
        """Return the queries."""
        return self._read(group).qid

    def _read(self, group: RowGroup) -> Any:
        from slatewise.data.svmlight import read_svmlight

        group.require_same()
        with open(group.path, "rb") as file:
            file.seek(group.start)
            text = _Named(file.read(group.stop - group.start), group.path)
        try:
            rows = read_svmlight(text, n_features=self.n_features, doc_ids=False)
        except DataError as error:
            line = error.line + group.number if error.line else 0
            raise DataError(error.name, line, error.column, error.expected, error.found) from None
        if len(rows.y) != group.n_rows:
            raise DataError(group.path, 0, 0, f"{group.n_rows} rows, as when the source was made", str(len(rows.y)))
        return rows


def _counted(text: bytes) -> tuple[int, int]:
    r"""Return how many lines there are, and how many of them are rows: neither blank nor only a comment.

    Examples
    --------
    >>> _counted(b"1 qid:1 1:2\n# a comment\n\n  0 qid:1 1:3")
    (4, 2)
    """
    text = text.removeprefix(b"\xef\xbb\xbf")  # as the reader does
    data = np.frombuffer(text, dtype=np.uint8)
    starts = np.concatenate(([0], np.flatnonzero(data == ord("\n")) + 1))
    starts = starts[starts < len(data)]
    first = data[starts]
    odd = np.isin(first, np.frombuffer(b" \t\r\n#", dtype=np.uint8))
    ends = np.append(starts[1:], len(data))
    texts = (text[int(at) : int(end)].strip(b" \t\r\n") for at, end in zip(starts[odd], ends[odd], strict=True))
    return len(starts), int(np.sum(~odd)) + sum(bool(line) and not line.startswith(b"#") for line in texts)


@dataclass(frozen=True)
class NpzRows:
    """Members of npz archives, with a row each along their first axis; pieces are ranges of rows."""

    member: str
    n_features: int
    label_member: str | None
    label_shape: tuple[int, ...]
    """Of a row's labels: () where there is one, or none."""
    qid_member: str | None
    label_names: list[str] | None

    @classmethod
    def of(cls, path: str, features: str, labels: str | None, qid: str | None) -> NpzRows:
        """Look into the first file."""
        with _opened(path) as archive:
            shape = _header(archive, path, features).shape
            label_shape = () if labels is None else _header(archive, path, labels).shape[1:]
            names = None
            if len(label_shape) == 1 and "label_names.npy" in archive.namelist():
                names = _rows_of(archive, path, "label_names", 0, label_shape[0]).tolist()
        if len(shape) != 2 or not shape[1]:
            raise DataError(f"{path}[{features}]", 0, 0, "two dimensions, and a column at least", f"shape {shape}")
        return cls(features, shape[1], labels, label_shape, qid, names)

    @property
    def has_labels(self) -> bool:
        """Whether there is a member of labels."""
        return self.label_member is not None

    @property
    def has_qid(self) -> bool:
        """Whether there is a member of ids."""
        return self.qid_member is not None

    def groups(self, path: str) -> list[RowGroup]:
        """Cut rows into ranges of about :data:`PIECE_BYTES`."""
        with _opened(path) as archive:
            shape, dtype, _ = _header(archive, path, self.member)
            if shape[1:] != (self.n_features,) or dtype.kind not in "biuf":
                expected = f"{self.n_features} columns of numbers"
                raise DataError(f"{path}[{self.member}]", 0, 0, expected, f"{dtype} of shape {shape}")
            for member, of_a_row in ((self.label_member, self.label_shape), (self.qid_member, ())):
                found = (shape[0], *of_a_row) if member is None else _header(archive, path, member).shape
                if found != (shape[0], *of_a_row):
                    expected = f"{shape[0]} rows as in {self.member}, shape {(shape[0], *of_a_row)}"
                    raise DataError(f"{path}[{member}]", 0, 0, expected, f"shape {found}")
        step = max(1, PIECE_BYTES // (8 * max(self.n_features, 1)))
        ends = [*range(0, shape[0], step), shape[0]]
        n_bytes = os.stat(path).st_size
        return [RowGroup(path, at, first, last - first, n_bytes) for at, (first, last) in enumerate(pairwise(ends))]

    def features(self, group: RowGroup) -> Floats:
        """Read a range of the features."""
        X = np.ascontiguousarray(self._read(group, self.member), dtype=np.float64)
        _require_in_range(X, group._replace(path=f"{group.path}[{self.member}]"), range(self.n_features))
        return X

    def numbers(self, group: RowGroup) -> Floats:
        """Read a range of relevances; without any all are 0."""
        if self.label_member is None:
            return np.zeros(group.n_rows)
        values = self._read(group, self.label_member)
        place = f"{group.path}[{self.label_member}]"
        if values.ndim != 1 or values.dtype.kind not in "biuf":
            raise DataError(place, 0, 0, "one number per row", f"{values.dtype} of shape {values.shape}")
        for row in np.flatnonzero(~np.isfinite(values))[:1].tolist():
            raise DataError(f"{place}, row {group.first_row + row}", 0, 0, "a finite number", str(values[row]))
        return values.astype(np.float64)

    def labels(self, group: RowGroup) -> NDArray[Any]:
        """Read a range of a matrix of labels, or of classes."""
        values, place = self._read(group, str(self.label_member)), f"{group.path}[{self.label_member}]"
        if values.ndim > 2 or (values.ndim == 2 and values.dtype.kind not in "biuf"):
            raise DataError(place, 0, 0, "a class per row, or a column of 0 and 1 per label", f"{values.dtype}")
        return values if values.ndim < 2 else _known_labels(values, place, group.first_row)

    def ids(self, group: RowGroup) -> NDArray[Any]:
        """Read a range of ids."""
        if self.qid_member is None:
            raise ValueError("qid: expected a member of query ids, found None")
        values = self._read(group, self.qid_member)
        place = f"{group.path}[{self.qid_member}]"
        if values.dtype.kind not in "iuU":
            raise DataError(place, 0, 0, "integer or string ids", f"{values.dtype}")
        if values.dtype.kind == "U":
            return values
        if len(values) and values.max() > np.iinfo(np.int64).max:
            raise DataError(place, 0, 0, "ids within int64", str(values.max()))
        return values.astype(np.int64)  # beside other integers, those without a sign would become floats

    def _read(self, group: RowGroup, member: str) -> NDArray[Any]:
        group.require_same()
        with _opened(group.path) as archive:
            return _rows_of(archive, group.path, member, group.first_row, group.n_rows)


def _opened(path: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, struct.error, RuntimeError) as error:
        raise DataError(path, 0, 0, "a complete .npz archive", str(error)) from None


class _Header(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: int
    """Of the numbers, in the member."""


def _header(archive: zipfile.ZipFile, path: str, member: str) -> _Header:
    if f"{member}.npy" not in archive.namelist():
        there = ", ".join(name.removesuffix(".npy") for name in archive.namelist())
        raise DataError(f"{path}[{member}]", 0, 0, "this member, stored in full", f"only {there}")
    info = archive.getinfo(f"{member}.npy")
    try:
        with archive.open(info) as file:
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, by_column, dtype = read(file)
            start = file.tell()
    except DAMAGE as error:
        raise DataError(f"{path}[{member}]", 0, 0, "a whole array", str(error)) from None
    if by_column or dtype.hasobject or not shape:
        found = "Python objects" if dtype.hasobject else "columns one after the other" if by_column else "one number"
        raise DataError(f"{path}[{member}]", 0, 0, "rows of plain numbers or strings, one after the other", found)
    # What the header claims must be what the archive says there is, and that no more than it can have packed.
    n_bytes, most = info.file_size - start, os.stat(path).st_size * _MOST_DEFLATED
    if min(shape) < 0 or not dtype.itemsize or math.prod(shape) * dtype.itemsize != n_bytes or n_bytes > most:
        found = f"{min(n_bytes, most)} bytes for shape {shape} of {dtype}"
        raise DataError(f"{path}[{member}]", 0, 0, "a whole array", found)
    return _Header(shape, dtype, start)


def _rows_of(archive: zipfile.ZipFile, path: str, member: str, first: int, n_rows: int) -> NDArray[Any]:
    shape, dtype, start = _header(archive, path, member)
    size = dtype.itemsize * math.prod(shape[1:])
    try:
        with archive.open(f"{member}.npy") as file:
            file.seek(start + first * size, os.SEEK_SET)
            content = file.read(n_rows * size)
    except DAMAGE as error:
        raise DataError(f"{path}[{member}]", 0, 0, "a whole array", str(error)) from None
    if len(content) != n_rows * size:
        raise DataError(f"{path}[{member}]", 0, 0, f"{first + n_rows} rows", "the end of the member")
    return np.frombuffer(content, dtype).reshape(n_rows, *shape[1:]).copy()
