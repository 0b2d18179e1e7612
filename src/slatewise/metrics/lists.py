"""Arguments of measures, checked and turned into one flat record in list order, :class:`Scored`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import real, real_numbers
from slatewise.core.groups import group_rows
from slatewise.metrics.conventions import Array


@dataclass(frozen=True, eq=False)
class Unretrieved:
    """Judged items that a run left out: item i belongs to list ``lists[i]``. They have no rank, but they count."""

    lists: Ints
    relevance: Floats


@dataclass(frozen=True, eq=False)
class Scored:
    """Lists to measure: list l owns the rows ``offsets[l]:offsets[l + 1]``."""

    scores: Floats
    relevance: Floats
    offsets: Ints
    ids: Array | None = None
    unretrieved: Unretrieved | None = None

    @property
    def lengths(self) -> Ints:
        """Items in each list."""
        return np.diff(self.offsets)


def read_lists(
    relevance: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike | None,
    ids: ArrayLike | None,
    group: ArrayLike | None = None,
) -> Scored:
    """Check and flatten dense (n_lists, n_items) arrays, or flat arrays with one qid per row or the lists' sizes."""
    truth, score = finite("relevance", relevance), finite("scores", scores)
    if truth.shape != score.shape:
        raise ValueError(f"scores: expected the shape of relevance, {truth.shape}, found {score.shape}")
    if score.ndim not in (1, 2) or score.size == 0:
        raise ValueError(f"scores: expected a non-empty 1-D or 2-D array, found shape {score.shape}")
    names = None if ids is None else np.asarray(ids)
    if score.ndim == 2:
        if group is not None:
            raise ValueError("group: expected None with 2-D scores, whose rows are the lists")
        return _dense(truth, score, qid, names)
    if names is not None and names.shape != score.shape:
        raise ValueError(f"ids: expected one id per row, shape {score.shape}, found shape {names.shape}")
    groups = group_rows(qid, len(score), group)
    return Scored(
        groups.gather(score), groups.gather(truth), groups.offsets, None if names is None else groups.gather(names)
    )


def _dense(relevance: Floats, scores: Floats, qid: ArrayLike | None, ids: Array | None) -> Scored:
    if qid is not None:
        raise ValueError("qid: expected None with 2-D scores, whose rows are the lists")
    n_lists, n_items = scores.shape
    if ids is not None:
        if ids.shape not in ((n_items,), scores.shape):
            raise ValueError(f"ids: expected shape {scores.shape} or ({n_items},), found shape {ids.shape}")
        ids = np.broadcast_to(ids, scores.shape).ravel()
    offsets = np.arange(n_lists + 1, dtype=np.int64) * n_items
    return Scored(scores.ravel(), relevance.ravel(), offsets, ids)


def finite(argument: str, values: ArrayLike) -> Floats:
    """Return a contiguous float64 array; anything but finite real numbers is an error that says where."""
    given = real(argument, values)
    whole, array = given.dtype.kind != "f", real_numbers(argument, given)
    if not whole and not np.isfinite(array).all():
        bad = ~np.isfinite(array)
        place = np.unravel_index(int(np.argmax(bad)), array.shape)
        where = ", ".join(str(int(index)) for index in place)
        raise ValueError(f"{argument}[{where}]: expected a finite number, found {array[place]}")
    return array
