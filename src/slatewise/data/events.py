"""Files of events: one per line in a table with a header, who or in which session, which item, and when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from numbers import Real
from typing import Any, Literal, cast

import numpy as np

from slatewise.core import rules
from slatewise.core.arrays import Floats
from slatewise.core.errors import DataError
from slatewise.core.ids import check_ids
from slatewise.data.fields import Splitter, as_ids, check_delimiter, number
from slatewise.data.reading import (
    MAX_LINE,
    Line,
    OnError,
    PathOrFile,
    Problems,
    header_line,
    open_source,
    parse_lines,
    text_reader,
)
from slatewise.data.records import Sessions
from slatewise.data.sessions import grouped, seconds_of

HALF_AN_HOUR = 1800.0


@text_reader
def read_events(
    path: PathOrFile,
    *,
    session: str = "session",
    item: str = "item",
    time: str = "time",
    user: str = "user",
    gap: float = HALF_AN_HOUR,
    delimiter: str | None = None,
    on_error: OnError = "raise",
    max_line: int = MAX_LINE,
) -> Sessions:
    r"""Read a log of events as sessions; the first line names the columns, of which others may be there too.

    With a column of sessions, those are the sessions; items are in the order of their times, or of their lines where
    there are none. Without one, users and times make them (:func:`slatewise.data.sessions_from_events`).

    Parameters
    ----------
    session, item, time, user : str
        What the columns are called. Times are numbers, or dates as in 2024-05-01T12:00:00Z (without a zone: UTC), which
        become seconds; a file has either.
    gap : float
        The longest pause within a session, in the unit of the times; only where no column says what the sessions are.
    delimiter : {"\\t", ",", ";", "|", " "}, optional
        By default tab, comma or semicolon, whichever comes first in that order in the first line, otherwise blanks.

    Examples
    --------
    >>> from io import BytesIO
    >>> text = b"time,user,item\n0,u,tea\n60,u,milk\n9000,u,ink\n30,v,pen\n"
    >>> sessions = read_events(BytesIO(text))
    >>> [items.tolist() for items in sessions], sessions.users.tolist()
    ([['tea', 'milk'], ['pen'], ['ink']], ['u', 'v', 'u'])
    >>> [items.tolist() for items in read_events(BytesIO(b"session,item\n7,tea\n8,pen\n7,milk\n"))]
    [['tea', 'milk'], ['pen']]
    """
    check_delimiter(delimiter)
    problems = Problems(on_error)
    with open_source(path, max_line) as source:
        lines = source.lines()
        head = header_line(source, lines)
        parser = _Parser(head, Splitter.of(delimiter, head), session, item, time, user)
        rows = list(parse_lines(source, lines, problems, parser.parse))
    if not rows:
        raise DataError(head.name, head.number + 1, 1, "at least one event", "none")
    ids = {name: as_ids([fields[place] for fields, _ in rows]) for place, name in enumerate(parser.columns)}
    times: Floats | None = np.array([when for _, when in rows]) if parser.has_times else None
    if session in ids:
        found = grouped(ids[session], ids[item], times, ids.get(user))
    else:
        found = sessions_from_events(ids[user], ids[item], times, gap)
    return Sessions(found.items, found.offsets, problems.report(), found.ids, found.users, found.times)


class _Parser:
    """Turns lines into ids, as texts, and a time."""

    def __init__(self, head: Line, splitter: Splitter, session: str, item: str, time: str, user: str) -> None:
        names = splitter.split(head)
        self._splitter, self._width = splitter, len(names)
        for name in (session, item, time, user):
            if names.count(name) > 1:
                raise head.fault(0, f"one column called {name!r}", f"{names.count(name)}")
        wanted = [name for name in (session, user, item) if name in names]
        self.has_times = time in names
        if item not in names or (session not in names and not (user in names and self.has_times)):
            expected = f"columns called {item!r}, and {session!r} or {user!r} and {time!r}"
            raise head.fault(0, expected, f"the columns {', '.join(map(repr, names))}")
        self.columns: Sequence[str] = wanted
        self._places = [names.index(name) for name in wanted]
        self._time = names.index(time) if self.has_times else None
        self._dates: bool | None = None

    def parse(self, line: Line) -> tuple[list[str], float]:
        """Return the ids wanted, and the time, 0 where there is none."""
        fields = self._splitter.split(line, self._width)
        for place in self._places:
            self._splitter.check_id(line, place, fields[place])
        when = 0.0 if self._time is None else self._seconds(line, self._time, fields[self._time])
        return [fields[place] for place in self._places], when

    def _seconds(self, line: Line, place: int, text: str) -> float:
        """Return a time; the first good one of a file tells numbers from dates."""
        value, is_date = number(text), False
        if value is None and self._dates is not False:
            value, is_date = _of_date(text), True
        if value is None or (self._dates and not is_date):
            kinds = {None: "a number, or a date such as 2024-05-01T12:00:00Z", True: "a date", False: "a finite number"}
            raise self._splitter.fault(line, place, kinds[self._dates], repr(text))
        self._dates = is_date
        return value


def _of_date(text: str) -> float | None:
    """Return the seconds since 1970 of a date, or None."""
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()


def sessions_from_events(
    user: Any, item: Any, time: Any, gap: float | timedelta | np.timedelta64 = HALF_AN_HOUR
) -> Sessions:
    """Cut a log into sessions: a user's events until nothing happens for longer than ``gap``.

    Parameters
    ----------
    user, item
        Ids, one per event, in any order: arrays, lists or columns of a frame.
    time
        When each event happened: numbers in any unit, or dates, which are taken as seconds. Events of a user at the
        same time keep their order.
    gap
        The longest pause within a session, in the unit of ``time``; or a timedelta, of dates and seconds. Infinity
        makes one session of each user.

    Returns
    -------
    Sessions
        In the order of their first events, with ``users`` (one per session) and ``times`` (one per item).

    Examples
    --------
    >>> sessions = sessions_from_events(["u", "v", "u", "u"], [7, 8, 9, 7], [0, 10, 60, 9999], gap=1800)
    >>> [items.tolist() for items in sessions], sessions.users.tolist()
    ([[7, 9], [8], [7]], ['u', 'v', 'u'])
    """
    users, items, times = check_ids("user", user), check_ids("item", item), seconds_of("time", time)
    for name, values in (("item", items), ("time", times)):
        if len(values) != len(users):
            raise ValueError(f"{name}: expected one per event, {len(users)}, found {len(values)}")
    pause = _seconds(gap)
    order = np.lexsort((times, users))
    users, items, times = users[order], items[order], times[order]
    new = np.ones(len(users), dtype=bool)
    new[1:] = (users[1:] != users[:-1]) | (times[1:] - times[:-1] > pause)
    firsts = np.flatnonzero(new)
    whole = Sessions(items, np.append(firsts, len(items)), users=users[firsts], times=times)
    return whole[np.argsort(times[firsts], kind="stable")]


def split_sessions(
    sessions: Any,
    by: Literal["time", "user", "session"] = "time",
    test: float = 0.2,
    random_state: int | np.random.Generator | None = 0,
) -> tuple[Sessions, Sessions]:
    """Return sessions to learn from and sessions to test on.

    Parameters
    ----------
    sessions
        In any form that :meth:`slatewise.data.Sessions.of` takes; with times or users, where these decide.
    by
        "time": the latest sessions are the test, each where its first event is; sessions that begin at the same time
        stay together. "user": all sessions of some users are. "session": some sessions are.
    test
        The share of sessions, or of users; at least one of them is on either side.
    random_state
        Which users or sessions; a time needs none.

    Examples
    --------
    >>> log = sessions_from_events([1, 1, 2, 3], ["a", "b", "a", "c"], [0, 5, 50, 99], gap=30)
    >>> train, test = split_sessions(log, test=0.3)
    >>> [items.tolist() for items in train], [items.tolist() for items in test]
    ([['a', 'b'], ['a']], [['c']])
    """
    if by not in ("time", "user", "session"):
        raise ValueError(f"by: expected 'time', 'user' or 'session', found {by!r}")
    if not isinstance(test, Real) or not 0 < test < 1:
        raise ValueError(f"test: expected a share between 0 and 1, found {test!r}")
    rules.SEED.check("random_state", random_state)
    sessions = Sessions.of(sessions)
    values = {"time": sessions.times, "user": sessions.users, "session": np.arange(len(sessions))}[by]
    if values is None:
        raise ValueError(f"sessions: expected {by}s, as sessions_from_events gives them, found none")
    if by == "time":
        if (np.diff(sessions.offsets) == 0).any():
            raise ValueError("sessions: expected an item in each, to know when it began, found one without")
        values = values[sessions.offsets[:-1]]
    groups, own = np.unique(values, return_inverse=True)
    if len(groups) < 2:
        raise ValueError(f"sessions: expected two {by}s at least, to split by, found {len(groups)}")
    if by == "time":
        wanted = np.searchsorted(np.sort(own), own, side="left") >= (1 - test) * len(own)
        in_test = (wanted | (own == len(groups) - 1)) & (own > 0)
    else:
        n_test = min(max(round(test * len(groups)), 1), len(groups) - 1)
        in_test = np.isin(own, np.random.default_rng(random_state).permutation(len(groups))[:n_test])
    return sessions[~in_test], sessions[in_test]


def _seconds(gap: Any) -> float:
    if isinstance(gap, timedelta):
        seconds = gap.total_seconds()
    elif isinstance(gap, np.timedelta64):
        unit, _ = np.datetime_data(cast("np.dtype[Any]", gap.dtype))
        seconds = np.nan if unit in ("Y", "M") else float(gap / np.timedelta64(1, "s"))  # how long is a month?
    else:
        seconds = float(gap) if not isinstance(gap, bool) and isinstance(gap, Real) else np.nan
    if not seconds >= 0:
        raise ValueError(f"gap: expected a number >= 0 or a timedelta, found {gap!r}")
    return seconds
