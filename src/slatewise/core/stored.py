"""Rows that lie elsewhere until they are needed: parts of blocks, read where the blocks are held.

A learner cuts its data into blocks and never looks at the features in them. So where these lie in files, a block has
in their place something that says which rows they are (:class:`Stored`), travels as such, and whoever holds the block
has it read (:func:`fetched`). Learners do not know the difference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from numpy.typing import NDArray

Part = TypeVar("Part")


class Stored(ABC):
    """An array that nobody has read; it has a shape, and can be cut like one."""

    shape: tuple[int, ...]

    @abstractmethod
    def __getitem__(self, places: Any) -> Any:
        """Return some rows, by a slice, by number or by a boolean each."""

    @classmethod
    @abstractmethod
    def read_all(cls, wanted: Sequence[Any]) -> list[NDArray[Any]]:
        """Read several, and what they share once."""


def fetched(part: Part) -> Part:
    """Return blocks, or what they share, with everything read that lay elsewhere; all else stays as it is.

    Looked into are lists, tuples and dataclasses.
    """
    found: list[Stored] = []
    _replaced(part, lambda leaf: found.append(leaf) or leaf)
    if not found:
        return part
    read = iter(type(found[0]).read_all(found))
    return cast("Part", _replaced(part, lambda _: next(read)))


def _replaced(part: Any, put: Callable[[Stored], Any]) -> Any:
    """Return a part with its stored arrays replaced, in one order; the part itself where it has none."""
    if isinstance(part, Stored):
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
