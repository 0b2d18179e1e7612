"""What the tables of sessions run on: sessions to learn from, some of them for validation, and later ones to test on.

Items are numbered by the sessions to learn from; test sessions are restricted to these items, which leaves published
splits as they are. Validation sessions are the last twentieth of the training sessions (where a set is dealt at random,
a random twentieth of all), restricted in the same way to what is left to learn from.

*Measures.* What lists of next items are worth: places, figures of every query, and intervals that count sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise import data, datasets
from slatewise.core.arrays import Bools, Floats, Ints
from slatewise.data.records import Prefixes, Sessions
from slatewise.datasets.records import PairSet, SessionSet

PUBLISHED = {name: f"{name}_sessions" for name in ("diginetica", "tmall", "nowplaying")}
LASTFM = "lastfm1k"
PLAYLISTS = "aotm"
"""Pieces of playlists, no default was set on them: run by name alone."""
VALIDATION_SHARE, TEST_SHARE = 0.05, 0.2
MOST_VALIDATION = 10_000
"""Prefixes that settings are judged by, evenly spaced; about as many are enough to tell 1% of NDCG@20."""
MOST_TEST = 60_000
"""Prefixes of Last.fm's test sessions, about: evenly spaced sessions."""
QUICK_TRAIN, QUICK_TEST = 1500, 100


@dataclass(frozen=True, eq=False)
class Part:
    """Sessions to learn from, and beginnings of others to ask for the next item."""

    log: Sessions
    questions: Prefixes


@dataclass(frozen=True, eq=False)
class SessionProblem:
    """A split of a set of sessions; items are numbers below ``n_items``."""

    name: str
    n_items: int
    train: Sessions
    held: Bools
    """Which of the training sessions are for validation."""
    test: Sessions
    item_differs: bool = False
    """Whether the next item is never the last one: prefixes where it is are left out, and that item is not ranked."""

    @cached_property
    def validation(self) -> Part:
        """Return what settings are judged by."""
        log = self.train[~self.held]
        questions = self._questions(_restricted(self.train[self.held], _seen(log, self.n_items)))
        return Part(
            log, questions[np.linspace(0, len(questions) - 1, min(len(questions), MOST_VALIDATION)).astype(np.int64)]
        )

    @cached_property
    def testing(self) -> Part:
        """Return what the table is made of."""
        return Part(self.train, self._questions(self.test))

    def _questions(self, sessions: Sessions) -> Prefixes:
        prefixes = sessions.prefixes()
        return prefixes[prefixes.next_items != prefixes.items[prefixes.ends - 1]] if self.item_differs else prefixes


def load_problems(name: str, seed: int, quick: bool = False) -> Iterator[SessionProblem]:
    """Load a published split, both of Last.fm, or playlists or a file of sessions, whose last fifth is the test."""
    if name in PUBLISHED:
        both = datasets.load(PUBLISHED[name], SessionSet)
        yield _last(name, both.train, both.test, quick)
    elif name == LASTFM:
        both = datasets.load("lastfm1k_artist_sessions", SessionSet)
        yield _dealt(f"{name}, dealt at random", _together(both.train, both.test), seed, quick)
        yield _last(f"{name}, later part", both.train, both.test, quick, item_differs=True)
    elif name == PLAYLISTS:
        pairs = datasets.load("aotm_bigrams", PairSet).pairs
        sessions = _chained(pairs.queries, pairs.items)
        first = len(sessions) - int(TEST_SHARE * len(sessions))
        yield _last(name, sessions[:first], sessions[first:], quick)
    elif Path(name).exists():
        sessions = data.read_sessions(name)
        first = len(sessions) - int(TEST_SHARE * len(sessions))
        yield _last(name, sessions[:first], sessions[first:], quick)
    else:
        known = ", ".join((*PUBLISHED, LASTFM, PLAYLISTS))
        raise ValueError(f"data: expected {known}, or a file of sessions, found {name!r}")


def _chained(items: NDArray[Any], next_items: NDArray[Any]) -> Sessions:
    """Put pairs of an item and the next together where each begins with what the one before ends with.

    Examples
    --------
    >>> chained = _chained(np.array(["a", "b", "d"]), np.array(["b", "c", "a"]))
    >>> chained.items.tolist(), chained.offsets.tolist()
    ([0, 1, 2, 3, 0], [0, 3, 5])
    """
    numbers = np.unique(np.concatenate([items, next_items]), return_inverse=True)[1]
    one, other = numbers[: len(items)], numbers[len(items) :]
    first = np.flatnonzero(np.append(True, one[1:] != other[:-1]))
    runs = np.split(np.column_stack([one, other]), first[1:])
    return Sessions.of([[*run[:, 0].tolist(), int(run[-1, 1])] for run in runs])


