"""Ids as numbers: where each is among those that fit saw."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from slatewise.core.arrays import Ints
from slatewise.core.errors import levels_to_caller
from slatewise.core.ids import Ids, check_ids

Unknown: TypeAlias = Literal["error", "ignore"]
"""What happens to ids that fit never saw."""


def number_ids(
    name: str,
    values: Any,
    known: Ids,
    place_of: Callable[[int], str] = "place {}".format,
    unknown: Unknown = "error",
    instead: str = "are left out",
) -> Ints:
    """Return the place of each id among the known ones, which ascend.

    An unknown id is an error that names it, or, with "ignore", -1 and a warning; ``instead`` says what happens to it.
    """
    if unknown not in ("error", "ignore"):
        raise ValueError(f"unknown: expected 'error' or 'ignore', found {unknown!r}")
    ids = check_ids(name, values)
    if len(ids):
        _require_kind(name, ids, known)
    places = find_ids(ids, known)
    never_seen = np.flatnonzero(places < 0)
    if not len(never_seen):
        return places
    first = int(never_seen[0])
    if unknown == "error":
        raise ValueError(f"{name}: expected ids seen in fit, found {ids[first].item()!r} at {place_of(first)}")
    warnings.warn(
        f"{name}: {len(never_seen)} of {len(ids)} ids were not seen in fit and {instead}; "
        f"the first: {ids[first].item()!r} at {place_of(first)}",
        stacklevel=levels_to_caller(),
    )
    return places


def joined_ids(name: str, old: Ids, new: Ids) -> tuple[Ids, Ints, Ints]:
    """Return all ids in ascending order, and where the old and the new ones are among them."""
    _require_kind(name, new, old)
    together = np.union1d(old, new)
    return together, np.searchsorted(together, old), np.searchsorted(together, new)


def _require_kind(name: str, ids: Ids, known: Ids) -> None:
    if ids.dtype.kind != known.dtype.kind:
        kind = "strings" if known.dtype.kind == "U" else "whole numbers"
        raise ValueError(f"{name}: expected ids as in fit, {kind}, found dtype {ids.dtype}")


def find_ids(ids: Ids, known: Ids) -> Ints:
    """Return the place of each id among the known ones, which ascend; -1 where it is not there."""
    if ids.dtype.kind != known.dtype.kind:
        return np.full(len(ids), -1, dtype=np.int64)
    places = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[places] == ids, places, -1)
