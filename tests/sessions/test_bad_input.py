"""What a stranger's sessions can be: every ranker has an error that says why, or an answer."""

import warnings

import numpy as np
import pandas
import polars
import pytest
from scipy.sparse import csr_array

from slatewise import SessionCooccurrence, SessionNeighbors, SessionRanker
from slatewise.data import Sessions, sessions_from_events
from slatewise.factors import Factors
from slatewise.sessions.blend import SessionBlend

LOG = [["tea", "milk"], ["tea", "cup", "milk"], ["ink", "pen"]]
LONG = np.random.default_rng(0).integers(0, 300, 1_000_000)
NUMBERS = {"decay": 0.8, "last_weight": 1.0, "repeat_weight": 1.0}
LEARNED = {"factors": Factors(4, epochs=1, learning_rate=0.3, max_norm=1.5), "validation_fraction": 0.0}
FIXED = {SessionNeighbors: NUMBERS, SessionCooccurrence: NUMBERS, SessionBlend: {}, SessionRanker: LEARNED}
FRAME = {"session": [1, 1], "item": ["tea", "cup"]}


def made(sessions):
    """Return a fit on sessions, or on what makes them."""
    return lambda kind: kind(**FIXED[kind]).fit(sessions() if callable(sessions) else sessions)


def ranked(*queries, **switches):
    """Return what a ranker of LOG answers."""
    return lambda kind: kind(**FIXED[kind]).fit(LOG).rank(*queries, **{"k": 2, "exclude_seen": True, **switches})


