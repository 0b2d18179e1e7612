"""Sessions from a log of events, and parts of a log to learn from and to test on."""

from __future__ import annotations

from datetime import timedelta
from numbers import Real
from typing import Any, Literal, cast

import numpy as np

from slatewise.core import rules
from slatewise.core.ids import check_ids
from slatewise.data.records import Sessions
from slatewise.data.session_forms import seconds_of

HALF_AN_HOUR = 1800.0


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
