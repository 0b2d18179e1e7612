"""What the music tables run on: (artist, next artist) pairs in three parts, artists numbered.

Sessions are pooled and cut at random by a seed: a fifth of them for testing, a few for validation, the rest to learn
from. A listening log (the paper's own file) is cut by days instead. Test and validation pairs whose artists are
not in training pairs are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slatewise import data, datasets
from slatewise.core.arrays import Ints
from slatewise.data.records import Pairs, Sessions
from slatewise.datasets.records import SessionSet

TEST_SHARE, VALIDATION_SHARE, MOST_VALIDATION = 0.2, 0.03, 500_000
GENERATED = "generated"
GENERATED_ARTISTS, GENERATED_SESSIONS = 186_250, 1_390_000
"""Chosen so that about the paper's 176,948 artists and 5.4 million pairs are left to learn from."""
QUICK_ARTISTS, QUICK_PAIRS = 200, 6000
_LOGS = (".tsv", ".tsv.gz", ".tsv.xz")


@dataclass(frozen=True, eq=False)
class ArtistPairs:
    """Two numbers below ``n_artists`` a pair."""

    queries: Ints
    items: Ints

    def __len__(self) -> int:
        return len(self.queries)

    def of(self, chosen: NDArray[np.bool_]) -> ArtistPairs:
        """Return some of the pairs."""
        return ArtistPairs(self.queries[chosen], self.items[chosen])


@dataclass(frozen=True, eq=False)
class MusicProblem:
    """Which artist comes next, in three parts."""

    name: str
    n_artists: int
    train: ArtistPairs
    validation: ArtistPairs
    test: ArtistPairs
    names: tuple[str, ...]
    """Of the artists; their ids where a source has no names."""

    @property
    def known(self) -> ArtistPairs:
        """All pairs but those of the test: what a method learns from once its settings are chosen."""
        return ArtistPairs(
            np.concatenate([self.train.queries, self.validation.queries]),
            np.concatenate([self.train.items, self.validation.items]),
        )

    def smaller(self) -> MusicProblem:
        """Return a few pairs of the most frequent artists: enough to see every part at work."""
        often = np.bincount(self.train.queries, minlength=self.n_artists)
        frequent = np.zeros(self.n_artists, dtype=bool)
        frequent[np.argsort(-often, kind="stable")[:QUICK_ARTISTS]] = True
        parts: list[ArtistPairs] = []
        for part in (self.train, self.validation, self.test):
            known = part.of(frequent[part.queries] & frequent[part.items])
            parts.append(ArtistPairs(known.queries[:QUICK_PAIRS], known.items[:QUICK_PAIRS]))
        return _problem(self.name, self.names, parts[0], parts[1], parts[2])


def load_music(name: str, seed: int) -> MusicProblem:
    """Load a data set of sessions by name, a file of sessions, or a listening log."""
    path = Path(name)
    if path.name.endswith(_LOGS):
        return of_log(name, data.read_listening_log(path, on_error="skip"), seed)
    if path.exists():
        return of_sessions(name, data.read_sessions(path), seed)
    both = datasets.load(name, SessionSet)
    items = np.concatenate([both.train.items, both.test.items])
    offsets = np.concatenate([both.train.offsets, both.test.offsets[1:] + both.train.offsets[-1]])
    return of_sessions(name, Sessions(items, offsets), seed)


def generated_music(n_sessions: int, n_artists: int, seed: int) -> MusicProblem:
    """Draw sessions with clusters, partners and a few popular artists."""
    clusters = max(4, int(np.sqrt(n_artists)) // 2)
    made = datasets.make_sessions(n_sessions, n_artists, n_clusters=clusters, random_state=seed)
    return of_sessions(GENERATED, made.sessions, seed)


def of_sessions(name: str, sessions: Sessions, seed: int) -> MusicProblem:
    """Cut sessions into parts."""
    draw = np.random.default_rng(seed).random(len(sessions))
    part = np.repeat(np.digitize(draw, (TEST_SHARE, TEST_SHARE + VALIDATION_SHARE)), np.diff(sessions.offsets))
    known, numbers = np.unique(sessions.items, return_inverse=True)
    pairs = Sessions(numbers.astype(np.int64), sessions.offsets).pairs()
    # A pair is inside one session, so it has the part of its first artist.
    parts = Sessions(part.astype(np.int64), sessions.offsets).pairs().queries
    test, validation, train = (_of(pairs, parts == number) for number in range(3))
    return _problem(name, tuple(str(one) for one in known.tolist()), train, validation, test)


def of_log(name: str, log: data.ListeningLog, seed: int) -> MusicProblem:
    """Cut a listening log by days, as the paper does; validation pairs are drawn from the training days."""
    days, test = log.split_by_day()
    rng = np.random.default_rng(seed)
    held = np.zeros(len(days.queries), dtype=bool)
    held[rng.permutation(len(held))[: min(MOST_VALIDATION, len(held) // 12)]] = True
    everything = np.ones(len(test.queries), dtype=bool)
    return _problem(name, log.artist_names, _of(days, ~held), _of(days, held), _of(test, everything))


def _of(pairs: Pairs, chosen: NDArray[np.bool_]) -> ArtistPairs:
    return ArtistPairs(pairs.queries[chosen], pairs.items[chosen])


def _problem(
    name: str, names: tuple[str, ...], train: ArtistPairs, validation: ArtistPairs, test: ArtistPairs
) -> MusicProblem:
    """Number the artists of the training pairs anew, and leave pairs of others out."""
    is_query, is_item = np.zeros((2, len(names)), dtype=bool)
    is_query[train.queries], is_item[train.items] = True, True
    numbered = np.flatnonzero(is_query | is_item)
    number = np.full(len(names), -1, dtype=np.int64)
    number[numbered] = np.arange(len(numbered))
    parts: list[ArtistPairs] = []
    for part in (train, validation, test):
        known = part.of(is_query[part.queries] & is_item[part.items])
        parts.append(ArtistPairs(number[known.queries], number[known.items]))
    if not all(len(part) for part in parts):
        raise ValueError(f"{name}: expected enough pairs of known artists to learn from and to test on, found too few")
    return MusicProblem(name, len(numbered), parts[0], parts[1], parts[2], tuple(names[i] for i in numbered.tolist()))
