import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from tests.metric_bruteforce import planes, relevant_by_class, risk

from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.metric_learning import solver
from slatewise.metric_learning.cone import Orthant, Psd
from slatewise.metric_learning.hinge import MetricHinge
from slatewise.metric_learning.oracle import Oracle
from slatewise.metric_learning.relevance import same_class
from slatewise.metric_learning.solver import (
    Cuts,
    Descent,
    MetricProblem,
    MetricSearch,
    Regularizer,
    first_factor,
    fit_metric,
)

TRACE, FROBENIUS = Regularizer(1.0, 0.0), Regularizer(0.0, 1.0)
LOSSES = ["auc", "precision", "map", "mrr", "ndcg", "knn"]


def problem(X, y, C, loss="auc", cone=None, regularizer=TRACE, k=2):
    cone, numbers = cone or Psd(), np.asarray(y, dtype=np.int64)
    relevance = same_class(numbers, numbers, np.arange(len(y)))
    hinge = MetricHinge(X, X, relevance, np.full(len(y), 1.0 / len(y)), Oracle(loss, k), cone)
    return MetricProblem(hinge, cone, regularizer, float(C))


def two_classes(seed, n=6, d=2):
    rng = np.random.default_rng(seed)
    y = np.array([0, 0, 1, 1, *rng.integers(0, 2, n - 4)])
    return rng.normal(size=(n, d)) * 2.0 + y[:, None], y


def regularized(W, regularizer):
    return regularizer.trace * np.trace(W) + 0.5 * regularizer.square * (W**2).sum()


@pytest.mark.parametrize("regularizer", [TRACE, FROBENIUS])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(2))
def test_the_optimum_of_all_rankings_lies_between_the_bounds(seed, loss, regularizer):
    X, y = two_classes(seed)
    judge, C = planes(X, X, relevant_by_class(y), loss, 2), 3.0

    def objective(entries):
        L = np.array([[entries[0], entries[1]], [0.0, entries[2]]])
        return regularized(L.T @ L, regularizer) + C * risk(judge, L.T @ L)

    # A search without slopes, restarted where it ended: slow, but it cannot be fooled by a wrong gradient.
    best = C
    for start in np.random.default_rng(0).normal(size=(3, 3)):
        point = start
        for _ in range(3):
            found = minimize(objective, point, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9})
            point = found.x
        best = min(best, found.fun)
    fit = fit_metric(problem(X, y, C, loss, regularizer=regularizer), tol=1e-5)
    assert fit.lower_bound <= best + 1e-9
    assert fit.objective <= best * (1.0 + 2e-5)
    assert fit.objective == pytest.approx(regularized(fit.params, regularizer) + C * risk(judge, fit.params))
    assert np.linalg.eigvalsh(fit.params)[0] >= -1e-12


@pytest.mark.parametrize("seed", range(3))
def test_a_diagonal_metric_solves_its_linear_program(seed):
    X, y = two_classes(seed, n=14, d=3)
    rows, costs, C = [], [], 5.0
    for q in range(14):
        same = [i for i in range(14) if i != q and y[i] == y[q]]
        other = [j for j in range(14) if y[j] != y[q]]
        for i in same:
            for j in other:
                rows.append(2.0 * ((X[q] - X[j]) ** 2 - (X[q] - X[i]) ** 2))
                costs.append(C / (14 * len(same) * len(other)))
    A = np.hstack([-np.array(rows), -np.eye(len(rows))])
    best = linprog(np.concatenate([np.ones(3), costs]), A_ub=A, b_ub=-np.ones(len(rows))).fun
    fit = fit_metric(problem(X, y, C, cone=Orthant()), tol=1e-6)
    assert fit.lower_bound <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= fit.objective <= best * (1 + 2e-6)


@pytest.mark.parametrize("regularizer", [TRACE, FROBENIUS])
@pytest.mark.parametrize("loss", ["auc", "precision"])
def test_the_bundle_alone_gets_there_too(loss, regularizer):
    X, y = two_classes(1, n=20, d=3)
    whole = problem(X, y, 10.0, loss, regularizer=regularizer)
    search = MetricSearch(whole, 1e-4, Cuts(Psd(), 3, regularizer), first_factor(whole, None))
    search.round()
    search.descending = False
    while not search.certified and search.passes < 400:
        search.round()
    assert search.certified
    quick = fit_metric(whole, tol=1e-4)
    assert search.objective == pytest.approx(quick.objective, rel=3e-4)


