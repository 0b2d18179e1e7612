import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import average_precision_score
from sklearn.metrics.pairwise import euclidean_distances
from tests.shipped import EXECUTORS

from slatewise.core.numerics.row_kernels import Rbf
from slatewise.metric_learning import distance
from slatewise.metric_learning.distance import catalogue_scores, factor, mean_average_precision, nearest, squares
from slatewise.metric_learning.problem import kernel_features, plain_features, span_features
from slatewise.metric_learning.relevance import same_class


def test_the_factor_of_a_metric_has_its_rank():
    rng = np.random.default_rng(0)
    L = rng.normal(size=(2, 5))
    found = factor(L.T @ L)
    assert found.shape == (2, 5)
    np.testing.assert_allclose(found.T @ found, L.T @ L, atol=1e-12)
    assert np.linalg.norm(found[0]) >= np.linalg.norm(found[1])
    assert factor(np.zeros((3, 3))).shape == (0, 3)


def test_scores_are_distances_up_to_a_constant_per_query():
    rng = np.random.default_rng(0)
    Q, X = rng.normal(size=(4, 3)), rng.normal(size=(7, 3))
    scores = catalogue_scores(Q, X, squares(X)) - squares(Q)[:, None]
    np.testing.assert_allclose(scores, -(euclidean_distances(Q, X) ** 2), atol=1e-12)


@pytest.mark.parametrize("k", [1, 3, 40])
def test_nearest_items_first(k, monkeypatch):
    monkeypatch.setattr(distance, "BLOCK_BYTES", 2000)
    rng = np.random.default_rng(0)
    Q, X = rng.integers(0, 4, size=(30, 2)).astype(float), rng.integers(0, 4, size=(40, 2)).astype(float)
    distances = euclidean_distances(Q, X, squared=True).round(9)
    expected = np.argsort(distances, axis=1, kind="stable")[:, :k]
    for executor in EXECUTORS:
        places, scores = nearest(Q, X, k, executor)
        np.testing.assert_array_equal(places, expected)
        np.testing.assert_allclose(-scores, np.take_along_axis(distances, expected, axis=1), atol=1e-9)
        assert (scores <= 0.0).all()
        assert (np.diff(scores, axis=1) <= 0.0).all()
    assert [part.shape for part in nearest(Q[:0], X, k)] == [(0, k), (0, k)]


def test_mean_average_precision_of_a_catalogue(monkeypatch):
    monkeypatch.setattr(distance, "BLOCK_BYTES", 2000)
    rng = np.random.default_rng(0)
    Q, X, query_class, y = rng.normal(size=(20, 3)), rng.normal(size=(50, 3)), np.arange(20) % 4, np.arange(50) % 3
    distances = euclidean_distances(Q, X)
    each = [average_precision_score(y == query_class[q], -distances[q]) for q in range(20) if query_class[q] < 3]
    found = mean_average_precision(Q, X, same_class(query_class, y, np.full(20, -1)))
    assert found == pytest.approx(np.mean(each))


def test_sparse_points_are_centred_where_all_store_a_value():
    X = np.array([[1e9 + 1, 5.0, 0.0, 7.0], [1e9 + 4, 5.0, 2.0, 8.0], [1e9 + 7, 5.0, 0.0, 9.0]])
    Q = np.array([[1e9, 6.0, 0.0, 0.0], [1e9 + 2, 0.1, 3.0, 1.0]])
    items, queries = csr_array(X), csr_array(Q)
    alone = plain_features(items, items)
    assert alone.queries is alone.items
    assert alone.items.toarray().tolist() == [[-3, 0, 0, -1], [0, 0, 2, 0], [3, 0, 0, 1]]
    apart = plain_features(queries, items)  # the last column is not stored by every query
    assert apart.items.toarray().tolist() == [[-3, 0, 0, 7], [0, 0, 2, 8], [3, 0, 0, 9]]
    np.testing.assert_array_equal(apart.queries.toarray(), [[-4, 1, 0, 0], [-2, 0.1 - 5, 3, 1]])
    assert apart.items.nnz == items.nnz
    assert (items.toarray() == X).all()
    assert (queries.toarray() == Q).all()


def test_an_entry_stored_in_two_parts_is_one_entry():
    twice = csr_array((np.array([1.0, 2.0, 6.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert plain_features(twice, twice).items.toarray().tolist() == [[3, 0], [0, 6]]
    span = span_features(twice, twice)
    assert len(span.queries) == len(span.items) == 2


@pytest.mark.parametrize("sparse", [False, True])
def test_the_span_of_the_points_keeps_all_distances(sparse):
    rng = np.random.default_rng(0)
    Q, X = rng.normal(size=(3, 20)), rng.normal(size=(5, 20))
    points = span_features(csr_array(Q), csr_array(X)) if sparse else span_features(Q, X)
    np.testing.assert_allclose(euclidean_distances(points.queries, points.items), euclidean_distances(Q, X))
    L = rng.normal(size=(2, points.items.shape[1]))
    back = points.components(L)
    np.testing.assert_allclose(
        euclidean_distances(Q @ back.T, X @ back.T), euclidean_distances(points.queries @ L.T, points.items @ L.T)
    )


def test_kernel_features_map_new_points_like_old_ones():
    rng = np.random.default_rng(0)
    X, kernel = rng.normal(size=(12, 3)), Rbf(0.3)
    points = kernel_features(kernel, X, X, None)
    np.testing.assert_allclose(points.items @ points.items.T, kernel.compare(X, X), atol=1e-8)
    L = rng.normal(size=(2, points.items.shape[1]))
    mapped = kernel.compare(X, points.basis) @ points.components(L).T
    np.testing.assert_allclose(mapped, points.items @ L.T, atol=1e-6)


def test_plain_features_centre_dense_points():
    X = np.array([[1.0, 2.0], [3.0, 6.0]])
    points = plain_features(X, X)
    np.testing.assert_array_equal(points.items, [[-1.0, -2.0], [1.0, 2.0]])
    assert points.queries is points.items
