"""Between a fitted estimator and its file, without pickle.

Parameters, learned attributes and the model card are the file. Only the estimators of the registry can come out of a
file, only what their declarations name can go in, and all of it passes the rules that fit and its result passed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from slatewise._registry import ESTIMATORS, estimator_class
from slatewise._version import __version__
from slatewise.core.declarations import Settings, params_of
from slatewise.core.errors import ModelFileError
from slatewise.core.rules import Rule, short_repr
from slatewise.persistence.file import Json, ModelCard, ModelState, raw_bytes, read_model


def load(path: str | os.PathLike[str], mmap: bool = False) -> Any:
    """Read a model file and return its estimator, ready to predict.

    Every byte is checked against the file's own checksums first; nothing in the file is executed. Files of another
    format version are refused.

    Parameters
    ----------
    path
        A file written by an estimator's ``save``.
    mmap
        Leave the arrays in the file: they are read-only and shared by all processes that load it. The checksums are
        compared here too, which reads the file once. ``save`` puts a new file in its place and leaves this one to those
        who have it; nothing else may write to it meanwhile.

    Returns
    -------
    estimator
        An instance of the class that was saved, with its model card in ``model_card_``.
    """
    state, name = read_model(path, mmap), os.fspath(path)
    if state.estimator not in ESTIMATORS:
        raise ModelFileError(f"{name}: expected one of {sorted(ESTIMATORS)}, found {state.estimator!r}")
    return _restored(state, name)


def _restored(state: ModelState, name: str) -> Any:
    kind = estimator_class(state.estimator)
    if state.estimator_version != kind._file_version:
        raise ModelFileError(
            f"{name}: expected a {state.estimator} of version {kind._file_version}, "
            f"found {short_repr(state.estimator_version)}: read it with the slatewise that wrote it"
        )
    return kind._from_state(state, name)


def described(part: ModelState) -> Json:
    """Return all of a fitted part but its arrays."""
    return {
        "estimator": part.estimator,
        "version": part.estimator_version,
        "params": part.params,
        "values": part.values,
    }


def take_part(state: ModelState, part: str, name: str) -> Any:
    """Take a fitted part of an estimator out of the state of the whole; the card is that of the whole."""
    found = state.values.pop(part, "nothing")
    if found is None:
        return None
    names = [key for key in state.arrays if key.startswith(f"{part}.")]
    arrays = {key.removeprefix(f"{part}."): state.arrays.pop(key) for key in names}
    match found:
        case {"estimator": str(kind), "version": int(version), "params": dict(params), "values": dict(values)} if (
            kind in ESTIMATORS
        ):
            own = ModelState(kind, dict(params), dict(values), arrays, state.card, version)
        case _:
            raise ModelFileError(f"{name}: expected an estimator or null as {part}, found {short_repr(found)}")
    if any(_has_parts(own.values.get(each)) for each in estimator_class(kind)._parts):
        raise ModelFileError(f"{name}: expected an estimator whose parts have none as {part}, found {kind}")
    return _restored(own, name)


def _has_parts(described: Json) -> bool:
    """Tell whether a part is of a class that has parts; what is no part is found out where it is taken."""
    kind = described.get("estimator") if isinstance(described, dict) else None
    return isinstance(kind, str) and kind in ESTIMATORS and bool(estimator_class(kind)._parts)


def card_for(n_lists: int, *arrays: NDArray[Any], **certificate: Any) -> ModelCard:
    """Describe a fit: how much data, its hash, and the certificate where the learner gives one."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(raw_bytes(np.ascontiguousarray(array)))
    return ModelCard(
        library=f"slatewise {__version__}",
        n_lists=n_lists,
        n_rows=len(arrays[0]),
        data_sha256=digest.hexdigest(),
        **certificate,
    )


def as_json(value: object, name: str) -> Json:
    """Return a parameter as JSON has it, all digits kept; ``name`` is for the message."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.generic():
            return cast("Json", value.item())
        case np.ndarray():
            return cast("Json", value.tolist())
        case Settings():
            fields = {key: as_json(part, f"{name}.{key}") for key, part in value.get_params(deep=False).items()}
            return {"type": type(value).__name__, **fields}
        case list() | tuple():
            return [as_json(part, name) for part in cast("list[object]", value)]
        case _:
            raise ModelFileError(f"{name}: expected a number, a string or a list to save, found {type(value).__name__}")


def from_json(rule: Rule, value: Json, where: str) -> object:
    """Return a value of a file; settings are made from the classes that its rule names, and no others."""
    if rule.kinds and isinstance(value, list) and any(isinstance(part, dict) for part in value):
        return tuple(from_json(rule, part, where) for part in value)
    if not isinstance(value, dict):
        return value
    kinds = {kind.__name__: kind for kind in rule.kinds}
    fields: Mapping[str, Json] = {name: part for name, part in value.items() if name != "type"}
    kind = kinds.get(str(value.get("type")))
    if kind is None or fields.keys() - params_of(kind).keys():
        raise ModelFileError(f"{where}: expected {rule.expected}, found {short_repr(value)}")
    rules = {name: declared.rule for name, declared in params_of(kind).items()}
    try:
        return kind(**{name: from_json(rules[name], part, f"{where}.{name}") for name, part in fields.items()})
    except ValueError as error:
        raise ModelFileError(f"{where}: {error}") from None
