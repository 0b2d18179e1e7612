"""Types of arrays, for annotations; and rows that are read only where they are needed.

A learner cuts its data into blocks and never looks at the features in them. If these are in files, a block contains a
:class:`LazyArray` instead, which says which rows they are. It travels as such, and the worker that holds the block
reads it by :func:`read_lazy`. Learners do not know the difference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
Shorts: TypeAlias = NDArray[np.int32]
Bytes: TypeAlias = NDArray[np.int8]
Words: TypeAlias = NDArray[np.uint64]
Bools: TypeAlias = NDArray[np.bool_]


Part = TypeVar("Part")


class LazyArray(ABC):
    """An array that is not in memory yet; it has a shape and can be sliced."""

    shape: tuple[int, ...]

    @abstractmethod
    def __getitem__(self, places: Any) -> Any:
        """Return some rows: by a slice, by numbers, or by one boolean per row."""

    @classmethod
    @abstractmethod
    def read_all(cls, wanted: Sequence[Any]) -> list[NDArray[Any]]:
        """Read several at once, so that what they share is read once."""


def read_lazy(part: Part) -> Part:
    """Return blocks, or what they share, with every lazy array read; everything else stays as it is.

    Lists, tuples and dataclasses are searched.
    """
    found: list[LazyArray] = []
    _replaced(part, lambda leaf: found.append(leaf) or leaf)
    if not found:
        return part
    read = iter(type(found[0]).read_all(found))
    return cast("Part", _replaced(part, lambda _: next(read)))


def _replaced(part: Any, put: Callable[[LazyArray], Any]) -> Any:
    """Return a part with its lazy arrays replaced, always in the same order; the part itself if it has none."""
    if isinstance(part, LazyArray):
        return put(part)
    if isinstance(part, list | tuple):
        inside = cast("list[Any] | tuple[Any, ...]", part)
        new = [_replaced(one, put) for one in inside]
        if all(one is other for one, other in zip(new, inside, strict=True)):
            return inside
        make: Any = getattr(inside, "_make", type(inside))  # of a NamedTuple
        return make(new)
    if is_dataclass(part) and not isinstance(part, type):
        old = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
        new_fields = {name: _replaced(value, put) for name, value in old.items()}
        changed = {name: value for name, value in new_fields.items() if value is not old[name]}
        return replace(part, **changed) if changed else part
    return part
