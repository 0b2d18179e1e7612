"""The reference lists every selection of every row as a constraint and solves the whole program; no code is shared."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from slatewise.core.numerics.bundle import Cuts, one_slack
from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.core.running.executor import Executor
from slatewise.cstar.inference.best_set import argmax_block
from slatewise.cstar.margin.problem import StarHinge, StarProblem
from slatewise.cstar.margin.solvers import Settings, bcfw, regularizer_weights, subgradient
from slatewise.data.labels import as_sets

CORE = np.array([3, 1])


def at(C, rho=1.0, tol=1e-3, max_iter=500):
    return Settings(C, rho, tol, max_iter, random_state=0)


def make_hinge(offset=False, own_features=False, n=12, n_items=5, seed=0, weight=None, n_jobs=1):
    rng = np.random.default_rng(seed)
    Y = rng.random((n, n_items)) < 0.45
    Y[np.arange(n), rng.integers(0, n_items, n)] = True
    k = Y.sum(axis=1)
    phi = rng.normal(size=(n * n_items if own_features else n, 3))
    weight = np.full(n, 1 / n) if weight is None else weight
    fixed = rng.normal(size=(n, n_items)) if offset else None
    problem = StarProblem(n_items, phi, as_sets(Y), k, weight, CORE, fixed)
    return StarHinge(problem, (1.0 - Y) / k[:, None], Executor(n_jobs))


def features(hinge, m, items):
    """phi(t) as a flat vector, by the formula."""
    W = np.zeros((hinge.problem.n_items, hinge.problem.phi.shape[1]))
    for i in items:
        W[i] = hinge.problem.phi[m if hinge.problem.shared else m * hinge.problem.n_items + i]
    G = np.zeros((2, hinge.problem.n_items))
    for i, j in combinations(sorted(items), 2):
        for a, c in enumerate(CORE):
            if c in (i, j):
                G[a, j if c == i else i] = 1.0
                break
    return np.concatenate([W.ravel(), G.ravel()])


def all_constraints(hinge):
    """For each list: psi (selections, params) and constants, so that the hinge is max of constant + psi . w."""
    for m in range(hinge.problem.n_lists):
        target = hinge.problem.target[m][hinge.problem.target[m] >= 0]
        rows, constants = [], []
        for items in combinations(range(hinge.problem.n_items), hinge.problem.k[m]):
            rows.append(features(hinge, m, items) - features(hinge, m, target))
            constant = hinge.item_loss[m, list(items)].sum()
            if hinge.problem.offset is not None:
                constant += hinge.problem.offset[m, list(items)].sum() - hinge.problem.offset[m, target].sum()
            constants.append(constant)
        yield np.array(rows), np.array(constants)


def random_params(hinge, rng):
    """Random parameters; an item has no pair with itself, and a pair of core items stands in one row only."""
    w = rng.normal(size=hinge.problem.n_params)
    hinge.problem.unpack(w)[1][[0, 1, 1], [CORE[0], CORE[1], CORE[0]]] = 0.0
    return w


def slow_risk(hinge, w):
    return sum(
        weight * (constants + psi @ w).max()
        for weight, (psi, constants) in zip(hinge.problem.weight, all_constraints(hinge), strict=True)
    )


def best_objective(hinge, weights, C):
    """min 1/2 w'Rw + C sum omega xi, with every constraint, by a general solver."""
    size, n = hinge.problem.n_params, hinge.problem.n_lists
    blocks = list(all_constraints(hinge))
    A = np.vstack([np.hstack([-psi, np.eye(n)[[m] * len(psi)]]) for m, (psi, _) in enumerate(blocks)])
    b = np.concatenate([constants for _, constants in blocks])
    cost = np.append(np.zeros(size), C * hinge.problem.weight)
    penalty = np.append(weights, np.zeros(n))
    start = np.append(np.zeros(size), [constants.max() for _, constants in blocks])
    found = minimize(
        lambda x: 0.5 * x @ (penalty * x) + cost @ x,
        start,
        jac=lambda x: penalty * x + cost,
        constraints={"type": "ineq", "fun": lambda x: A @ x - b, "jac": lambda x: A},
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 500},
    )
    assert found.success
    return found.fun


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("own_features", [False, True])
@pytest.mark.parametrize(("C", "rho"), [(1.0, 1.0), (20.0, 0.2)])
def test_certificates_enclose_the_optimum(offset, own_features, C, rho):
    hinge = make_hinge(offset, own_features)
    weights = regularizer_weights(hinge.problem, rho)
    optimum = best_objective(hinge, weights, C)
    for fit in (bcfw(hinge, at(C, rho, tol=1e-4)), one_slack(hinge, Cuts(weights), C, tol=1e-4)):
        assert fit.converged
        assert fit.lower_bound <= optimum * (1 + 1e-6)
        assert fit.objective >= optimum * (1 - 1e-6)
        assert fit.gap <= 1e-4
        w = fit.params
        assert fit.objective == pytest.approx(0.5 * w @ (weights * w) + C * slow_risk(hinge, w), rel=1e-9)


