"""Sessions, pairs, and Last.fm's listeners, artists and tags."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from slatewise.data._source import open_source
from slatewise.data.pairs import read_pairs
from slatewise.data.sessions import read_sessions
from slatewise.datasets.records import About, PairSet, SessionSet, TaggedListeningSet

if TYPE_CHECKING:
    from slatewise.data.records import Int


def load_sessions(
    about: About, folder: Path, train: str = "train_sessions.txt.gz", test: str = "test_sessions.txt.gz"
) -> SessionSet:
    """Load sessions, one a line."""
    read = (read_sessions(folder / name, delimiter=",") for name in (train, test))
    return SessionSet(about, *read)


def load_bigrams(about: About, folder: Path) -> PairSet:
    """Load pairs of a song and the one that follows it in a playlist."""
    return PairSet(about, read_pairs(folder / "aotm-bigrams.csv.gz", delimiter=",", header=False))


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


def _numbers(path: Path) -> Int:
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
