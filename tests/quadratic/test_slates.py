"""Slates of the joint latent model: against all slates, an LP relaxation, each other; ascent; bad input."""

from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from slatewise.inference import beam_slates, greedy_slates, iterated_slates

SEARCHES = [greedy_slates, beam_slates, iterated_slates]


def value(s, V, w, slate, T=None):
    """f, term by term."""
    T = V if T is None else T
    own = sum(w[i] * s[d] for i, d in enumerate(slate))
    pairs = sum(w[i] * w[j] * float(V[a] @ T[b]) for i, a in enumerate(slate) for j, b in enumerate(slate))
    return own + pairs


def best_value(s, V, w, T=None):
    return max(value(s, V, w, slate, T) for slate in permutations(range(len(s)), len(w)))


def problem(seed, n_items=6, k=3, rank=2, scale=0.7):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n_items), scale * rng.normal(size=(n_items, rank)), 1.0 / np.arange(1, k + 1)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("seed", range(15))
def test_no_search_beats_the_best_slate_and_the_bound_holds(search, seed):
    s, V, w = problem(seed)
    found = search(s, V, w)
    assert len(set(found.items[0])) == len(w)
    assert found.score[0] == pytest.approx(value(s, V, w, found.items[0]))
    best = best_value(s, V, w)
    assert found.score[0] <= best + 1e-9
    assert best <= found.upper_bound[0] + 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_a_beam_of_all_slates_finds_the_best(seed):
    s, V, w = problem(seed)
    assert beam_slates(s, V, w, width=120).score[0] == pytest.approx(best_value(s, V, w))


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("seed", range(15))
def test_two_factors_are_searched_too(search, seed):
    s, S, w = problem(seed)
    T = 3.0 * np.random.default_rng(seed + 100).normal(size=S.shape)
    found = search(s, S, w, listed=T)
    assert len(set(found.items[0])) == len(w)
    assert found.score[0] == pytest.approx(value(s, S, w, found.items[0], T))
    best = best_value(s, S, w, T)
    assert found.score[0] <= best + 1e-9
    assert best <= found.upper_bound[0] + 1e-9
    assert beam_slates(s, S, w, width=120, listed=T).score[0] == pytest.approx(best)


@pytest.mark.parametrize("search", SEARCHES)
def test_the_same_factor_twice_is_the_gram_term(search):
    s, V, w = problem(3, 30, 5)
    one, two = search(s, V, w), search(s, V, w, listed=V)
    np.testing.assert_array_equal(one.items, two.items)
    np.testing.assert_allclose(one.score, two.score)
    np.testing.assert_allclose(one.upper_bound, two.upper_bound)
    scaled = search(s, 100 * V, w, listed=V / 100)  # which factor is large does not matter
    np.testing.assert_array_equal(one.items, scaled.items)
    np.testing.assert_allclose(one.upper_bound, scaled.upper_bound)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 30), st.integers(1, 5))
def test_climbing_on_two_factors_never_loses_and_ends_where_a_safe_step_stays(seed, n_items, k):
    k = min(k, n_items)
    s, S, w = problem(seed, n_items, k, rank=3, scale=1.5)
    rng = np.random.default_rng(seed)
    T, start = 1.5 * rng.normal(size=S.shape), rng.permutation(n_items)[:k]
    found = iterated_slates(s, S, w, start=[start], listed=T)
    assert found.score[0] >= value(s, S, w, start, T) - 1e-9
    F = (S @ T.T + T @ S.T) / 2
    t = np.zeros(n_items)
    t[found.items[0]] = w
    # From here on, f + h |t|^2 is convex with h of the most negative eigenvalue, and so with any larger one.
    for h in np.array([4.0, 16.0, 64.0]) * max(-np.linalg.eigvalsh(F)[0], 0.0):
        step = np.argsort(-(s + 2 * F @ t + 2 * h * t), kind="stable")[:k]
        assert value(s, S, w, step, T) >= found.score[0] - 1e-9


def test_steps_that_hold_on_climb_higher_than_plain_ones():
    """The plain gradient of two factors often loses at once, which leaves the sorted list."""
    plain, held = 0.0, 0.0
    for seed in range(20):
        s, S, w = problem(seed, 50, 10, 10, 0.6)
        T = 0.6 * np.random.default_rng(seed + 100).normal(size=S.shape)
        slate = np.argsort(-s, kind="stable")[:10]
        for _ in range(50):
            new = np.argsort(-(s + S @ (w @ T[slate]) + T @ (w @ S[slate])), kind="stable")[:10]
            if value(s, S, w, new, T) <= value(s, S, w, slate, T):
                break
            slate = new
        plain += value(s, S, w, slate, T)
        held += iterated_slates(s, S, w, listed=T).score[0]
    assert held > 1.2 * plain


@pytest.mark.parametrize("search", SEARCHES)
def test_without_pairs_it_is_a_sort(search):
    s = np.array([[0.3, 0.1, 0.3, 0.9, -1.0], [5.0, 4.0, 3.0, 2.0, 1.0]])
    found = search(s, np.zeros((5, 3)), [1.0, 0.5, 0.25, 0.0])
    assert found.items.tolist() == [[3, 0, 2, 1], [0, 1, 2, 3]]  # of equals the first
    np.testing.assert_allclose(found.score, found.upper_bound)


