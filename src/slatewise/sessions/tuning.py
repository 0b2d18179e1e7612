"""Settings that a model of sessions finds by itself: tried on the last sessions, which it does not learn from.

Every beginning of those sessions is a query whose target is the next item. It gains ``1 / log2(rank + 1)`` if the
target is among the first 20 (NDCG@20), else nothing. One setting after the other moves along its ladder while the mean
gain rises, and stays there if it rose by more than a standard error; a second round looks again. The last sessions, not
a random sample: a log goes on in time, and so will the queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.data.records import Sessions
from slatewise.recommend.histories import NumberedSessions, SessionQueries

SHARE, MOST_QUERIES, FEWEST_QUERIES = 0.05, 3000, 20
ROUNDS = 2
Values: TypeAlias = Mapping[str, float]
Measure: TypeAlias = Callable[[Values], Floats]
"""Returns the gain of every held-out query under some settings."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Sessions to learn from, and beginnings of later ones with their next items."""

    training: NumberedSessions
    queries: SessionQueries
    targets: Ints


def tune(
    estimator: object,
    sessions: NumberedSessions,
    starts: Values,
    ladders: Mapping[str, tuple[float, ...]],
    measure_of: Callable[[HeldOut], Measure],
) -> dict[str, float]:
    """Return the settings of an estimator, and the best values of those that are "auto".

    ``starts`` are values on the ladders: those of sessions that are too few to try anything, and of settings whose
    other values gain nothing to speak of.
    """
    given = given_settings(estimator, starts)
    chosen = {**starts, **given}
    open_ladders = {name: ladder for name, ladder in ladders.items() if name not in given}
    held = _hold_out(sessions) if open_ladders else None
    if held is None:
        return chosen
    measure = measure_of(held)
    gains = measure(chosen)
    for _ in range(ROUNDS):
        before = dict(chosen)
        for name, ladder in open_ladders.items():
            value, found = _climb(chosen, name, ladder, gains, measure)
            gain = found - gains
            if gain.mean() > gain.std() / np.sqrt(len(gain)):
                chosen[name], gains = value, found
        if chosen == before:
            break
    return chosen


def given_settings(estimator: object, names: Iterable[str]) -> dict[str, float]:
    """Return those parameters that are not "auto"; None is infinity."""
    values = {name: getattr(estimator, name) for name in names}
    numbers = {name: math.inf if value is None else value for name, value in values.items()}
    return {name: float(value) for name, value in numbers.items() if value != "auto"}


def learned_settings(estimator: object, names: Iterable[str]) -> dict[str, float]:
    """Return settings as fit found them; an infinite one has no learned attribute."""
    return {name: getattr(estimator, f"{name}_", math.inf) for name in names}


def keep_settings(estimator: object, chosen: Values) -> None:
    """Set learned attributes to settings that are finite, and remove the others."""
    for name, value in chosen.items():
        vars(estimator).pop(f"{name}_", None)
        if value != math.inf:
            setattr(estimator, f"{name}_", value)


def next_items(sessions: Sessions, most: int) -> tuple[SessionQueries, Ints]:
    """Return beginnings of sessions, at most this number, evenly spread, and the item that follows each."""
    prefixes = sessions.prefixes()
    if len(prefixes):
        prefixes = prefixes[np.linspace(0, len(prefixes) - 1, min(len(prefixes), most)).astype(np.int64)]
    queries = SessionQueries(np.arange(len(prefixes)), prefixes.items, prefixes.starts, prefixes.ends)
    return queries, prefixes.next_items


def _hold_out(sessions: NumberedSessions) -> HeldOut | None:
    """Hold the last sessions out; None if they have too few queries to tell one setting from another."""
    first = len(sessions) - int(SHARE * len(sessions))
    items, offsets = sessions.items, sessions.offsets
    queries, targets = next_items(Sessions(items, offsets[first:]), MOST_QUERIES)
    if len(queries) < FEWEST_QUERIES:
        return None
    training = NumberedSessions(sessions.item_ids, items[: int(offsets[first])], offsets[: first + 1])
    return HeldOut(training, queries, targets)


def _climb(
    chosen: Values, name: str, ladder: tuple[float, ...], gains: Floats, measure: Measure
) -> tuple[float, Floats]:
    """Move a setting up its ladder, and down, as long as that gains anything; return the better end."""
    ends = [(chosen[name], gains)]
    for rungs in (ladder, ladder[::-1]):
        value, best = ends[0]
        for rung in rungs[rungs.index(value) + 1 :]:
            tried = measure({**chosen, name: rung})
            if tried.mean() <= best.mean():
                break
            value, best = rung, tried
        ends.append((value, best))
    return max(ends, key=lambda end: float(end[1].mean()))
