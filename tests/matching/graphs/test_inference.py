import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.matched_graphs import all_matchings, matching_weight

from slatewise.matching.graphs.inference import best_matchings


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 5), st.booleans())
def test_no_matching_weighs_more(seed, n_rows, n_columns, may_be_unmatched):
    if n_rows > n_columns and not may_be_unmatched:
        n_columns = n_rows
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(3, n_rows, n_columns))
    unmatched = float(rng.normal()) if may_be_unmatched else None
    for one, found in zip(weights, best_matchings(weights, unmatched), strict=True):
        every = all_matchings(n_rows, n_columns, may_be_unmatched)
        assert tuple(found) in every
        best = max(matching_weight(one, matching, unmatched) for matching in every)
        assert matching_weight(one, found, unmatched) == pytest.approx(best, abs=1e-12)


def test_no_graphs_have_no_matchings():
    assert best_matchings(np.zeros((0, 2, 3))).shape == (0, 2)
    assert best_matchings(np.zeros((0, 2, 3)), 1.0).shape == (0, 2)
