"""Ids of queries and items: whole numbers or strings, never both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[Any]


def check_ids(name: str, values: Any) -> Ids:
    """Return ids as int64 or strings.

    Examples
    --------
    >>> check_ids("items", [3.0, 7.0]), check_ids("items", ["a", "b"])
    (array([3, 7]), array(['a', 'b'], dtype='<U1'))
    """
    ids = ids_array(name, values)
    if ids.ndim == 0:
        raise ValueError(f"{name}: expected a one-dimensional array of ids, found {type(values).__name__}")
    if ids.ndim != 1:
        raise ValueError(f"{name}: expected a one-dimensional array of ids, found shape {ids.shape}")
    if ids.dtype.kind == "O":
        parts = cast("list[object]", ids.tolist())
        kinds = {type(part) for part in parts}
        if kinds == {str} or kinds == {int}:
            ids = np.array(parts)
    if ids.dtype.kind in "uf":
        _require_exact(name, ids)
    if ids.dtype.kind == "f" and np.isfinite(ids).all() and (ids == np.floor(ids)).all():
        ids = ids.astype(np.int64)
    if ids.dtype.kind not in "iuU":
        raise ValueError(f"{name}: expected ids, all whole numbers or all strings, found dtype {ids.dtype}")
    return ids if ids.dtype.kind == "U" else ids.astype(np.int64)


def ids_array(name: str, values: Any) -> NDArray[Any]:
    """Return an array of what should be ids, of any shape; numbers among strings are refused, as are ragged lists."""
    if isinstance(values, list | tuple):
        require_one_kind(name, cast("list[object]", values))
    try:
        return np.asarray(cast("Any", values))
    except ValueError:
        raise ValueError(f"{name}: expected a one-dimensional array of ids, found lists of several lengths") from None


def one_or_more(name: str, values: Any) -> NDArray[Any]:
    """Return an array of what should be ids; one id alone is a list of one."""
    ids = ids_array(name, values)
    return ids[None] if ids.ndim == 0 and ids.dtype.kind in "iufU" else ids


def require_one_kind(name: str, values: Iterable[Any]) -> None:
    """Refuse numbers among strings and flags among numbers, which NumPy would turn into the others without a word."""
    kinds = set(map(type, values))
    if len({(issubclass(kind, str), issubclass(kind, bool | np.bool_)) for kind in kinds}) > 1:
        found = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"{name}: expected ids, all whole numbers or all strings, found {found}")


def _require_exact(name: str, ids: Ids) -> None:
    """Refuse numbers that int64 has not, or that stand for several whole numbers."""
    most = 2**53 if ids.dtype.kind == "f" else 2**63 - 1
    sizes = np.abs(ids.astype(np.float64)) if ids.dtype.kind == "f" else ids
    wrong = np.flatnonzero(sizes > most)
    if len(wrong):
        place = int(wrong[0])
        raise ValueError(
            f"{name}: expected ids up to {most} where they are {ids.dtype}, found {ids[place]} at place {place}"
        )
