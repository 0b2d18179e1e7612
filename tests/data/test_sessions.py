"""Session files: round trips, published counts, and where errors point."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise.data import Sessions, read_sessions, write_sessions
from slatewise.errors import DataError, DataWarning
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
    again = read_sessions(path)
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
        (Sessions(np.array([1, 2]), np.array([0, 1])), "sessions.offsets: expected bounds from 0 to 2"),
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
