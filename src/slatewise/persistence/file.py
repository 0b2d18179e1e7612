"""The model file: one ``.safetensors`` file in which every byte is checked before anything is believed.

Layout, as safetensors defines it: 8 bytes with the header's length, a JSON header that places each tensor, the tensors
end to end. Ours adds, under ``__metadata__``, a ``slatewise`` entry (format version, estimator and its version,
parameters, model card, sha256 of every tensor) and a ``sha256`` entry over the rest of the header. The header must be
the exact bytes we would write, and the tensors must tile the file without gaps, so no flipped byte goes unnoticed.

Nothing in a file is ever executed, and reading allocates the file's own size plus a header of bounded size; a file that
is mapped instead allocates no more than the header.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from io import BufferedReader
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.errors import ModelFileError
from slatewise.core.files import atomic_path
from slatewise.core.rules import short_repr

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Array: TypeAlias = NDArray[Any]

FORMAT_VERSION = 3
_MAX_HEADER_BYTES = 1 << 18
_MAX_HEADER_VALUES = 1 << 12  # a parsed JSON value costs Python up to 100 bytes, whatever its length in the file
_MAX_DIMENSIONS = 8
_DTYPES = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_METADATA_TYPES = {
    "format": (int,),
    "estimator": (str,),
    "estimator_version": (int,),
    "params": (dict,),
    "values": (dict,),
    "card": (dict,),
    "sha256": (dict,),
}
_CARD_TYPES = {
    "library": (str,),
    "n_lists": (int,),
    "n_rows": (int,),
    "data_sha256": (str,),
    "objective": (float, int, type(None)),
    "lower_bound": (float, int, type(None)),
    "converged": (bool, type(None)),
    "note": (str,),
}
_CARD_NEEDS = {"library", "n_lists", "n_rows", "data_sha256"}
_MAX_ENTRIES = 1 << 48  # an array of no bytes can claim any size: NumPy would refuse a larger one in its own words
_MAX_LETTERS = 1 << 20  # of a string: NumPy has no words for a longer one, and an array of no rows can claim any
_STRINGS = "#utf32"  # strings as rows of code points: the memory they take is the file they came in


@dataclass(frozen=True)
class ModelCard:
    """What a reader of the file wants to know before using the model."""

    library: str
    n_lists: int
    n_rows: int
    data_sha256: str
    """Hash of the training arrays: says whether two models saw the same data."""
    objective: float | None = None
    lower_bound: float | None = None
    converged: bool | None = None
    note: str = ""

    def after(self, earlier: ModelCard) -> ModelCard:
        """Return the card of a model that saw the data of ``earlier`` first and then this card's."""
        both = hashlib.sha256(f"{earlier.data_sha256}{self.data_sha256}".encode()).hexdigest()
        return replace(self, n_rows=earlier.n_rows + self.n_rows, data_sha256=both)


@dataclass(frozen=True, eq=False)
class ModelState:
    """Everything a fitted estimator is: its class by name, its parameters, plain values and arrays."""

    estimator: str
    params: dict[str, Json]
    values: dict[str, Json]
    arrays: dict[str, Array]
    """Numeric, boolean or string arrays."""
    card: ModelCard
    estimator_version: int = 1
    """Which of the forms that this class's files have had."""


def write_model(path: str | os.PathLike[str], state: ModelState) -> None:
    """Write atomically: the file appears whole or not at all."""
    tensors = _as_tensors(state.arrays)
    header = _header(state, tensors)
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        for tensor in tensors.values():
            file.write(raw_bytes(tensor))


