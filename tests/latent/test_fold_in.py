"""Folding in: the gradient by finite differences, the answer by another solver, the certificate, the rules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import NonlinearConstraint, minimize
from scipy.sparse import csr_array

from slatewise.core.running.executor import Executor
from slatewise.latent.fold_in import TOLERANCE, Wanted, cost_and_gradient, fold_in


def problem(seed, n_queries=4, n_items=30, n=5):
    rng = np.random.default_rng(seed)
    seen = rng.poisson(0.2, (n_queries, n_items)).astype(float)
    seen[:, 0] += 1.0
    return seen, rng.normal(size=(n_items, n)), rng.normal(size=n_items)


def cost_of(u, weights, factors, biases):
    """The formula, item by item."""
    scores = np.array([u @ v + b for v, b in zip(factors, biases, strict=True)])
    shares = weights / weights.sum()
    return np.log(np.exp(scores).sum()) - sum(c * s for c, s in zip(shares, scores, strict=True))


def test_the_gradient_is_that_of_the_formula():
    seen, factors, biases = problem(0)
    u = np.random.default_rng(1).normal(size=(4, 5))
    shares = seen / seen.sum(axis=1, keepdims=True)
    cost, gradient = cost_and_gradient(u, Wanted(shares @ factors, shares @ biases), factors, biases)
    for q in range(4):
        assert cost[q] == pytest.approx(cost_of(u[q], seen[q], factors, biases))
        for f in range(5):
            there = np.eye(5)[f] * 1e-5
            slope = (
                cost_of(u[q] + there, seen[q], factors, biases) - cost_of(u[q] - there, seen[q], factors, biases)
            ) / 2e-5
            assert gradient[q, f] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("max_norm", [0.3, 2.5, 20.0])
def test_another_solver_finds_the_same(max_norm):
    seen, factors, biases = problem(2)
    found = fold_in(csr_array(seen), factors, biases, max_norm)
    assert (np.linalg.norm(found.rows, axis=1) <= max_norm * (1 + 1e-12)).all()
    ball = NonlinearConstraint(lambda u: u @ u, 0, max_norm**2, jac=lambda u: 2 * u[None])
    for q in range(4):
        best = minimize(cost_of, np.zeros(5), (seen[q], factors, biases), "SLSQP", constraints=ball, tol=1e-12)
        assert found.objective[q] == pytest.approx(cost_of(found.rows[q], seen[q], factors, biases))
        assert found.lower_bound[q] <= best.fun + 1e-9
        assert found.objective[q] <= best.fun + TOLERANCE
    assert found.gap <= TOLERANCE


@given(st.integers(0, 2**32 - 1))
def test_order_of_items_scale_of_weights_and_a_common_bias_change_nothing(seed):
    seen, factors, biases = problem(seed, n_queries=2)
    order = np.random.default_rng(seed).permutation(30)
    one = fold_in(csr_array(seen), factors, biases, 2.0)
    other = fold_in(csr_array(7.0 * seen[:, order]), factors[order], biases[order] + 3.0, 2.0)
    np.testing.assert_allclose(other.rows, one.rows, atol=1e-6)


def test_a_row_is_the_same_alone_and_among_others():
    seen, factors, biases = problem(5, n_queries=12)
    together = fold_in(csr_array(seen), factors, biases, 3.0)
    alone = np.concatenate([fold_in(csr_array(seen[q : q + 1]), factors, biases, 3.0).rows for q in range(12)])
    np.testing.assert_allclose(together.rows, alone, atol=1e-9)
    assert together.gap <= TOLERANCE


def test_who_saw_nothing_gets_zeros():
    seen, factors, biases = problem(3)
    seen[1] = 0.0
    found = fold_in(csr_array(seen), factors, biases, 2.0)
    assert not found.rows[1].any()
    assert found.rows[0].any()
    assert fold_in(csr_array((0, 30)), factors, biases, 2.0).rows.shape == (0, 5)


def test_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr("slatewise.latent.fold_in._SCORES_PER_BLOCK", 60)
    seen, factors, biases = problem(4, n_queries=9)
    one, two = (
        fold_in(csr_array(seen), factors.astype(np.float32), biases.astype(np.float32), 2.0, Executor(t))
        for t in (1, 2)
    )
    assert one.rows.tobytes() == two.rows.tobytes()
