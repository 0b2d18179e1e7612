"""Alternating least squares against dense normal equations, solved by NumPy."""

import numpy as np
import pytest

from slatewise.collaborative.als import Rows, fit_items, gram_of, user_vectors
from slatewise.collaborative.kernels.als import solve_rows
from slatewise.core.running.executor import Executor

REGULARIZATION, UNOBSERVED = 0.02, 0.1


def exact_rows(matrix, others):
    dense, others = matrix.toarray().astype(np.float64), others.astype(np.float64)
    found = np.zeros((len(dense), others.shape[1]))
    for row, entries in enumerate(dense):
        seen = entries > 0
        if seen.any():
            ridge = REGULARIZATION * (seen.sum() + UNOBSERVED * len(others))
            gram = (others.T * (entries + UNOBSERVED)) @ others + ridge * np.eye(others.shape[1])
            found[row] = np.linalg.solve(gram, others.T @ entries)
    return found


def objective(matrix, users, items):
    dense, scores = matrix.toarray().astype(np.float64), users.astype(np.float64) @ items.astype(np.float64).T
    (n_users, n_items), seen = dense.shape, dense > 0
    loss = (dense * (1 - scores) ** 2).sum() + UNOBSERVED * (scores**2).sum()
    by_user = (seen.sum(axis=1) + UNOBSERVED * n_items) @ (users**2).sum(axis=1)
    by_item = (seen.sum(axis=0) + UNOBSERVED * n_users) @ (items**2).sum(axis=1)
    return loss + REGULARIZATION * (by_user + by_item)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-6), (np.float32, 1e-4)])
def test_rows_are_those_of_the_normal_equations(make_matrix, dtype, tolerance):
    matrix = make_matrix(20, 30)
    matrix.data[:] = np.random.default_rng(1).random(matrix.nnz) + 0.5
    others = np.random.default_rng(2).standard_normal((30, 10)).astype(dtype)
    rows, gram = np.zeros((20, 10), dtype=dtype), dtype(UNOBSERVED) * (others.T @ others)
    ridge = (REGULARIZATION * (np.diff(matrix.indptr) + UNOBSERVED * 30)).astype(dtype)
    entries = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(dtype)
    solve_rows(0, 20, *entries, others, gram, ridge, 10, rows)
    np.testing.assert_allclose(rows, exact_rows(matrix, others), rtol=0, atol=tolerance)
    for _ in range(200):  # a few coordinates at a time arrive at the same point
        solve_rows(0, 20, *entries, others, gram, ridge, 3, rows)
    np.testing.assert_allclose(rows, exact_rows(matrix, others), rtol=0, atol=tolerance)


def test_every_pass_lowers_the_objective(make_matrix):
    matrix, executor = make_matrix(25, 15), Executor(1)
    values = []
    for epochs in (1, 2, 4, 8):
        items = fit_items(matrix, 6, REGULARIZATION, UNOBSERVED, epochs, np.random.default_rng(0), executor)
        users = user_vectors(matrix, items, gram_of(items, UNOBSERVED), REGULARIZATION, UNOBSERVED, executor)
        values.append(objective(matrix, users, items))
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


def test_empty_histories_have_no_vector(make_matrix):
    matrix = make_matrix(4, 6)
    empty = matrix[:0]
    items = np.ones((6, 3), dtype=np.float32)
    gram = gram_of(items, UNOBSERVED)
    assert user_vectors(empty, items, gram, REGULARIZATION, UNOBSERVED, Executor(1)).shape == (0, 3)
    none = matrix * 0
    none.eliminate_zeros()
    assert not user_vectors(none, items, gram, REGULARIZATION, UNOBSERVED, Executor(1)).any()


def test_the_same_bits_with_any_number_of_threads(make_matrix):
    matrix = make_matrix(3000, 40, 0.05)
    one, two = (
        fit_items(matrix, 8, REGULARIZATION, UNOBSERVED, 2, np.random.default_rng(0), Executor(n)) for n in (1, 2)
    )
    assert one.tobytes() == two.tobytes()


def test_rows_take_any_index_type(make_matrix):
    rows = Rows.of(make_matrix(5, 5))
    assert (rows.offsets.dtype, rows.places.dtype, rows.weights.dtype) == (np.int64, np.int32, np.float32)


@pytest.mark.parametrize("weight", [1e-30, 1e6, 1e10])
def test_extreme_weights_and_penalties_leave_finite_vectors(make_matrix, weight):
    matrix = make_matrix(20, 12, 0.5)
    matrix.data[:] = weight
    for a0 in (1e-6, 1e9):
        items = fit_items(matrix, 16, 1e-6, a0, 4, np.random.default_rng(0), Executor(1))
        assert np.isfinite(items).all()
        assert np.isfinite(user_vectors(matrix, items, gram_of(items, a0), 1e-6, a0, Executor(1))).all()