def _last(name: str, train: Sessions, test: Sessions, quick: bool, item_differs: bool = False) -> SessionProblem:
    held = np.arange(len(train)) >= len(train) - max(1, int(VALIDATION_SHARE * len(train)))
    return _numbered(name, train, held, test, quick, item_differs)


def _dealt(name: str, sessions: Sessions, seed: int, quick: bool) -> SessionProblem:
    draw = np.random.default_rng(seed).random(len(sessions))
    training = draw >= TEST_SHARE
    held = draw[training] < TEST_SHARE + VALIDATION_SHARE
    return _numbered(name, sessions[training], held, sessions[~training], quick, item_differs=True)


def _numbered(
    name: str, train: Sessions, held: Bools, test: Sessions, quick: bool, item_differs: bool
) -> SessionProblem:
    if quick:
        few = np.linspace(0, len(train) - 1, min(len(train), QUICK_TRAIN)).astype(np.int64)
        train, held, test = train[few], held[few], test[:QUICK_TEST]
    if item_differs:
        test = test[np.arange(0, len(test), max(1, round(len(test.prefixes()) / MOST_TEST)))]
    item_ids, numbers = np.unique(train.items[train.offsets[0] : train.offsets[-1]], return_inverse=True)
    places = np.searchsorted(item_ids, test.items)
    known = item_ids[np.minimum(places, len(item_ids) - 1)] == test.items
    numbered = Sessions(np.where(known, places, len(item_ids)), test.offsets)
    training = Sessions(numbers.astype(np.int64), train.offsets - train.offsets[0])
    every = np.append(np.ones(len(item_ids), dtype=bool), False)
    return SessionProblem(name, len(item_ids), training, held, _restricted(numbered, every), item_differs)


def _seen(sessions: Sessions, n_items: int) -> Bools:
    seen = np.zeros(n_items, dtype=bool)
    seen[sessions.items[sessions.offsets[0] : sessions.offsets[-1]]] = True
    return seen


def _restricted(sessions: Sessions, known: Bools) -> Sessions:
    """Leave out items that are not known; a session may be left without any."""
    kept = known[sessions.items]
    before = np.concatenate(([0], np.cumsum(kept)))
    return Sessions(sessions.items[kept], before[sessions.offsets])


def _together(one: Sessions, other: Sessions) -> Sessions:
    return Sessions(
        np.concatenate([one.items, other.items]), np.concatenate([one.offsets, other.offsets[1:] + one.offsets[-1]])
    )


Rank: TypeAlias = Callable[[Prefixes], Ints]

DEPTH = 50
"""Places that figures look at."""
LISTED = DEPTH + 1
"""One more, because one may be taken out."""
RECALLS = (5, 10, 20, 30, 50)
FIGURES = (*(f"R@{k}" for k in RECALLS), "MRR@20")
AT_ONCE = 2048


def places_of(rank: Rank, questions: Prefixes, item_differs: bool) -> Ints:
    """Return how many items are ahead of each that came next, the last item of a session left out if need be."""
    places = np.full(len(questions), -1, dtype=np.int64)
    for first in range(0, len(questions), AT_ONCE):
        part = questions[first : first + AT_ONCE]
        lists = rank(part)
        rows, columns = np.nonzero(lists == part.next_items[:, None])
        if item_differs:
            left_out = lists == part.items[part.ends - 1][:, None]
            columns = columns - np.cumsum(left_out, axis=1)[rows, columns]
        places[first + rows] = np.where(columns < DEPTH, columns, -1)
    return places


def ndcg(places: Ints) -> float:
    """Return what settings are judged by: NDCG@20, which lies between recall and MRR."""
    near = places[(places >= 0) & (places < 20)]
    return float((1.0 / np.log2(near + 2.0)).sum() / len(places))


def figures_of(places: Ints) -> Floats:
    """Return every figure of every query, (queries, FIGURES).

    Examples
    --------
    >>> figures_of(np.array([0, 7, -1]))[:, [0, 1, -1]].tolist()
    [[1.0, 1.0, 1.0], [0.0, 1.0, 0.125], [0.0, 0.0, 0.0]]
    """
    ahead = np.where(places < 0, DEPTH, places)
    found = [(ahead < k).astype(np.float64) for k in RECALLS]
    return np.stack([*found, np.where(ahead < 20, 1.0 / (1.0 + ahead), 0.0)], axis=1)
