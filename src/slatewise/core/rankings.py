"""What ranking returns: for every list, its rows best first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.groups import group_rows


@dataclass(frozen=True, eq=False)
class Rankings:
    """List l is called ``ids[l]``; its rows of X, best first, are ``rankings[l]``."""

    ids: NDArray[Any]
    offsets: NDArray[np.int64]
    order: NDArray[np.int64]
    """Row numbers of X, list after list, best first inside a list."""

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> NDArray[np.int64]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"expected a list number below {len(self)}, found {index}")
        index %= len(self)
        return self.order[self.offsets[index] : self.offsets[index + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return (self[index] for index in range(len(self)))

    def top(self, k: int) -> Rankings:
        """Keep the best k rows of every list (all of a shorter one)."""
        if k != int(k) or k < 1:
            raise ValueError(f"k: expected a whole number of rows >= 1, found {k}")
        k = min(int(k), len(self.order))
        sizes = np.diff(self.offsets)
        kept = np.minimum(sizes, k)
        rank = np.arange(len(self.order)) - np.repeat(self.offsets[:-1], sizes)
        return Rankings(self.ids, np.concatenate(([0], np.cumsum(kept))).astype(np.int64), self.order[rank < k])


def rank_rows(scores: NDArray[Any], qid: ArrayLike | None = None, group: ArrayLike | None = None) -> Rankings:
    """Sort every list by score, largest first; equal scores keep the order of the rows.

    Examples
    --------
    >>> rankings = rank_rows(np.array([0.1, 0.9, 0.5]), ["a", "b", "a"])
    >>> rankings.ids.tolist(), rankings[0].tolist(), rankings[1].tolist()
    (['a', 'b'], [2, 0], [1])
    """
    groups = group_rows(qid, len(scores), group)
    rows = np.arange(len(scores)) if groups.order is None else groups.order
    lists = np.repeat(np.arange(len(groups.ids)), np.diff(groups.offsets))
    best_first = np.lexsort((-np.asarray(scores, dtype=np.float64)[rows], lists))
    return Rankings(groups.ids, groups.offsets, rows[best_first])
