"""Sessions as people have them: lists, frames, events; and what is refused."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from slatewise.core.errors import DataError
from slatewise.data import Sessions, sessions_from_events, split_sessions

NAMED = [["milk", "bread"], [], ["tea"]]


def lists(sessions) -> list[list[int | str]]:
    return [items.tolist() for items in sessions]


@pytest.mark.parametrize(
    "given",
    [
        NAMED,
        tuple(tuple(row) for row in NAMED),
        [np.array(row, dtype=np.str_) for row in NAMED],
        np.array([np.array(row, dtype=object) for row in NAMED], dtype=object),
        polars.Series(NAMED),
        pandas.Series(NAMED),
        Sessions.of(NAMED),
    ],
)
def test_lists_of_lists_of_every_kind(given):
    assert lists(Sessions.of(given)) == NAMED


def test_arrays_with_offsets_and_a_matrix():
    assert lists(Sessions.of([4, 8, 15], [0, 1, 3])) == [[4], [8, 15]]
    assert lists(Sessions.of(np.array([[4, 8], [15, 16]]))) == [[4, 8], [15, 16]]
    assert lists(Sessions.of([])) == []


def test_a_set_has_no_order_so_its_items_ascend():
    assert lists(Sessions.of([{"tea", "milk", "bread"}])) == [["bread", "milk", "tea"]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([["a", 1]], "sessions: expected ids, all whole numbers or all strings, found int and str"),
        ([["a"], [1]], "sessions: expected ids, all whole numbers or all strings, found int and str"),
        ([np.array(["a"]), np.array([1])], "sessions: expected ids, all whole numbers or all strings"),
        ([[1.5]], "sessions: expected ids, all whole numbers or all strings, found dtype float64"),
        ([[1, None]], "sessions: expected ids, all whole numbers or all strings, found dtype object"),
        ([[1, np.nan]], "sessions: expected ids, all whole numbers or all strings, found dtype float64"),
        (["ab", "cd"], "sessions: expected a list of ids in each place, found str in place 0"),
        ([[1], 2], "sessions: expected a list of ids in each place, found int in place 1"),
        ([{1: 2}], "sessions: expected a list of ids in each place, found dict in place 0"),
        ("ab", "sessions: expected a list of lists of ids, found str"),
        (None, "sessions: expected a list of lists of ids, found NoneType"),
        (csr_array(np.eye(3)), "sessions: expected a list of lists of ids, found a sparse matrix, which has no order"),
        (7, "sessions: expected a list of lists of ids, found int"),
    ],
)
def test_what_is_no_list_of_lists_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Sessions.of(given)


@pytest.mark.parametrize("frames", [pandas, polars])
def test_a_frame_of_events(frames):
    columns = {"session": ["y", "x", "y", "x"], "item": [7, 8, 9, 6], "time": [3.0, 1.0, 2.0, 5.0]}
    ordered = Sessions.of(frames.DataFrame(columns))
    assert ordered.ids.tolist() == ["y", "x"]
    assert lists(ordered) == [[9, 7], [8, 6]]
    assert ordered.times.tolist() == [2.0, 3.0, 1.0, 5.0]
    other = frames.DataFrame({"visit": [1, 2, 1], "sku": ["a", "b", "c"], "who": ["u", "v", "u"]})
    named = Sessions.of(other, session="visit", item="sku", user="who")
    assert lists(named) == [["a", "c"], ["b"]]
    assert named.users.tolist() == ["u", "v"]
    with pytest.raises(DataError, match="expected a column called 'item', found the columns 'visit', 'sku', 'who'"):
        Sessions.of(other, session="visit")
    with pytest.raises(ValueError, match="user: expected one per session, found two in session 1, row 2"):
        Sessions.of(frames.DataFrame({"session": [1, 2, 1], "item": [1, 1, 1], "user": [1, 1, 2]}))


def test_parts_keep_what_belongs_to_them():
    log = sessions_from_events([1, 1, 2, 3], [7, 8, 9, 7], [0, 5, 50, 99], gap=30)
    for part in (log[1:], log[[1, 2]], log[np.array([False, True, True])]):
        assert lists(part) == [[9], [7]]
        assert part.users.tolist() == [2, 3]
    swapped = log[[2, 0]]
    assert (lists(swapped), swapped.times.tolist()) == ([[7], [7, 8]], [99, 0, 5])


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=6), st.integers(1, 4), st.booleans())
def test_prefixes_are_all_beginnings(sessions, window, cut):
    given = Sessions.of(sessions)
    prefixes = given.prefixes(window if cut else None)
    expected = [
        (number, items[max(0, end - window) if cut else 0 : end], items[end])
        for number, items in enumerate(sessions)
        for end in range(1, len(items))
    ]
    assert len(prefixes) == len(expected)
    found = zip(prefixes.sessions.tolist(), lists(prefixes), prefixes.next_items.tolist(), strict=True)
    assert list(found) == expected


def test_prefixes_of_a_million_items_take_no_memory_worth_the_name():
    prefixes = Sessions.of(np.zeros(1_000_000, dtype=np.int64), [0, 1_000_000]).prefixes()
    assert len(prefixes) == 999_999
    assert prefixes.ends[-1] == 999_999
    with pytest.raises(ValueError, match="window: expected a whole number >= 1, found 0"):
        Sessions.of([[1, 2]]).prefixes(0)


# --- logs ------------------------------------------------------------------------------------------------------------


def by_hand(events, gap):
    """Sessions of (user, time, item), in the order of their first events."""
    made: list[list[tuple]] = []
    for event in sorted(events, key=lambda event: (event[0], event[1])):
        same = made and made[-1][-1][0] == event[0] and event[1] - made[-1][-1][1] <= gap
        if same:
            made[-1].append(event)
        else:
            made.append([event])
    return [[item for _, _, item in session] for session in sorted(made, key=lambda session: session[0][1])]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 4)), min_size=1), st.integers(0, 9))
def test_sessions_of_a_log(events, gap):
    user, time, item = zip(*events, strict=True)
    assert lists(sessions_from_events(user, item, time, gap)) == by_hand(events, gap)


@pytest.mark.parametrize("gap", [1800, timedelta(minutes=30), np.timedelta64(30, "m")])
def test_dates_are_seconds(gap):
    start = datetime(2024, 5, 1, 12, tzinfo=UTC)
    when = [start, start + timedelta(minutes=30), start + timedelta(minutes=61)]
    dates = [np.array([date.replace(tzinfo=None) for date in when], dtype="datetime64[ns]"), when]
    frames = [pandas.Series(when), pandas.Series(dates[0]), polars.Series(dates[0])]
    for time in (*dates, *frames):
        assert lists(sessions_from_events(["u"] * 3, ["a", "b", "c"], time, gap)) == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": [0.0, np.nan]}, r"time: expected a time in every row, found nan in row 1 \(1 such\)"),
        ({"time": [0.0, np.inf]}, "time: expected a time in every row, found inf in row 1"),
        ({"time": np.array(["2024-01-01", "NaT"], dtype="datetime64[s]")}, "found NaT in row 1"),
        ({"time": ["1", "2"]}, "time: expected numbers or times, found dtype <U1"),
        ({"time": [0, None]}, "time: expected numbers or times in every row, found None in row 1"),
        ({"time": None}, r"time: expected a number or a time per row, found shape \(\)"),
        ({"time": [pandas.Timestamp(2024, 1, 1), pandas.NaT]}, "time: expected .* in every row, found NaT in row 1"),
        (
            {"time": [datetime(2024, 1, 1, tzinfo=UTC), 7]},
            "time: expected numbers or times in every row, found 7 in row 1",
        ),
        ({"time": [0]}, "time: expected one per event, 2, found 1"),
        ({"item": ["a"]}, "item: expected one per event, 2, found 1"),
        ({"user": [1.5, 2]}, "user: expected ids"),
        ({"gap": -1}, "gap: expected a number >= 0 or a timedelta, found -1"),
        ({"gap": "1h"}, "gap: expected a number >= 0 or a timedelta, found '1h'"),
        ({"gap": float("nan")}, "gap: expected"),
        ({"gap": True}, "gap: expected"),
        ({"gap": False}, "gap: expected"),
        ({"gap": np.timedelta64(1, "M")}, "gap: expected a number >= 0 or a timedelta, found .*'M'"),
    ],
)
def test_a_log_with_something_missing_is_refused(change, message):
    log = {"user": [1, 1], "item": ["a", "b"], "time": [0, 1], **change}
    with pytest.raises(ValueError, match=message):
        sessions_from_events(**log)


def test_the_latest_sessions_are_the_test():
    rng = np.random.default_rng(0)
    log = sessions_from_events(rng.integers(50, size=400), rng.integers(9, size=400), rng.integers(10**6, size=400))
    starts = log.times[log.offsets[:-1]]
    train, test = split_sessions(log, test=0.25)
    assert len(train) + len(test) == len(log)
    assert abs(len(test) - 0.25 * len(log)) <= 1
    assert train.times[train.offsets[:-1]].max() < test.times[test.offsets[:-1]].min()
    assert starts.max() == test.times[test.offsets[:-1]].max()


def test_sessions_that_begin_together_stay_together():
    log = sessions_from_events([1, 2, 3, 4], [7, 7, 8, 8], [0, 5, 5, 5])
    assert [len(part) for part in split_sessions(log, test=0.25)] == [1, 3]
    with pytest.raises(ValueError, match="sessions: expected two times at least, to split by, found 1"):
        split_sessions(sessions_from_events([1, 2], [7, 7], [0, 0]))


@pytest.mark.parametrize("by", ["user", "session"])
def test_users_and_sessions_are_drawn(by):
    rng = np.random.default_rng(0)
    log = sessions_from_events(rng.integers(50, size=400), rng.integers(9, size=400), rng.integers(10**6, size=400))
    train, test = split_sessions(log, by=by, test=0.2, random_state=3)
    assert lists(split_sessions(log, by=by, test=0.2, random_state=3)[1]) == lists(test)
    assert len(train) + len(test) == len(log)
    if by == "user":
        assert not set(train.users.tolist()) & set(test.users.tolist())
        assert len(set(test.users.tolist())) == 10
    else:
        assert len(test) == round(0.2 * len(log))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"by": "day"}, "by: expected 'time', 'user' or 'session', found 'day'"),
        ({"test": 0}, "test: expected a share between 0 and 1, found 0"),
        ({"test": 1.0}, "test: expected a share"),
        ({"test": "0.2"}, "test: expected a share between 0 and 1, found '0.2'"),
        ({"random_state": -1}, "random_state: expected None or a whole number from 0 .*, found -1"),
        ({"random_state": "x"}, "random_state: expected None or a whole number from 0 .*, found 'x'"),
        ({"sessions": None}, "sessions: expected a list of lists of ids, found NoneType"),
        ({"by": "time"}, "sessions: expected times, as sessions_from_events gives them, found none"),
        ({"by": "user"}, "sessions: expected users"),
    ],
)
def test_splits_that_cannot_be(change, message):
    with pytest.raises(ValueError, match=message):
        split_sessions(**{"sessions": Sessions.of([[1], [2]]), "by": "session", **change})


def test_lists_and_frames_are_split_as_they_are():
    train, test = split_sessions(NAMED, by="session", test=0.4)
    assert sorted(lists(train) + lists(test)) == sorted(NAMED)
    log = pandas.DataFrame({"session": [1, 2, 1], "item": ["a", "b", "c"], "time": [0, 9, 1]})
    assert [lists(part) for part in split_sessions(log)] == [[["a", "c"]], [["b"]]]


def test_days_are_times():
    days = [date(2024, 1, 2), date(2024, 1, 1)]
    assert lists(sessions_from_events([1, 1], ["a", "b"], days, gap=timedelta(days=1))) == [["b", "a"]]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"ids": np.array(["a"])}, r"ids: expected one per session, 2, found shape \(1,\)"),
        ({"users": np.array([1, 2, 3])}, "users: expected one per session, 2"),
        ({"times": np.array([1.0])}, "times: expected one number per item, 3"),
        ({"times": [1.0, np.nan, 2.0]}, "times: expected one number per item, 3, found float64 of shape .3,., or NaN"),
        ({"times": ["a", "b", "c"]}, "times: expected one number per item, 3, found <U1"),
    ],
)
def test_what_belongs_to_sessions_is_checked(more, message):
    with pytest.raises(ValueError, match=message):
        Sessions(np.array([1, 2, 3]), np.array([0, 1, 3]), **more)