def relaxed_value(s, V, w):
    """The LP relaxation of the quadratic assignment: x[i, p] and their products y[i, p, j, q], by HiGHS."""
    n, k = len(s), len(w)
    x, F = n * k, V @ V.T
    cost = np.zeros(x + x * x)
    for i in range(n):
        for p in range(k):
            cost[i * k + p] = w[p] * s[i] + w[p] ** 2 * F[i, i]
            for j in range(n):
                for q in range(k):
                    if i != j and p != q:
                        cost[x + (i * k + p) * x + j * k + q] = w[p] * w[q] * F[i, j]
    equal, at_most = [], []
    for p in range(k):  # a position has one item
        row = np.zeros(len(cost))
        row[np.arange(n) * k + p] = 1
        equal.append((row, 1.0))
    for i in range(n):  # an item has at most one position
        row = np.zeros(len(cost))
        row[i * k : (i + 1) * k] = 1
        at_most.append((row, 1.0))
    for a in range(x):
        for q in range(k):  # sum_j y[a, j, q] = x[a], without the item of a, at other positions
            if q != a % k:
                row = np.zeros(len(cost))
                row[[x + a * x + j * k + q for j in range(n) if j != a // k]] = 1
                row[a] = -1
                equal.append((row, 0.0))
        for b in range(a):
            row = np.zeros(len(cost))
            row[x + a * x + b], row[x + b * x + a] = 1, -1
            equal.append((row, 0.0))
    solved = linprog(
        -cost,
        np.array([row for row, _ in at_most]),
        [right for _, right in at_most],
        np.array([row for row, _ in equal]),
        [right for _, right in equal],
        bounds=(0, 1),
        method="highs",
    )
    assert solved.status == 0
    return -solved.fun


@pytest.mark.parametrize("seed", range(6))
def test_the_lp_relaxation_lies_between_the_best_and_nothing_found_is_above_it(seed):
    s, V, w = problem(seed, n_items=4, k=3, scale=0.5)
    relaxed = relaxed_value(s, V, w)
    assert best_value(s, V, w) <= relaxed + 1e-7
    assert all(search(s, V, w).score[0] <= relaxed + 1e-7 for search in SEARCHES)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 30), st.integers(1, 5))
def test_climbing_never_loses_whatever_it_starts_from(seed, n_items, k):
    k = min(k, n_items)
    s, V, w = problem(seed, n_items, k, rank=3, scale=1.5)
    start = np.random.default_rng(seed).permutation(n_items)[:k]
    assert iterated_slates(s, V, w, start=[start]).score[0] >= value(s, V, w, start) - 1e-9
    beam = beam_slates(s, V, w, 4)
    assert iterated_slates(s, V, w, start=beam.items).score[0] >= beam.score[0] - 1e-9


def test_the_papers_factor_of_one_may_lose_where_the_gradient_never_does():
    fell = {1: 0, 2: 0}
    for seed in range(30):
        s, V, w = problem(seed, 50, 10, 10, 0.6)
        for factor in fell:
            slate = np.argsort(-s, kind="stable")[:10]
            for _ in range(10):
                new = np.argsort(-(s + factor * V @ (w @ V[slate])), kind="stable")[:10]
                fell[factor] += value(s, V, w, new) < value(s, V, w, slate) - 1e-12
                slate = new
    assert fell[1] > 0
    assert fell[2] == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(SEARCHES))
def test_permuting_the_items_permutes_the_slates(seed, search):
    s, V, w = problem(seed, 12, 4)
    order = np.random.default_rng(seed).permutation(12)
    there = np.argsort(order)
    np.testing.assert_array_equal(search(s[order], V[order], w).items, there[search(s, V, w).items])


@pytest.mark.parametrize("two_factors", [False, True])
@pytest.mark.parametrize("search", SEARCHES)
def test_threads_and_other_queries_change_nothing(search, two_factors, monkeypatch):
    rng = np.random.default_rng(0)
    s, V, w = rng.normal(size=(9, 200)), rng.normal(size=(200, 5)), 1.0 / np.arange(1, 11)
    T = rng.normal(size=V.shape)
    search = partial(search, listed=T) if two_factors else search
    whole = search(s, V, w, n_jobs=1)
    monkeypatch.setattr("slatewise.quadratic.slates._VALUES_PER_BLOCK", 400)
    one, two = search(s, V, w, n_jobs=1), search(s, V, w, n_jobs=2)
    np.testing.assert_array_equal(one.items, two.items)
    assert one.score.tobytes() == two.score.tobytes()
    np.testing.assert_array_equal(whole.items, one.items)
    np.testing.assert_array_equal(search(s[4], V, w).items[0], whole.items[4])


def test_bad_input_is_named():
    s, V, w = problem(0)
    for arguments, message in [
        ((np.zeros((2, 2, 2)), V, w), "s: expected shape"),
        ((s, V[:5], w), "factors: expected a row for each of 6 items"),
        ((s, V, np.ones(7)), "weights: expected from 1 to 6 numbers"),
        ((s, V, [0.5, 1.0]), "weights: expected numbers >= 0 that never rise"),
        ((s, V, [0.5, -1.0]), "weights: expected numbers >= 0 that never rise"),
        ((np.where(s > 0, np.nan, s), V, w), "s: expected finite numbers"),
        ((s, np.full(V.shape, np.inf), w), "factors: expected finite numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            iterated_slates(*arguments)
    for listed, message in [
        (V[:5], r"listed: expected the shape of factors, \(6, 2\), found \(5, 2\)"),
        (np.full(V.shape, np.nan), "listed: expected finite numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            greedy_slates(s, V, w, listed=listed)
    with pytest.raises(ValueError, match="width: expected a whole number >= 1, found 0"):
        beam_slates(s, V, w, width=0)
    for start in ([[0, 1]], [[0, 1, 1]], [[0, 1, 6]], [[0.5, 1, 2]]):
        with pytest.raises(ValueError, match="start: expected"):
            iterated_slates(s, V, w, start=start)
