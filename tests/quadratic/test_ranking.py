"""Quadratic ranking, judged by all rankings of up to 7 items and by QAPLIB's best known values."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.bruteforce import all_rankings, best_quadratic, quadratic_score

from slatewise.datasets import load
from slatewise.datasets.records import QapSet
from slatewise.inference import quadratic_ranking
from slatewise.losses import DCGLoss
from slatewise.metrics import AP

SEARCHES = ("faq", "tabu")


def problem(n, seed, later=False):
    """s, c, F, D with no symmetry; later: D depends on the later position only."""
    rng = np.random.default_rng(seed)
    s, c, F, D = rng.normal(size=n), rng.normal(size=n), rng.normal(size=(n, n)), rng.normal(size=(n, n))
    if later:
        after, before, diagonal = rng.normal(size=(3, n))
        p, q = np.indices((n, n))
        D = np.where(p > q, after[p], np.where(p < q, before[q], diagonal[p]))
    return s, c, F, D


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7])
@pytest.mark.parametrize("seed", range(4))
def test_the_default_is_exact_on_small_lists(n, seed, later):
    given_problem = problem(n, seed, later)
    result = quadratic_ranking(*given_problem)
    assert result.method == ("subsets" if later or n <= 2 else "enumeration")
    assert result.score == pytest.approx(quadratic_score(*given_problem, result.order))
    assert result.score == pytest.approx(best_quadratic(*given_problem))
    assert result.upper_bound == result.score
    assert result.proven_best


@pytest.mark.parametrize("method", SEARCHES)
@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("seed", range(3))
def test_searches_stay_between_their_claims_and_tabu_finds_the_best(method, n, seed):
    given_problem = problem(n, seed)
    best = best_quadratic(*given_problem)
    result = quadratic_ranking(*given_problem, method=method)
    assert sorted(result.order) == list(range(n))
    assert result.score == pytest.approx(quadratic_score(*given_problem, result.order))
    assert result.score <= best + 1e-9
    assert result.upper_bound >= best - 1e-9
    if method == "tabu":
        assert result.score == pytest.approx(best)


@pytest.mark.parametrize("seed", range(3))
def test_tabu_finds_what_the_subsets_prove(seed):
    given_problem = problem(13, seed, later=True)
    exact = quadratic_ranking(*given_problem)
    assert exact.method == "subsets"
    searched = quadratic_ranking(*given_problem, method="tabu")
    assert searched.score == pytest.approx(exact.score)
    assert searched.upper_bound >= exact.score - 1e-9


def test_enumeration_agrees_with_subsets_on_nine_items():
    given_problem = problem(9, 0, later=True)
    assert quadratic_ranking(*given_problem, method="enumeration").score == pytest.approx(
        quadratic_ranking(*given_problem, method="subsets").score
    )


@given(st.integers(2, 6), st.integers(0, 10**6), st.booleans(), st.randoms())
@settings(max_examples=50, deadline=None)
def test_relabeling_the_items_relabels_the_ranking(n, seed, later, random):
    s, c, F, D = problem(n, seed, later)
    labels = list(range(n))
    random.shuffle(labels)
    new = quadratic_ranking(s[labels], c, F[np.ix_(labels, labels)], D)
    old = quadratic_ranking(s, c, F, D)
    assert new.score == pytest.approx(old.score)
    assert np.array_equal(np.array(labels)[new.order], old.order)


@given(st.integers(1, 6), st.integers(0, 10**6), st.floats(-5, 5))
@settings(max_examples=50, deadline=None)
def test_a_constant_added_to_s_shifts_the_score(n, seed, constant):
    s, c, F, D = problem(n, seed)
    old, new = quadratic_ranking(s, c, F, D), quadratic_ranking(s + constant, c, F, D)
    assert new.score == pytest.approx(old.score + constant * c.sum(), abs=1e-9)


@given(st.integers(2, 6), st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_swapping_both_orientations_changes_nothing(n, seed):
    s, c, F, D = problem(n, seed)
    assert quadratic_ranking(s, c, F.T, D.T).score == pytest.approx(quadratic_ranking(s, c, F, D).score)


@pytest.mark.parametrize("method", SEARCHES)
def test_without_pairs_the_bound_proves_a_sort(method):
    s, c = np.random.default_rng(0).normal(size=(2, 12))
    result = quadratic_ranking(s, np.sort(c)[::-1], np.zeros((12, 12)), np.ones((12, 12)), method=method)
    assert result.order.tolist() == np.argsort(-s).tolist()
    assert result.proven_best


def test_a_search_without_a_certificate_says_so():
    distance = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    F = np.random.default_rng(0).normal(size=(12, 12))
    result = quadratic_ranking(np.zeros(12), np.zeros(12), F, distance)
    assert result.method == "tabu"
    assert result.upper_bound > result.score
    assert not result.proven_best


@pytest.mark.parametrize("method", ["auto", "tabu"])
def test_a_linear_loss_folds_in(method):
    s, c, F, D = problem(6, 3)
    a, b = DCGLoss().vectors([2, 0, 1, 0, 0, 1])
    result = quadratic_ranking(s, c, F, D, method, linear=np.outer(b, a))
    best = max(quadratic_score(s, c, F, D, order) + a @ b[order] for order in all_rankings(6))
    assert result.score == pytest.approx(best)


@pytest.mark.parametrize("z", [[1, 0, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1]])
def test_average_precision_is_a_quadratic_form(z):
    z = np.array(z)
    positions = np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None]
    items = np.outer(z, z) / z.sum()
    none = np.zeros(5)
    values = []
    for order in all_rankings(5):
        matrix = np.eye(5)[order]
        value = AP()([z], [-np.argsort(order)])
        assert np.trace(positions @ matrix @ items @ matrix.T) == pytest.approx(value)
        assert quadratic_score(none, none, items, positions, order) == pytest.approx(value)
        values.append(value)
    best, worst = (quadratic_ranking(none, none, sign * items, positions) for sign in (1, -1))
    assert best.method == worst.method == "subsets"
    assert best.score == pytest.approx(1.0)
    assert -worst.score == pytest.approx(min(values))


def test_kemeny_rule_agrees_with_all_rankings():
    votes = np.random.default_rng(0).integers(0, 10, size=(7, 7)).astype(float)
    none, earlier = np.zeros(7), np.triu(np.ones((7, 7)), 1)
    result = quadratic_ranking(none, none, votes, earlier)
    assert result.method == "subsets"
    assert result.score == max(np.triu(votes[np.ix_(order, order)], 1).sum() for order in all_rankings(7))


@pytest.mark.parametrize("method", SEARCHES)
def test_the_same_seed_gives_the_same_ranking(method):
    given_problem = problem(15, 0)
    first, second = (quadratic_ranking(*given_problem, method=method, random_state=5) for _ in range(2))
    assert np.array_equal(first.order, second.order)
    assert first.score == second.score


def test_a_time_limit_bounds_the_search_and_still_ranks():
    given_problem = problem(40, 0)
    result = quadratic_ranking(*given_problem, time_limit=0.05)
    assert sorted(result.order) == list(range(40))
    assert result.score <= result.upper_bound


@pytest.mark.data
def test_qaplib_best_values_are_found_and_lie_within_the_bound(shared_data):
    instances = load("qaplib", QapSet, folder=shared_data).instances
    for name in ("nug12", "tai12a"):
        instance = instances[name]
        none = np.zeros(len(instance.A))
        result = quadratic_ranking(none, none, -instance.A, instance.B)
        assert -result.score == instance.best_value
        assert instance.value(np.argsort(result.order)) == instance.best_value
    for instance in instances.values():
        none = np.zeros(len(instance.A))
        result = quadratic_ranking(none, none, -instance.A, instance.B, method="faq", time_limit=1e-9)
        assert instance.best_value <= -result.score
        assert -result.upper_bound <= instance.best_value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"s": []}, "s: expected one number per item"),
        ({"c": [1.0]}, r"c: expected shape \(3,\) for 3 items"),
        ({"F": np.ones((2, 2))}, r"F: expected shape \(3, 3\) for 3 items"),
        ({"D": np.diag([1, np.nan, 1])}, r"D: expected finite numbers, found nan at \[1, 1\]"),
        ({"linear": np.ones(3)}, "linear: expected shape"),
        ({"method": "guess"}, "method: expected one of auto, enumeration, subsets, faq, tabu, found 'guess'"),
        ({"time_limit": 0}, "time_limit: expected seconds > 0 or None, found 0"),
        ({"method": "subsets"}, "D: method 'subsets' expects"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = dict(zip("scFD", problem(3, 0), strict=True)) | change
    with pytest.raises(ValueError, match=message):
        quadratic_ranking(**arguments)


@pytest.mark.parametrize(("method", "n"), [("enumeration", 11), ("subsets", 26)])
def test_too_many_items_for_an_exact_method(method, n):
    with pytest.raises(ValueError, match=f"'{method}' expects at most"):
        quadratic_ranking(*problem(n, 0, later=True), method=method)


@given(st.integers(2, 5), st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_equal_scores_are_no_problem(n, seed):
    rng = np.random.default_rng(seed)
    F, D = rng.integers(-1, 2, size=(2, n, n)).astype(float)
    assume(F.any())
    s, c = np.zeros(n), np.zeros(n)
    assert quadratic_ranking(s, c, F, D, method="tabu").score == pytest.approx(best_quadratic(s, c, F, D))
