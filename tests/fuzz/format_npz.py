"""Archives of arrays under mutation: claims of headers and of shapes, numbers, members, and now and then the archive.

Reading a file of some kB must not take more memory than :data:`MOST_BYTES`, whatever it claims.
"""

from __future__ import annotations

import io
import random
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np
from scipy.sparse import csr_array

from slatewise.data import MultiLabel, read_npz
from tests.data import reference_npz
from tests.fuzz import Format

MOST_BYTES = 1 << 26
_CLAIMS = (0, 1, 2, 3, 4, -1, -2, 255, 2**20, 2**20 + 1, 20_000_000, 2**31 - 1, 2**31, 2**32, 10**12, 2**62, 2**63 - 1)
_DTYPES = (
    *("<f8", "<f4", "<f2", ">f8", "<i8", "<i4", "<i2", "|i1", "|u1", "<u4", "<u8", ">i4", "|b1"),
    *("<U1", "<U2", ">U2", "<U0", "|S1", "|S4", "|V8", "<c16", "<M8[s]", "|O", "f8", "(2,)<f4", "?", "x", ""),
)
_HEADERS = (
    *("{}", "[]", "1", "", "{[]: 1}", "-" * 9000 + "1", "(" * 5000, "{'descr': '<f8', 'fortran_order': False}"),
    *(
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': 7, 'fortran_order': 0, 'shape': 1}",
    ),
    *(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2L, 2L)}",
        "{'descr': (), 'fortran_order': True, 'shape': ()}",
    ),
)
_NAMES = (
    *("X", "X_data", "X_indices", "X_indptr", "X_shape", "Y", "Y_data", "Y_indices", "Y_indptr", "Y_shape"),
    *("label_names", "feature_names", "is_train", "ids", "known", "answered", "B", "other"),
)


def comparable(rows: MultiLabel, named: bool) -> tuple[object, ...]:
    """Return all of a result; names that are nowhere in the file are not made."""
    X = rows.X
    if isinstance(X, np.ndarray):
        entries = tuple(tuple((column, value.tobytes()) for column, value in enumerate(row)) for row in X)
    else:
        bounds = list(pairwise(X.indptr.tolist()))
        columns, values = X.indices.tolist(), X.data
        entries = tuple(
            tuple((columns[at], values[at].tobytes()) for at in range(start, stop)) for start, stop in bounds
        )
    Y = rows.Y.tocoo()
    yes = tuple(sorted(zip(Y.row.tolist(), Y.col.tolist(), strict=True)))
    masks = [None if mask is None else tuple(mask.ravel().tolist()) for mask in (rows.known, rows.answered)]
    names = tuple(rows.label_names.tolist()) if named else None
    return (
        (*X.shape, isinstance(X, np.ndarray)),
        entries,
        rows.Y.shape,
        yes,
        names,
        *(None if kept is None else tuple(kept.tolist()) for kept in (rows.feature_names, rows.is_train, rows.ids)),
        *masks,
    )


def _read(features: tuple[str, ...], require_labels: bool, file: BinaryIO) -> object:
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, of headers by Python 2
            rows = read_npz(file, features=features, require_labels=require_labels)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if peak > MOST_BYTES:
        raise AssertionError(f"{peak} bytes of memory")
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        named = "label_names.npy" in archive.namelist() or "label_names" in archive.namelist()
    return comparable(rows, named)


def _reference(features: tuple[str, ...], require_labels: bool, data: bytes) -> object:
    return reference_npz.read(data, features, require_labels)


# --- seeds -----------------------------------------------------------------------------------------------------------


def _packed(**members: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **{name: np.asarray(member) for name, member in members.items()})
    return file.getvalue()


def _parts(name: str, matrix: Any) -> dict[str, Any]:
    rows = csr_array(np.array(matrix))
    indices, indptr = rows.indices.astype(np.int16), rows.indptr.astype(np.int64)
    return {
        f"{name}_data": rows.data,
        f"{name}_indices": indices,
        f"{name}_indptr": indptr,
        f"{name}_shape": rows.shape,
    }


_Y = np.array([[1, 0, 1], [0, 1, 0]], dtype=np.uint8)
_SEEDS = (
    _packed(X=[[0.5, -0.0], [2.0, 1e-3]], Y=_Y, label_names=["sea", "sky", "é"], ids=["a", "bc"], B=[[1], [2]]),
    _packed(
        **_parts("X", [[0, 0.5], [2, 0.0]]), **_parts("Y", _Y), is_train=[True, False], ids=[3, 1], B=[[0.0], [1.5]]
    ),
    _packed(
        X=np.asfortranarray([[1, 2, 3], [4, 5, 6]], dtype=np.int8),
        **_parts("Y", np.zeros((2, 3), dtype=np.int8)),
        feature_names=["x", "y", "z"],
        known=_Y == 0,
        answered=_Y < 0,
        **_parts("B", [[0, 1.0, 0, 0], [0, 0, 0, 2.0]]),
    ),
)


# --- mutations -------------------------------------------------------------------------------------------------------

Members = dict[str, bytes]


def _npy(header: str, body: bytes, version: int = 1) -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text + body


def _header(dtype: object, shape: object, by_column: bool = False) -> str:
    return f"{{'descr': {dtype!r}, 'fortran_order': {by_column!r}, 'shape': {shape!r}, }}"


