"""Files of events: one per line in a table with a header, who or in which session, which item, and when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.errors import DataError
from slatewise.data._delimited import Splitter, check_delimiter, check_id, guess_delimiter, splitter_for
from slatewise.data._lines import Line, header_line, parse_lines
from slatewise.data._source import MAX_LINE, OnError, PathOrFile, Problems, open_source
from slatewise.data._tokens import as_ids, number
from slatewise.data.records import Sessions
from slatewise.data.session_events import HALF_AN_HOUR, sessions_from_events
from slatewise.data.session_forms import grouped


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
    path : str, path or binary file
        Plain, gzip or xz.
    session, item, time, user : str
        What the columns are called. Times are numbers, or dates as in 2024-05-01T12:00:00Z (without a zone: UTC), which
        become seconds; a file has either.
    gap : float
        The longest pause within a session, in the unit of the times; only where no column says what the sessions are.
    delimiter : {"\\t", ",", ";", "|", " "}, optional
        By default tab, comma or semicolon, whichever comes first in that order in the first line, otherwise blanks.
    on_error : {"raise", "skip"}
        Whether a bad line stops the reading, or is left out and counted in ``skipped``. A bad header always stops it.
    max_line : int
        Most bytes a line may have; a longer one stops the reading, whatever ``on_error`` says.

    Raises
    ------
    DataError
        At the first bad line, with file:line:column and what was expected.

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
        splitter = splitter_for(delimiter or guess_delimiter(head.text) or " ")
        parser = _Parser(head, splitter, session, item, time, user)
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
        fields = self._splitter.split(line)
        if len(fields) != self._width:
            offset = self._splitter.offset(line, self._width)
            raise line.fault(offset, f"{self._width} fields as in the first line", f"{len(fields)}")
        for place in self._places:
            check_id(self._splitter, line, place, fields[place])
        when = 0.0 if self._time is None else self._seconds(line, self._time, fields[self._time])
        return [fields[place] for place in self._places], when

    def _seconds(self, line: Line, place: int, text: str) -> float:
        """Return a time; the first good one of a file tells numbers from dates."""
        value, is_date = number(text), False
        if value is None and self._dates is not False:
            value, is_date = _of_date(text), True
        if value is None or (self._dates and not is_date):
            kinds = {None: "a number, or a date such as 2024-05-01T12:00:00Z", True: "a date", False: "a finite number"}
            raise line.fault(self._splitter.offset(line, place), kinds[self._dates], repr(text))
        self._dates = is_date
        return value


def _of_date(text: str) -> float | None:
    """Return the seconds since 1970 of a date, or None."""
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