@pytest.mark.parametrize("bundle", [False, True])
@pytest.mark.parametrize("rounds", [1, 9])
def test_a_search_goes_on_from_its_arrays_to_the_same_bits(rounds, bundle):
    X, y = two_classes(1, n=20, d=3)
    whole = problem(X, y, 10.0, "map")

    def finish(search):
        while not search.certified and search.passes < 400:
            search.round()
        return search

    start, stop = first_factor(whole, None), MetricSearch(whole, 1e-6, Cuts(Psd(), 3, TRACE), first_factor(whole, None))
    for _ in range(rounds):
        stop.round()
        stop.descending = stop.descending and not bundle
    copy = {name: array.copy() for name, array in stop.arrays().items()}
    one, other = finish(stop), MetricSearch(whole, 1e-6, Cuts(Psd(), 3, TRACE), start)
    other.restore(copy)
    finish(other)
    np.testing.assert_array_equal(one.best, other.best)
    assert (one.objective, one.bound, one.passes) == (other.objective, other.bound, other.passes)


def test_any_multipliers_prove_a_bound():
    X, y = two_classes(2, n=12, d=3)
    rng = np.random.default_rng(0)
    for regularizer in (TRACE, FROBENIUS):
        whole = problem(X, y, 4.0, "map", regularizer=regularizer)
        cuts = Cuts(Psd(), 3, regularizer)
        for _ in range(6):
            cuts.add(*whole.hinge.cut(rng.normal(size=(3, 3))))
        optimum = fit_metric(whole, tol=1e-6).objective
        for _ in range(50):
            alpha = rng.dirichlet(np.ones(6)) * rng.uniform(0.0, 4.0)
            assert cuts.bound(alpha) <= optimum
        centre = np.eye(3)
        found = cuts.propose(4.0, centre, 1e-3, 1e-12)
        assert found.alpha.min() >= 0.0
        assert found.alpha.sum() <= 4.0 * (1 + 1e-12)
        assert cuts.bound(found.alpha) <= optimum


