"""Item-item weights against the formula with NumPy's inverse, and the tiled inverse against it."""

import numpy as np
import pytest

from slatewise.collaborative.inverse import invert_in_place
from slatewise.collaborative.item_item import item_weights
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
