import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise.core.rankings import rank_rows


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), min_size=1), st.integers(1, 5))
def test_equals_sorting_each_list_by_hand(rows, k):
    qid, scores = (np.array(column) for column in zip(*rows, strict=True))
    rankings = rank_rows(scores, qid)
    by_hand = {q: sorted(np.flatnonzero(qid == q), key=lambda row: (-scores[row], row)) for q in qid}
    assert rankings.ids.tolist() == list(by_hand)
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