@pytest.mark.parametrize("regularizer", [TRACE, FROBENIUS])
def test_a_proposal_minimises_the_model_near_the_centre(regularizer):
    X, y = two_classes(4, n=10, d=2)
    whole, rng = problem(X, y, 4.0, regularizer=regularizer), np.random.default_rng(1)
    cuts, centre, rho = Cuts(Psd(), 2, regularizer), np.array([[0.5, 0.1], [0.1, 0.2]]), 0.7
    for _ in range(5):
        cuts.add(*whole.hinge.cut(rng.normal(size=(2, 2))))

    def value(entries):
        L = np.array([[entries[0], entries[1]], [0.0, entries[2]]])
        W = L.T @ L
        risks = cuts.offsets + np.tensordot(cuts.gradients, W, 2)
        return regularized(W, regularizer) + 4.0 * max(risks.max(), 0.0) + 0.5 * rho * ((W - centre) ** 2).sum()

    best, point = np.inf, np.array([0.5, 0.1, 0.4])
    for _ in range(5):
        found = minimize(value, point, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
        best, point = min(best, found.fun), found.x
    proposal = cuts.propose(4.0, centre, rho, 1e-12)
    assert proposal.model + 0.5 * rho * ((proposal.W - centre) ** 2).sum() == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(proposal.projection.factor.T @ proposal.projection.factor, proposal.W, atol=1e-12)


@pytest.mark.parametrize("cone", [Psd(), Orthant()])
def test_the_curvature_is_the_derivative_of_the_projection(cone):
    rng = np.random.default_rng(0)
    shape = cone.identity(5).shape
    M, directions = rng.normal(size=shape), rng.normal(size=(3, *shape))
    if len(shape) == 2:
        M, directions = M + M.T, directions + directions.transpose(0, 2, 1)
    curvature = cone.project(M).curvature(directions)
    for k, direction in enumerate(directions):
        change = cone.project(M + 1e-6 * direction).point - cone.project(M - 1e-6 * direction).point
        slopes = [np.vdot(other, change) / 2e-6 for other in directions]
        np.testing.assert_allclose(curvature[:, k], slopes, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("cone", [Psd(), Orthant()])
def test_factors_and_pull_backs(cone):
    rng = np.random.default_rng(0)
    shape = cone.identity(4).shape
    slope, factor = rng.normal(size=shape), cone.start(cone.project(rng.normal(size=shape) + cone.identity(4)).point)
    slope = slope + slope.T
    gradient, step = cone.pull_back(factor, slope), rng.normal(size=factor.shape)
    change = cone.point(factor + 1e-6 * step) - cone.point(factor - 1e-6 * step)
    assert np.vdot(gradient, step) == pytest.approx(np.vdot(slope, change) / 2e-6, rel=1e-6)
    W = cone.point(factor)
    L = cone.components(W)
    np.testing.assert_allclose(L.T @ L, W if W.ndim == 2 else np.diag(W), atol=1e-9)
    assert len(cone.project(-cone.identity(4)).factor) >= 1
    assert not cone.project(-cone.identity(4)).curvature(slope[None]).any()


def test_a_rotation_of_the_points_rotates_the_metric():
    X, y = two_classes(3, n=20, d=3)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    here, there = (fit_metric(problem(points, y, 5.0), tol=1e-7, max_iter=2000) for points in (X, X @ Q.T))
    assert there.objective == pytest.approx(here.objective, rel=1e-6)
    np.testing.assert_allclose(Q.T @ there.params @ Q, here.params, atol=1e-3 * np.abs(here.params).max())


def test_a_tiny_C_gives_no_metric():
    X, y = two_classes(3, n=20, d=3)
    fit = fit_metric(problem(X, y, 1e-6))
    assert np.trace(fit.params) <= 1e-3 * 1e-6
    assert fit.lower_bound == pytest.approx(1e-6)


def test_classes_far_apart_do_not_trap_the_descent_at_zero():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    X = 0.1 * rng.normal(size=(30, 3)) + y[:, None]
    fit = fit_metric(problem(X, y, 1.0), max_iter=100)
    assert fit.converged
    assert fit.objective < 0.5  # W = 0 has 1


@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.parametrize("regularizer", [TRACE, FROBENIUS])
def test_the_scale_of_the_points_is_no_obstacle(scale, regularizer):
    X, y = two_classes(7, n=30, d=5)
    C = 3.0 * scale ** (-2.0 if regularizer is TRACE else -4.0)
    here = fit_metric(problem(X, y, 3.0, "map", regularizer=regularizer), tol=1e-4)
    there = fit_metric(problem(X * scale, y, C, "map", regularizer=regularizer), tol=1e-4)
    assert there.objective / C == pytest.approx(here.objective / 3.0, rel=2e-4)


def test_few_cuts_and_little_memory_are_enough(monkeypatch):
    monkeypatch.setattr(solver, "MOST_BYTES", 1)
    X, y = two_classes(5, n=30, d=4)
    fit = fit_metric(problem(X, y, 20.0, "precision"), max_iter=1000)
    assert len(fit.state.cuts.offsets) == solver.LEAST_CUTS
    assert len(fit.state.descent.steps) <= solver.LEAST_MEMORY
    assert fit.converged


def test_the_descent_minimises_a_smooth_function():
    target = np.diag([1.0, 10.0, 100.0])

    def evaluate(x):
        return 0.5 * float(np.vdot(x - 1.0, target @ (x - 1.0))), target @ (x - 1.0)

    descent = Descent(np.full((3, 2), 5.0))
    for _ in range(40):
        if not descent.step(evaluate, lambda: False):
            break
    np.testing.assert_allclose(descent.factor, 1.0, atol=1e-5)


def test_constant_features_leave_nothing_to_learn():
    fit = fit_metric(problem(np.ones((6, 2)) * 0.0, [0, 0, 0, 1, 1, 1], 2.0))
    assert fit.objective == pytest.approx(2.0)
    assert fit.lower_bound == pytest.approx(2.0)


@pytest.mark.parametrize("regularizer", [TRACE, FROBENIUS])
@pytest.mark.parametrize(("seed", "shift"), [(5, 1e8), (5, 1.7e9), (2, 1.7e9)])
def test_numbers_that_are_rounding_certify_nothing(seed, shift, regularizer):
    X, y = two_classes(seed, n=30, d=4)
    with pytest.warns(ConvergenceWarning, match="nothing is certified"):
        fit = fit_metric(problem(X + shift * np.eye(4)[0], y, 5.0, regularizer=regularizer), max_iter=300)
    assert not fit.converged
    assert fit.lower_bound == 0.0


@pytest.mark.parametrize("shift", [1e4, 1e6])
def test_a_moderate_shift_stays_certified(shift):
    X, y = two_classes(5, n=30, d=4)
    here, there = (fit_metric(problem(points, y, 5.0)) for points in (X, X + shift * np.eye(4)[0]))
    assert there.lower_bound <= here.objective
    assert here.lower_bound <= there.objective
    assert there.converged


def test_not_converged_is_a_warning():
    X, y = two_classes(5, n=30, d=4)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        fit = fit_metric(problem(X, y, 1000.0), tol=1e-9, max_iter=3)
    assert not fit.converged
    assert 0.0 <= fit.lower_bound <= fit.objective
