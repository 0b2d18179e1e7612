"""The judge writes down every ranking of every list as a constraint and solves the whole program."""

from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.bruteforce import all_rankings, quadratic_score

from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.losses import DCGLoss, LinearLoss, PrecisionLoss, Vectors, WinnerLoss
from slatewise.quadratic.fit import fit_quadratic


def distances(n):
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)


def later_position(n):
    """Average precision's D: a pair counts 1 / its later rank."""
    return 1.0 / (np.maximum.outer(np.arange(n), np.arange(n)) + 1.0)


def features(x, c, D, order):
    place = np.argsort(order)
    pairs = [D[place[i], place[j]] + D[place[j], place[i]] for i, j in combinations(range(len(c)), 2)]
    return np.concatenate([np.outer(c[place], x).ravel(), c[place], pairs])


def best_objective(X, c, D, orders, costs, C, rho):
    """min 1/2 w'Rw + C mean xi, with every constraint, by a general solver; costs(m, order) is the loss."""
    n, n_items = orders.shape
    rows, constants, owners = [], [], []
    for m, x in enumerate(X):
        for order in permutations(range(n_items)):
            rows.append(features(x, c, D, np.array(order)) - features(x, c, D, orders[m]))
            constants.append(costs(m, order))
            owners.append(m)
    rows, constants = np.array(rows), np.array(constants)
    size = rows.shape[1]
    A = np.hstack([-rows, np.eye(n)[owners]])
    n_pairs = n_items * (n_items - 1) // 2
    penalty = np.concatenate([np.ones(size - n_pairs), np.full(n_pairs, rho), np.zeros(n)])
    cost = np.append(np.zeros(size), np.full(n, C / n))
    found = minimize(
        lambda z: 0.5 * z @ (penalty * z) + cost @ z,
        np.append(np.zeros(size), np.full(n, constants.max())),
        jac=lambda z: penalty * z + cost,
        constraints={"type": "ineq", "fun": lambda z: A @ z - constants, "jac": lambda z: A},
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 500},
    )
    assert found.success
    return found.fun


def small_problem(seed, n=4, n_items=4):
    rng = np.random.default_rng(seed)
    orders = np.array([rng.permutation(n_items) for _ in range(n)])
    return rng.normal(size=(n, 2)), np.arange(n_items, 0, -1.0), orders


def planted(n, n_items, D, seed):
    """Lists ranked by a random model, with that model's own best rankings as targets."""
    rng = np.random.default_rng(seed)
    W, F = rng.normal(size=(n_items, 3)), np.triu(rng.normal(size=(n_items, n_items)), 1)
    X, c = rng.normal(size=(n, 3)), np.arange(n_items, 0, -1.0)
    rankings = all_rankings(n_items)
    orders = [max(rankings, key=lambda order: quadratic_score(W @ x, c, F + F.T, D, order)) for x in X]
    return X, c, np.array(orders)


@pytest.mark.parametrize("D", [distances(4), later_position(4), np.arange(16.0).reshape(4, 4) % 5])
@pytest.mark.parametrize(("C", "rho"), [(1.0, 1.0), (20.0, 0.2)])
def test_the_certificate_encloses_the_optimum(D, C, rho):
    X, c, orders = small_problem(0)
    relevance = 3.0 - np.argsort(orders, axis=1)
    model = fit_quadratic(X, c, D, orders, C=C, rho=rho, tol=1e-4)
    loss = DCGLoss(gain="linear")
    optimum = best_objective(X, c, D, orders, lambda m, order: loss.value(order, relevance[m]), C, rho)
    assert model.certified
    assert model.fit.converged
    assert model.fit.gap <= 1e-4
    assert model.fit.lower_bound <= optimum * (1 + 1e-6)
    assert model.fit.objective >= optimum * (1 - 1e-6)
    assert model.found_objective == model.fit.objective


def test_relevance_gives_the_targets():
    X, c, _ = small_problem(1)
    relevance = np.array([[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0]])
    orders = np.array([[1, 3, 0, 2], [0, 1, 2, 3], [2, 0, 1, 3], [0, 1, 2, 3]])
    D, loss = distances(4), PrecisionLoss()
    model = fit_quadratic(X, c, D, relevance=relevance, loss=loss, C=5.0, tol=1e-4)
    optimum = best_objective(X, c, D, orders, lambda m, order: loss.value(order, relevance[m]), 5.0, 1.0)
    assert model.fit.objective == pytest.approx(optimum, rel=2e-4)
    same = fit_quadratic(X, c, D, orders, relevance, loss=loss, C=5.0, tol=1e-4)
    assert same.fit.objective == model.fit.objective


