"""What readers return: one frozen record per kind of data, flat arrays inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import sparse_rows
from slatewise.core.errors import Skipped
from slatewise.core.groups import concatenate_ranges
from slatewise.core.rankings import Run as Run
from slatewise.core.rules import is_whole

Strings: TypeAlias = NDArray[np.str_]
Ids: TypeAlias = NDArray[Any]
"""Integer or string identifiers."""


@dataclass(frozen=True, eq=False)
class RowsToRank:
    """Rows to rank: row i belongs to list ``qid[i]``, has features ``X[i]`` and relevance ``y[i]``."""

    X: csr_array | Floats
    """As readers return it, CSR."""
    y: Floats
    qid: Ids
    doc_ids: Strings | None = None
    skipped: Skipped = field(default_factory=Skipped)

    def dense(self) -> Floats:
        """Return X as a dense float64 array."""
        rows = sparse_rows("X", self.X)
        return np.asarray(self.X if rows is None else rows.toarray(), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Qrels:
    """Judgements: document ``doc_ids[i]`` has ``relevance[i]`` for list ``qid[i]``."""

    qid: Strings
    doc_ids: Strings
    relevance: Ints
    skipped: Skipped = field(default_factory=Skipped)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Observed (query, item) pairs, with a weight each where the file has one."""

    queries: Ids
    items: Ids
    weights: Floats | None = None
    skipped: Skipped = field(default_factory=Skipped)


