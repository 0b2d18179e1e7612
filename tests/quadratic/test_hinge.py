"""The hinge and its cuts, judged by every ranking of up to 5 items; nothing is shared with the package."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bruteforce import all_rankings, quadratic_score
from tests.shipped import EXECUTORS

from slatewise.inference import quadratic_ranking
from slatewise.losses import DCGLoss, PrecisionLoss
from slatewise.quadratic.hinge import QuadraticHinge


def distances(n):
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)


def make_hinge(n_items, seed, n=4, d=2, loss=None, method="auto", **settings):
    """Random lists; D is |k - l|, or anything without a symmetry where the seed is odd."""
    rng = np.random.default_rng(seed)
    relevance = rng.integers(0, 2, size=(n, n_items))
    relevance[np.arange(n), rng.integers(0, n_items, n)] = 1
    vectors = [(loss or DCGLoss()).vectors(z) for z in relevance]
    weight = rng.random(n) + 0.1
    return QuadraticHinge(
        rng.normal(size=(n, d)),
        rng.normal(size=n_items),
        rng.normal(size=(n_items, n_items)) if seed % 2 else distances(n_items),
        np.argsort(-relevance, axis=1, kind="stable"),
        np.array([a for a, _ in vectors]),
        np.array([b for _, b in vectors]),
        weight / weight.sum(),
        method,
        **settings,
    )


def slow_features(hinge, m, order):
    """df / dw of one ranking, entry by entry."""
    place = {item: rank for rank, item in enumerate(order)}
    items = range(hinge.n_items)
    pairs = [hinge.D[place[i], place[j]] + hinge.D[place[j], place[i]] for i, j in combinations(items, 2)]
    weights = [hinge.c[place[i]] * x for i in items for x in hinge.X[m]]
    return np.array([*weights, *(hinge.c[place[i]] for i in items), *pairs])


def slow_loss(hinge, m, order):
    return sum(hinge.position_cost[m, rank] * hinge.item_cost[m, item] for rank, item in enumerate(order))


def slow_risk(hinge, w):
    total = 0.0
    for m, weight in enumerate(hinge.weight):
        target = slow_features(hinge, m, hinge.target[m]) @ w
        total += weight * max(
            slow_loss(hinge, m, order) + slow_features(hinge, m, order) @ w - target
            for order in all_rankings(hinge.n_items)
        )
    return total


@pytest.mark.parametrize("loss", [DCGLoss(), PrecisionLoss()])
@pytest.mark.parametrize("n_items", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_risk_and_cut_equal_all_rankings(n_items, seed, loss):
    hinge = make_hinge(n_items, seed, loss=loss)
    w = np.random.default_rng(seed).normal(size=hinge.n_params)
    offset, gradient = hinge.cut(w)
    assert hinge.risk(w) == pytest.approx(slow_risk(hinge, w), rel=1e-10, abs=1e-12)
    assert offset + gradient @ w == pytest.approx(slow_risk(hinge, w), rel=1e-10, abs=1e-12)
    assert hinge.corners(w).proven.all()


@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_is_the_slope(seed):
    hinge = make_hinge(4, seed)
    rng = np.random.default_rng(seed + 10)
    w, step = rng.normal(size=hinge.n_params), 1e-6 * rng.normal(size=hinge.n_params)
    central = (slow_risk(hinge, w + step) - slow_risk(hinge, w - step)) / 2
    assert hinge.cut(w)[1] @ step == pytest.approx(central, rel=1e-5, abs=1e-13)


@pytest.mark.parametrize("seed", range(2))
def test_the_parameters_are_those_of_the_score(seed):
    hinge = make_hinge(4, seed, n=1)
    w = np.random.default_rng(seed).normal(size=hinge.n_params)
    W, v, F = hinge.unpack(w)
    np.testing.assert_array_equal(F, F.T)
    assert not np.diagonal(F).any()
    for order in all_rankings(4):
        score = quadratic_score(W @ hinge.X[0] + v, hinge.c, F, hinge.D, order)
        assert hinge.features(order[None]) @ w == pytest.approx(score)


@given(st.integers(2, 4), st.integers(0, 10**6))
def test_the_hinge_is_convex_and_above_the_loss(n_items, seed):
    hinge = make_hinge(n_items, seed)
    w, other = np.random.default_rng(seed).normal(size=(2, hinge.n_params))
    W, v, F = hinge.unpack(w)
    ranked = np.array([quadratic_ranking(W @ x + v, hinge.c, F, hinge.D).order for x in hinge.X])
    assert hinge.risk(w) >= hinge.weight @ hinge.losses(ranked) - 1e-9
    offset, gradient = hinge.cut(w)
    assert hinge.risk(other) >= offset + gradient @ other - 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_searched_argmaxes_enclose_the_hinge(seed):
    exact, searched = make_hinge(5, seed), make_hinge(5, seed, method="faq")
    rng = np.random.default_rng(seed)
    w = rng.normal(size=exact.n_params)
    offset, gradient = searched.cut(w)
    assert offset + gradient @ w <= exact.risk(w) + 1e-9
    assert searched.risk(w) >= exact.risk(w) - 1e-9
    assert not searched.corners(w).proven.all()
    for other in rng.normal(size=(20, exact.n_params)):
        assert offset + gradient @ other <= exact.risk(other) + 1e-9


def test_a_search_does_not_end_below_the_target():
    missed = 0
    for seed in range(0, 40, 2):
        exact = make_hinge(8, seed, n=3)
        w = np.random.default_rng(seed).normal(size=exact.n_params)
        best = replace(exact, target=exact.corners(w).order)
        searched = replace(best, method="faq")
        W, v, F = best.unpack(w)
        for m, x in enumerate(best.X):
            loss = np.outer(best.item_cost[m], best.position_cost[m])
            found = quadratic_ranking(W @ x + v, best.c, F, best.D, "faq", linear=loss).order
            missed += not np.array_equal(found, best.target[m])
        offset, gradient = searched.cut(w)
        assert offset + gradient @ w >= best.weight @ best.losses(best.target) - 1e-9
    assert missed > 0  # else nothing was tried


def test_threads_do_not_change_the_bits():
    w = np.random.default_rng(0).normal(size=make_hinge(5, 0).n_params)
    one, *others = (make_hinge(5, 0, n=20, executor=executor).cut(w) for executor in EXECUTORS)
    for other in others:
        assert one[0] == other[0]
        np.testing.assert_array_equal(one[1], other[1])
