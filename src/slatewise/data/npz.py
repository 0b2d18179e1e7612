"""Multi-label data as one ``.npz`` file: plain arrays by name, no pickle.

========================================== =======================================================================
member                                     what it holds
========================================== =======================================================================
``X``                                      (n, d) finite numbers; or CSR parts ``X_data, X_indices, X_indptr, X_shape``
``Y``                                      (n, l) zeros and ones; or CSR parts (``Y_data`` may be left out: all ones)
``label_names``                            optional: l strings; else labels are named by number, from 0
``feature_names``, ``is_train``, ``ids``   optional: d strings, n booleans, n strings or integers, each once
``known``                                  optional: (n, l) booleans, whether Y is known; where not, Y is 0
``answered``                               optional: (n, l) booleans, whether an annotator answered it
========================================== =======================================================================

Members are stored or deflated, as NumPy writes them: other codecs unpack a few bytes into gigabytes. What takes no byte
of a file is limited, since it may be a lie: a matrix has at most 2^31 - 1 columns, labels without names and rows
without columns are at most 2^20.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from math import prod
from tokenize import TokenError
from typing import Any, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from slatewise.core.arrays import Bools, Floats
from slatewise.core.checks import sparse_rows
from slatewise.core.errors import DataError
from slatewise.core.files import atomic_path
from slatewise.core.rules import MOST, MOST_LISTED
from slatewise.data.reading import PathOrFile
from slatewise.data.records import Ids, MultiLabel, Strings

Array: TypeAlias = NDArray[Any]
# What zipfile, its codec and NumPy's header parser, which evaluates any Python literal, raise on bytes in memory that
# are not what they claim to be.
DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, RuntimeError, MemoryError),
    *(ValueError, SyntaxError, TokenError, TypeError, LookupError, ArithmeticError),
)
_CODECS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_npz(path: PathOrFile, *, features: str | Sequence[str] = "X", require_labels: bool = True) -> MultiLabel:
    """Read multi-label data; shapes, bounds, repeats and NaN are checked before anything is returned.

    Parameters
    ----------
    path : str, path or binary file
        The archive.
    features : str or list of str
        The matrix to take as X, or several to put side by side.
    require_labels : bool
        Whether Y must be there. Without it there are as many empty columns as there are names.

    Raises
    ------
    DataError
        With the file, the member and what was expected.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> np.savez(file, X=[[0.5], [2.0]], Y=[[1, 0], [0, 1]], label_names=["sea", "sky"])
    >>> _ = file.seek(0)
    >>> data = read_npz(file)
    >>> data.X.tolist(), data.Y.toarray().tolist(), data.label_names.tolist()
    ([[0.5], [2.0]], [[1, 0], [0, 1]], ['sea', 'sky'])
    """
    is_path = isinstance(path, str | os.PathLike)
    name = os.fspath(path) if is_path else str(getattr(path, "name", "<stream>"))
    with open(path, "rb") if is_path else nullcontext(path) as file:
        return _multilabel(_Archive(name, file.read()), name, features, require_labels)


def write_npz(path: str | os.PathLike[str], data: MultiLabel) -> None:
    """Write multi-label data, compressed; the file appears whole or not at all.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> data = MultiLabel(np.array([[0.5], [2.0]]), csr_array(np.eye(2)), np.array(["sea", "sky"]))
    >>> with TemporaryDirectory() as folder:
    ...     write_npz(Path(folder, "scenes.npz"), data)
    ...     read_npz(Path(folder, "scenes.npz")).X.tolist()
    [[0.5], [2.0]]
    """
    members: dict[str, Array] = {**_parts("X", data.X), **_parts("Y", data.Y), "label_names": data.label_names}
    if data.feature_names is not None:
        members["feature_names"] = data.feature_names
    if data.is_train is not None:
        members["is_train"] = data.is_train
    for member, optional in (("ids", data.ids), ("known", data.known), ("answered", data.answered)):
        if optional is not None:
            members[member] = optional
    _multilabel(members, "data", "X")  # what would not read back is not written
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **members)


class _Archive(Mapping[str, Array]):
    """The arrays of a zip file, each checked against its own size before it is built."""

    def __init__(self, name: str, content: bytes) -> None:
        self._name = name
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
            # Damage must not make an optional member vanish: opening compares the two places that hold its name, and
            # the end record says how many there are, which zipfile does not look at.
            for info in self._zip.infolist():
                if info.compress_type not in _CODECS:
                    raise ValueError(
                        f"{info.filename} packed by method {info.compress_type}, neither stored nor deflated"
                    )
                self._zip.open(info).close()
            end = content.rfind(b"PK\x05\x06")
            count = int.from_bytes(content[end + 10 : end + 12], "little")
            if count not in (len(self._zip.infolist()), 0xFFFF):
                raise ValueError(f"{len(self._zip.infolist())} members of {count}")
        except DAMAGE as error:
            raise DataError(name, 0, 0, "a complete .npz archive", str(error)) from None
        self._infos = {info.filename.removesuffix(".npy"): info for info in self._zip.infolist()}
        if len(self._infos) != len(self._zip.infolist()):
            raise DataError(name, 0, 0, "every member once", ", ".join(self._zip.namelist()))

    def __getitem__(self, member: str) -> Array:
        info = self._infos[member]
        try:
            return array_of(self._zip.read(info))
        except DAMAGE as error:
            raise _fault(self._name, member, "a whole array of plain numbers or strings", str(error)) from None

    def __contains__(self, member: object) -> bool:
        return member in self._infos

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)


def array_of(content: bytes) -> Array:
    """Build the array of an npy file, or raise one of :data:`DAMAGE`.

    The shape its header claims must be what the bytes hold, so nothing large is made of a lie.
    """
    file = io.BytesIO(content)
    version = npy.read_magic(file)
    if version not in _HEADER_READERS:
        raise ValueError(f"format version {version}")
    shape, fortran_order, dtype = _HEADER_READERS[version](file)
    if dtype.hasobject or dtype.kind == "V":
        raise ValueError("Python objects" if dtype.hasobject else f"records of {dtype}")
    n_bytes = len(content) - file.tell()
    if prod(shape) * dtype.itemsize != n_bytes:
        raise ValueError(f"{n_bytes} bytes for shape {shape} of {dtype}")
    values = np.frombuffer(content, dtype, prod(shape), file.tell())
    return values.reshape(shape, order="F" if fortran_order else "C").copy()


def _multilabel(
    members: Mapping[str, Array], name: str, features: str | Sequence[str], require_labels: bool = True
) -> MultiLabel:
    blocks = [features] if isinstance(features, str) else list(features)
    if not blocks:
        raise ValueError("features: expected at least one name, found none")
    matrices = [_matrix(members, name, block) for block in blocks]
    for block, matrix in zip(blocks, matrices, strict=True):
        if matrix.shape[0] != matrices[0].shape[0]:
            raise _fault(name, block, f"{matrices[0].shape[0]} rows as in {blocks[0]}", str(matrix.shape[0]))
    X = _side_by_side(matrices)
    if X.shape[1] > MOST:
        raise _fault(name, ", ".join(blocks), f"at most {MOST} columns", str(X.shape[1]))
    if require_labels or "Y" in members or "Y_shape" in members:
        Y = csr_array(_matrix(members, name, "Y"))
    else:
        Y = csr_array((X.shape[0], members["label_names"].size if "label_names" in members else 0))
    Y.eliminate_zeros()
    if (Y.data != 1).any():
        raise _fault(name, "Y", "zeros and ones", str(Y.data[Y.data != 1][0]))
    n_rows, n_labels = Y.shape
    if X.shape[0] != n_rows:
        raise _fault(name, ", ".join(blocks), f"{n_rows} rows as in Y", str(X.shape[0]))
    feature_names = is_train = None
    if blocks == ["X"] and "feature_names" in members:
        feature_names = _names(members, name, "feature_names", X.shape[1])
    if "is_train" in members:
        is_train = members["is_train"]
        if is_train.shape != (n_rows,) or is_train.dtype != np.bool_:
            raise _fault(name, "is_train", f"{n_rows} booleans", f"{is_train.dtype} of shape {is_train.shape}")
    label_names = None
    if "label_names" in members:
        label_names = _names(members, name, "label_names", n_labels)
    elif n_labels > MOST_LISTED:
        raise _fault(name, "Y", f"at most {MOST_LISTED} columns without label_names", str(n_labels))
    ids = _ids(members, name, n_rows) if "ids" in members else None
    known, answered = _masks(members, name, Y)
    return MultiLabel(
        X, Y.astype(np.int8), label_names, feature_names, is_train, ids=ids, known=known, answered=answered
    )


def _masks(members: Mapping[str, Array], name: str, Y: csr_array) -> tuple[Bools | None, Bools | None]:
    """Return where Y is known and where an annotator answered, if the file has these masks."""
    masks: list[Bools | None] = []
    for member in ("known", "answered"):
        mask = members.get(member)
        if mask is not None and (mask.shape != Y.shape or mask.dtype != np.bool_):
            raise _fault(name, member, f"booleans of shape {Y.shape}", f"{mask.dtype} of shape {mask.shape}")
        masks.append(mask)
    known, answered = masks
    if known is not None and (Y.toarray()[~known] != 0).any():
        raise _fault(name, "Y", "0 where it is not known", "1")
    if answered is not None and known is not None and (answered & ~known).any():
        raise _fault(name, "answered", "False where Y is not known", "True")
    return known, answered


def _side_by_side(blocks: list[csr_array | Floats]) -> csr_array | Floats:
    if len(blocks) == 1:
        return blocks[0]
    dense = [block for block in blocks if isinstance(block, np.ndarray)]
    return (
        np.hstack(dense) if len(dense) == len(blocks) else hstack([csr_array(block) for block in blocks], format="csr")
    )


def _matrix(members: Mapping[str, Array], name: str, matrix: str) -> csr_array | Floats:
    if matrix not in members:
        if f"{matrix}_shape" not in members:
            raise _fault(name, matrix, "this member or its CSR parts", f"only {', '.join(sorted(members))}")
        return _csr(members, name, matrix)
    values = members[matrix]
    if values.ndim != 2:
        raise _fault(name, matrix, "two dimensions", f"shape {values.shape}")
    check_sizes(f"{name}[{matrix}]", values)
    return _finite(name, matrix, values)


def check_sizes(name: str, matrix: Array) -> None:
    """Raise DataError where a matrix without an entry claims more rows or columns than any has."""
    n_rows, n_columns = matrix.shape
    if n_columns > MOST or (not n_columns and n_rows > MOST_LISTED):
        expected = f"at most {MOST} columns, or {MOST_LISTED} rows without columns"
        raise DataError(name, 0, 0, expected, f"shape {matrix.shape}")


def _csr(members: Mapping[str, Array], name: str, matrix: str) -> csr_array:
    shape, indptr, indices = (_integers(members, name, f"{matrix}_{part}") for part in ("shape", "indptr", "indices"))
    if shape.shape != (2,) or (shape < 0).any() or shape[1] > MOST:
        raise _fault(name, f"{matrix}_shape", f"two sizes >= 0, at most {MOST} columns", f"{shape}")
    n_rows, n_columns = int(shape[0]), int(shape[1])
    # Compared, not subtracted: differences of bounds that are far apart wrap around.
    steps_back = (indptr[1:] < indptr[:-1]).any()
    if len(indptr) != n_rows + 1 or indptr[0] != 0 or indptr[-1] != len(indices) or steps_back:
        raise _fault(name, f"{matrix}_indptr", f"{n_rows + 1} bounds that grow from 0 to {len(indices)}", f"{indptr}")
    if len(indices) and not 0 <= indices.min() <= indices.max() < n_columns:
        found = f"{indices.min()} to {indices.max()}"
        raise _fault(name, f"{matrix}_indices", f"columns from 0 to {n_columns - 1}", found)
    new_row = np.zeros(len(indices) + 1, dtype=np.bool_)
    new_row[indptr] = True
    if (np.diff(indices)[~new_row[1:-1]] <= 0).any():
        raise _fault(name, f"{matrix}_indices", "ascending columns, each once per row", "a repeat or a step back")
    part = f"{matrix}_data"
    if part not in members and matrix != "Y":
        raise _fault(name, part, "this member in the archive", f"only {', '.join(sorted(members))}")
    values = members[part] if part in members else np.ones(len(indices))
    if values.shape != indices.shape:  # before it is cast: of wider numbers, a shape without an entry may be too large
        raise _fault(name, part, f"{len(indices)} values", f"shape {values.shape}")
    return csr_array((_finite(name, part, values), indices, indptr), shape=(n_rows, n_columns))


def _finite(name: str, member: str, values: Array) -> Floats:
    if values.dtype.kind not in "biuf":
        raise _fault(name, member, "numbers", f"dtype {values.dtype}")
    numbers = np.ascontiguousarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        place = tuple(int(at) for at in np.argwhere(~np.isfinite(numbers))[0])
        raise _fault(name, member, "finite numbers", f"{numbers[place]} at {place}")
    return numbers


def _integers(members: Mapping[str, Array], name: str, member: str) -> NDArray[np.int64]:
    if member not in members:
        raise _fault(name, member, "this member in the archive", f"only {', '.join(sorted(members))}")
    values = members[member]
    if values.dtype.kind not in "iu" or values.ndim != 1:
        raise _fault(name, member, "a row of integers", f"{values.dtype} of shape {values.shape}")
    return values.astype(np.int64)


def _names(members: Mapping[str, Array], name: str, member: str, length: int) -> Strings:
    if member not in members:
        raise _fault(name, member, "this member in the archive", f"only {', '.join(sorted(members))}")
    values = members[member]
    if values.dtype.kind != "U" or values.shape != (length,):
        raise _fault(name, member, f"{length} strings", f"{values.dtype} of shape {values.shape}")
    _check_text(name, member, values)
    return values


def _ids(members: Mapping[str, Array], name: str, length: int) -> Ids:
    values = members["ids"]
    if values.dtype.kind not in "Uiu" or values.shape != (length,) or len(np.unique(values)) < length:
        found = f"{values.dtype} of shape {values.shape}"
        raise _fault(name, "ids", f"{length} strings or integers, each once", found)
    _check_text(name, "ids", values)
    return values


def _check_text(name: str, member: str, values: Array) -> None:
    """Raise DataError unless strings are text: NumPy keeps any number where a letter belongs, and fails later."""
    if values.dtype.kind == "U" and values.size:
        letters = values.view(np.dtype(np.uint32).newbyteorder(values.dtype.byteorder))
        odd = (letters > 0x10FFFF) | ((letters >= 0xD800) & (letters <= 0xDFFF))
        if odd.any():
            raise _fault(name, member, "text of Unicode letters", f"the number {letters[odd][0]}")


def _parts(matrix: str, values: csr_array | Floats) -> dict[str, Array]:
    rows = sparse_rows(matrix, values)
    if rows is None:
        return {matrix: np.asarray(values)}
    rows = rows.copy()
    rows.sum_duplicates()
    shape = np.array(rows.shape, dtype=np.int64)
    return {
        f"{matrix}_data": rows.data,
        f"{matrix}_indices": rows.indices,
        f"{matrix}_indptr": rows.indptr,
        f"{matrix}_shape": shape,
    }


def _fault(name: str, member: str, expected: str, found: str) -> DataError:
    return DataError(f"{name}[{member}]", 0, 0, expected, found)
