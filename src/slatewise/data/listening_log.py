"""Listening logs as Last.fm-1K has them: one play per line, its listener, time, artist and track between tabs.

    userid <tab> timestamp <tab> artist id <tab> artist name <tab> track id <tab> track name

An artist is known by the id or, where that is empty, by the name. The day of a play decides on which side of a split it
falls, as in Weston and Blitzer (2012): one day in five is for testing.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from slatewise.core.arrays import Ints
from slatewise.core.errors import Skipped
from slatewise.data.reading import MAX_LINE, Line, OnError, PathOrFile, Problems, open_source, parse_lines, text_reader
from slatewise.data.records import Pairs

_DAY = 24 * 60 * 60
_FIELDS = 6


@dataclass(frozen=True, eq=False)
class ListeningLog:
    """Plays by listener and time: listener ``users[i]`` played artist ``artists[i]`` at ``seconds[i]`` since 1970."""

    users: Ints
    seconds: Ints
    artists: Ints
    artist_names: tuple[str, ...]
    """Name of artist number i, or its id where it has no name."""
    skipped: Skipped = field(default_factory=Skipped)

    def split_by_day(self, every: int = 5) -> tuple[Pairs, Pairs]:
        """Return (artist, next artist) pairs for training, and pairs of every n-th day for testing.

        Two plays in a row by one listener are a pair unless they are of the same artist. Days are UTC's, counted from
        1970; a pair across the border of the two parts is in neither, so the parts share no play.

        Examples
        --------
        >>> seconds = np.array([0, 60, 4 * 86400, 4 * 86400 + 60])
        >>> log = ListeningLog(np.zeros(4, int), seconds, np.array([0, 1, 1, 0]), ("a", "b"))
        >>> train, test = log.split_by_day()
        >>> train.queries.tolist(), train.items.tolist(), test.queries.tolist(), test.items.tolist()
        ([0], [1], [1], [0])
        """
        if every < 2:
            raise ValueError(f"every: expected a whole number >= 2, found {every}")
        held_out = self.seconds // _DAY % every == every - 1
        pair = (self.users[:-1] == self.users[1:]) & (self.artists[:-1] != self.artists[1:])
        pair &= held_out[:-1] == held_out[1:]
        parts = (pair & ~held_out[:-1], pair & held_out[:-1])
        train, test = (Pairs(self.artists[:-1][chosen], self.artists[1:][chosen]) for chosen in parts)
        return train, test


@text_reader
def read_listening_log(path: PathOrFile, *, on_error: OnError = "raise", max_line: int = MAX_LINE) -> ListeningLog:
    r"""Read plays; of plays at the same second the later line is the earlier play, as in a log of latest plays first.

    Examples
    --------
    >>> from io import BytesIO
    >>> text = b"u1\t2009-05-04T23:08:57Z\tm1\tDeep Dish\t\tFlashdance\nu1\t2009-05-04T23:00:00Z\t\tBoy\tt\tx\n"
    >>> log = read_listening_log(BytesIO(text))
    >>> [log.artist_names[artist] for artist in log.artists]
    ['Boy', 'Deep Dish']
    """
    problems = Problems(on_error)
    users, seconds, artists = array("q"), array("q"), array("q")
    user_numbers: dict[str, int] = {}
    artist_numbers: dict[tuple[str, str], int] = {}
    names: list[str] = []
    with open_source(path, max_line) as source:
        for user, time, key, name in parse_lines(source, source.lines(), problems, _play):
            users.append(user_numbers.setdefault(user, len(user_numbers)))
            seconds.append(time)
            artists.append(artist_numbers.setdefault(key, len(names)))
            if artists[-1] == len(names):
                names.append(name)
    columns = [
        np.frombuffer(part, dtype=np.int64)[::-1] if part else np.empty(0, np.int64) for part in (users, seconds)
    ]
    order = np.lexsort((columns[1], columns[0]))
    played = np.frombuffer(artists, dtype=np.int64)[::-1] if artists else np.empty(0, np.int64)
    return ListeningLog(columns[0][order], columns[1][order], played[order], tuple(names), problems.report())


def _play(line: Line) -> tuple[str, int, tuple[str, str], str]:
    """Return the listener, the second, what the artist is known by, and the artist's name."""
    fields = line.text.split("\t")
    if len(fields) != _FIELDS:
        raise line.fault(len(line.text), f"{_FIELDS} fields between tabs", f"{len(fields)}")
    user, stamp, artist, name = fields[:4]
    if not user:
        raise line.fault(0, "a listener", "an empty field")
    try:
        time = datetime.fromisoformat(stamp)
    except ValueError:
        raise line.fault(len(user) + 1, "a time such as 2009-05-04T23:08:57Z", repr(stamp)) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    if not artist and not name:
        raise line.fault(len(user) + len(stamp) + 2, "an artist's id or name", "two empty fields")
    return user, int(time.timestamp()), ("id", artist) if artist else ("name", name), name or artist
