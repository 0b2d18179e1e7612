"""Per-query min-max scaling against the formula in plain Python, and against LETOR's own scaled files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import coo_array, csr_array

from slatewise.data.scaling import minmax_per_query
from slatewise.data.svmlight import read_svmlight


def slow(X: np.ndarray, qid: np.ndarray) -> np.ndarray:
    out = np.zeros_like(X)
    for i in range(len(X)):
        for j in range(X.shape[1]):
            column = [X[k, j] for k in range(len(X)) if qid[k] == qid[i]]
            if max(column) > min(column):
                out[i, j] = (X[i, j] - min(column)) / (max(column) - min(column))
    return out


_values = st.one_of(st.just(0.0), st.floats(-1e6, 1e6), st.integers(-3, 3).map(float))
_shapes = st.tuples(st.integers(1, 8), st.integers(1, 5))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_dense_and_sparse_follow_the_formula(data: st.DataObject) -> None:
    X = data.draw(arrays(np.float64, data.draw(_shapes), elements=_values))
    qid = data.draw(arrays(np.int64, len(X), elements=st.integers(0, 3)))
    before = X.copy()
    expected = slow(X, qid)
    np.testing.assert_array_equal(minmax_per_query(X, qid), expected)
    sparse = minmax_per_query(csr_array(X), qid)
    assert sparse.has_canonical_format
    np.testing.assert_array_equal(sparse.toarray(), expected)
    wide = csr_array(X)
    wide.resize((len(X), 1_000_000_000))
    wide_scaled = minmax_per_query(wide, qid)
    np.testing.assert_array_equal(wide_scaled[:, : X.shape[1]].toarray(), expected)
    np.testing.assert_array_equal(X, before)
    order = data.draw(st.permutations(range(len(X))))
    np.testing.assert_array_equal(minmax_per_query(X[order], qid[order]), expected[order])


def test_an_absent_entry_is_zero() -> None:
    X = csr_array(coo_array(([-2.0, 2.0], ([0, 2], [0, 0])), shape=(3, 1)))
    np.testing.assert_array_equal(minmax_per_query(X, [1, 1, 1]).toarray(), [[0], [0.5], [1]])


def test_a_difference_beyond_the_range_of_float() -> None:
    X = np.array([[-1.5e308], [1.5e308], [0.0]])
    expected = [[0], [1], [0.5]]
    np.testing.assert_array_equal(minmax_per_query(X, [1, 1, 1]), expected)
    np.testing.assert_array_equal(minmax_per_query(csr_array(X), [1, 1, 1]).toarray(), expected)


def test_no_rows() -> None:
    assert minmax_per_query(np.empty((0, 3)), []).shape == (0, 3)
    assert minmax_per_query(csr_array((0, 3)), []).shape == (0, 3)


@pytest.mark.parametrize("make", [np.array, csr_array])
def test_refuses_nan_and_a_wrong_shape(make) -> None:
    with pytest.raises(ValueError, match="X: expected finite numbers, found nan"):
        minmax_per_query(make([[1.0], [np.nan]]), [1, 1])
    with pytest.raises(ValueError, match="qid: expected one id per row"):
        minmax_per_query(make([[1.0], [2.0]]), [1])
    with pytest.raises(ValueError, match="X: expected 2 dimensions"):
        minmax_per_query(np.zeros(3), [1, 1, 1])


@pytest.mark.data
@pytest.mark.parametrize("part", ["part1", "part4"])
def test_equals_the_official_query_level_norm(part: str, shared_data: Path) -> None:
    raw = read_svmlight(shared_data / "ohsumed45" / "raw_min" / f"{part}.txt.xz", scale="minmax")
    official = read_svmlight(shared_data / "ohsumed45" / "querylevelnorm" / f"{part}.txt.xz")
    assert raw.doc_ids is not None
    assert official.doc_ids is not None
    rows = {key: i for i, key in enumerate(zip(raw.qid.tolist(), raw.doc_ids.tolist(), strict=True))}
    order = [rows[key] for key in zip(official.qid.tolist(), official.doc_ids.tolist(), strict=True)]
    difference = np.abs(raw.dense()[order] - official.dense())
    # Both files have six decimals, so a feature that hardly varies within a query is known to few digits.
    assert np.median(difference) < 1e-6
    assert np.quantile(difference, 0.999) < 1e-3