def read_model(path: str | os.PathLike[str], mmap: bool = False) -> ModelState:
    """Read and check everything; a damaged, foreign or newer file is a ModelFileError that says which.

    With ``mmap`` the arrays are read-only views of the file itself. They are checked all the same, which reads the file
    once, but takes no memory that the system cannot have back or share with other processes.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        header = _read_header(file, size, name)
        metadata = _checked_metadata(header, name)
        tensors = _read_tensors(file, header, size - file.tell(), name, _mapped if mmap else _in_memory)
    if metadata["sha256"].keys() != tensors.keys():
        raise ModelFileError(
            f"{name}: expected a checksum for every tensor, found them for {sorted(metadata['sha256'])}"
        )
    for tensor_name, tensor in tensors.items():
        if metadata["sha256"][tensor_name] != _sha256(tensor):
            raise ModelFileError(f"{name}: tensor {tensor_name!r} does not match its checksum: the file is damaged")
    if not metadata["card"].keys() >= _CARD_NEEDS:
        raise ModelFileError(f"{name}: model card: expected {sorted(_CARD_NEEDS)}, found {sorted(metadata['card'])}")
    return ModelState(
        estimator=metadata["estimator"],
        params=metadata["params"],
        values=metadata["values"],
        arrays=_from_tensors(tensors, metadata["values"], name),
        card=ModelCard(**metadata["card"]),
        estimator_version=metadata["estimator_version"],
    )


# --- writing ---------------------------------------------------------------------------------------------------------


def _header(state: ModelState, tensors: Mapping[str, Array]) -> bytes:
    entries: dict[str, object] = {}
    start = 0
    for name, tensor in tensors.items():
        entries[name] = {
            "dtype": _CODES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, start + tensor.nbytes],
        }
        start += tensor.nbytes
    metadata = {
        "format": FORMAT_VERSION,
        "estimator": state.estimator,
        "estimator_version": state.estimator_version,
        "params": state.params,
        "values": state.values,
        "card": asdict(state.card),
        "sha256": {name: _sha256(tensor) for name, tensor in tensors.items()},
    }
    header = _sealed({**entries, "__metadata__": {"slatewise": _canonical(metadata)}})
    if len(header) > _MAX_HEADER_BYTES or _count_values(header) > _MAX_HEADER_VALUES:
        raise ModelFileError("expected parameters and plain values of modest size, found more; store them as arrays")
    return header


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _sealed(header: dict[str, Any]) -> bytes:
    """Add the checksum of the header itself, and pad so that the tensors start at a multiple of 8."""
    metadata = {key: value for key, value in header["__metadata__"].items() if key != "sha256"}
    digest = hashlib.sha256(_canonical({**header, "__metadata__": metadata}).encode()).hexdigest()
    text = _canonical({**header, "__metadata__": {**metadata, "sha256": digest}}).encode()
    return text + b" " * (-len(text) % 8)


def _sha256(tensor: Array) -> str:
    return hashlib.sha256(raw_bytes(tensor)).hexdigest()


def raw_bytes(tensor: Array) -> memoryview:
    """Return a contiguous array's own memory, without a copy."""
    return tensor.reshape(-1).view(np.uint8).data


def _as_tensors(arrays: Mapping[str, Array]) -> dict[str, Array]:
    tensors: dict[str, Array] = {}
    for name, array in arrays.items():
        if array.dtype.kind in "UO":
            tensors[name + _STRINGS] = _encode_strings(array, name)
            continue
        dtype = array.dtype.newbyteorder("<")
        if dtype not in _CODES:
            raise ModelFileError(f"array {name!r}: expected one of {', '.join(_CODES.values())}, found {array.dtype}")
        tensors[name] = np.ascontiguousarray(array, dtype=dtype).reshape(array.shape)
    return dict(sorted(tensors.items()))  # the canonical header sorts its keys: the data follows the same order


def _encode_strings(array: Array, name: str) -> Array:
    texts = np.asarray(array, dtype=np.str_)
    if array.ndim != 1 or texts.tolist() != array.tolist():  # not strings, or a NUL at the end, which NumPy drops
        raise ModelFileError(f"array {name!r}: expected a one-dimensional array of strings, found {array.dtype}")
    if texts.dtype.itemsize > 4 * _MAX_LETTERS:
        raise ModelFileError(f"array {name!r}: expected strings of at most {_MAX_LETTERS} letters, found longer ones")
    rows = np.ascontiguousarray(texts, dtype=texts.dtype.newbyteorder("<"))
    return rows.view("<i4").reshape(len(rows), rows.dtype.itemsize // 4)


# --- reading ---------------------------------------------------------------------------------------------------------


def _read_header(file: BufferedReader, size: int, name: str) -> dict[str, Any]:
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, _MAX_HEADER_BYTES):
        raise ModelFileError(f"{name}: expected a slatewise model file, found a header that does not fit the file")
    text = file.read(length)
    if _count_values(text) > _MAX_HEADER_VALUES:
        raise ModelFileError(f"{name}: expected a slatewise model file, found a header of too many values")
    header = _parse(text, name)
    try:
        intact = _sealed(header) == text
    except (KeyError, TypeError, AttributeError, ValueError):
        intact = False
    if not intact:
        raise ModelFileError(f"{name}: the header does not match its checksum: damaged, or not a slatewise model file")
    return header


def _count_values(text: bytes) -> int:
    return text.count(b",") + text.count(b"{") + text.count(b"[")


