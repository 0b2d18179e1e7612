"""A slow reader of the npz form: numbers one by one, in lists, by the rules of :mod:`slatewise.data.npz`."""

from __future__ import annotations

import io
import math
import struct
import warnings
import zipfile
from itertools import pairwise
from typing import Any, NamedTuple

from numpy.lib import format as npy

from tests.fuzz import Rejected

MOST_COLUMNS, MOST_UNSAID = 2**31 - 1, 2**20
_CODES = {"f2": "e", "f4": "f", "f8": "d", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B"}
_CODES |= {"u2": "H", "u4": "I", "u8": "Q"}


class Member(NamedTuple):
    kind: str
    shape: tuple[int, ...]
    values: list[Any]
    """In the order of rows."""


class Matrix(NamedTuple):
    n_rows: int
    n_columns: int
    rows: list[list[tuple[int, float]]]
    """(column, value) of every entry; of a dense matrix, all that are not 0.0."""
    is_dense: bool


def read(data: bytes, features: tuple[str, ...], require_labels: bool) -> tuple[object, ...]:
    """Return what :func:`tests.fuzz.format_npz.comparable` makes of the fast reader's result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # headers of Python 2
        members = _Members(data)
        blocks = [_matrix(members, block) for block in features]
        _require(len({block.n_rows for block in blocks}) == 1)
        X = blocks[0] if len(blocks) == 1 else _side_by_side(blocks)
        if require_labels or "Y" in members.names or "Y_shape" in members.names:
            Y = _matrix(members, "Y")
        else:
            n_labels = len(members["label_names"].values) if "label_names" in members.names else 0
            Y = Matrix(X.n_rows, n_labels, [[]] * X.n_rows, False)
        _require(X.n_rows == Y.n_rows)
        _require(all(value in (0, 1) for row in Y.rows for _, value in row))
        named = _texts(members, "label_names", Y.n_columns)
        _require(named is not None or Y.n_columns <= MOST_UNSAID)
        columns = _texts(members, "feature_names", X.n_columns) if features == ("X",) else None
        known, answered = (_flags(members, name, (Y.n_rows, Y.n_columns)) for name in ("known", "answered"))
        yes = {(row, label) for row, entries in enumerate(Y.rows) for label, value in entries if value}
        if known is not None:
            places = {(place // Y.n_columns, place % Y.n_columns) for place, one in enumerate(known) if not one}
            _require(not places & yes)
            _require(
                answered is None or all(is_known for is_known, asked in zip(known, answered, strict=True) if asked)
            )
        return (
            (X.n_rows, X.n_columns, X.is_dense),
            tuple(tuple((column, struct.pack("d", value)) for column, value in row) for row in X.rows),
            (Y.n_rows, Y.n_columns),
            tuple(sorted(yes)),
            named,
            columns,
            _flags(members, "is_train", (Y.n_rows,)),
            _ids(members, Y.n_rows),
            known,
            answered,
        )


def _require(right: bool) -> None:
    if not right:
        raise Rejected(0)


class _Members:
    """The archive, by the standard library."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            for info in self._zip.infolist():
                _require(info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
                self._zip.open(info).close()
        except Rejected:
            raise
        except Exception:  # of whatever kind: the file is no archive
            raise Rejected(0) from None
        end = data.rfind(b"PK\x05\x06")
        count = int.from_bytes(data[end + 10 : end + 12], "little")
        infos = self._zip.infolist()
        self.names = {info.filename.removesuffix(".npy"): info for info in infos}
        _require(count in (len(infos), 0xFFFF) and len(self.names) == len(infos))

    def __getitem__(self, name: str) -> Member:
        _require(name in self.names)
        try:
            content = self._zip.read(self.names[name])
            file = io.BytesIO(content)
            version = npy.read_magic(file)
            _require(version in ((1, 0), (2, 0)))
            shape, by_column, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(
                file
            )
        except Rejected:
            raise
        except Exception:  # of whatever kind: the member is no array
            raise Rejected(0) from None
        body = content[file.tell() :]
        _require(not dtype.hasobject and dtype.itemsize > 0 and dtype.subdtype is None)
        _require(all(size >= 0 for size in shape) and math.prod(shape) * dtype.itemsize == len(body))
        return Member(dtype.kind, shape, _in_rows(_numbers(body, dtype), shape, by_column))


def _numbers(body: bytes, dtype: Any) -> list[Any]:
    order = ">" if dtype.byteorder == ">" else "<"
    if dtype.kind == "U":
        letters = [number for (number,) in struct.iter_unpack(f"{order}I", body)]
        width = dtype.itemsize // 4
        return [_text(letters[place : place + width]) for place in range(0, len(letters), width)]
    if dtype.kind == "b":
        return [byte != 0 for byte in body]
    code = _CODES.get(f"{dtype.kind}{dtype.itemsize}")
    if code is None:
        return []  # of a kind that serves for nothing
    return [number for (number,) in struct.iter_unpack(order + code, body)]


def _text(letters: list[int]) -> str | None:
    """Return what the numbers spell; None where they spell nothing."""
    if any(number > 0x10FFFF or 0xD800 <= number <= 0xDFFF for number in letters):
        return None
    return "".join(map(chr, letters)).rstrip("\0")


def _in_rows(values: list[Any], shape: tuple[int, ...], by_column: bool) -> list[Any]:
    if not by_column or len(shape) != 2 or not values:
        return values
    return [values[row + column * shape[0]] for row in range(shape[0]) for column in range(shape[1])]


def _matrix(members: _Members, name: str) -> Matrix:
    if name not in members.names:
        return _sparse(members, name)
    kind, shape, values = members[name]
    _require(len(shape) == 2 and kind in "biuf" and all(math.isfinite(value) for value in values))
    n_rows, n_columns = shape
    _require(n_columns <= MOST_COLUMNS and (n_columns > 0 or n_rows <= MOST_UNSAID))
    rows: list[list[tuple[int, float]]] = []
    for row in range(n_rows):
        numbers = map(float, values[row * n_columns : (row + 1) * n_columns])
        rows.append([(column, number) for column, number in enumerate(numbers)])
    return Matrix(n_rows, n_columns, rows, True)


def _sparse(members: _Members, name: str) -> Matrix:
    sizes, bounds, indices = (_whole(members, f"{name}_{part}") for part in ("shape", "indptr", "indices"))
    _require(len(sizes) == 2 and min(sizes) >= 0)
    n_rows, n_columns = sizes
    _require(n_columns <= MOST_COLUMNS and max(sizes) < 2**63)
    _require(len(bounds) == n_rows + 1 and bounds[0] == 0 and bounds[-1] == len(indices) and bounds == sorted(bounds))
    _require(all(0 <= index < n_columns for index in indices))
    if name == "Y" and "Y_data" not in members.names:
        values = [1.0] * len(indices)
    else:
        kind, shape, given = members[f"{name}_data"]
        _require(kind in "biuf" and shape == (len(indices),) and all(math.isfinite(value) for value in given))
        values = [float(value) for value in given]
    rows: list[list[tuple[int, float]]] = []
    for start, stop in pairwise(bounds):
        row = indices[start:stop]
        _require(all(one < other for one, other in pairwise(row)))
        rows.append(list(zip(row, values[start:stop], strict=True)))
    return Matrix(n_rows, n_columns, rows, False)


def _side_by_side(blocks: list[Matrix]) -> Matrix:
    n_columns = sum(block.n_columns for block in blocks)
    _require(n_columns <= MOST_COLUMNS)
    is_dense = all(block.is_dense for block in blocks)
    rows: list[list[tuple[int, float]]] = [[] for _ in range(blocks[0].n_rows)]
    first = 0
    for block in blocks:
        for row, entries in zip(rows, block.rows, strict=True):
            # Where one is sparse, the zeros of those that are not are left out.
            kept = (
                entries if is_dense or not block.is_dense else [(column, value) for column, value in entries if value]
            )
            row.extend((first + column, value) for column, value in kept)
        first += block.n_columns
    return Matrix(blocks[0].n_rows, n_columns, rows, is_dense)


def _whole(members: _Members, name: str) -> list[int]:
    kind, shape, values = members[name]
    _require(kind in "iu" and len(shape) == 1)
    return values


def _texts(members: _Members, name: str, length: int) -> tuple[str, ...] | None:
    if name not in members.names:
        return None
    kind, shape, values = members[name]
    _require(kind == "U" and shape == (length,) and None not in values)
    return tuple(values)


def _ids(members: _Members, length: int) -> tuple[Any, ...] | None:
    if "ids" not in members.names:
        return None
    kind, shape, values = members["ids"]
    _require(kind in "Uiu" and shape == (length,) and len(set(values)) == length and None not in values)
    return tuple(values)


def _flags(members: _Members, name: str, shape: tuple[int, ...]) -> tuple[bool, ...] | None:
    if name not in members.names:
        return None
    member = members[name]
    _require(member.kind == "b" and member.shape == shape)
    return tuple(member.values)
