"""Files of events: which columns they need, and where errors point."""

from pathlib import Path

import pytest

from slatewise.core.errors import DataError
from slatewise.data import read_events
from tests.data.strategies import named


def lists(sessions):
    return [items.tolist() for items in sessions]


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (b"session,item\n1,a\n2,b\n1,c\n", {}, [["a", "c"], ["b"]]),
        (b"session\titem\n1\ta\n", {}, [["a"]]),
        (b"item;x;session\n7;;1\n8;;1\n", {}, [[7, 8]]),
        (b"session,item,time\n1,a,5\n1,b,2\n", {}, [["b", "a"]]),
        (b"user,item,time\nu,a,0\nu,b,1800\nu,c,3601\nv,a,10\n", {}, [["a", "b"], ["a"], ["c"]]),
        (b"user,item,time\nu,a,0\nu,b,1800\n", {"gap": 60}, [["a"], ["b"]]),
        (b"user,item,time\nu,a,2024-01-01\nu,b,2024-01-01T00:29:00\nu,c,2024-01-01T02:00:00+01:00\n", {}, None),
        (b"who,what,when\nu,a,0\nu,b,9\n", {"user": "who", "item": "what", "time": "when"}, [["a", "b"]]),
        (b'session,item\n1,"a, b"\n1,c\n', {}, [["a, b", "c"]]),
    ],
)
def test_sessions_of_a_table(text, options, expected):
    assert lists(read_events(named(text), **options)) == (expected or [["a", "b"], ["c"]])


def test_sessions_keep_names_users_and_times():
    sessions = read_events(named(b"session,user,item,time\ns9,u,a,3\ns1,v,b,4\ns9,u,c,5\n"))
    assert sessions.ids.tolist() == ["s9", "s1"]
    assert sessions.users.tolist() == ["u", "v"]
    assert sessions.times.tolist() == [3.0, 5.0, 4.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "f:1:1: expected a line that names the columns, found an empty file"),
        (b"session,item\n", "f:2:1: expected at least one event, found none"),
        (b"visit,item\n1,a\n", "f:1:1: expected columns called 'item', and 'session' or 'user' and 'time', found the"),
        (b"user,item\n1,a\n", "f:1:1: expected columns called 'item', and 'session' or 'user' and 'time', found the"),
        (b"session,item,item\n1,a,b\n", "f:1:1: expected one column called 'item', found 2"),
        (b"session,item\n1,a\n2\n", "f:3:2: expected 2 fields as in the first line, found 1"),
        (b"session,item\n1,\n", "f:2:3: expected an id, found ''"),
        (b"user,item,time\nu,a,nan\n", "f:2:5: expected a number, or a date such as 2024-05-01T12:00:00Z, found 'nan'"),
        (b"user,item,time\nu,a,1\nu,a,2024-01-01\n", "f:3:5: expected a finite number, found '2024-01-01'"),
        (b"user,item,time\nu,a,2024-01-01\nu,a,soon\n", "f:3:5: expected a date, found 'soon'"),
        (b"user,item,time\nu,a,2024-01-01\nu,a,7\n", "f:3:5: expected a date, found '7'"),
    ],
)
def test_errors_point_to_their_place(text, message):
    with pytest.raises(DataError) as error:
        read_events(named(text, "f"))
    assert str(error.value).startswith(message)


def test_bad_lines_are_left_out_where_that_is_asked_for():
    text = b"user,item,time\nu,a,soon\nu,b,1\nu,,2\nu,c,3\n"
    with pytest.warns(UserWarning, match="2"):
        sessions = read_events(named(text), on_error="skip")
    assert lists(sessions) == [["b", "c"]]
    assert sessions.skipped.count == 2


def test_a_compressed_file(tmp_path: Path):
    import gzip

    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"session,item\n1,a\n1,b\n"))
    assert lists(read_events(path)) == [["a", "b"]]
