"""Loss-augmented inference with independent scores, judged by all rankings and by SciPy's assignment."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from tests.bruteforce import best_linear, linear_score

from slatewise.core.kernels.count_grid import walk_counts
from slatewise.inference import linear_loss_ranking
from slatewise.losses import DCGLoss, PrecisionLoss, ReciprocalRankLoss, WinnerLoss


def vectors(n):
    numbers = st.sampled_from([-1.5, -1.0, 0.0, 0.25, 1.0, 2.0])
    return st.tuples(*[st.lists(numbers, min_size=n, max_size=n).map(np.array)] * 4)


def check_exact(four, method):
    result = linear_loss_ranking(*four, method=method)
    assert sorted(result.order) == list(range(len(four[0])))
    assert result.score == pytest.approx(linear_score(*four, result.order))
    assert result.score == pytest.approx(best_linear(*four))


@given(st.integers(1, 6).flatmap(vectors))
@settings(deadline=None)  # the first call compiles
def test_the_default_and_the_assignment_are_exact(four):
    check_exact(four, "auto")
    check_exact(four, "assignment")


@given(st.integers(2, 6).flatmap(vectors))
@settings(deadline=None)  # the first call compiles
def test_the_grid_of_counts_is_exact(four):
    check_exact(four, "counts")


@given(st.integers(1, 6).flatmap(vectors), st.sampled_from([-2.0, 0.0, 0.5]), st.integers(0, 3))
def test_the_sort_is_exact_where_it_applies(four, factor, case):
    s, c, a, b = four
    parallel = [(s, c, factor * c + 1, b), (s, factor * a + 1, a, b), (s, c, a, factor * s + 1), (factor * b, c, a, b)]
    check_exact(parallel[case], "sort")


def by_assignment(s, c, a, b):
    matrix = np.outer(s, c) + np.outer(b, a)
    return matrix[linear_sum_assignment(matrix, maximize=True)].sum()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("loss", "k", "weights", "method"),
    [
        (WinnerLoss(), None, "reciprocal", "counts"),
        (PrecisionLoss(), 7, "reciprocal", "counts"),
        (PrecisionLoss(), 7, "top", "sort"),
        (ReciprocalRankLoss(), None, "reciprocal", "sort"),
        (ReciprocalRankLoss(), None, "linear", "counts"),
        (DCGLoss(), None, "linear", "counts"),
        (DCGLoss(), 10, "top", "counts"),
    ],
)
def test_long_lists_agree_with_an_assignment(loss, k, weights, method, seed):
    rng = np.random.default_rng(seed)
    n = 40
    c = {"reciprocal": 1 / np.arange(1, n + 1), "top": (np.arange(n) < 7) * 1.0, "linear": np.arange(n, 0, -1) / n}
    ratings = rng.integers(0, 3, n) if loss == DCGLoss() else (rng.permutation(n) < (1 if k is None else 9)) * 1
    s = rng.normal(size=n)
    a, b = loss.vectors(ratings, k)
    result = linear_loss_ranking(s, c[weights], a, b)
    assert result.method == method
    assert result.score == pytest.approx(by_assignment(s, c[weights], a, b))


def test_distinct_vectors_go_to_the_assignment():
    rng = np.random.default_rng(0)
    four = rng.normal(size=(4, 30))
    result = linear_loss_ranking(*four)
    assert result.method == "assignment"
    assert result.score == pytest.approx(by_assignment(*four))


def test_a_grid_too_large_for_a_float_is_passed_over_in_silence():
    rng = np.random.default_rng(0)
    n = 1100
    s, c, b = rng.normal(size=(3, n))
    result = linear_loss_ranking(s, c, (np.arange(n) < 3) * 1.0, b)
    assert result.method == "counts"
    assert result.score == pytest.approx(by_assignment(s, c, (np.arange(n) < 3) * 1.0, b))


def test_a_top_k_comes_best_first():
    z, k = np.array([1, 0, 0, 0]), 2
    loss = PrecisionLoss()
    s = np.array([0.5, 0.1, 0.3, -2.0])
    result = linear_loss_ranking(s, [1, 1, 0, 0], *loss.vectors(z, k))
    assert result.order[:k].tolist() == np.argsort(-loss.augmented(s, z, k))[:k].tolist()


def test_the_walk_is_the_same_without_the_compiler():
    rng = np.random.default_rng(1)
    scores, walk, partner = -np.sort(-rng.normal(size=(3, 5)))
    arguments = scores, np.array([0, 2, 5]), np.array([0.0, 1.0]), walk, partner, np.array([1, 3])
    results = []
    for function in (walk_counts, getattr(walk_counts, "py_func", walk_counts)):
        values, last = np.empty(12), np.empty(12, dtype=np.int8)
        function(*arguments, values, last)
        results.append((values.tolist(), last.tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"s": []}, "s: expected one number an item, found shape"),
        ({"c": [1, 2, 3]}, "c: expected 2 numbers, as many as in s"),
        ({"a": [np.inf, 0]}, "a: expected finite numbers, found inf at 0"),
        ({"method": "guess"}, "method: expected one of auto, sort, counts, assignment, found 'guess'"),
        ({"method": "sort", "b": [1, 0], "a": [0, 1], "s": [3, 0]}, None),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {"s": [1, 0], "c": [1, 0], "a": [1, 0], "b": [0, 1]} | change
    if message is None:
        assert linear_loss_ranking(**arguments).method == "sort"
        return
    with pytest.raises(ValueError, match=message):
        linear_loss_ranking(**arguments)


@pytest.mark.parametrize("method", ["sort", "counts"])
def test_a_method_that_does_not_fit_is_refused(method):
    four = np.random.default_rng(0).normal(size=(4, 12))
    with pytest.raises(ValueError, match="method: expected 'auto' or 'assignment' for these vectors"):
        linear_loss_ranking(*four, method=method)