def test_risk_and_cut_equal_the_definition():
    rng = np.random.default_rng(3)
    for case in range(20):
        hinge = make_hinge(offset=case % 2 == 0, own_features=case % 3 == 0, seed=case)
        w = random_params(hinge, rng)
        offset, gradient = hinge.cut(w)
        assert hinge.risk(w) == pytest.approx(slow_risk(hinge, w), rel=1e-10)
        assert offset + gradient @ w == pytest.approx(slow_risk(hinge, w), rel=1e-10)
        direction = random_params(hinge, rng) * 1e-6
        central = (slow_risk(hinge, w + direction) - slow_risk(hinge, w - direction)) / 2
        assert gradient @ direction == pytest.approx(central, rel=1e-4, abs=1e-12)


def test_the_hinge_is_above_the_loss():
    rng = np.random.default_rng(4)
    for seed in range(20):
        hinge = make_hinge(seed=seed)
        w = random_params(hinge, rng)
        chosen = argmax_block(hinge.problem.scored(w)).selected
        loss = sum(
            hinge.problem.weight[m] * hinge.item_loss[m, items[items >= 0]].sum() for m, items in enumerate(chosen)
        )
        assert hinge.risk(w) >= loss - 1e-12


def test_cuts_serve_a_path_of_C():
    hinge = make_hinge()
    cuts = Cuts(np.ones(hinge.problem.n_params))
    for C in (0.5, 2.0, 8.0):
        along = one_slack(hinge, cuts, C, tol=1e-4)
        afresh = one_slack(hinge, Cuts(np.ones(hinge.problem.n_params)), C, tol=1e-4)
        assert along.objective == pytest.approx(afresh.objective, rel=3e-4)
        assert len(along.history) <= len(afresh.history)


def test_weights_repeat_rows():
    hinge = make_hinge(n=4)
    doubled = make_hinge(n=4, weight=np.array([0.4, 0.2, 0.2, 0.2]))
    twice = hinge.part(np.array([0, 0, 1, 2, 3]))
    one, two = bcfw(doubled, at(5.0, tol=1e-5)), bcfw(twice, at(5.0, tol=1e-5))
    assert one.objective == pytest.approx(two.objective, rel=1e-4)


def test_threads_do_not_change_the_bits():
    fits = [bcfw(make_hinge(n=40, n_jobs=threads), at(10.0, tol=1e-3)) for threads in (1, 2, 3)]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].params, other.params)
        assert fits[0].lower_bound == other.lower_bound


def test_the_dual_only_rises():
    bounds = [round_.lower_bound for round_ in bcfw(make_hinge(n=40), at(50.0, tol=1e-4)).history]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(bounds))


def test_stopping_early_is_a_warning():
    with pytest.warns(ConvergenceWarning, match="certified gap"):
        fit = bcfw(make_hinge(n=40), at(1000.0, tol=1e-6, max_iter=1))
    assert not fit.converged
    with pytest.warns(ConvergenceWarning):
        assert not one_slack(make_hinge(), Cuts(np.ones(25)), 100.0, tol=1e-6, max_iter=2).converged


def test_subgradient_comes_near_and_claims_nothing():
    hinge = make_hinge()
    best = bcfw(hinge, at(5.0, tol=1e-5))
    with pytest.warns(ConvergenceWarning):
        rough = subgradient(hinge, at(5.0, max_iter=200))
    assert best.lower_bound <= rough.objective <= 1.1 * best.objective
    assert not rough.converged
