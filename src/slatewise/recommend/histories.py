"""Sessions as numbers, to learn from or to rank for, from all forms that users have them in.

==============================================  ======================================================
queries                                         a query is
==============================================  ======================================================
:class:`slatewise.data.Sessions`                a session
:class:`slatewise.data.Prefixes`                the beginning of a session
lists of lists of ids, or a matrix of ids       a list, oldest item first
a frame with the columns session and item       the rows of a session, by the column time where there is one
a list of ids, or one id                        an id: a session of that item alone
==============================================  ======================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from math import lgamma
from numbers import Number
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Bools, Ints
from slatewise.core.checks import sparse_rows
from slatewise.core.groups import concatenate_ranges
from slatewise.core.ids import Ids, check_ids
from slatewise.data.records import Prefixes, Sessions
from slatewise.data.sessions import flat_lists, is_frame
from slatewise.recommend.ids import Unknown, number_ids

NEARLY_ALL = 0.95
"""Share of sorted sessions from which order seems to carry no information."""
LOG_CHANCE = -20.0
"""A chance of 2e-9."""


@dataclass(frozen=True, eq=False)
class SessionQueries:
    """Sessions to rank for: query q has the items ``items[starts[q]:ends[q]]``, oldest first, all of them known."""

    ids: Ids
    """What each is called: its id, else its number."""
    items: Ints
    starts: Ints
    ends: Ints

    @classmethod
    def of(cls, queries: Any, item_ids: Ids, unknown: Unknown = "error") -> SessionQueries:
        """Read queries in any form, and number the items; unknown ones are an error, or left out with a warning."""
        ids, items, starts, ends = _spans(queries)

        def place_of(place: int) -> str:
            query = int(np.flatnonzero((starts <= place) & (place < ends))[0])
            return f"place {place - starts[query]} of query {query}"

        instead = "are left out of their sessions"
        numbers = number_ids("queries", items, item_ids, place_of, unknown, instead)
        known = numbers >= 0
        if known.all():
            return cls(ids, numbers, starts, ends)
        before = np.concatenate(([0], np.cumsum(known)))
        return cls(ids, numbers[known], before[starts], before[ends])

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: slice | Ints) -> SessionQueries:
        return SessionQueries(self.ids[rows], self.items, self.starts[rows], self.ends[rows])

    @property
    def nothing_known(self) -> Bools:
        """Which queries have no known item."""
        return self.ends <= self.starts

    def warn_of_nothing_known(self, instead: str, nothing: Bools | None = None) -> None:
        """Warn of queries without a known item, and say what happens to them ``instead``.

        ``nothing``: those of which nothing else is known either; default: all of them.
        """
        nothing = self.nothing_known if nothing is None else nothing
        if nothing.any():
            first = self.ids[int(np.argmax(nothing))].item()
            warnings.warn(
                f"queries: {int(nothing.sum())} of {len(self)} have no item that fit saw and {instead}; "
                f"the first: query {first!r}",
                stacklevel=3,
            )


@dataclass(frozen=True, eq=False)
class NumberedSessions:
    """Sessions to learn from: session s is ``items[offsets[s]:offsets[s + 1]]``, from 0 on and none without items."""

    item_ids: Ids
    """In ascending order; ``items`` are places in it."""
    items: Ints
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def subset(self, chosen: Bools) -> NumberedSessions:
        """Return some of the sessions, with all items."""
        places, offsets = concatenate_ranges(self.offsets[:-1][chosen], np.diff(self.offsets)[chosen])
        return NumberedSessions(self.item_ids, self.items[places], offsets)


def number_sessions(sessions: Any, in_order: bool = False) -> NumberedSessions:
    """Check sessions to learn from, in any form but one id, and number their items; empty ones are left out.

    ``in_order``: the order of items counts; warn where it seems to carry no information.
    """
    given = Sessions.of(sessions)
    first, last = int(given.offsets[0]), int(given.offsets[-1])
    ids = check_ids("sessions", given.items[first:last])
    lengths = np.diff(given.offsets)
    if not len(ids):
        raise ValueError(f"sessions: expected items, found none in {len(given)} sessions")
    empty = lengths == 0
    if empty.any():
        where = int(np.argmax(empty))
        warnings.warn(
            f"sessions: {int(empty.sum())} of {len(given)} have no items and are left out; the first: session {where}",
            stacklevel=3,
        )
    item_ids, numbers = np.unique(ids, return_inverse=True)
    offsets = np.concatenate(([0], np.cumsum(lengths[~empty]))).astype(np.int64)
    numbered = NumberedSessions(item_ids, numbers.astype(np.int64), offsets)
    if in_order:
        _warn_of_sorted(numbered)
    return numbered


def _warn_of_sorted(sessions: NumberedSessions) -> None:
    """Warn where nearly all sessions have their items in ascending order, which chance does not explain.

    A session of m different items is sorted by chance with probability 1 / m!. Sets are often stored so.
    """
    lengths = np.diff(sessions.offsets)
    several = lengths > 1
    n_several = int(several.sum())
    if not n_several:
        return
    rises = np.diff(sessions.items) > 0
    owners = np.repeat(np.arange(len(lengths)), lengths)
    inside = owners[1:] == owners[:-1]
    falls = np.bincount(owners[1:][inside & ~rises], minlength=len(lengths))
    is_sorted = several & (falls == 0)
    n_sorted = int(is_sorted.sum())
    if n_sorted < NEARLY_ALL * n_several:
        return
    # At most the probability that this number of sessions is sorted.
    log_choices = lgamma(n_several + 1) - lgamma(n_sorted + 1) - lgamma(n_several - n_sorted + 1)
    log_chance = log_choices - float(sum(map(lgamma, (lengths[is_sorted] + 1).tolist())))
    if log_chance < LOG_CHANCE:
        warnings.warn(
            f"sessions: the items of {n_sorted} of {n_several} sessions are sorted by id, so their order seems to "
            "carry no information: pass them in the order of time, or, if they have none, take CollaborativeRanker",
            UserWarning,
            stacklevel=4,
        )


def _spans(queries: Any) -> tuple[Ids, Ids, Ints, Ints]:
    """Return the names of queries, the items of any of them, and where in these each query begins and ends."""
    if isinstance(queries, Prefixes):
        return _without_unused(np.arange(len(queries)), queries.items, queries.starts, queries.ends)
    if isinstance(queries, Sessions) or is_frame(queries):
        sessions = Sessions.of(queries)
        names = np.arange(len(sessions)) if sessions.ids is None else sessions.ids
        return _without_unused(names, sessions.items, sessions.offsets[:-1], sessions.offsets[1:])
    rows = _listed(queries)
    if _are_ids(rows):
        values = check_ids("queries", rows)
        places = np.arange(len(values) + 1)
        return values, values, places[:-1], places[1:]
    items, sizes = flat_lists("queries", rows)
    ends = np.cumsum(sizes)
    return np.arange(len(sizes)), items, ends - sizes, ends


def _listed(queries: Any) -> NDArray[Any] | list[Any]:
    if isinstance(queries, np.ndarray):
        return np.atleast_1d(cast("NDArray[Any]", queries))
    if isinstance(queries, str | bytes | Number):
        return [queries]
    if isinstance(queries, Mapping):
        raise ValueError("queries: expected sessions or ids of items, found a mapping: its keys, or its values?")
    if sparse_rows("queries", queries) is not None:
        raise ValueError("queries: expected sessions or ids of items, found a sparse matrix, which has no order")
    try:
        return list(queries)
    except TypeError:
        raise ValueError(f"queries: expected sessions or ids of items, found {type(queries).__name__}") from None


def _are_ids(rows: NDArray[Any] | list[Any]) -> bool:
    """Tell ids from lists of them, by the first."""
    if isinstance(rows, np.ndarray) and rows.dtype.kind != "O":
        return rows.ndim == 1
    return len(rows) > 0 and isinstance(rows[0], str | Number)


def _without_unused(ids: Ids, items: Ids, starts: Ints, ends: Ints) -> tuple[Ids, Ids, Ints, Ints]:
    """Leave out items that are in no query."""
    changes = np.bincount(starts, minlength=len(items) + 1) - np.bincount(ends, minlength=len(items) + 1)
    inside = np.cumsum(changes)[:-1] > 0
    if inside.all():
        return ids, items, starts, ends
    before = np.concatenate(([0], np.cumsum(inside)))
    return ids, items[inside], before[starts], before[ends]
