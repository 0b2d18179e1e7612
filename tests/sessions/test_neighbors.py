"""SessionNeighbors against its definition in dictionaries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slatewise import SessionNeighbors, datasets
from slatewise.data import Sessions
from tests.sessions.reference import best, neighbor_scores

PLAIN = {"decay": 0.8, "last_weight": 1.0, "repeat_weight": 1.0, "reach": None}
logs = st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=9), min_size=1, max_size=25)


def definition(ranker, sessions, query):
    names = ("k", "decay", "window", "last_weight", "repeat_weight", "reach")
    return neighbor_scores(sessions, query, **{name: getattr(ranker, f"{name}_", None) for name in names})


def compare(ranker, sessions, queries):
    items = ranker.item_ids_.tolist()
    scores = ranker.scores(queries, items)
    for query, row, ids in zip(queries, scores, ranker.rank(queries, len(items)).ids, strict=True):
        expected = definition(ranker, sessions, query)
        np.testing.assert_allclose(row, [expected[item] for item in items], rtol=1e-12)
        # Sums that are equal in exact arithmetic may differ in the last bit: the list is compared by its own scores.
        assert ids.tolist() == best(dict(zip(items, row.tolist(), strict=True)), len(items))


@given(
    logs,
    st.integers(1, 12),
    st.sampled_from([0.3, 0.9, 1.0]),
    st.sampled_from([None, 2.0]),
    st.integers(1, 6),
    st.data(),
)
def test_scores_are_those_of_the_definition(sessions, k, decay, reach, window, draw):
    known = sorted({item for session in sessions for item in session})
    query = st.lists(st.sampled_from(known), min_size=1, max_size=9)
    queries = draw.draw(st.lists(query, min_size=1, max_size=4))
    ranker = SessionNeighbors(k, decay=decay, last_weight=0.5, repeat_weight=2.0, reach=reach, window=window).fit(
        sessions
    )
    compare(ranker, sessions, queries)


@pytest.mark.parametrize("k", [1, 7, 50])
def test_what_is_passed_over_in_the_search_changes_nothing(k):
    """Popular items have long lists, which the search leaves alone where it can."""
    sessions = [items.tolist() for items in datasets.make_sessions(1500, 60, n_clusters=3, random_state=0).sessions]
    queries = [items.tolist() for items in datasets.make_sessions(40, 60, n_clusters=3, random_state=1).sessions]
    known = {item for session in sessions for item in session}
    queries = [[item for item in query if item in known] for query in queries]
    compare(SessionNeighbors(k, **PLAIN).fit(sessions), sessions, queries)


def test_of_equally_similar_sessions_the_shorter_and_then_the_later_speaks():
    sessions = [["a", "old"], ["a", "new"], ["a", "b", "c", "long"], ["x"]]
    ranker = SessionNeighbors(1, **PLAIN).fit(sessions)
    assert ranker.rank("a", 2, exclude_seen=True)[0].tolist()[0] == "new"
    assert ranker.scores("a", ["old", "long"])[0].tolist() == [0.25 - 1, 0.25 - 1]


def test_an_item_of_every_session_still_counts():
    ranker = SessionNeighbors(**PLAIN).fit([["a", "b"], ["a", "c"]])
    assert (ranker.scores("a", ["b", "c"]) > 0).all()


def test_weights_of_repeats():
    sessions = [["a", "b", "c"], ["b", "a"], ["c", "a", "b"]]
    plain = SessionNeighbors(**PLAIN).fit(sessions)
    other = SessionNeighbors(decay=0.8, last_weight=0.0, repeat_weight=3.0, reach=None).fit(sessions)
    ids = ["a", "b", "c"]
    before, after = (ranker.scores([["a", "c"]], ids)[0] for ranker in (plain, other))
    np.testing.assert_allclose(after, [3 * before[0], before[1], 2 / 3 - 1])


def test_few_sessions_leave_auto_at_its_start():
    ranker = SessionNeighbors().fit([["a", "b"], ["b", "c"]])
    assert (ranker.decay_, ranker.last_weight_, ranker.repeat_weight_, getattr(ranker, "reach_", None)) == (
        0.8,
        1.0,
        1.0,
        None,
    )


def test_auto_finds_that_nothing_comes_twice():
    """Walks that never go back: what was seen is worth nothing."""
    rng = np.random.default_rng(0)
    sessions = [np.arange(start, start + 6) % 40 for start in rng.integers(0, 40, 800)]
    ranker, plain = SessionNeighbors().fit(sessions), SessionNeighbors(**PLAIN).fit(sessions)
    assert ranker.repeat_weight_ < 1
    assert ranker.last_weight_ < 1
    prefixes = Sessions.of(sessions[:50]).prefixes()
    assert ranker.recall(prefixes, ks=[1])[1] > 0.8 > 0.1 > plain.recall(prefixes, ks=[1])[1]


def test_auto_leaves_what_is_given():
    sessions = datasets.make_sessions(600, 40, random_state=0).sessions
    ranker = SessionNeighbors(decay=0.55, reach=3.0).fit(sessions)
    assert (ranker.decay_, getattr(ranker, "reach_", None)) == (0.55, 3.0)
    again = SessionNeighbors(
        decay=0.55, reach=3.0, last_weight=ranker.last_weight_, repeat_weight=ranker.repeat_weight_
    ).fit(sessions)
    np.testing.assert_array_equal(ranker.rank(sessions[:9], 5).scores, again.rank(sessions[:9], 5).scores)


@settings(max_examples=20)
@given(st.integers(1, 30))
def test_more_neighbors_than_sessions_are_all_of_them(k):
    sessions = [["a", "b"], ["b", "c"], ["c", "d", "a"]]
    ranker = SessionNeighbors(k, **PLAIN).fit(sessions)
    compare(ranker, sessions, [["a"], ["b", "c"]])


def test_a_session_of_a_million_items():
    rng = np.random.default_rng(0)
    long = rng.integers(0, 500, 1_000_000)
    ranker = SessionNeighbors(**PLAIN).fit([long, [1, 2], [2, 3]])
    assert len(ranker.session_items_) == 504
    found = ranker.rank([long, [1]], 3)
    np.testing.assert_array_equal(found[0], ranker.rank([long[-20:]], 3)[0])
    assert found[1].tolist()[:2] == [1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"session_offsets_": np.array([0, 2, 2, 6])}, "session_offsets_: expected sessions with items"),
        ({"session_offsets_": np.array([0, 2, 5])}, "session_offsets_: expected sessions with items"),
        ({"session_offsets_": np.array([0])}, "session_offsets_: expected sessions with items"),
        ({"session_items_": np.array([0, 1, 1, 2, 9, 3], dtype=np.int32)}, "session_items_: expected places among 4"),
        ({"session_items_": np.array([0, 0, 1, 2, 0, 3], dtype=np.int32)}, "session_items_: expected an item once"),
        ({"session_items_": np.array([0, 1, 1, 2, 0, 3])}, "session_items_: expected a int32 array"),
        ({"decay_": 0.0}, "decay_: expected a number from 0.01 to 1"),
        ({"reach_": float("inf")}, "reach_: expected"),
        ({"n_features_in_": 2}, "item_ids_, n_features_in_: expected"),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused(change, message):
    ranker = SessionNeighbors(**PLAIN).fit([["a", "b"], ["b", "c"], ["a", "d"]])
    for name, value in change.items():
        setattr(ranker, name, value)
    with pytest.raises(ValueError, match=message):
        ranker._check_learned()
