import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slatewise
from slatewise import datasets
from slatewise.core.rankings import Rankings, rank_rows
from slatewise.factors import Factors
from slatewise.matching import Slates

MADE = datasets.make_queries(n_queries=6, random_state=0)
ROWS, RATINGS, QID = MADE.X, MADE.y, MADE.qid
LABELS = np.eye(4, dtype=np.int64)[np.arange(len(ROWS)) % 4]
NUMBERED = np.arange(12) % 4, np.arange(12) % 5
SESSIONS = [["tea", "cup", "milk"], ["tea", "milk"], ["cup", "tea"], ["ink", "pen"], ["pen", "ink", "cup"]] * 4
FEW_EPOCHS = {"n_components": 2, "epochs": 2, "validation_fraction": 0.0, "random_state": 0}
SOME_LEFT = [["tea"], ["tea", "cup"]], 3  # sessions of which different numbers of items are left

ANSWERS = {
    "BestFeatureRanker": lambda new: new().fit(ROWS, RATINGS, qid=QID).rank(ROWS, QID),
    "CStarMarginRanker": lambda kind: kind(core=0, C=1.0).fit(ROWS, LABELS).rank(ROWS, 2),
    "CStarRanker": lambda new: new(core=0, C=1.0).fit(ROWS, LABELS).rank(ROWS, 2),
    "CollaborativeRanker": lambda new: new(validation_fraction=0).fit(*NUMBERED).rank([0, 1], 2),
    "SessionCooccurrence": lambda new: new().fit(SESSIONS).rank(*SOME_LEFT, exclude_seen=True),
    "SessionRanker": lambda new: (
        new(Factors(2, epochs=2), base=None, validation_fraction=0).fit(SESSIONS).rank(*SOME_LEFT, exclude_seen=True)
    ),
    "LatentFeatureRanker": lambda new: new(**FEW_EPOCHS).fit(ROWS, np.arange(len(ROWS)) % 3).rank(ROWS, 2),
    "LatentRanker": lambda new: new(**FEW_EPOCHS).fit(*NUMBERED).rank([0, 1], 3),
    "MarginRanker": lambda new: new(tol=0.3).fit(ROWS, RATINGS, qid=QID).rank(ROWS, QID),
    "MatchingRanker": lambda new: new(Slates(3), tol=0.3, random_state=0).fit(ROWS, RATINGS, qid=QID).rank(ROWS, QID),
    "MetricRanker": lambda new: new(C=100.0, tol=0.5).fit(ROWS, np.arange(len(ROWS)) % 3).rank(ROWS[:3], 2),
    "SessionNeighbors": lambda new: new().fit(SESSIONS).rank(*SOME_LEFT, exclude_seen=True),
    "StructuredReranker": lambda new: new(np.eye(4, 5), **FEW_EPOCHS).fit(*NUMBERED).rank([0, 1], 3),
}


def test_every_estimator_that_ranks_is_here():
    assert set(ANSWERS) == {name for name in slatewise.__all__ if hasattr(getattr(slatewise, name), "rank")} - {
        "cluster"
    }


@pytest.mark.filterwarnings("ignore::UserWarning")  # there is little to learn here
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_of_an_estimator_is_no_other_class(name):
    assert type(ANSWERS[name](getattr(slatewise, name))) is Rankings


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_so_are_those_of_other_forms_and_methods():
    latent = slatewise.LatentRanker(**FEW_EPOCHS).fit(*NUMBERED)
    shorter = latent.rank([0, 1], 3, exclude=[[0, 1, 2], []])
    named = slatewise.CStarRanker(core=0, C=1.0).fit(ROWS, LABELS, label_names=list("abcd"))
    for answer in (latent.rank([0, 1], 3), shorter, latent.similar_items([0], 2), named.rank(ROWS[:2], [1, 2])):
        assert type(answer) is Rankings
    assert len(list(shorter)) == 2  # its lists, where it was the pair of its matrices


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
    assert repr(none) == "0 lists with 0 items in all"
