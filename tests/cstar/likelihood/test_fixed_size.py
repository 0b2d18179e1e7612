"""The likelihood of a c-star model against the definition: every set of k labels."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from slatewise.cstar.likelihood.objective import AdjustedScores, FixedSizeLikelihood

CORE = np.array([4, 1, 2])


def problem(seed, n=8):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, 6)) < 0.4).astype(float)
    Y[0], Y[1] = 1.0, np.eye(6)[2]
    Y = Y[Y.sum(axis=1) > 0]
    k = Y.sum(axis=1).astype(np.int64)
    return FixedSizeLikelihood(AdjustedScores(rng.normal(size=Y.shape), CORE), Y, k, rng.random(len(Y)))


def free(model):
    """Which parameters there are: not an item with itself, and a pair of core items once."""
    flags = np.ones(model.n_params, dtype=bool)
    G = model.unpack(flags)[2]
    for row in range(3):
        G[row, CORE[: row + 1]] = False
    return flags


def slow_value(likelihood, params):
    a, v, G = likelihood.model.unpack(params)
    total = 0.0
    for given, labels, weight in zip(likelihood.model.given, likelihood.Y, likelihood.weight, strict=True):

        def f(items, given=given):
            pairs = sum(G[row, i] for row, c in enumerate(CORE) for i in items if c in items and i not in CORE)
            among = sum(G[row, d] for row, c in enumerate(CORE) for d in CORE[row + 1 :] if {c, d} <= set(items))
            return sum((1 + a[i]) * given[i] + v[i] for i in items) + pairs + among

        relevant = tuple(np.flatnonzero(labels))
        z = sum(np.exp(f(items)) for items in combinations(range(6), len(relevant)))
        total += weight * (np.log(z) - f(relevant))
    return total


@pytest.mark.parametrize("seed", range(4))
def test_value_and_gradient_equal_the_definition(seed):
    likelihood = problem(seed)
    flags = free(likelihood.model)
    params = np.random.default_rng(seed).normal(size=likelihood.n_params) * flags
    value, gradient = likelihood.value_and_grad(params)
    assert value == pytest.approx(slow_value(likelihood, params))
    numeric = approx_fprime(params, lambda p: slow_value(likelihood, p), 1e-6)
    np.testing.assert_allclose(gradient, numeric * flags, atol=1e-4)


def test_it_is_convex_along_a_line():
    likelihood = problem(5)
    rng = np.random.default_rng(6)
    start, way = rng.normal(size=(2, likelihood.n_params)) * free(likelihood.model)
    values = [likelihood.value_and_grad(start + t * way)[0] for t in np.linspace(0, 2, 9)]
    assert (np.diff(values, 2) > 0).all()
