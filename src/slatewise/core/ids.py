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
    ids = np.asarray(values)
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


def require_one_kind(name: str, values: Iterable[Any]) -> None:
    """Refuse numbers among strings, which NumPy would make strings of without a word."""
    kinds = {type(value).__name__: isinstance(value, str) for value in values}
    if len(set(kinds.values())) > 1:
        raise ValueError(f"{name}: expected ids, all whole numbers or all strings, found {' and '.join(sorted(kinds))}")


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