MIXED = "expected ids, all whole numbers or all strings, found int and str"
REFUSED = {
    "sessions without any item": (made([[], []]), "sessions: expected items, found none in 2 sessions"),
    "no session": (made([]), "sessions: expected items, found none in 0 sessions"),
    "ids of two kinds in a session": (made([["tea", 7]]), f"sessions: {MIXED}"),
    "ids of two kinds in two sessions": (made([["tea"], [7]]), f"sessions: {MIXED}"),
    "ids that are no ids": (made([[1.5, 2.0]]), "sessions: expected ids, all whole numbers or all strings"),
    "ids that are missing": (made([["tea", None]]), "sessions: expected ids, all whole numbers or all strings"),
    "offsets that go back": (
        made(lambda: Sessions.of([1, 2, 3], [0, 3, 1])),
        "offsets: expected none to go back, found 3 then 1 in session 1",
    ),
    "offsets beyond the items": (
        made(lambda: Sessions.of([1, 2, 3], [0, 4])),
        "offsets: expected numbers from 0 to 3, the number of items, found 0 to 4",
    ),
    "times of events that are NaN": (
        made(lambda: sessions_from_events([1, 1], ["tea", "cup"], [0.0, np.nan])),
        r"time: expected a time in every row, found nan in row 1 \(1 such\)",
    ),
    "times of a frame that are NaN": (
        made(pandas.DataFrame({**FRAME, "time": [0.0, np.nan]})),
        r"time: expected a time in every row, found nan in row 1 \(1 such\)",
    ),
    "times of sessions that are NaN": (
        made(lambda: Sessions(np.array([1, 2]), np.array([0, 2]), times=np.array([0.0, np.nan]))),
        "times: expected one number per item, 2",
    ),
    "a frame without items": (made(pandas.DataFrame({"session": [1]})), "expected a column called 'item'"),
    "a frame without sessions": (
        made(pandas.DataFrame({"visit": [1], "item": ["tea"]})),
        "sessions: expected a column called 'session', found the columns 'visit', 'item'",
    ),
    "a mapping": (made({"ann": ["tea", "cup"]}), "sessions: expected a list of lists of ids, found dict"),
    "ids that are bytes": (made([[b"tea", b"cup"]]), "sessions: expected ids, all whole numbers or all strings"),
    "lists of lists of lists": (
        made([[["tea"], ["cup", "milk"]]]),
        "sessions: expected a one-dimensional array of ids",
    ),
    "an item that fit never saw": (
        ranked([["tea", "jam"]]),
        "queries: expected ids seen in fit, found 'jam' at place 1",
    ),
    "queries of another kind": (ranked([[7]]), "queries: expected ids as in fit, strings, found dtype int64"),
    "queries of two kinds": (ranked([["tea"], [7]]), f"queries: {MIXED}"),
    "queries that are sessions and ids": (ranked([["tea"], "cup"]), "queries: expected a list of ids in each place"),
    "no query": (ranked(None), "queries: expected sessions or ids of items, found NoneType"),
    "a query that is missing": (ranked([None]), "queries: expected a list of ids in each place, found NoneType"),
    "a query that is bytes": (ranked(b"tea"), "queries: expected a list of ids in each place, found bytes in place 0"),
    "a mapping as queries": (ranked({"ann": ["tea"]}), "queries: expected sessions or ids of items, found a mapping"),
    "queries too deep": (ranked([[["tea"], ["cup", "milk"]]]), "queries: expected a one-dimensional array of ids"),
    "queries of a frame without sessions": (
        ranked(pandas.DataFrame({"visit": [1], "item": ["tea"]})),
        "expected a column called 'session', found the columns 'visit', 'item'",
    ),
    "more ranks than items": (ranked(["tea"], k=6), "k: expected a whole number from 1 to the 5 items there are"),
    "exclude_seen as an array": (
        ranked(["tea"], exclude_seen=np.array([1, 0])),
        "exclude_seen: expected True, False",
    ),
    "a candidate alone": (ranked(["tea"], candidates=7), "candidates: expected a list of lists of ids, found int"),
    "no candidates": (ranked(["tea"], candidates=[]), "candidates: expected items that fit saw, found none"),
    "candidates that fit never saw": (
        ranked(["tea"], candidates=["cup", "jam"]),
        "candidates: expected ids seen in fit, found 'jam' at place 1",
    ),
    "candidates of two kinds": (ranked(["tea"], candidates=["cup", 7]), f"candidates: {MIXED}"),
    "candidates that are ids and lists": (
        ranked(["tea"], candidates=["cup", ["ink"]]),
        "candidates: expected a list of ids in each place, found str in place 0",
    ),
    "candidates of another kind": (ranked(["tea"], candidates=[7]), "candidates: expected ids as in fit, strings"),
    "candidates of too few queries": (
        ranked(["tea", "cup"], candidates=[["ink"]]),
        "candidates: expected items for",
    ),
    "exclude of another kind": (ranked(["tea"], exclude=[[7]]), "exclude: expected ids as in fit, strings"),
    "exclude of two kinds": (ranked(["tea"], exclude=[["cup", 7]], unknown="ignore"), f"exclude: {MIXED}"),
    "exclude of no query": (
        ranked(["tea"], exclude=["cup"]),
        "exclude: expected a list of ids in each place, found str",
    ),
    "one id to exclude": (ranked(["tea"], exclude=7), "exclude: expected a list of lists of ids, found int"),
    "exclude of too many queries": (ranked(["tea"], exclude=[[], []]), "exclude: expected items for each of 1 queries"),
    "flags among numbers": (
        made([[True, 2], [3, 4]]),
        "sessions: expected ids, all whole numbers or all strings, found bool and int",
    ),
    "a set of two kinds": (made([{"tea", 7}]), f"sessions: {MIXED}"),
    "a set with something missing": (made([{7, None}]), "sessions: expected ids, all whole numbers or all strings"),
    "a lazy frame": (made(lambda: Sessions.of(polars.LazyFrame(FRAME))), "sessions: expected a list of lists of ids"),
    "a frame with a column twice": (
        made(pandas.DataFrame([[1, "tea", "cup"]], columns=["session", "item", "item"])),
        "expected every column name once, found .*'item' 2 times",
    ),
    "nothing to be found": (
        lambda kind: kind(**FIXED[kind]).fit(LOG).recall([["tea"]]),
        "queries: expected at least one with an item to find, or a session of two items, found none",
    ),
    "items that are one set": (
        lambda kind: kind(**FIXED[kind]).fit(LOG).scores(["tea"], {"cup"}),
        "items: expected a one-dimensional array of ids, found set",
    ),
    "sessions of another kind later": (
        lambda kind: kind(**FIXED[kind]).fit(LOG).partial_fit([[1, 2]]),
        "expected ids as in fit, strings, found dtype int64",
    ),
}


