"""The certified minimiser against general solvers, and the choice of C."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from slatewise.core.numerics.strengths import random_folds
from slatewise.metric_learning.margin_hinge import MarginHinge
from slatewise.metric_learning.margin_ranker import STRENGTHS, choose_strength, fit_margin, held_out_path
from slatewise.metric_learning.oracle import Oracle


def made(n_lists=12, size=8, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_lists * size, 3))
    y = (X[:, 0] - X[:, 1] + noise * rng.normal(size=len(X)) > 0.5).astype(np.int64)
    y[::size], y[1::size] = 1, 0
    return MarginHinge(X, y, np.arange(0, len(X) + 1, size), Oracle("ordered_pairs"))


def test_optimum_of_the_ranking_svm():
    """All pairs as constraints of one quadratic program."""
    hinge, C = made(), 5.0
    differences, weights = [], []
    for q in range(hinge.n_lists):
        rows = np.arange(hinge.offsets[q], hinge.offsets[q + 1])
        good, bad = rows[hinge.relevance[rows] == 1], rows[hinge.relevance[rows] == 0]
        differences += [hinge.X[i] - hinge.X[j] for i in good for j in bad]
        weights += [1 / (len(good) * len(bad) * hinge.n_lists)] * (len(good) * len(bad))
    D, omega = np.array(differences), np.array(weights)

    # The dual: max sum(a) - 1/2 |2 D'a|^2 over 0 <= a <= C omega.
    def dual(a):
        w = 2 * a @ D
        return 0.5 * w @ w - a.sum(), 2 * D @ w - 1

    found = minimize(dual, np.zeros(len(omega)), jac=True, bounds=[(0, C * o) for o in omega], tol=1e-12)
    fit = fit_margin(hinge, C, 1e-6, 1000)
    assert fit.converged
    assert fit.lower_bound <= -found.fun * (1 + 1e-6)
    assert fit.objective == pytest.approx(-found.fun, rel=1e-5)
    w = fit.params
    assert fit.objective == pytest.approx(0.5 * w @ w + C * omega @ np.maximum(0, 1 - 2 * D @ w), rel=1e-9)


def test_a_whole_number_is_a_strength():
    one, two = (fit_margin(made(), C, 1e-3, 1000) for C in (5, 5.0))
    np.testing.assert_array_equal(one.params, two.params)
    assert one.lower_bound == two.lower_bound


def test_scaling_features_and_strength_leaves_the_optimum():
    """w / s and C / s^2 for features times s: the objective is divided by s^2."""
    hinge = made()
    fit = fit_margin(hinge, 5.0, 1e-5, 1000)
    for scale in (1e-5, 1e5):
        scaled = fit_margin(
            MarginHinge(scale * hinge.X, hinge.relevance, hinge.offsets, hinge.oracle), 5.0 / scale**2, 1e-5, 1000
        )
        assert scale**2 * scaled.objective == pytest.approx(fit.objective, rel=2e-5)
        assert scale**2 * scaled.lower_bound == pytest.approx(fit.lower_bound, rel=2e-5)


def test_separable_lists_end_without_loss():
    hinge = made(noise=0.0)
    y = np.zeros(len(hinge.X), dtype=np.int8)
    for q in range(hinge.n_lists):
        rows = np.arange(hinge.offsets[q], hinge.offsets[q + 1])
        y[rows[np.argsort(-hinge.X[rows, 0] + hinge.X[rows, 1])[:3]]] = 1
    hinge = MarginHinge(hinge.X, y, hinge.offsets, Oracle("map"))
    assert hinge.ranking_loss(fit_margin(hinge, 1e5, 1e-3, 1000).params) == 0.0
    # A general solver agrees that some w orders every pair.
    pairs = [
        hinge.X[j] - hinge.X[i]
        for q in range(hinge.n_lists)
        for i in range(hinge.offsets[q], hinge.offsets[q + 1])
        for j in range(hinge.offsets[q], hinge.offsets[q + 1])
        if y[i] > y[j]
    ]
    assert linprog(np.zeros(3), pairs, -np.ones(len(pairs)), bounds=(None, None)).success


def test_strength_is_the_best_of_the_path():
    hinge = made(n_lists=40, noise=3.0)
    chosen = choose_strength(hinge, 0)
    strengths = [strength / hinge.spread for strength in STRENGTHS]
    assert chosen in strengths
    folds = [(hinge.part(inner), hinge.part(held_out)) for inner, held_out in random_folds(40, 5, 0)]
    losses = [[step.loss for step in held_out_path(*fold, strengths)] for fold in folds]
    assert np.sum(losses, axis=0)[strengths.index(chosen)] == pytest.approx(np.sum(losses, axis=0).min())


def test_scaling_features_scales_the_choice():
    hinge = made(n_lists=30, noise=2.0)
    scaled = MarginHinge(10 * hinge.X, hinge.relevance, hinge.offsets, hinge.oracle)
    assert choose_strength(scaled, 0) == pytest.approx(choose_strength(hinge, 0) / 100)