@pytest.mark.parametrize("D", [distances(4), later_position(4)])
def test_planted_rankings_come_back(D):
    X, c, orders = planted(140, 4, D, seed=0)
    train, test = slice(0, 40), slice(40, None)
    model = fit_quadratic(X[train], c, D, orders[train], C=100.0, rho=0.1, tol=2e-2, n_jobs=1)
    assert model.certified
    alone = fit_quadratic(X[train], c, np.zeros((4, 4)), orders[train], C=100.0, tol=2e-2, n_jobs=1)
    right, right_alone = ((each.predict(X) == orders).all(axis=1) for each in (model, alone))
    assert right[train].mean() >= 0.95
    assert right[test].mean() >= 0.75
    assert right[test].mean() > right_alone[test].mean()


def test_a_later_position_keeps_long_lists_certified():
    X, c, orders = small_problem(2, n=3, n_items=10)
    model = fit_quadratic(X, c, later_position(10), orders, tol=1e-2)
    assert model.certified
    assert model.fit.gap <= 1e-2


def test_distances_on_long_lists_have_no_certificate():
    X, c, orders = small_problem(3, n=2, n_items=9)
    with pytest.warns(ConvergenceWarning, match="no certificate: [12] of 2 argmaxes were searched, not proven"):
        model = fit_quadratic(X, c, distances(9), orders, tol=0.1, method="faq")
    assert not model.certified
    assert not model.fit.converged
    assert model.fit.lower_bound <= model.found_objective * 1.001 < model.fit.objective
    assert sorted(model.predict(X)[0]) == list(range(9))


def test_a_search_encloses_what_enumeration_proves():
    X, c, orders = small_problem(4, n=3, n_items=5)
    exact = fit_quadratic(X, c, distances(5), orders, C=10.0, tol=1e-4)
    with pytest.warns(ConvergenceWarning, match="no certificate"):
        searched = fit_quadratic(X, c, distances(5), orders, C=10.0, tol=1e-4, method="faq")
    assert not searched.certified
    assert searched.fit.lower_bound <= exact.fit.objective * (1 + 1e-9)
    assert searched.fit.objective >= exact.fit.lower_bound * (1 - 1e-9)
    better = replace(searched, method="enumeration")
    assert better.predict(X).shape == (3, 5)


def test_stopping_early_is_a_warning_about_the_gap():
    X, c, orders = small_problem(5)
    with pytest.warns(ConvergenceWarning, match="certified gap"):
        model = fit_quadratic(X, c, distances(4), orders, C=100.0, tol=1e-6, max_iter=2)
    assert model.certified
    assert not model.fit.converged


def test_no_features_rank_every_list_alike():
    model = fit_quadratic(np.zeros((3, 0)), [3, 2, 1], distances(3), orders=[[2, 0, 1]] * 3, C=100.0)
    assert model.predict(np.zeros((2, 0))).tolist() == [[2, 0, 1]] * 2
    assert model.predict(np.zeros((0, 0))).shape == (0, 3)


class Reward(LinearLoss):
    """Below 0 for every ranking."""

    def vectors(self, relevance, k=None):
        return Vectors(np.ones(len(relevance)), -np.ones(len(relevance)))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"orders": None}, "orders, relevance: expected at least one"),
        ({"orders": [[0, 1, 1], [0, 1, 2]]}, "orders: expected each item 0 to 2 once, .* in list 0"),
        ({"orders": [[0, 1], [0, 1]]}, r"c: expected shape \(1, 2\)"),
        ({"orders": np.zeros((0, 3))}, "at least one list"),
        ({"relevance": [[0, 1, 2]]}, "orders: expected shape"),
        (
            {"relevance": [[0, 1, 2], [0, 1, np.nan]]},
            "relevance: expected finite numbers, found nan at row 1, column 2",
        ),
        ({"loss": WinnerLoss()}, "relevance: expected 0 or 1"),
        ({"loss": Reward()}, "loss: expected no negative loss"),
        ({"X": [[1.0]]}, r"X: expected shape \(2, any\), found \(1, 1\)"),
        ({"D": np.zeros((2, 2))}, r"D: expected shape \(3, 3\)"),
        ({"C": 0.0}, "C: expected a finite number > 0"),
        ({"method": "magic"}, "method: expected one of"),
    ],
)
def test_bad_input_is_named(changed, message):
    given = {"X": [[1.0], [2.0]], "c": [3, 2, 1], "D": distances(3), "orders": [[0, 1, 2], [2, 1, 0]]}
    with pytest.raises(ValueError, match=message):
        fit_quadratic(**(given | changed))


def test_prediction_asks_for_the_same_features():
    model = fit_quadratic([[1.0], [2.0]], [3, 2, 1], distances(3), orders=[[0, 1, 2], [2, 1, 0]])
    with pytest.raises(ValueError, match=r"X: expected shape \(any, 1\)"):
        model.predict([[1.0, 2.0]])
