"""The Bethe permanent against direct maximisation, its proven bounds, and finite differences."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize
from tests.matchings import log_sum_and_marginals, random_weights

from slatewise.inference import permanent
from slatewise.matching.sums import bethe


def by_maximisation(w):
    """Maximise the Bethe function over all P directly."""
    n_rows, n_columns = w.shape
    square = n_rows == n_columns

    def loss(flat):
        p = np.clip(flat.reshape(w.shape), 1e-12, 1 - 1e-12)
        unused = np.clip(1 - p.sum(axis=0), 1e-12, None)
        spare = 0.0 if square else (unused * np.log(unused)).sum()
        return -(p * w - p * np.log(p) + (1 - p) * np.log(1 - p)).sum() + spare

    rows = np.kron(np.eye(n_rows), np.ones(n_columns))
    columns = np.kron(np.ones(n_rows), np.eye(n_columns))
    limits = [LinearConstraint(rows, 1, 1)]
    # In a square matrix the rows' sums imply the last column's, and SLSQP wants independent constraints.
    limits.append(LinearConstraint(columns[:-1], 1, 1) if square else LinearConstraint(columns, 0, 1))
    start = np.full(w.size, 1 / n_columns)
    done = minimize(loss, start, method="SLSQP", bounds=[(0, 1)] * w.size, constraints=limits, tol=1e-13)
    return -done.fun, done.x.reshape(w.shape)


@pytest.mark.parametrize("shape", [(3, 3), (4, 4), (2, 4), (3, 5)], ids=str)
def test_equal_to_direct_maximisation(shape):
    w = np.random.default_rng(0).normal(size=shape)
    value, beliefs = by_maximisation(w)
    result = permanent(w, "bethe")
    assert result.log_z == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(result.marginals, beliefs, atol=1e-4)


@pytest.mark.parametrize("spread", [1.0, 10.0, 300.0])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (4, 4), (6, 6), (3, 6), (1, 4)], ids=str)
def test_the_bound_holds(shape, spread):
    w = random_weights(np.random.default_rng(1), 10, *shape, spread, 0.2)
    result = permanent(w, "bethe")
    truth = np.array([log_sum_and_marginals(matrix)[0] for matrix in w])
    assert (result.log_z <= truth + 1e-8).all()
    assert (truth <= result.log_z + result.error + 1e-8).all()
    np.testing.assert_allclose(result.marginals.sum(axis=2), 1.0, atol=1e-7)
    assert (result.kind, result.exact) == ("bound", False)


@pytest.mark.parametrize("shape", [(5, 5), (4, 9)], ids=str)
def test_marginals_are_the_gradient(shape):
    rng, step = np.random.default_rng(2), 1e-4
    w = rng.normal(size=shape)
    marginals = permanent(w, "bethe").marginals
    for _ in range(5):
        direction = rng.normal(size=shape)
        ahead, back = (permanent(w + sign * step * direction, "bethe").log_z for sign in (1, -1))
        assert (ahead - back) / (2 * step) == pytest.approx(np.sum(direction * marginals), abs=1e-6)


def test_large_matrices_and_threads():
    w = np.random.default_rng(3).normal(size=(6, 50, 50))
    one, two = permanent(w, "bethe", n_jobs=1), permanent(w, "bethe", n_jobs=2)
    assert one.marginals.tobytes() == two.marginals.tobytes()
    np.testing.assert_allclose(one.marginals.sum(axis=1), 1.0, atol=1e-7)


def test_not_at_rest_is_a_warning(monkeypatch):
    monkeypatch.setattr(bethe, "ROUNDS", 1)
    with pytest.warns(bethe.BetheWarning, match="Bethe: 1 of 1 matrices not at rest after 1 rounds"):
        permanent(np.random.default_rng(4).normal(size=(5, 5)), "bethe")
