import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from slatewise.core.running.executor import Executor
from slatewise.factors.queries import IdQueries
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.stages import recall_at
from slatewise.factors.tables import Table, without_padding
from slatewise.recommend.quantized import QuantizedIndex


def table_of(values):
    return Table(np.ascontiguousarray(values, dtype=np.float32), np.zeros((len(values), 0), dtype=np.float32), ())


def top_items(X, numbers, Z, k, hidden=None, n_jobs=2, index=None):
    """Rank rows of Z for rows of X."""
    stages = (Factors(IdQueries(table_of(X)), table_of(Z)),)
    cascade = Cascade(stages) if index is None else Cascade(stages, quantized=lambda stage: index)
    return cascade.top(numbers, k, hidden, Executor(n_jobs))


@pytest.fixture(params=[1 << 15, 1000], ids=["whole", "shares"])
def shares(request, monkeypatch):
    """Few queries rank all items at once, or share after share."""
    monkeypatch.setattr("slatewise.factors.scoring.ITEMS_PER_SHARE", request.param)


def by_sorting(X, Z, k, hidden=None):
    scores = (X @ Z.T).astype(float)
    if hidden is not None:
        scores[hidden] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


@pytest.mark.parametrize(("n_items", "k"), [(1, 1), (5, 5), (70, 3), (2048, 20), (5000, 50), (4097, 200)])
@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.usefixtures("shares")
def test_the_best_items_are_those_of_a_full_sort(n_items, k, ties):
    rng = np.random.default_rng(n_items)
    X, Z = rng.normal(size=(150, 16)), rng.normal(size=(n_items, 16))
    if ties:  # whole numbers: many equal scores, all exact
        X, Z = rng.integers(-2, 3, X.shape), rng.integers(-2, 3, Z.shape)
    X, Z = X.astype(np.float32), Z.astype(np.float32)
    found = top_items(X, np.arange(150), Z, k)
    items, scores = by_sorting(X, Z, k)
    if ties:
        np.testing.assert_array_equal(found.items, items)
        np.testing.assert_array_equal(found.scores, scores)
    else:
        np.testing.assert_allclose(found.scores, scores, atol=1e-5)
        np.testing.assert_allclose(np.einsum("qf,qkf->qk", X, Z[found.items]), found.scores, atol=1e-5)
        assert all(len(set(row)) == k for row in found.items)


@pytest.mark.parametrize("share", [0.01, 0.9])
@pytest.mark.usefixtures("shares")
def test_hidden_items_do_not_show(share):
    rng = np.random.default_rng(0)
    X, Z = (rng.integers(-2, 3, (n, 16)).astype(np.float32) for n in (140, 3000))
    hidden = csr_array(random_array((140, 3000), density=share, rng=1))
    found = top_items(X, np.arange(140), Z, 30, hidden)
    items, scores = by_sorting(X, Z, 30, hidden.toarray() > 0)
    np.testing.assert_array_equal(found.items, items)
    np.testing.assert_array_equal(found.scores, scores)


def test_where_too_few_are_left_places_stay_empty():
    X, Z = np.ones((2, 16), dtype=np.float32), np.ones((4, 16), dtype=np.float32)
    hidden = csr_array(np.array([[1, 0, 1, 1], [0, 0, 0, 0]]))
    found = top_items(X, np.arange(2), Z, 3, hidden)
    assert found.items.tolist() == [[1, -1, -1], [0, 1, 2]]
    assert found.scores[0, 1] == -np.inf


