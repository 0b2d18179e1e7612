"""Train, validation and test rows that never cut a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Ints
from slatewise.core.groups import group_rows

RandomState: TypeAlias = int | np.random.Generator | None


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers, ascending, of three disjoint parts; a part may be empty."""

    train: Ints
    validation: Ints
    test: Ints


def k_fold_by_list(qid: ArrayLike, n_splits: int = 5, random_state: RandomState = None) -> tuple[Split, ...]:
    """Cut the lists at random into parts and rotate them as LETOR does.

    Test of fold f is part f, validation the part before it, training all the others; so at least three parts.

    Examples
    --------
    >>> folds = k_fold_by_list(["a", "a", "b", "c", "c"], n_splits=3, random_state=0)
    >>> sorted(row for fold in folds for row in fold.test.tolist())
    [0, 1, 2, 3, 4]
    """
    part_of = _list_of_rows(np.asarray(qid))
    n_lists = int(part_of.max(initial=-1)) + 1
    if not 3 <= n_splits <= n_lists:
        raise ValueError(f"n_splits: expected a number from 3 to the {n_lists} lists in qid, found {n_splits}")
    part_of_list = np.random.default_rng(random_state).permutation(n_lists) % n_splits
    return rotate(part_of_list[part_of], n_splits)


def rotate(part: Ints, n_parts: int) -> tuple[Split, ...]:
    """Return LETOR's folds over parts 0 to ``n_parts - 1``; ``part[i]`` is the part of row i."""
    before = [(fold - 1) % n_parts for fold in range(n_parts)]
    return tuple(
        Split(
            np.flatnonzero((part != fold) & (part != before[fold])),
            np.flatnonzero(part == before[fold]),
            np.flatnonzero(part == fold),
        )
        for fold in range(n_parts)
    )


def by_time(times: ArrayLike, fractions: Sequence[float] = (0.8, 0.1, 0.1), qid: ArrayLike | None = None) -> Split:
    """Train on what came first, test on what came last.

    A list stands at the time of its last row (without ``qid`` every row is a list). Lists of the same time stay
    together. A part takes as many lists as fit into its fraction of the rows, counted from the start.

    Examples
    --------
    >>> split = by_time([3, 1, 2, 4], fractions=(0.5, 0.25, 0.25))
    >>> split.train.tolist(), split.validation.tolist(), split.test.tolist()
    ([1, 2], [0], [3])
    """
    when = np.asarray(times)
    if when.ndim != 1 or when.dtype.kind not in "iufM":
        raise ValueError(f"times: expected a time a row, found {when.dtype} of shape {when.shape}")
    if when.dtype.kind in "fM" and np.isnan(when).any():
        raise ValueError(f"times: expected a time in every row, found none in row {np.flatnonzero(np.isnan(when))[0]}")
    shares = np.asarray(fractions, dtype=np.float64)
    if shares.shape != (3,) or (shares < 0).any() or abs(shares.sum() - 1) > 1e-9:
        raise ValueError(f"fractions: expected three numbers >= 0 that add up to 1, found {tuple(fractions)}")
    instants, instant = np.unique(when, return_inverse=True)
    if qid is not None:
        list_of = _list_of_rows(np.asarray(qid), len(when))
        last = np.zeros(int(list_of.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(last, list_of, instant)
        instant = last[list_of]
    rows_until = np.cumsum(np.bincount(instant, minlength=len(instants)))
    # A hair of slack, so that 0.1 + 0.2 of ten rows is three of them.
    ends = np.searchsorted(rows_until, np.cumsum(shares)[:2] * len(when) + 1e-9, side="right")
    part = (instant >= ends[0]).astype(np.int64) + (instant >= ends[1])
    return Split(np.flatnonzero(part == 0), np.flatnonzero(part == 1), np.flatnonzero(part == 2))


def _list_of_rows(qid: NDArray[np.generic], n_rows: int | None = None) -> Ints:
    groups = group_rows(qid, len(qid) if n_rows is None else n_rows)
    lists = np.repeat(np.arange(len(groups.offsets) - 1), np.diff(groups.offsets))
    if groups.order is None:
        return lists
    out = np.empty_like(lists)
    out[groups.order] = lists
    return out
