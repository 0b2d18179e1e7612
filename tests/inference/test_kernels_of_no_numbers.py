"""Kernels trust their input, yet with NaN every index stays a valid answer: nothing is read or written elsewhere."""

import numpy as np
import pytest

from slatewise.core.kernels.count_grid import walk_counts
from slatewise.cstar.inference.model import StarPair
from slatewise.cstar.kernels.bcfw import solve_lists
from slatewise.cstar.kernels.branch import best_lists_by_branching
from slatewise.cstar.kernels.enumerate import best_lists
from slatewise.cstar.kernels.layout import CornerCache, DualTerms
from slatewise.matching.kernels.matching_sampler import Scratch, Table, draw_one
from slatewise.matching.kernels.permanent_rows import draw_matchings
from slatewise.matching.kernels.slate_assignment import best_rankings
from slatewise.matching.kernels.tied_counts import likely_counts
from slatewise.quadratic.kernels.exact import best_of_all_rankings, best_of_all_subsets, subset_sums

NAN = np.nan
ABSENT = -(10**6)  # where an index was never written


def test_slates():
    for scores in ([[NAN, NAN, NAN]], [[NAN, 1.0, 2.0]], [[np.inf, -np.inf, 0.0]]):
        place, ones = np.full((1, 3), ABSENT), np.ones((1, 3))
        best_rankings(np.array(scores), ones, ones, ones, place)
        assert sorted(place[0].tolist()) == [0, 1, 2]


def test_grids_of_counts():
    starts, strides = np.array([0, 2, 3]), np.array([1, 3])
    last = np.full(6, -1, dtype=np.int8)
    walk_counts(np.full(3, NAN), starts, np.ones(2), np.ones(3), np.ones(3), strides, np.empty(6), last)
    assert (last[1:] >= 0).all()


@pytest.mark.parametrize("value", [NAN, -np.inf])
def test_quadratic_rankings(value):
    linear, pairs = np.full((4, 4), value), np.zeros((4, 4))
    order = np.full(4, ABSENT)
    best_of_all_rankings(linear, pairs, pairs, order)
    assert sorted(order.tolist()) == [0, 1, 2, 3]
    low, high, order = np.empty((4, 4, 2)), np.empty((4, 4, 2)), np.full(4, ABSENT)
    subset_sums(pairs[:, :2].copy(), pairs[:, :2].copy(), low)
    subset_sums(pairs[:, 2:].copy(), pairs[:, 2:].copy(), high)
    best_of_all_subsets(linear, np.zeros(4), np.zeros(4), low, high, np.empty(16), order)
    assert sorted(order.tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("place", ["all", "scores", "pair", "one"])
@pytest.mark.parametrize("n_core", [3, 11])
def test_star_lists(n_core, place):
    rng = np.random.default_rng(0)
    n_items, k = 300, 5
    s, rows = rng.normal(size=(3, n_items)), np.zeros((n_core, n_items))
    rows[:, n_core:] = rng.normal(size=(n_core, n_items - n_core))
    pair = StarPair.of(rows, np.arange(n_core)).arrays
    if place in ("all", "scores"):
        s[1] = NAN
    if place in ("all", "pair"):
        pair.outer[:] = NAN
    if place == "one":
        s[:, 7] = NAN
    nothing, warm, counts = np.empty((0, n_items), dtype=np.int8), np.empty((0, 0), dtype=np.int64), np.full(3, k)
    for method in ("enumerate", "branch"):
        selected, score, upper, nodes = np.full((3, k), ABSENT), np.empty(3), np.empty(3), np.empty(3, dtype=np.int64)
        if method == "enumerate":
            best_lists(s, nothing, warm, pair, counts, selected, score)
        else:
            best_lists_by_branching(s, nothing, warm, pair, counts, 50, selected, score, upper, nodes)
        assert ((selected >= 0) & (selected < n_items)).all()
        assert all(len(set(row)) == k for row in selected.tolist())


def test_drawn_matchings():
    drawn, seed = np.full((2, 2), ABSENT), np.array([5], dtype=np.uint64)
    draw_matchings(np.zeros((3, 2)), np.zeros(3), np.zeros((4, 4)), seed, drawn)
    assert ((drawn >= 0) & (drawn < 3)).all()
    choose, starts = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 2, 1, 0]]), np.array([0, 1, 3, 4])
    taken, columns, places, out = (
        np.zeros(2, np.bool_),
        np.zeros(2, np.int64),
        np.zeros(2, np.int64),
        np.full(2, ABSENT),
    )
    table, bounds, weights = np.zeros(4), np.ones((3, 2)), np.zeros((2, 2))
    assert draw_one(Table(weights, bounds, 2, choose, starts, table), seed, Scratch(taken, columns, places), out)
    assert sorted(out.tolist()) == [0, 1]


def test_likely_counts_that_all_weigh_nothing():
    low, high = np.zeros(4, dtype=np.int64), np.minimum(2, np.arange(4))
    likely_counts(np.full(3, 0.5), np.full(3, 0.5), 10.0, np.empty((4, 4)), np.empty((2, 4)), low, high)
    assert ((low >= 0) & (low <= high) & (high <= 2)).all()


@pytest.mark.parametrize("lost", ["slopes", "weights"])
def test_dual_steps(lost):
    corners, alpha = np.array([[[0, 1], [1, 2]]], dtype=np.int32), np.array([[1.0, 0.0]])
    alpha[:] = NAN if lost == "weights" else alpha
    losses = np.array([[NAN, NAN]] if lost == "slopes" else [[0.0, 1.0]])
    W, phi = np.zeros((3, 1)), np.ones((1, 1))
    terms = DualTerms(phi, True, np.ones(1), np.empty((0, 0)), np.full(1, 2), np.full(3, -1), np.ones(1), 1.0)
    cache = CornerCache(corners, losses, alpha, np.full(1, 2))
    found = solve_lists(np.zeros(1, np.int64), 3, terms, W, np.empty((0, 3)), cache)
    assert found == 0.0
    assert (W == 0.0).all()
