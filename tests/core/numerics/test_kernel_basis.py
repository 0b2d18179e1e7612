import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import chi2_kernel, rbf_kernel

from slatewise.core.numerics.row_kernels import KERNELS, kernel_basis


@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 1000))
def test_the_features_give_back_the_kernel(n, rank, seed):
    A = np.random.default_rng(seed).normal(size=(n, rank))
    K = A @ A.T
    basis = kernel_basis(lambda row: K[:, row], K.diagonal())
    assert len(basis.pivots) <= min(n, rank)
    np.testing.assert_allclose(basis.phi @ basis.phi.T, K, atol=1e-6 * max(1.0, K.max()))


def test_dual_weights_score_new_rows_as_the_features_do():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    basis = kernel_basis(lambda row: X @ X[row], (X**2).sum(axis=1))
    weights = rng.normal(size=(4, basis.phi.shape[1]))
    direct = X @ X[basis.pivots].T @ basis.dual(weights)
    np.testing.assert_allclose(direct, basis.phi @ weights.T, atol=1e-8)


def test_fewer_components_leave_a_remainder():
    X = np.random.default_rng(0).normal(size=(30, 5))
    K = rbf_kernel(X)
    errors = [
        np.abs(K - basis.phi @ basis.phi.T).max()
        for basis in (kernel_basis(lambda row: K[:, row], K.diagonal(), most) for most in (2, 10, 30))
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-6


@pytest.mark.parametrize("name", ["rbf", "chi2", "intersection"])
def test_row_kernels_equal_other_libraries(name):
    rng = np.random.default_rng(0)
    X, Y = rng.random((9, 4)), rng.random((5, 4))
    X[0] = Y[0] = 0.0
    judge = {
        "rbf": lambda: rbf_kernel(X, Y, gamma=0.7),
        "chi2": lambda: chi2_kernel(X, Y, gamma=0.7),
        "intersection": lambda: np.minimum(X[:, None], Y).sum(axis=2),
    }[name]()
    kernel = KERNELS[name].of(X, 0.7)
    np.testing.assert_allclose(kernel.compare(X, Y), judge, rtol=1e-12)
    square = kernel.compare(X, X)
    np.testing.assert_allclose(kernel.diagonal(X), square.diagonal(), rtol=1e-12)
    np.testing.assert_allclose(kernel.column(X, 3), square[:, 3], rtol=1e-12)