def _claim(rng: random.Random, array: Any, members: Members) -> bytes:
    """Claim another shape of the same bytes; or of none."""
    shape = list(array.shape) or [1]
    if rng.random() < 0.3:
        shape.insert(rng.randint(0, len(shape)), rng.choice((1, 0)))
    shape[rng.randrange(len(shape))] = rng.choice(_CLAIMS)
    body = b"" if rng.random() < 0.4 else array.tobytes()
    return _npy(_header(array.dtype.str, tuple(shape)), body)


def _retype(rng: random.Random, array: Any, members: Members) -> bytes:
    dtype = rng.choice(_DTYPES)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = array.astype(dtype) if rng.random() < 0.7 else array
    except (TypeError, ValueError, SystemError):  # NumPy ends so where text was made of bytes that are none
        other = array
    return _npy(_header(dtype, other.shape), b"" if other.dtype.hasobject else other.tobytes())


def _odd_header(rng: random.Random, array: Any, members: Members) -> bytes:
    if rng.random() < 0.5:
        return _npy(rng.choice(_HEADERS), array.tobytes(), rng.choice((1, 1, 2, 3)))
    text = bytearray(_header(array.dtype.str, array.shape, rng.random() < 0.5).encode())
    text[rng.randrange(len(text))] = rng.choice(b"\x00'(),{}:<>0123456789bfiOUV\xc3 ")
    return _npy(text.decode("latin-1").replace("Ã", "'"), array.tobytes(), rng.choice((1, 2)))


def _by_column(rng: random.Random, array: Any, members: Members) -> bytes:
    return _npy(_header(array.dtype.str, array.shape, True), array.tobytes("F" if rng.random() < 0.5 else "C"))


def _number(rng: random.Random, array: Any, members: Members) -> bytes:
    """Put another number into a place or two."""
    flat = array.reshape(-1).copy()
    for _ in range(rng.choice((1, 1, 2))):
        if flat.size and flat.dtype.kind in "biuf":
            value: float = rng.choice((*_CLAIMS, np.nan, np.inf, 0.5, -0.0, 1e308, 2**63))
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                flat[rng.randrange(flat.size)] = np.array(value).astype(flat.dtype)
    body = bytearray(flat.tobytes())
    if body and rng.random() < 0.3:
        body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
    return _npy(_header(array.dtype.str, array.shape), bytes(body))


def _rows(rng: random.Random, array: Any, members: Members) -> bytes:
    """Drop, repeat or turn rows or columns."""
    if not array.ndim or not array.size:
        return _npy(_header(array.dtype.str, array.shape), array.tobytes())
    axis = rng.randrange(array.ndim)
    order = list(range(array.shape[axis]))
    order = rng.choice((order[1:], order[:-1], [*order, 0], order[::-1], [], order + order))
    other = np.take(array, order, axis=axis)
    return _npy(_header(other.dtype.str, other.shape), other.tobytes())


def _cut(rng: random.Random, array: Any, members: Members) -> bytes:
    whole = _npy(_header(array.dtype.str, array.shape), array.tobytes())
    at = rng.randint(0, len(whole))
    return rng.choice((whole[:at], whole + b"\0" * rng.choice((1, 8)), whole[:at] + b"\0" + whole[at:]))


def _another(rng: random.Random, array: Any, members: Members) -> bytes:
    return members[rng.choice(sorted(members))]


_CHANGES: tuple[Callable[[random.Random, Any, Members], bytes], ...] = (
    *(_claim, _claim, _retype, _odd_header, _by_column, _number, _number, _number, _rows, _cut, _another),
)


def _change(rng: random.Random, members: Members) -> None:
    name = rng.choice(sorted(members)) if members else "X.npy"
    kind = rng.random()
    if kind < 0.08 and members:
        del members[name]
    elif kind < 0.16 and members:
        other = f"{rng.choice(_NAMES)}.npy"
        members[other] = members[name] if rng.random() < 0.5 else members.pop(name)
    elif kind < 0.3:  # a shape that is told apart from the numbers
        shape = [rng.choice((2, 2, *_CLAIMS)), rng.choice((2, 3, *_CLAIMS))]
        array = np.array(shape, dtype=np.int64)
        members[f"{rng.choice('XYB')}_shape.npy"] = _npy(_header("<i8", (2,)), array.tobytes())
    elif members:
        try:
            array = np.load(io.BytesIO(members[name]), allow_pickle=False)
        except Exception:  # an earlier change has broken it
            return
        members[name] = rng.choice(_CHANGES)(rng, array, members)


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Change some members and pack them again; or change bytes of the archive itself."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers that are odd, and of names that are there twice
        for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 3))):
            _change(rng, members)
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            names = [*members, *(rng.sample(sorted(members), 1) if members and rng.random() < 0.03 else ())]
            for name in names:
                bzip2 = rng.random() < 0.01
                codec = zipfile.ZIP_BZIP2 if bzip2 else rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
                archive.writestr(zipfile.ZipInfo(name), members[name], codec)
    packed = file.getvalue()
    if rng.random() < 0.1:
        at = rng.randrange(len(packed))
        flipped = packed[:at] + bytes([packed[at] ^ (1 << rng.randrange(8))]) + packed[at + 1 :]
        packed = rng.choice((packed[:at], flipped, packed + b"\0" * 4, packed[:at] + packed[at + 1 :], b"x" + packed))
    return packed


def _form(name: str, features: tuple[str, ...], require_labels: bool) -> Format:
    read, reference = (partial(function, features, require_labels) for function in (_read, _reference))
    return Format(name, _SEEDS, read, reference, containers=False, is_text=False, mutate=mutate, slow=20)


FORMATS = [_form("npz", ("X",), True), _form("npz-side-by-side", ("X", "B"), False)]