@dataclass(frozen=True, eq=False)
class Sessions:
    """Ordered item lists: session s is ``items[offsets[s]:offsets[s + 1]]``, and there are no others.

    The first offset need not be 0, nor the last one the number of items: what stands before and behind them belongs to
    no session. ``sessions[s]`` is one session's items, ``sessions[a:b]`` (or an array of numbers or flags) are some of
    the sessions, which share the items where they are neighbors; iterating gives one session's items after the other.

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
    offsets: Ints
    skipped: Skipped = field(default_factory=Skipped)
    ids: Ids | None = None
    """What each session is called; its number where None."""
    users: Ids | None = None
    """Whose each session is."""
    times: Floats | None = None
    """When each of the items was taken."""

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
        for name, values in (("ids", self.ids), ("users", self.users)):
            if values is not None:
                if np.shape(values) != (len(self),):
                    raise ValueError(f"{name}: expected one per session, {len(self)}, found shape {np.shape(values)}")
                object.__setattr__(self, name, np.asarray(values))
        if self.times is not None:
            times = np.asarray(self.times)
            if times.shape != items.shape or times.dtype.kind not in "iuf" or np.isnan(times).any():
                found = f"{times.dtype} of shape {times.shape}, or NaN"
                raise ValueError(f"times: expected one number per item, {len(items)}, found {found}")
            object.__setattr__(self, "times", times.astype(np.float64, copy=False))
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "offsets", offsets.astype(np.int64, copy=False))

    @classmethod
    def of(
        cls,
        sessions: Any,
        offsets: Any = None,
        *,
        session: str = "session",
        item: str = "item",
        time: str | None = None,
        user: str | None = None,
    ) -> Sessions:
        """Take sessions in any form: a list of lists of ids, a data frame, or one row of ids and where each begins.

        Parameters
        ----------
        sessions
            A sequence of sequences of ids, oldest first; or a pandas, polars or Arrow frame with one event per row; or,
            with ``offsets``, the ids of all sessions. Ids are all whole numbers or all strings.
        offsets
            Session s has the ids from ``offsets[s]`` to ``offsets[s + 1]``.
        session, item
            The columns of a frame. Rows of a session need not stand together; they keep their order, or that of
            ``time``. Sessions are in the order of their first rows, and are called as in the frame.
        time
            The column that orders the items of a session, numbers or times; default: "time" where there is one.
        user
            The column that says whose a session is; default: "user" where there is one.

        Examples
        --------
        >>> Sessions.of([["milk", "bread"], ["tea"]]).offsets.tolist()
        [0, 2, 3]
        >>> import polars
        >>> frame = polars.DataFrame({"basket": ["x", "y", "x"], "item": [7, 8, 9]})
        >>> sessions = Sessions.of(frame, session="basket")
        >>> sessions.ids.tolist(), [items.tolist() for items in sessions]
        (['x', 'y'], [[7, 9], [8]])
        """
        from slatewise.data.sessions import sessions_of

        return sessions_of(sessions, offsets, session, item, time, user)

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

    def prefixes(self, window: int | None = None) -> Prefixes:
        """Return every beginning of a session that has a next item: the queries of a next-item ranker.

        Parameters
        ----------
        window
            The number of last items to keep of each; default: all. Nothing is copied either way.

        Examples
        --------
        >>> prefixes = Sessions(np.array([4, 8, 15, 16]), np.array([0, 3, 4])).prefixes()
        >>> [items.tolist() for items in prefixes], prefixes.next_items.tolist()
        ([[4], [4, 8]], [8, 15])
        """
        if window is not None and (not is_whole(window) or window < 1):
            raise ValueError(f"window: expected a whole number >= 1, found {window!r}")
        counts = np.maximum(np.diff(self.offsets) - 1, 0)
        owners = np.repeat(np.arange(len(self)), counts)
        starts = self.offsets[owners]
        ends = starts + 1 + np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        if window is not None:
            starts = np.maximum(starts, ends - int(window))
        return Prefixes(self.items, starts, ends, owners)

    def _some(self, chosen: Ints) -> Sessions:
        ids = None if self.ids is None else self.ids[chosen]
        users = None if self.users is None else self.users[chosen]
        if len(chosen) and (np.diff(chosen) == 1).all():
            offsets = self.offsets[chosen[0] : chosen[-1] + 2]
            return Sessions(self.items, offsets, ids=ids, users=users, times=self.times)
        places, offsets = concatenate_ranges(self.offsets[chosen], np.diff(self.offsets)[chosen])
        times = None if self.times is None else self.times[places]
        return Sessions(self.items[places], offsets, ids=ids, users=users, times=times)


@dataclass(frozen=True, eq=False)
class Prefixes:
    """Beginnings of sessions: prefix p is ``items[starts[p]:ends[p]]``, and ``items[ends[p]]`` came next.

    They are views of the sessions' items, so that all prefixes of a log take no more memory than two numbers each.
    """

    items: Ids
    starts: Ints
    ends: Ints
    sessions: Ints
    """The number of the session that each is of."""

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[Ids]:
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield self.items[start:end]

    def __getitem__(self, key: slice | NDArray[Any]) -> Prefixes:
        return Prefixes(self.items, self.starts[key], self.ends[key], self.sessions[key])

    @property
    def next_items(self) -> Ids:
        """What came after each."""
        return self.items[self.ends]


class _LabelNames:
    """The names of labels, or None: then their numbers, made when they are first read."""

    @overload
    def __get__(self, rows: None, owner: type[MultiLabel]) -> None: ...
    @overload
    def __get__(self, rows: MultiLabel, owner: type[MultiLabel]) -> Strings: ...
    def __get__(self, rows: MultiLabel | None, owner: type[MultiLabel]) -> Strings | None:
        if rows is None:
            return None  # the field's default
        names: Strings | None = vars(rows)["label_names"]
        if names is None:
            names = vars(rows)["label_names"] = np.arange(rows.Y.shape[1]).astype(np.str_)
        return names

    def __set__(self, rows: MultiLabel, names: Strings | None) -> None:
        vars(rows)["label_names"] = names


@dataclass(frozen=True, eq=False)
class MultiLabel:
    """Rows with sets of labels: ``Y[i, l]`` is 1 where row i has label l; ``ids[i]`` names the row.

    Examples
    --------
    >>> MultiLabel(np.ones((1, 2)), csr_array([[0, 1, 1]])).label_names.tolist()
    ['0', '1', '2']
    """

    X: csr_array | Floats
    Y: csr_array
    label_names: _LabelNames = _LabelNames()
    """Strings; by default the numbers of the labels."""
    feature_names: Strings | None = None
    is_train: NDArray[np.bool_] | None = None
    skipped: Skipped = field(default_factory=Skipped)
    ids: Ids | None = None
    known: NDArray[np.bool_] | None = None
    """(rows, labels): whether ``Y`` is known; None: everywhere."""
    answered: NDArray[np.bool_] | None = None
    """(rows, labels): whether an annotator answered it; None: not recorded."""