@pytest.mark.parametrize("kind", FIXED)
@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_a_reason(kind, what):
    call, message = REFUSED[what]
    with pytest.raises(ValueError, match=message):
        call(kind)


EMPTY = "sessions: 1 of 4 have no items and are left out; the first: session 0"
NOBODY = "queries: 1 of 1 have no item that fit saw and get the most popular items; the first: query 0"
UNSEEN = "queries: 1 of 1 ids were not seen in fit and are left out of their sessions"
ANSWERED = {
    "an empty session to learn from": (
        lambda kind: kind(**FIXED[kind]).fit([[], *LOG]).rank("ink", 1, exclude_seen=True),
        ["pen"],
        EMPTY,
    ),
    "an empty session as a query": (ranked([[]]), ["milk", "tea"], NOBODY),
    "only items that fit never saw": (ranked([["jam"]], unknown="ignore"), ["milk", "tea"], UNSEEN, NOBODY),
    "nothing left to show": (ranked(["tea"], exclude=[["milk", "cup", "ink", "pen"]]), []),
    "a session of every item": (ranked([["tea", "milk", "cup", "ink", "pen"]]), []),
    "fewer items left than k": (ranked(["tea"], k=5, exclude=[{"cup", "ink"}], candidates={"milk", "cup"}), ["milk"]),
    "candidates given twice": (ranked(["tea"], candidates=["milk", "milk"]), ["milk"]),
    "candidates of a query that are none": (ranked(["tea"], candidates=[[]]), []),
    "sessions of one item": (
        lambda kind: kind(**FIXED[kind]).fit([["a"], ["a"], ["b"]]).rank("b", 2, exclude_seen=True),
        ["a"],
    ),
}


@pytest.mark.parametrize("kind", [SessionNeighbors, SessionCooccurrence, SessionBlend])
@pytest.mark.parametrize("what", ANSWERED)
def test_ranked_with_warnings(kind, what):
    call, expected, *expected_warnings = ANSWERED[what]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call(kind)
    for one, start in zip(caught, expected_warnings, strict=True):
        assert str(one.message).startswith(start)
    assert found[0].tolist() == expected
    assert (found.nothing_known is not None) == (NOBODY in expected_warnings)


@pytest.mark.parametrize("kind", [SessionNeighbors, SessionCooccurrence, SessionBlend])
def test_a_session_of_a_million_items_is_learned_from_and_ranked(kind):
    ranker = kind(**FIXED[kind]).fit([LONG, [1, 2], [2, 3]])
    found = ranker.rank([LONG, LONG[-50:]], 5)
    np.testing.assert_array_equal(found[0], found[1])


FORMS = {
    "a generator": lambda: (session for session in LOG),
    "the values of a mapping": lambda: dict(enumerate(LOG)).values(),
    "a column of pandas": lambda: pandas.Series(LOG),
    "a column of polars": lambda: polars.Series(LOG),
    "an array of lists": lambda: np.array(LOG, dtype=object),
}


@pytest.mark.parametrize("kind", FIXED)
@pytest.mark.parametrize("form", FORMS)
def test_lists_of_lists_in_every_wrapping(kind, form):
    expected = kind(**FIXED[kind]).fit(LOG).rank(["tea", "ink"], 3)
    found = kind(**FIXED[kind]).fit(FORMS[form]()).rank(["tea", "ink"], 3)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("kind", FIXED)
def test_candidates_of_each_query_may_come_one_by_one(kind):
    ranker = kind(**FIXED[kind]).fit(LOG)
    found = ranker.rank(["tea", "ink"], 1, candidates=(ids for ids in [["cup"], ["milk"]]))
    assert found.ids.tolist() == [["cup"], ["milk"]]


@pytest.mark.parametrize("kind", FIXED)
def test_what_is_hidden_twice_is_not_shown(kind):
    ranker = kind(**FIXED[kind]).fit(LOG)
    negative = csr_array(-1.0 * (ranker.item_ids_ == "tea")[None, :])
    assert "tea" not in ranker.rank(["tea"], 5, exclude=negative, exclude_seen=True)[0]
