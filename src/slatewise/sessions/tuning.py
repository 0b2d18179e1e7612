"""Settings that a ranker of sessions finds by itself: tried on the last sessions, which it does not learn from.

Every beginning of those sessions asks for the item that came next, and is worth ``1 / log2(place + 1)`` where that item
is among the first 20 (NDCG@20), else nothing. One setting after the other moves along its ladder while that gains, and
stays there if it gained more than a standard error; a second round looks again. The last sessions, not some at random:
a log goes on in time, and so will the queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.data.records import Sessions
from slatewise.recommend.histories import NumberedSessions, SessionQueries

SHARE, MOST_QUERIES, FEWEST_QUERIES = 0.05, 3000, 20
ROUNDS = 2


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Sessions to learn from, and beginnings of later ones with the items that came next."""

    training: NumberedSessions
    queries: SessionQueries
    targets: Ints


def hold_out(sessions: NumberedSessions) -> HeldOut | None:
    """Set the last sessions aside; None where that leaves too few queries to tell one setting from another."""
    first = len(sessions) - int(SHARE * len(sessions))
    items, offsets = sessions.items, sessions.offsets
    later = Sessions(items, offsets[first:]).prefixes()
    if len(later) < FEWEST_QUERIES:
        return None
    asked = later[np.linspace(0, len(later) - 1, min(len(later), MOST_QUERIES)).astype(np.int64)]
    training = NumberedSessions(sessions.item_ids, items[: int(offsets[first])], offsets[: first + 1])
    queries = SessionQueries(np.arange(len(asked)), asked.items, asked.starts, asked.ends)
    return HeldOut(training, queries, asked.next_items)


def choose(
    starts: Mapping[str, float],
    ladders: Mapping[str, tuple[float, ...]],
    judge: Callable[[Mapping[str, float]], Floats],
) -> dict[str, float]:
    """Return settings: those of ``starts``, which are on the ladders, where nothing gains anything to speak of.

    ``judge`` returns what every query is worth under some settings.
    """
    chosen = dict(starts)
    if not ladders:
        return chosen
    gains = judge(chosen)
    for _ in range(ROUNDS):
        before = dict(chosen)
        for name, ladder in ladders.items():
            value, found = _climb(chosen, name, ladder, gains, judge)
            gain = found - gains
            if gain.mean() > gain.std() / np.sqrt(len(gain)):
                chosen[name], gains = value, found
        if chosen == before:
            break
    return chosen


def _climb(
    chosen: Mapping[str, float],
    name: str,
    ladder: tuple[float, ...],
    gains: Floats,
    judge: Callable[[Mapping[str, float]], Floats],
) -> tuple[float, Floats]:
    """Move a setting up its ladder, and down, as long as that gains anything; return the better end."""
    ends = [(chosen[name], gains)]
    for rungs in (ladder, ladder[::-1]):
        value, best = ends[0]
        for rung in rungs[rungs.index(value) + 1 :]:
            tried = judge({**chosen, name: rung})
            if tried.mean() <= best.mean():
                break
            value, best = rung, tried
        ends.append((value, best))
    return max(ends, key=lambda end: float(end[1].mean()))