def _parse(text: bytes | str, name: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ModelFileError(f"{name}: expected a JSON header, found something else: damaged, or not a model file")
    return cast("dict[str, Any]", value)


def _checked_metadata(header: dict[str, Any], name: str) -> dict[str, Any]:
    metadata = _parse(str(header["__metadata__"].get("slatewise", "")), name)
    version = metadata.get("format")
    if type(version) is int and 1 <= version < FORMAT_VERSION:
        raise ModelFileError(
            f"{name}: expected format version {FORMAT_VERSION}, found {version}, which is of a slatewise before 0.3: "
            "fit the model again and save it"
        )
    if version != FORMAT_VERSION or type(version) is not int:
        raise ModelFileError(
            f"{name}: expected format version {FORMAT_VERSION}, found {short_repr(version)}: "
            "read it with a newer slatewise"
        )
    if metadata.keys() != _METADATA_TYPES.keys():
        raise ModelFileError(
            f"{name}: expected metadata with {sorted(_METADATA_TYPES)}, found {short_repr(sorted(metadata))}"
        )
    _check_types(metadata, _METADATA_TYPES, f"{name}: metadata")
    _check_types(metadata["card"], _CARD_TYPES, f"{name}: model card")
    return metadata


def _check_types(values: dict[str, Any], types: Mapping[str, tuple[type, ...]], where: str) -> None:
    for key, value in values.items():
        if key not in types or type(value) not in types[key]:
            wanted = " or ".join(kind.__name__ for kind in types.get(key, ())) or "no such entry"
            raise ModelFileError(f"{where}: expected {wanted} as {key}, found {str(value)[:80]!r}")


def _read_tensors(
    file: BufferedReader,
    header: dict[str, Any],
    data_bytes: int,
    name: str,
    take: Callable[[BufferedReader, np.dtype[Any], tuple[int, ...]], Array | None],
) -> dict[str, Array]:
    tensors: dict[str, Array] = {}
    position = 0
    for tensor_name, entry in sorted(header.items()):
        if tensor_name == "__metadata__":
            continue
        dtype, shape, end = _checked_entry(entry, position, data_bytes, f"{name}: tensor {tensor_name!r}")
        tensor = take(file, dtype, shape)
        if tensor is None:
            raise ModelFileError(f"{name}: expected {end - position} bytes for tensor {tensor_name!r}, found fewer")
        tensors[tensor_name] = tensor
        position = end
    if position != data_bytes:
        raise ModelFileError(f"{name}: expected {position} bytes of tensors, found {data_bytes}")
    return tensors


def _in_memory(file: BufferedReader, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array | None:
    """Read the next tensor; None where the file ends too soon."""
    tensor = np.empty(shape, dtype=dtype)
    return tensor if file.readinto(raw_bytes(tensor)) == tensor.nbytes else None


def _mapped(file: BufferedReader, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array | None:
    """Map the next tensor; what is empty, or lies where numbers of its size cannot be read in one go, is copied."""
    start = file.tell()
    if not math.prod(shape) or start % dtype.itemsize:
        return _in_memory(file, dtype, shape)
    tensor = np.memmap(file, dtype, "r", start, shape)
    file.seek(start + tensor.nbytes)
    return tensor.view(np.ndarray)


def _checked_entry(
    entry: object, position: int, data_bytes: int, where: str
) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Check one tensor's place *before* allocating: its size follows from bytes that are really there."""
    place = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    match place.get("dtype"), place.get("data_offsets"):
        case str(code), [int(start), int(end)] if code in _DTYPES:
            dtype = _DTYPES[code]
        case _:
            raise ModelFileError(f"{where}: expected a dtype, a shape and two offsets, found {place}")
    shape = cast("list[Any]", place.get("shape"))
    if (
        type(shape) is not list
        or len(shape) > _MAX_DIMENSIONS
        or any(type(n) is not int or n < 0 for n in shape)
        or math.prod(max(n, 1) for n in shape) > _MAX_ENTRIES
    ):
        raise ModelFileError(f"{where}: expected a list of sizes, found {str(shape)[:80]}")
    sizes = tuple(cast("list[int]", shape))
    if start != position or end > data_bytes:
        raise ModelFileError(f"{where}: expected a place inside the file right after the tensor before it")
    if end - start != math.prod(sizes) * dtype.itemsize:
        raise ModelFileError(f"{where}: expected {math.prod(sizes) * dtype.itemsize} bytes, found {end - start}")
    return dtype, sizes, end


def _from_tensors(tensors: Mapping[str, Array], values: Mapping[str, Json], file: str) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for tensor_name, tensor in tensors.items():
        name = tensor_name.removesuffix(_STRINGS)
        if name in arrays or name in values:
            raise ModelFileError(f"{file}: expected each name once, found {name!r} twice")
        arrays[name] = tensor if name == tensor_name else _decode_strings(tensor, f"{file}: tensor {tensor_name!r}")
    return arrays


def _decode_strings(tensor: Array, where: str) -> Array:
    if tensor.dtype != np.int32 or tensor.ndim != 2 or not 1 <= tensor.shape[1] <= _MAX_LETTERS:
        raise ModelFileError(f"{where}: expected strings as rows of code points, found {tensor.dtype} {tensor.shape}")
    if tensor.size and (tensor.min() < 0 or tensor.max() > 0x10FFFF):
        raise ModelFileError(f"{where}: expected code points from 0 to 1114111, found {tensor.min()} to {tensor.max()}")
    return tensor.view(f"<U{tensor.shape[1]}").reshape(len(tensor))
