"""Kernels of quadratic ranking: gains against scores computed anew, compiled against plain Python."""

import numpy as np
import pytest
from tests.bruteforce import quadratic_score

from slatewise.quadratic.kernels.exact import best_of_all_rankings, best_of_all_subsets, subset_sums
from slatewise.quadratic.kernels.tabu import Problem, Rules, Walk, all_gains, search, swap

N = 6


def python(kernel):
    return getattr(kernel, "py_func", kernel)


LINEAR = np.random.default_rng(3).normal(size=(N, N))


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    items, positions = rng.normal(size=(2, N, N))
    np.fill_diagonal(items, 0.0)
    np.fill_diagonal(positions, 0.0)
    items_t, positions_t = items.T.copy(), positions.T.copy()
    return Problem(items, items_t, items + items_t, positions, positions_t)


def score(problem, place):
    order = np.argsort(place)
    none = np.zeros(N)
    return LINEAR[np.arange(N), place].sum() + quadratic_score(none, none, problem.items, problem.positions, order)


def fresh_walk(problem, place):
    D, gradient = problem.positions, LINEAR[:, place].copy(order="C")
    for i, j, k in np.ndindex(N, N, N):
        gradient[i, j] += problem.items[i, k] * D[place[j], place[k]] + problem.items[k, i] * D[place[k], place[j]]
    between = np.array([[D[p, q] + D[q, p] for q in place] for p in place])
    value = np.full(2, score(problem, place))
    until = -np.arange(N * N).reshape(N, N)
    random = np.array([7], dtype=np.uint64)
    return Walk(
        place.copy(), place.copy(), value, gradient, gradient.T.copy(), between, np.empty((N, N)), until, random
    )


def test_gains_are_differences_of_scores_even_after_many_swaps(problem):
    rng = np.random.default_rng(1)
    walk = fresh_walk(problem, rng.permutation(N))
    buffers = np.empty((4, N))
    for _ in range(20):
        all_gains(walk.gradient, walk.gradient_t, walk.between, problem.items_both, buffers[0], walk.gains)
        for i in range(N):
            for j in range(i):
                swapped = walk.place.copy()
                swapped[[i, j]] = swapped[[j, i]]
                gain = score(problem, swapped) - score(problem, walk.place)
                assert walk.gains[i, j] == pytest.approx(gain, abs=1e-9)
        swap(problem, walk, *rng.permutation(N)[:2], buffers)


def test_the_search_keeps_count_of_its_scores(problem):
    walk = fresh_walk(problem, np.arange(N))
    search(problem, walk, Rules(8 * N, 2 * N * N, 1e-12), 0, 500, np.empty((4, N)))
    assert walk.values[0] == pytest.approx(score(problem, walk.place))
    assert walk.values[1] == pytest.approx(score(problem, walk.best_place))


def test_a_search_in_two_parts_is_the_same_search(problem):
    whole, parts = fresh_walk(problem, np.arange(N)), fresh_walk(problem, np.arange(N))
    rules, buffers = Rules(8 * N, 2 * N * N, 1e-12), np.empty((4, N))
    search(problem, whole, rules, 0, 300, buffers)
    search(problem, parts, rules, 0, 100, buffers)
    search(problem, parts, rules, 100, 300, buffers)
    assert all(np.array_equal(one, other) for one, other in zip(whole, parts, strict=True))


def test_the_search_is_the_same_without_the_compiler(problem):
    compiled, plain = fresh_walk(problem, np.arange(N)), fresh_walk(problem, np.arange(N))
    rules = Rules(8 * N, 2 * N * N, 1e-12)
    search(problem, compiled, rules, 0, 200, np.empty((4, N)))
    python(search)(problem, plain, rules, 0, 200, np.empty((4, N)))
    assert np.array_equal(compiled.place, plain.place)


def test_exact_kernels_are_the_same_without_the_compiler(problem):
    after, before = np.random.default_rng(2).normal(size=(2, N))
    halves = []
    for part in (slice(0, 3), slice(3, N)):
        sums = np.empty((8, N, 2))
        python(subset_sums)(problem.items[:, part], problem.items_t[:, part], sums)
        halves.append(sums)
    for part, sums in zip((slice(0, 3), slice(3, N)), halves, strict=True):
        again = np.empty((8, N, 2))
        subset_sums(problem.items[:, part].copy(), problem.items_t[:, part].copy(), again)
        assert np.array_equal(sums, again)
    orders = np.empty((4, N), dtype=np.int64)
    for row, subsets in enumerate((best_of_all_subsets, python(best_of_all_subsets))):
        subsets(LINEAR, after, before, *halves, np.empty(1 << N), orders[row])
    for row, rankings in enumerate((best_of_all_rankings, python(best_of_all_rankings))):
        rankings(LINEAR, problem.items, problem.positions, orders[2 + row])
    assert np.array_equal(orders[0], orders[1])
    assert np.array_equal(orders[2], orders[3])
