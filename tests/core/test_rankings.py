import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise.core.former_answers import FormerPair, FormerRows
from slatewise.core.rankings import Rankings, rank_rows


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), min_size=1), st.integers(1, 5))
def test_equals_sorting_each_list_by_hand(rows, k):
    qid, scores = (np.array(column) for column in zip(*rows, strict=True))
    rankings = rank_rows(scores, qid)
    by_hand = {q: sorted(np.flatnonzero(qid == q), key=lambda row: (-scores[row], row)) for q in qid}
    assert rankings.query_ids.tolist() == list(by_hand)
    assert [order.tolist() for order in rankings] == list(by_hand.values())
    assert [order.tolist() for order in rankings.top(k)] == [order[:k] for order in by_hand.values()]


def test_indexing_like_a_list():
    rankings = rank_rows(np.array([1.0, 2.0]))
    assert len(rankings) == 1
    assert rankings[-1].tolist() == [1, 0]
    with pytest.raises(IndexError):
        rankings[1]
    with pytest.raises(ValueError, match="k: expected"):
        rankings.top(0)
    with pytest.raises(ValueError, match="k: expected a whole number"):
        rankings.top(1.5)
    assert rankings.top(10**30)[0].tolist() == [1, 0]


def test_equal_lists_are_matrices_and_others_have_offsets():
    equal = rank_rows(np.array([1.0, 3.0, 2.0, 4.0]), ["x", "x", "y", "y"], names=np.array(["a", "b", "c", "d"]))
    assert equal.offsets is None
    assert equal.ids.tolist() == [["b", "a"], ["d", "c"]]
    assert equal.scores.tolist() == [[3.0, 1.0], [4.0, 2.0]]
    unequal = rank_rows(np.array([1.0, 3.0, 2.0]), ["x", "x", "y"])
    assert unequal.offsets is not None
    assert unequal.offsets.tolist() == [0, 2, 3]
    assert unequal.top(1).ids.tolist() == [[1], [2]]
    assert [scores.tolist() for scores in map(unequal.list_scores, range(2))] == [[3.0, 1.0], [2.0]]


def test_other_shapes_of_an_answer():
    answer = rank_rows(np.array([1.0, 3.0, 2.0]), ["x", "x", "y"], names=np.array(["a", "b", "c"]))
    assert answer.to_dict() == {"x": {"b": 3.0, "a": 1.0}, "y": {"c": 2.0}}
    run = answer.to_run("mine")
    assert run.qid.tolist() == ["x", "x", "y"]
    assert run.doc_ids.tolist() == ["b", "a", "c"]
    assert run.scores.tolist() == [3.0, 1.0, 2.0]
    assert run.tag == "mine"
    for backend in ("pandas", "polars", "pyarrow"):
        frame = answer.to_frame(backend)
        columns = {
            name: [*map(str, frame[name].to_pylist() if backend == "pyarrow" else frame[name])] for name in FRAME
        }
        assert columns == FRAME


FRAME = {
    "query": ["x", "x", "y"],
    "id": ["b", "a", "c"],
    "rank": ["1", "2", "1"],
    "score": ["3.0", "1.0", "2.0"],
}


def test_answers_without_lists():
    none = Rankings(np.empty(0, dtype=np.int64), np.empty((0, 3), dtype=np.int64), np.empty((0, 3)))
    assert len(none) == 0
    assert none.lists() == []
    assert none.to_dict() == {}
    assert len(none.to_frame("polars")) == 0
    assert repr(none) == "0 lists with 0 places in all"


def test_a_pair_unpacks_as_before():
    ids, scores = np.array([[3, 1], [2, 0]]), np.array([[2.0, 1.0], [5.0, 4.0]])
    with pytest.warns(DeprecationWarning, match=r"answer\.ids"):
        first, second = FormerPair(np.arange(2), ids, scores)
    assert first is ids
    assert second is scores
    with pytest.warns(DeprecationWarning, match="ids, scores"):
        first, second = FormerPair(
            np.arange(2), np.array(["a", "b", "c"]), np.array([1.0, 3.0, 2.0]), np.array([0, 1, 3])
        )
    assert first.tolist() == [["a", ""], ["b", "c"]]
    assert second.tolist() == [[1.0, -np.inf], [3.0, 2.0]]


def test_rows_are_an_array_as_before():
    answer = FormerRows(np.arange(2), np.array([[3, 1], [2, 0]]), np.zeros((2, 2)))
    assert answer[1].tolist() == [2, 0]
    for use in (
        lambda: answer.shape == (2, 2),
        lambda: answer[:, 0].tolist() == [3, 2],
        lambda: [row.tolist() for row in answer] == [[3, 1], [2, 0]],
        lambda: np.asarray(answer).tolist() == [[3, 1], [2, 0]],
        lambda: answer.tolist() == [[3, 1], [2, 0]],
    ):
        with pytest.warns(DeprecationWarning, match=r"goes in 0\.3"):
            assert use()
    with pytest.raises(AttributeError):
        answer.nonsense  # noqa: B018
