"""The door of c-star inference: arrays as the kernels want them, or an error that names the argument and the row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.checks import numbers, real, require_finite, require_in_range

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def checked_scores(s: ArrayLike) -> Floats:
    """Return finite (n, N) scores; one row is one list."""
    array = real("s", s)
    lists = numbers("s", array[None] if array.ndim == 1 else array, 2).astype(np.float64)
    require_finite("s", lists, lambda row: f"row {row}")
    require_in_range("s", lists)
    return lists


def checked_counts(k: ArrayLike, shape: tuple[int, int]) -> Ints:
    """Return how many items to select from each list."""
    n_lists, n_items = shape
    counts = real("k", k)
    if counts.dtype.kind not in "iu" or counts.shape not in ((), (n_lists,)):
        raise ValueError(f"k: expected a whole number or one for each of {n_lists} lists, found {k!r}")
    counts = np.array(np.broadcast_to(counts, n_lists), dtype=np.int64)  # own: kernels are compiled once more for views
    bad = np.flatnonzero((counts < 0) | (counts > n_items))
    if len(bad):
        raise ValueError(f"k: expected 0 to {n_items}, the number of items, found {counts[bad[0]]} at row {bad[0]}")
    return counts


def checked_known(known: ArrayLike | None, counts: Ints, shape: tuple[int, int]) -> Bytes | None:
    """Return what is known of the items, if lists of so many items fit."""
    if known is None:
        return None
    forced = real("known", known)
    if forced.ndim == 1:
        forced = forced[None]
    if forced.shape != shape:
        raise ValueError(f"known: expected the shape of s, {shape}, found {forced.shape}")
    odd = np.argwhere((forced != -1) & (forced != 0) & (forced != 1))
    if len(odd):
        row, item = odd[0]
        raise ValueError(f"known: expected -1, 0 or 1, found {forced[row, item]} at row {row}, item {item}")
    n_in, n_out = (forced == 1).sum(axis=1), (forced == 0).sum(axis=1)
    over = np.flatnonzero(n_in > counts)
    if len(over):
        row = over[0]
        raise ValueError(f"known: expected at most k = {counts[row]} items in, found {n_in[row]} at row {row}")
    short = np.flatnonzero(shape[1] - n_out < counts)
    if len(short):
        row = short[0]
        left = shape[1] - n_out[row]
        raise ValueError(f"known: expected at least k = {counts[row]} items not out, found {left} at row {row}")
    return np.ascontiguousarray(forced, dtype=np.int8)


def checked_warm_start(warm_start: ArrayLike | None, s: Floats) -> Ints | None:
    """Return rows of items, -1 where there is none."""
    if warm_start is None:
        return None
    warm = real("warm_start", warm_start)
    if warm.ndim == 1:
        warm = warm[None]
    if warm.ndim != 2 or len(warm) != len(s) or warm.dtype.kind not in "iu":
        raise ValueError(f"warm_start: expected a row of items for each of {len(s)} lists, found shape {warm.shape}")
    bad = np.argwhere((warm < -1) | (warm >= s.shape[1]))
    if len(bad):
        row, at = bad[0]
        raise ValueError(f"warm_start: expected items below {s.shape[1]} or -1, found {warm[row, at]} at row {row}")
    return np.ascontiguousarray(warm, dtype=np.int64)