def test_queries_are_called_by_number_and_threads_change_nothing():
    rng = np.random.default_rng(0)
    X, Z = (rng.normal(size=(n, 32)).astype(np.float32) for n in (900, 2500))
    numbers = rng.integers(0, 900, 400)
    one, two = (top_items(X, numbers, Z, 10, n_jobs=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.items, two.items)
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_array_equal(one.items, by_sorting(X[numbers], Z, 10)[0])


@given(st.integers(1, 300), st.integers(1, 12), st.integers(0, 1000))
def test_renumbered_items_are_the_same_items(n_items, k, seed):
    rng = np.random.default_rng(seed)
    X, Z = (rng.normal(size=(n, 16)).astype(np.float32) for n in (3, n_items))
    order = rng.permutation(n_items)
    k = min(k, n_items)
    here = top_items(X, np.arange(3), Z, k)
    there = top_items(X, np.arange(3), Z[order], k)
    np.testing.assert_array_equal(order[there.items], here.items)


def test_recall_is_that_of_a_slow_loop():
    rng = np.random.default_rng(0)
    X, Z = (rng.normal(size=(n, 16)).astype(np.float32) for n in (30, 80))
    queries, items = rng.integers(0, 30, 500), rng.integers(0, 80, 500)
    cascade = Cascade((Factors(IdQueries(table_of(X)), table_of(Z)),))
    ranks = [int(np.sum(Z @ X[q] > (Z @ X[q])[d])) for q, d in zip(queries, items, strict=True)]
    found = recall_at(cascade, queries, items, (1, 7, 1000))
    assert found == {1: np.mean(np.array(ranks) < 1), 7: np.mean(np.array(ranks) < 7), 1000: 1.0}


def test_padding_is_cut_off_but_not_columns_that_some_vector_uses():
    vectors = np.zeros((3, 16), dtype=np.float32)
    assert without_padding(vectors).shape == (3, 1)
    vectors[1, 4] = -1
    np.testing.assert_array_equal(without_padding(vectors), vectors[:, :5])


@pytest.mark.parametrize("n_queries", [0, 1, 40, 700])
@pytest.mark.usefixtures("shares")
def test_few_and_many_queries_have_the_same_bits_with_any_number_of_threads(n_queries):
    rng = np.random.default_rng(3)
    X, Z = (rng.normal(size=(n, 16)).astype(np.float32) for n in (700, 3500))
    hidden = csr_array(random_array((n_queries, 3500), density=0.3, rng=1)) if n_queries else None
    found = [top_items(X, np.arange(n_queries), Z, 25, hidden, threads) for threads in (1, 2, 3)]
    for other in found[1:]:
        np.testing.assert_array_equal(other.items, found[0].items)
        np.testing.assert_array_equal(other.scores, found[0].scores)
    assert found[0].items.shape == (n_queries, 25)


def by_index(X, Z, k, hidden=None, n_jobs=2):
    """Rank for four queries at a time: so few look at the index, which is all they are given."""
    index, nothing = QuantizedIndex.of(Z, Z.shape[1]), np.full_like(Z, np.nan)
    assert index is not None
    parts = [
        top_items(
            X,
            np.arange(first, min(first + 4, len(X))),
            nothing,
            k,
            None if hidden is None else hidden[first : first + 4],
            n_jobs,
            index,
        )
        for first in range(0, len(X), 4)
    ]
    return np.vstack([part.items for part in parts]), np.vstack([part.scores for part in parts])


@pytest.mark.parametrize(("n_items", "k"), [(1, 1), (5, 5), (70, 3), (2048, 20), (4097, 200)])
@pytest.mark.parametrize("width", [1, 16, 51, 600])
@pytest.mark.parametrize("ties", [True, False])
def test_an_index_has_the_items_and_scores_of_a_full_sort(n_items, k, width, ties):
    rng = np.random.default_rng(n_items)
    X, Z = rng.normal(size=(10, width)), rng.normal(size=(n_items, width))
    if ties:
        X, Z = rng.integers(-2, 3, X.shape), rng.integers(-2, 3, Z.shape)
    X, Z = X.astype(np.float32), Z.astype(np.float32)
    found, found_scores = by_index(X, Z, k)
    items, scores = by_sorting(X, Z, k)
    if ties:
        np.testing.assert_array_equal(found, items)
        np.testing.assert_array_equal(found_scores, scores)
    else:
        np.testing.assert_allclose(found_scores, scores, rtol=1e-5, atol=1e-5)
        assert all(len(set(row)) == k for row in found)


@given(st.integers(0, 10_000), st.floats(-44, 34), st.floats(-44, 34), st.floats(0, 30))
def test_an_index_passes_nothing_over_whatever_the_size_of_numbers(seed, query_size, item_size, spread):
    """Rows and columns of very different size: then bytes say least."""
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, 70))
    columns, rows = 10 ** rng.uniform(-spread, 0, width), 10 ** rng.uniform(-spread, 0, (400, 1))
    X = (rng.normal(size=(2, width)) * 10.0 ** min(query_size, 34 - item_size)).astype(np.float32)
    Z = (rng.normal(size=(400, width)) * rows * columns * 10.0**item_size).astype(np.float32)
    items, scores = by_index(X, Z, 15)
    exact = np.sort(X.astype(float) @ Z.T.astype(float), axis=1)[:, ::-1][:, :15]
    size = np.abs(X).astype(float) @ np.abs(Z).T.astype(float)
    slack = 1e-5 * size.max(axis=1, keepdims=True) + width * 2.0**-149
    assert (np.abs(scores - exact) <= slack).all()
    assert all(len(set(row)) == 15 for row in items)


def test_equal_items_of_an_index_rank_by_number_and_hidden_ones_do_not_show():
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(9, 20)).astype(np.float32), rng.normal(size=(300, 20)).astype(np.float32)
    Z = np.vstack([Z, Z])
    hidden = csr_array(random_array((9, 600), density=0.7, rng=1))
    items, scores = by_index(X, Z, 30, hidden)
    for row in range(9):
        assert not set(items[row]) & set(hidden[[row]].indices)
        order = np.lexsort([items[row], -scores[row]])
        np.testing.assert_array_equal(order, np.arange(30))
    expected = by_sorting(X, Z, 30, hidden.toarray() > 0)[1]
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(by_index(X, Z, 30, hidden, threads)[1], scores)


def test_a_vector_of_zeros_ties_all_items_and_items_that_are_not_finite_have_no_index():
    Z = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    items, scores = by_index(np.zeros((1, 7), dtype=np.float32), Z, 5)
    assert items.tolist() == [[0, 1, 2, 3, 4]]
    assert (scores == 0).all()
    Z[3, 2] = np.inf
    assert QuantizedIndex.of(Z, 7) is None
    Z[3, 2] = np.nan
    assert QuantizedIndex.of(Z, 7) is None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("indexed", [True, False])
def test_a_score_that_is_no_number_has_no_place_and_takes_none(indexed):
    X, Z = (np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32) for n in (1, 200))
    X[0, :2] = 1e30
    Z[:, :2] *= 1e-30
    items, scores = by_sorting(X, Z, 200)
    Z[5] = (2e38, -2e38, 0.0) if indexed else np.nan  # inf - inf in the kernel's sum; a product may keep an inf
    keep = items[0] != 5
    found = top_items(X, np.arange(1), Z, 4, index=QuantizedIndex.of(Z, 3) if indexed else None)
    np.testing.assert_array_equal(found.items[0], items[0, keep][:4])
    np.testing.assert_allclose(found.scores[0], scores[0, keep][:4], rtol=1e-5)
