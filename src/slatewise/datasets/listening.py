"""Sessions, pairs, readers of tagged articles, and Last.fm's listeners, artists and tags."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from slatewise.core.arrays import Ints
from slatewise.data.pairs import read_pairs
from slatewise.data.reading import open_source
from slatewise.data.records import Pairs
from slatewise.data.sessions import read_sessions
from slatewise.datasets.records import About, PairSet, SessionSet, TaggedListeningSet, TaggedPairSet


def load_sessions(
    about: About, folder: Path, train: str = "train_sessions.txt.gz", test: str = "test_sessions.txt.gz"
) -> SessionSet:
    """Load sessions, one a line."""
    read = (read_sessions(folder / name, delimiter=",") for name in (train, test))
    return SessionSet(about, *read)


def load_bigrams(about: About, folder: Path) -> PairSet:
    """Load pairs of a song and the one that follows it in a playlist."""
    return PairSet(about, read_pairs(folder / "aotm-bigrams.csv.gz", delimiter=",", header=False))


def load_citeulike(about: About, folder: Path) -> TaggedPairSet:
    """Load readers and articles: a line is a set of numbers after their count, of articles or of tags."""
    users, items = _counted_sets(folder / "users.dat.gz")
    articles, tags = _counted_sets(folder / "item-tag.dat.gz")
    item_tags = csr_array((np.ones(len(tags), dtype=np.float64), (articles, tags)))
    return TaggedPairSet(about, Pairs(users, items), item_tags)


def _counted_sets(path: Path) -> tuple[Ints, Ints]:
    with open_source(path) as source:
        sets = [np.array(line.split()[1:], dtype=np.int64) for _, line in source.lines()]
    return np.repeat(np.arange(len(sets)), [len(one) for one in sets]), np.concatenate(sets)


def load_hetrec(about: About, folder: Path) -> TaggedListeningSet:
    """Load the five tables; artists are in UTF-8, tags in Latin-1."""
    listens = read_pairs(
        folder / "user_artists.dat.gz", columns=("userID", "artistID"), weight="weight", delimiter="\t", header=True
    )
    return TaggedListeningSet(
        about,
        listens,
        _numbers(folder / "user_taggedartists.dat.gz"),
        _numbers(folder / "user_friends.dat.gz"),
        _names(folder / "artists.dat.gz", "utf-8"),
        _names(folder / "tags.dat.gz", "latin-1"),
    )


def _numbers(path: Path) -> Ints:
    with open_source(path) as source:
        lines = [line for number, line in source.text_lines() if number > 1]
    return np.loadtxt(lines, delimiter="\t", dtype=np.int64, ndmin=2)


def _names(path: Path, encoding: str) -> dict[int, str]:
    names: dict[int, str] = {}
    with open_source(path) as source:
        for number, line in source.lines():
            if number > 1:
                key, _, name = line.partition(b"\t")
                names[int(key)] = name.decode(encoding)
    return names
