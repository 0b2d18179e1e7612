"""SessionCooccurrence against pairs counted one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise import SessionCooccurrence
from tests.sessions.reference import best, count_scores

PLAIN = {"decay": 0.8, "backward": 1.0, "row_power": 1.0, "last_weight": 1.0, "repeat_weight": 1.0}
logs = st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=12), min_size=1, max_size=15)


@given(
    logs,
    st.integers(1, 5),
    st.sampled_from([0.3, 1.0]),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.data(),
)
def test_scores_are_sums_of_counted_pairs(sessions, window, decay, backward, row_power, draw):
    items = sorted({item for session in sessions for item in session})
    query = st.lists(st.sampled_from(items), min_size=1, max_size=9)
    queries = draw.draw(st.lists(query, min_size=1, max_size=4))
    ranker = SessionCooccurrence(
        window, decay=decay, backward=backward, row_power=row_power, last_weight=0.5, repeat_weight=2.0
    ).fit(sessions)
    scores = ranker.scores(queries, items)
    for query, row, ids in zip(queries, scores, ranker.rank(queries, len(items)).ids, strict=True):
        expected = count_scores(
            sessions,
            query,
            window=window,
            decay=decay,
            backward=backward,
            row_power=row_power,
            last_weight=0.5,
            repeat_weight=2.0,
        )
        # 1 / distance is kept with 20 binary places.
        np.testing.assert_allclose(row, [expected[item] for item in items], rtol=1e-5)
        assert ids.tolist() == best(dict(zip(items, row.tolist(), strict=True)), len(items))


def test_rows_of_counts():
    ranker = SessionCooccurrence(2, **PLAIN).fit([["a", "b", "c", "d"], ["b", "a"]])
    rows = np.split(ranker.pair_items_, ranker.pair_offsets_[1:-1])
    assert [ranker.item_ids_[row].tolist() for row in rows] == [
        ["b", "c"],
        ["a", "c", "d"],
        ["a", "b", "d"],
        ["b", "c"],
    ]
    assert ranker.forward_.tolist()[:5] == [1.0, 0.5, 1.0, 1.0, 0.5]
    assert ranker.backward_counts_.tolist()[:5] == [1.0, 0.0, 1.0, 0.0, 0.0]
    assert (ranker.item_counts_.tolist(), ranker.n_sessions_) == ([2, 2, 1, 1], 2)


def test_auto_finds_the_direction():
    rng = np.random.default_rng(0)
    sessions = [np.arange(start, start + 5) % 60 for start in rng.integers(0, 60, 900)]
    ranker = SessionCooccurrence().fit(sessions)
    assert ranker.backward_ < 1
    assert ranker.rank([[7, 8]], 1, exclude_seen=True).ids.tolist() == [[9]]


def test_counts_go_on_with_their_window():
    ranker = SessionCooccurrence(3, **PLAIN).fit([["a", "b"]])
    with pytest.raises(ValueError, match="window: expected 3, that of the counts to go on with, found 4"):
        ranker.set_params(window=4).partial_fit([["a", "b"]])


def test_an_item_that_never_had_company_gets_the_popular_ones():
    ranker = SessionCooccurrence(**PLAIN).fit([["alone"], ["a", "b"], ["b", "c"]])
    assert ranker.rank("alone", 2).ids.tolist() == [["b", "a"]]


def test_a_session_of_a_million_items():
    long = np.random.default_rng(0).integers(0, 300, 1_000_000)
    ranker = SessionCooccurrence(3, **PLAIN).fit([long, [1, 2], [2, 3]])
    np.testing.assert_array_equal(ranker.rank([long], 3).ids, ranker.rank([long[-3:]], 3).ids)
    assert ranker.forward_.sum() == pytest.approx((1 + 1 / 2 + 1 / 3) * 1e6, rel=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pair_offsets_": np.array([0, 2, 3])}, "pair_offsets_: expected 3 rows of 4 pairs in all"),
        ({"pair_offsets_": np.array([0, 3, 1, 4])}, "pair_offsets_: expected 3 rows of 4 pairs in all"),
        ({"pair_items_": np.array([1, 0, 5, 1], dtype=np.int32)}, "pair_items_: expected places among 3 items"),
        ({"pair_items_": np.array([1, 2, 0, 1], dtype=np.int32)}, "pair_items_: expected ascending items in each row"),
        ({"forward_": np.ones(3)}, "forward_: expected shape \\(4,\\), found \\(3,\\)"),
        ({"forward_": -np.ones(4)}, "forward_: expected a float64 array of 1 dimension, numbers from 0"),
        ({"item_counts_": np.array([1, 9, 1])}, "item_counts_: expected up to 2, found 9"),
        ({"n_sessions_": 0}, "n_sessions_: expected a whole number from 1"),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused(change, message):
    ranker = SessionCooccurrence(**PLAIN).fit([["a", "b"], ["b", "c"]])
    for name, value in change.items():
        setattr(ranker, name, value)
    with pytest.raises(ValueError, match=message):
        ranker._check_learned()
