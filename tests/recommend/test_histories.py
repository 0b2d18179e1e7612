"""The door of sessions: every form that asks, and what may be shown to whom."""

import numpy as np
import pandas
import polars
import pytest
from scipy.sparse import csr_array

from slatewise.data import Sessions
from slatewise.recommend.filters import RankOptions, check_filters, seen_items
from slatewise.recommend.histories import SessionQueries, number_sessions

KNOWN = np.array(["a", "b", "c", "d"])
FRAME = {"session": ["y", "x", "y"], "item": ["a", "b", "c"]}


def seen(queries, unknown="error"):
    """Return the sessions by name, and what they are called."""
    numbered = SessionQueries.of(queries, KNOWN, unknown)
    spans = zip(numbered.starts, numbered.ends, strict=True)
    lists = [KNOWN[numbered.items[start:end]].tolist() for start, end in spans]
    return numbered.ids.tolist(), lists


@pytest.mark.parametrize(
    ("queries", "names", "lists"),
    [
        ("a", ["a"], [["a"]]),
        (["a", "b"], ["a", "b"], [["a"], ["b"]]),
        (np.array(["a", "b"]), ["a", "b"], [["a"], ["b"]]),
        (pandas.Series(["a", "b"]), ["a", "b"], [["a"], ["b"]]),
        ([["a", "b"], ["c"]], [0, 1], [["a", "b"], ["c"]]),
        ([["a", "b"], []], [0, 1], [["a", "b"], []]),
        ([[]], [0], [[]]),
        ([], [], []),
        (np.array([["a", "b"]]), [0], [["a", "b"]]),
        (polars.Series([["a"], ["b", "c"]]), [0, 1], [["a"], ["b", "c"]]),
        (Sessions.of([["a"], ["b", "c"]])[1:], [0], [["b", "c"]]),
        (Sessions.of([["a", "b", "c"], ["d", "a"]]).prefixes(), [0, 1, 2], [["a"], ["a", "b"], ["d"]]),
        (Sessions.of([["a", "z", "c"], ["d", "a"]]).prefixes()[2:], [0], [["d"]]),
        (pandas.DataFrame(FRAME), ["y", "x"], [["a", "c"], ["b"]]),
        (polars.DataFrame({**FRAME, "time": [2, 0, 1]}), ["y", "x"], [["c", "a"], ["b"]]),
    ],
)
def test_every_form_of_queries(queries, names, lists):
    assert seen(queries) == (names, lists)


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        (["a", 1], "queries: expected ids, all whole numbers or all strings, found int and str"),
        ([["a"], [1]], "queries: expected ids, all whole numbers or all strings, found int and str"),
        ([["a"], "b"], "queries: expected a list of ids in each place, found str in place 1"),
        ([["a"], None], "queries: expected a list of ids in each place, found NoneType in place 1"),
        ([1, 2], "queries: expected ids as in fit, strings, found dtype int64"),
        (None, "queries: expected sessions or ids of items, found NoneType"),
        (csr_array(np.eye(3)), "queries: expected sessions or ids of items, found a sparse matrix"),
        (1.5, "queries: expected ids, all whole numbers or all strings, found dtype float64"),
        (["z"], "queries: expected ids seen in fit, found 'z' at place 0 of query 0"),
        ([["a"], ["b", "z"]], "queries: expected ids seen in fit, found 'z' at place 1 of query 1"),
    ],
)
def test_what_is_no_query_is_refused(queries, message):
    with pytest.raises(ValueError, match=message):
        SessionQueries.of(queries, KNOWN)


def test_unknown_items_are_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="queries: 2 of 5 ids were not seen in fit and are left out of their sessions"):
        assert seen([["a", "z", "b"], ["z"], ["c"]], "ignore") == ([0, 1, 2], [["a", "b"], [], ["c"]])
    queries = SessionQueries.of([["a"], []], KNOWN)
    assert queries.nothing_known.tolist() == [False, True]
    with pytest.warns(
        UserWarning, match="queries: 1 of 2 have no item that fit saw and get nothing; the first: query 1"
    ):
        queries.warn_of_nothing_known("get nothing")


def test_sessions_to_learn_from():
    sessions = Sessions.of(["x", "q", "p", "q", "y"], [1, 3, 3, 4])
    with pytest.warns(UserWarning, match="sessions: 1 of 3 have no items and are left out; the first: session 1"):
        numbered = number_sessions(sessions)
    assert numbered.item_ids.tolist() == ["p", "q"]
    assert (numbered.items.tolist(), numbered.offsets.tolist()) == ([1, 0, 1], [0, 2, 3])
    with pytest.raises(ValueError, match="sessions: expected items, found none in 2 sessions"):
        number_sessions([[], []])


# --- switches --------------------------------------------------------------------------------------------------------

QUERIES = [["a", "b", "a"], [], ["c"]]


def shown(exclude=None, exclude_seen=False, candidates=None, unknown="error"):
    return check_filters(
        SessionQueries.of(QUERIES, KNOWN), KNOWN, RankOptions(exclude, exclude_seen, candidates, unknown)
    )


def marks(matrix):
    return (matrix.toarray() > 0).astype(int).tolist()


def test_nothing_is_hidden_unless_it_is_said():
    assert not shown().may_be_short


def test_what_was_seen_is_hidden():
    assert marks(shown(exclude_seen=True).hidden) == [[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]
    assert marks(shown(exclude_seen="last").hidden) == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]
    both = shown(exclude=[["d"], ["d"], []], exclude_seen=True).hidden
    assert marks(both) == [[1, 1, 0, 1], [0, 0, 0, 1], [0, 0, 1, 0]]
    assert seen_items(SessionQueries.of(QUERIES, KNOWN), 4).has_canonical_format


def test_candidates_of_all_and_of_each():
    assert shown(candidates=["d", "b", "d"]).common.tolist() == [1, 3]
    assert shown(candidates=np.array(["d"])).common.tolist() == [3]
    own = [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]]
    assert marks(shown(candidates=[["b"], [], ["c", "d"]]).own) == own
    assert marks(shown(candidates=csr_array(np.array(own))).own) == own
    with pytest.warns(UserWarning, match="candidates: 1 of 2 ids were not seen in fit and are left out"):
        assert shown(candidates=["z", "a"], unknown="ignore").common.tolist() == [0]


@pytest.mark.parametrize(
    ("switch", "message"),
    [
        ({"exclude_seen": "first"}, "exclude_seen: expected True, False or 'last', found 'first'"),
        ({"exclude": [["a"]]}, "exclude: expected items for each of 3 queries, found 1"),
        ({"candidates": [["a"]]}, "candidates: expected items for each of 3 queries, found 1"),
        ({"candidates": ["z"]}, "candidates: expected ids seen in fit, found 'z' at place 0"),
        ({"candidates": []}, "candidates: expected items that fit saw, found none"),
    ],
)
def test_switches_that_cannot_be(switch, message):
    with pytest.raises(ValueError, match=message):
        shown(**switch)
