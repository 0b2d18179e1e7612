"""Collapsing classes: the divergence by its definition, its gradient by differences, the optimum by another solver."""

import numpy as np
import pytest
from scipy.optimize import minimize

from slatewise.core.numerics.result import ConvergenceWarning
from slatewise_papers.learners.mlcc import CollapseObjective, collapse_classes


def divergence(X, y, W):
    """The mean divergence, pair by pair."""
    values = []
    for i in range(len(X)):
        same = [j for j in range(len(X)) if j != i and y[j] == y[i]]
        if same:
            others = [j for j in range(len(X)) if j != i]
            weight = np.exp([-(X[i] - X[j]) @ W @ (X[i] - X[j]) for j in others])
            chance = dict(zip(others, weight / weight.sum(), strict=True))
            values.append(sum(np.log(1 / len(same) / chance[j]) for j in same) / len(same))
    return np.mean(values)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = np.array([0] * 8 + [1] * 7 + [2] * 6 + [3])  # the last is alone in its class
    return rng.normal(size=(22, 3)) + 0.8 * np.column_stack([y == 1, y == 2, 0 * y]), y


def test_value_and_gradient(rows):
    X, y = rows
    rng = np.random.default_rng(1)
    L, step = rng.normal(size=(3, 3)), 1e-6
    objective, W = CollapseObjective(X - X.mean(axis=0), y), L.T @ L
    value, gradient = objective.value_and_grad(L)
    assert value == pytest.approx(divergence(X, y, W))
    np.testing.assert_allclose(gradient, gradient.T)
    for _ in range(5):
        change = rng.normal(size=(3, 3))
        change = change + change.T
        slope = (divergence(X, y, W + step * change) - divergence(X, y, W - step * change)) / (2 * step)
        assert (gradient * change).sum() == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("C", [1.0, 30.0])
def test_no_metric_is_better(rows, C):
    X, y = rows
    fit = collapse_classes(X, y, C, tol=1e-4)
    W = fit.params.T @ fit.params
    assert fit.converged
    assert fit.objective == pytest.approx(np.trace(W) + C * divergence(X, y, W))

    def value(factor):
        M = factor.reshape(3, 3)
        return (M**2).sum() + C * divergence(X, y, M.T @ M)

    found = minimize(value, np.eye(3).ravel(), tol=1e-7)
    assert fit.lower_bound <= found.fun <= fit.objective * (1 + 1e-4)
    assert found.fun >= fit.lower_bound


def test_a_lost_direction_comes_back():
    """The direction that tells the classes apart is tiny: the first factor hardly has it."""
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], 20)
    X = np.column_stack([1e3 * rng.normal(size=40), y + 0.1 * rng.normal(size=40)])
    fit = collapse_classes(X, y, 100.0)
    assert fit.converged
    assert abs(fit.params[0, 1]) > 10 * abs(fit.params[0, 0])


def test_rotating_the_rows_rotates_the_metric(rows):
    X, y = rows
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    plain, turned = collapse_classes(X, y, tol=1e-6), collapse_classes(X @ turn + 5.0, y, tol=1e-6)
    assert turned.objective == pytest.approx(plain.objective, rel=1e-5)
    W, V = plain.params.T @ plain.params, turned.params.T @ turned.params
    np.testing.assert_allclose(turn @ V @ turn.T, W, atol=1e-2)


def test_threads_do_not_change_a_bit(rows, monkeypatch):
    monkeypatch.setattr("slatewise_papers.learners.mlcc._BLOCK_ROWS", 5)
    one, two = (collapse_classes(*rows, n_jobs=n) for n in (1, 2))
    assert one.params.tobytes() == two.params.tobytes()


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 + 0.1])
def test_rows_that_are_all_the_same_leave_nothing_to_learn(value):
    X, y = np.full((7, 2), value), np.array([0, 0, 0, 1, 1, 1, 1])
    fit = collapse_classes(X, y, 3.0)
    assert fit.converged
    assert fit.params.shape == (0, 2)
    assert fit.objective == fit.lower_bound == pytest.approx(3.0 * divergence(X, y, np.zeros((2, 2))))


def test_an_early_end_is_a_warning(rows):
    with pytest.warns(ConvergenceWarning, match="certified gap"):
        fit = collapse_classes(*rows, C=1e3, max_iter=2)
    assert not fit.converged
    assert 0 <= fit.lower_bound <= fit.objective


@pytest.mark.parametrize(
    ("X", "y", "C", "message"),
    [
        ([[1.0], [np.nan]], [0, 1], 1.0, "X: expected finite numbers"),
        ([1.0, 2.0], [0, 1], 1.0, "X: expected 2 dimensions"),
        ([[1.0], [2.0]], [0, 1, 1], 1.0, "y: expected one class per row"),
        ([[1.0], [2.0]], [1, 1], 1.0, "y: expected at least two classes"),
        ([[1.0], [2.0]], [0, 1], 1.0, "y: expected at least two classes, one with two rows"),
        ([[1.0], [2.0], [3.0]], [0, 1, 1], 0.0, "C: expected a finite number > 0"),
    ],
)
def test_bad_input_is_refused(X, y, C, message):
    with pytest.raises(ValueError, match=message):
        collapse_classes(X, y, C)
