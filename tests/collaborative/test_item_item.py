"""Item-item weights against the formula with NumPy's inverse, and the tiled inverse against it."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from slatewise.collaborative import item_item
from slatewise.collaborative.inverse import invert_in_place
from slatewise.collaborative.item_item import frequent_items, item_weights
from slatewise.core.running.executor import Executor


def positive_definite(n, seed=0):
    draws = np.random.default_rng(seed).standard_normal((n, n + 5))
    return (draws @ draws.T / n + np.eye(n)).astype(np.float32)


@pytest.mark.parametrize(("n", "tile"), [(1, 4), (4, 4), (5, 4), (37, 8), (64, 16)])
def test_inverse_is_that_of_numpy(n, tile):
    matrix = positive_definite(n)
    lower = np.tril(matrix) + 7 * np.triu(np.ones_like(matrix), 1)  # the upper triangle is not read
    invert_in_place(lower, Executor(1), tile)
    np.testing.assert_allclose(lower, np.linalg.inv(matrix.astype(np.float64)), rtol=0, atol=2e-5)
    np.testing.assert_array_equal(lower, lower.T)


def test_inverse_has_the_same_bits_with_any_number_of_threads():
    matrix = positive_definite(90)
    found = [matrix.copy() for _ in range(3)]
    for n_threads, each in zip((1, 2, 3), found, strict=True):
        invert_in_place(each, Executor(n_threads), 16)
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


def by_formula(histories, regularization, dropout, power=0.5):
    dense = histories.toarray().astype(np.float64)
    weights = np.maximum(dense.sum(axis=1), 1.0) ** -power
    gram = dense.T @ (weights[:, None] * dense)
    ridge = regularization * weights.mean() + dropout * np.diag(gram)
    inverse = np.linalg.inv(gram + np.diag(ridge))
    found = -inverse / np.diag(inverse)
    np.fill_diagonal(found, 0.0)
    return found


@pytest.mark.parametrize("shape", [(60, 25), (25, 60), (40, 40)])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_weights_are_those_of_the_formula(make_matrix, shape, dropout):
    histories = make_matrix(*shape)
    found = item_weights(histories, 5.0, dropout, 1000, Executor(2)).toarray()
    np.testing.assert_allclose(found, by_formula(histories, 5.0, dropout), rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", [(60, 25), (25, 60)])
def test_the_largest_weights_of_each_column_are_kept(make_matrix, shape):
    histories = make_matrix(*shape)
    found = item_weights(histories, 5.0, 0.3, 4, Executor(1)).toarray()
    every = by_formula(histories, 5.0, 0.3)
    assert ((found != 0).sum(axis=0) == 4).all()
    np.testing.assert_allclose(found[found != 0], every[found != 0], rtol=0, atol=1e-5)
    least = np.sort(np.abs(every), axis=0)[-4]
    assert (np.abs(every[found != 0]) >= np.broadcast_to(least, every.shape)[found != 0] - 1e-5).all()


def test_weights_of_interactions_count(make_matrix):
    histories = make_matrix(30, 12)
    histories.data[:] = np.random.default_rng(1).random(histories.nnz) + 0.5
    found = item_weights(histories, 5.0, 0.3, 1000, Executor(1)).toarray()
    np.testing.assert_allclose(found, by_formula(histories, 5.0, 0.3), rtol=0, atol=1e-5)


def test_too_many_users_and_items_leave_weights_between_frequent_items(make_matrix):
    histories = make_matrix(40, 30)
    kept = frequent_items(histories, 10)
    counts = np.bincount(histories.indices, minlength=30)
    assert counts[kept].min() >= np.delete(counts, kept).max()
    found = item_weights(histories, 5.0, 0.3, 1000, Executor(1), most_items=10).toarray()
    among = item_weights(csr_array(histories[:, kept]), 5.0, 0.3, 1000, Executor(1)).toarray()
    np.testing.assert_array_equal(found[np.ix_(kept, kept)], among)
    assert np.count_nonzero(found) == np.count_nonzero(among)


@pytest.mark.parametrize("shape", [(40, 30), (10, 30)])
def test_one_small_side_is_enough_for_all_items(make_matrix, shape):
    histories = make_matrix(*shape)
    found = item_weights(histories, 5.0, 0.3, 1000, Executor(1), most_items=min(shape))
    np.testing.assert_array_equal(found.toarray(), item_weights(histories, 5.0, 0.3, 1000, Executor(1)).toarray())


@pytest.mark.parametrize("shape", [(60, 25), (25, 60)])
def test_the_size_of_blocks_leaves_the_bits(make_matrix, shape, monkeypatch):
    histories = make_matrix(*shape)
    whole = item_weights(histories, 5.0, 0.3, 4, Executor(1)).toarray()
    monkeypatch.setattr(item_item, "MOST_ENTRIES", 100)
    assert item_weights(histories, 5.0, 0.3, 4, Executor(1)).toarray().tobytes() == whole.tobytes()


@pytest.mark.parametrize("shape", [(3, 24), (17, 24), (24, 17)])
@pytest.mark.parametrize("weight", [1e-30, 1e10])
def test_extreme_weights_without_dropout_leave_finite_weights(make_matrix, shape, weight):
    histories = make_matrix(*shape, 0.6)
    histories.data[:] = weight * 10.0 ** -np.random.default_rng(0).integers(4, size=histories.nnz)
    assert np.isfinite(item_weights(histories, 1e-6, 0.0, 5, Executor(1)).data).all()


def test_with_few_users_four_times_as_many_items_have_weights(make_matrix):
    histories = make_matrix(4, 30, 0.5)
    found = item_weights(histories, 5.0, 0.3, 1000, Executor(1), most_items=5).toarray()
    kept = frequent_items(histories, 20)
    assert not np.delete(found, kept, axis=0).any()
    assert not np.delete(found, kept, axis=1).any()
    among = item_weights(csr_array(histories[:, kept]), 5.0, 0.3, 1000, Executor(1)).toarray()
    np.testing.assert_array_equal(found[np.ix_(kept, kept)], among)


def test_no_zeros_are_stored():
    histories = csr_array(([1.0, 1.0], [0, 1], [0, 1, 2]), shape=(2, 2000), dtype=np.float32)
    assert item_weights(histories, 5.0, 0.3, 50, Executor(1)).nnz == 0


def test_penalties_that_are_too_small_are_named(monkeypatch):
    monkeypatch.setattr(item_item, "LEAST", 0.0)
    together = csr_array(np.ones((9, 8), dtype=np.float32))
    together.data[:] = 1e9
    with pytest.raises(ValueError, match="ItemItem: too many items always occur together"):
        item_weights(together, 1e-6, 0.0, 5, Executor(1))
