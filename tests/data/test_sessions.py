"""Session files: round trips, published counts, and where errors point."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise.core.errors import DataError, DataWarning
from slatewise.data import Sessions, read_sessions, write_sessions
from tests.data.strategies import int64, named, words

names = words.filter(lambda text: not set(text) & set(',;|"'))


def make(sessions: list[list[int]] | list[list[str]], dtype: type) -> Sessions:
    items = np.array([item for session in sessions for item in session], dtype=dtype)
    return Sessions(items, np.cumsum([0, *map(len, sessions)], dtype=np.int64))


def lists(sessions: Sessions) -> list[list[int | str]]:
    return [sessions.items[start:end].tolist() for start, end in pairwise(sessions.offsets)]


@given(st.lists(st.lists(int64, min_size=1)))
def test_integers_read_back_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, sessions) -> None:
    path = tmp_path_factory.getbasetemp() / "ints.txt"
    write_sessions(path, make(sessions, np.int64))
    again = read_sessions(path)
    assert lists(again) == sessions
    assert again.items.dtype == np.int64


@given(st.lists(st.lists(names, min_size=1)))
def test_strings_read_back_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, sessions) -> None:
    path = tmp_path_factory.getbasetemp() / "names.txt"
    write_sessions(path, make(sessions, np.str_))
    again = read_sessions(path, header=False)
    assert [list(map(str, session)) for session in lists(again)] == sessions


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (b"1\n2,3\n", {}, [[1], [2, 3]]),
        (b"1\n2;3\r\n", {}, [[1], [2, 3]]),
        (b"a b,c\nd\n", {}, [["a b", "c"], ["d"]]),
        (b"a b\nc\n", {}, [["a", "b"], ["c"]]),
        (b"a,b c\n", {"delimiter": " "}, [["a,b", "c"]]),
        (b"a|b\n", {"delimiter": "|"}, [["a", "b"]]),
        (b"1,2\n3\n4,5,6", {"min_length": 2}, [[1, 2], [4, 5, 6]]),
        (b"", {}, []),
    ],
)
def test_delimiters_and_lengths(text, options, expected) -> None:
    found = read_sessions(named(text), **options)
    assert lists(found) == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        (b"1,2\n\n3\n", 2, 1, "a session with at least one item, found an empty line"),
        (b"1,2\n3,,4\n", 2, 3, "an id, found ''"),
        (b"1,2,\n", 1, 5, "an id, found ''"),
        (b"\xc3\xa9,\xc3\xa9, b\n", 1, 7, "an id without blanks around it, found ' b'"),
        (b'1,"2"\n', 1, 3, "ids without double quotes, found '\"'"),
        (b"1,2\n3,\x0b\n", 2, 3, "printable text, found control character 0x0b"),
        (b"1,2\n,3\n\xff\n", 2, 1, "an id, found ''"),
    ],
)
def test_a_bad_line_is_refused_at_its_place(text, line, column, expected) -> None:
    with pytest.raises(DataError) as caught:
        read_sessions(named(text))
    assert str(caught.value) == f"file.txt:{line}:{column}: expected {expected}"


def test_skipping_counts_and_reports() -> None:
    with pytest.warns(DataWarning, match=r"left out 2 rows; the first: file.txt:2:1"):
        found = read_sessions(named(b"1,2\n\n3,,4\n5\n"), on_error="skip")
    assert found.items.tolist() == [1, 2, 5]
    assert found.skipped.count == 2


@pytest.mark.parametrize(
    ("sessions", "message"),
    [
        (make([["a b"]], np.str_), r"sessions.items\[0\]: expected a word"),
        (make([["a,b"]], np.str_), r"sessions.items\[0\]: expected an id without any of"),
        (Sessions(np.array([1, 2]), np.array([0, 2, 2])), "at least one item a session, found none in session 1"),
        (Sessions(np.array([1.5]), np.array([0, 1])), "sessions.items: expected integer or string ids"),
    ],
)
def test_what_would_not_read_back_is_not_written(sessions: Sessions, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        write_sessions(tmp_path / "s.txt", sessions)
    assert not list(tmp_path.iterdir())


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="min_length: expected a whole number >= 1, found 0"):
        read_sessions(named(b""), min_length=0)


@pytest.mark.parametrize(
    ("file", "n_sessions", "n_pairs", "n_items"),
    [
        ("diginetica_sessions/train_sessions.txt.gz", 186_670, 719_470, 43_097),
        ("lastfm1k_artist_sessions/part_b_test_sessions.txt.gz", 64_585, 664_748, 29_439),
        ("nowplaying_sessions/train_sessions.txt.gz", 128_077, 825_304, 60_416),
        ("tmall_sessions/train_sessions.txt.gz", 65_286, 351_268, 40_727),
    ],
)
def test_published_counts(shared_data: Path, file: str, n_sessions: int, n_pairs: int, n_items: int) -> None:
    sessions = read_sessions(shared_data / file)
    assert sessions.items.dtype == np.int64
    assert len(sessions) == n_sessions
    assert len(sessions.pairs().queries) == n_pairs
    assert len(np.unique(sessions.items)) == n_items


def by_hand(sessions: list[list[int]]) -> list[tuple[int, int]]:
    return [pair for session in sessions for pair in pairwise(session)]


def found_pairs(sessions: Sessions) -> list[tuple[int, int]]:
    pairs = sessions.pairs()
    return list(zip(pairs.queries.tolist(), pairs.items.tolist(), strict=True))


@given(st.lists(st.lists(int64)), st.data())
def test_some_of_the_sessions_are_those_of_a_list_of_lists(sessions: list[list[int]], draw: st.DataObject) -> None:
    made = make(sessions, np.int64)
    assert [session.tolist() for session in made] == sessions
    part = draw.draw(st.slices(len(sessions)))
    assert [session.tolist() for session in made[part]] == sessions[part]
    assert found_pairs(made[part]) == by_hand(sessions[part])
    if sessions:
        numbers = draw.draw(st.lists(st.integers(-len(sessions), len(sessions) - 1)))
        chosen = np.array(numbers, dtype=np.int64)
        assert [session.tolist() for session in made[chosen]] == [sessions[number] for number in numbers]
        for number in numbers:
            assert made[number].tolist() == sessions[number]
        flags = np.arange(len(sessions)) % 2 == 0
        assert [session.tolist() for session in made[flags]] == sessions[::2]


def test_pairs_stay_within_the_first_and_the_last_offset(tmp_path: Path) -> None:
    sessions = make([[1, 2], [3, 4, 5], [6, 7]], np.int64)
    train = Sessions(sessions.items, sessions.offsets[:2])
    test = Sessions(sessions.items, sessions.offsets[1:])
    assert found_pairs(train) == [(1, 2)]
    assert found_pairs(test) == [(3, 4), (4, 5), (6, 7)]
    assert found_pairs(sessions[1:2]) == [(3, 4), (4, 5)]
    write_sessions(tmp_path / "test.txt", test)
    assert (tmp_path / "test.txt").read_text() == "3,4,5\n6,7\n"


@pytest.mark.parametrize(
    ("items", "offsets", "message"),
    [
        ([1, 2], [0, 3], "offsets: expected numbers from 0 to 2, the number of items, found 0 to 3"),
        ([1, 2], [-1, 2], "offsets: expected numbers from 0 to 2, the number of items, found -1 to 2"),
        ([1, 2], [0, 2, 1], "offsets: expected none to go back, found 2 then 1 in session 1"),
        ([1, 2], [], "offsets: expected whole numbers, one more than there are sessions"),
        ([1, 2], [0.0, 2.0], "offsets: expected whole numbers"),
        ([1, 2], [[0, 2]], "offsets: expected whole numbers"),
        ([[1, 2]], [0, 1], "items: expected one dimension"),
    ],
)
def test_offsets_are_checked(items: list[int], offsets: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sessions(np.array(items), np.array(offsets))


@pytest.mark.parametrize("key", [3, -4, True, "a", None, 1.5, np.array([[0]])])
def test_what_is_no_session_is_refused(key: object) -> None:
    with pytest.raises((IndexError, TypeError)):
        make([[1], [2], [3]], np.int64)[key]  # type: ignore[call-overload]


@pytest.mark.parametrize("names", [b"items", b"session_items", b"session,items", b"user_id,item_id", b"item item item"])
def test_well_known_names_are_no_session(names) -> None:
    text = names + b"\n1,2,3\n4,5\n"
    with pytest.warns(DataWarning, match=r"^file\.txt:1: .* read as the names of columns, not as ids \(header=False"):
        found = read_sessions(named(text))
    assert lists(found) == lists(read_sessions(named(text), header=True)) == [[1, 2, 3], [4, 5]]
    assert lists(read_sessions(named(text), header=False))[1:] == [["1", "2", "3"], ["4", "5"]]


def test_other_names_above_numbers_are_an_error_that_says_so() -> None:
    text = b"einkauf,ware\n1,2\n3\n"
    with pytest.raises(DataError, match=r"file.txt:1:1: expected integer ids .*header=True.*found 'einkauf'"):
        read_sessions(named(text))
    with pytest.warns(DataWarning, match="left out 1 row"):
        assert lists(read_sessions(named(text), on_error="skip")) == [[1, 2], [3]]
    assert lists(read_sessions(named(text), header=True)) == [[1, 2], [3]]
    for data in (b"tea\n1,x\n", b"tea,4\n1\n", b"007\n1\n", b"1e400\n1\n", b"tea\n"):
        assert len(read_sessions(named(data))) == data.count(b"\n")
    with pytest.raises(DataError, match="expected a line that names the columns, found an empty file"):
        read_sessions(named(b""), header=True)
