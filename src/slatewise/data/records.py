"""What readers return: one frozen record per kind of data, flat arrays inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slatewise.core.errors import Skipped
from slatewise.core.rankings import Run as Run
from slatewise.core.sparse import sparse_rows

Float: TypeAlias = NDArray[np.float64]
Int: TypeAlias = NDArray[np.int64]
Strings: TypeAlias = NDArray[np.str_]
Ids: TypeAlias = NDArray[Any]
"""Integer or string identifiers."""


@dataclass(frozen=True, eq=False)
class RowsToRank:
    """Rows to rank: row i belongs to list ``qid[i]``, has features ``X[i]`` and relevance ``y[i]``."""

    X: csr_array | Float
    """As readers return it, CSR."""
    y: Float
    qid: Ids
    doc_ids: Strings | None = None
    skipped: Skipped = field(default_factory=Skipped)

    def dense(self) -> Float:
        """Return X as a dense float64 array."""
        rows = sparse_rows("X", self.X)
        return np.asarray(self.X if rows is None else rows.toarray(), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Qrels:
    """Judgements: document ``doc_ids[i]`` has ``relevance[i]`` for list ``qid[i]``."""

    qid: Strings
    doc_ids: Strings
    relevance: Int
    skipped: Skipped = field(default_factory=Skipped)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Observed (query, item) pairs, with a weight each where the file has one."""

    queries: Ids
    items: Ids
    weights: Float | None = None
    skipped: Skipped = field(default_factory=Skipped)


@dataclass(frozen=True, eq=False)
class Sessions:
    """Ordered item lists: session s is ``items[offsets[s]:offsets[s + 1]]``, and there are no others.

    The first offset need not be 0, nor the last one the number of items: what stands before and behind them belongs to
    no session. ``sessions[s]`` is one session's items, ``sessions[a:b]`` (or an array of numbers or flags) are some of
    the sessions, which share the items where they are neighbours; iterating gives one session's items after the other.

    Examples
    --------
    >>> sessions = Sessions(np.array([4, 8, 15, 16, 23, 42]), np.array([0, 2, 3, 6]))
    >>> len(sessions), sessions[0].tolist(), sessions[-1].tolist()
    (3, [4, 8], [16, 23, 42])
    >>> train, test = sessions[:2], sessions[2:]
    >>> train.pairs().items.tolist(), test.pairs().items.tolist()
    ([8], [23, 42])
    >>> [len(items) for items in sessions]
    [2, 1, 3]
    """

    items: Ids
    offsets: Int
    skipped: Skipped = field(default_factory=Skipped)

    def __post_init__(self) -> None:
        items, offsets = np.asarray(self.items), np.asarray(self.offsets)
        if items.ndim != 1:
            raise ValueError(f"items: expected one dimension, found shape {items.shape}")
        if offsets.ndim != 1 or not len(offsets) or offsets.dtype.kind not in "iu":
            found = f"{offsets.dtype} of shape {offsets.shape}"
            raise ValueError(f"offsets: expected whole numbers, one more than there are sessions, found {found}")
        back = np.flatnonzero(offsets[1:] < offsets[:-1])
        if len(back):
            at = int(back[0])
            raise ValueError(
                f"offsets: expected none to go back, found {offsets[at]} then {offsets[at + 1]} in session {at}"
            )
        if offsets[0] < 0 or offsets[-1] > len(items):
            raise ValueError(
                f"offsets: expected numbers from 0 to {len(items)}, the number of items, "
                f"found {offsets[0]} to {offsets[-1]}"
            )
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "offsets", offsets.astype(np.int64, copy=False))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> Ids: ...
    @overload
    def __getitem__(self, key: slice | NDArray[Any] | Sequence[int]) -> Sessions: ...
    def __getitem__(self, key: int | np.integer[Any] | slice | NDArray[Any] | Sequence[int]) -> Ids | Sessions:
        chosen = np.arange(len(self))[key]
        if chosen.ndim == 0:
            return self.items[self.offsets[chosen] : self.offsets[chosen + 1]]
        if chosen.ndim != 1:
            raise IndexError(f"sessions: expected a whole number, a slice or a row of numbers, found {key!r}")
        return self._some(chosen)

    def __iter__(self) -> Iterator[Ids]:
        for start, end in pairwise(self.offsets.tolist()):
            yield self.items[start:end]

    def pairs(self) -> Pairs:
        """Return every (item, next item) inside a session."""
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        items = self.items[first:last]
        inside = np.ones(max(len(items) - 1, 0), dtype=bool)
        ends = self.offsets[1:-1] - first - 1
        inside[ends[(ends >= 0) & (ends < len(inside))]] = False
        return Pairs(items[:-1][inside], items[1:][inside])

    def _some(self, chosen: Int) -> Sessions:
        if len(chosen) and (np.diff(chosen) == 1).all():
            return Sessions(self.items, self.offsets[chosen[0] : chosen[-1] + 2])
        parts = [self[int(number)] for number in chosen]
        lengths = [0, *map(len, parts)]
        return Sessions(np.concatenate([self.items[:0], *parts]), np.cumsum(lengths, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class MultiLabel:
    """Rows with sets of labels: ``Y[i, l]`` is 1 where row i has label l; ``ids[i]`` names the row."""

    X: csr_array | Float
    Y: csr_array
    label_names: Strings
    feature_names: Strings | None = None
    is_train: NDArray[np.bool_] | None = None
    skipped: Skipped = field(default_factory=Skipped)
    ids: Ids | None = None
    known: NDArray[np.bool_] | None = None
    """(rows, labels): whether ``Y`` says something; None: everywhere."""
    answered: NDArray[np.bool_] | None = None
    """(rows, labels): whether it is known because somebody was asked; None: nothing is said of that."""
