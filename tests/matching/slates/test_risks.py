"""Slates, likelihoods and hinges against enumeration over all rankings and finite differences."""

from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array
from tests.shipped import EXECUTORS

from slatewise.matching.slates.hinge import slate_hinge, whole_hinge
from slatewise.matching.slates.likelihood import find_ties, slate_likelihood, whole_likelihood
from slatewise.matching.slates.slates import RatedLists, SlateTable, all_slates, drawn_slates, make_slates


def some_lists(seed=0, sizes=(7, 5, 6), n_ratings=3, n_features=4):
    rng = np.random.default_rng(seed)
    ratings = np.concatenate([np.sort(np.append(rng.integers(0, n_ratings, n - 2), [0, n_ratings - 1])) for n in sizes])
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    return RatedLists.of(rng.normal(size=(sum(sizes), n_features)), ratings.astype(float), offsets)


def log_sum(values):
    values = np.asarray(values)
    return values.max() + np.log(np.exp(values - values.max()).sum())


def slow_slate_loss(scores, c, tied_groups=None):
    """-log of the probability of the given order, or of all orders that permute inside the groups."""
    places = range(len(c))
    of_all = [sum(scores[i] * c[p] for i, p in zip(places, order, strict=True)) for order in permutations(places)]
    if tied_groups is None:
        return log_sum(of_all) - float(scores @ c)
    same = [
        sum(scores[i] * c[p] for i, p in zip(places, order, strict=True))
        for order in permutations(places)
        if all(tied_groups[i] == tied_groups[p] for i, p in zip(places, order, strict=True))
    ]
    return log_sum(of_all) - log_sum(same)


def ndcg(gained, order):
    discount = 1 / np.log2(np.arange(len(gained)) + 2)
    gain = 2.0**gained - 1
    return (discount @ gain[list(order)]) / (discount @ np.sort(gain)[::-1])


def slow_hinge(scores, c, gained, least=0.0):
    """The items stand best first, so the target is the order they are in."""
    best = max(
        1 - ndcg(gained - least, order) + sum(scores[item] * c[rank] for rank, item in enumerate(order))
        for order in permutations(range(len(c)))
    )
    return best - float(scores @ c)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("c", ["linear", "rating", "given"])
def test_the_likelihood_of_slates_equals_enumeration(size, c):
    lists = some_lists()
    rng = np.random.default_rng(1)
    weights = {"linear": np.arange(size)[::-1].astype(float), "rating": None, "given": np.sort(rng.random(size))[::-1]}
    slates = make_slates(lists, size, weights[c], partial(drawn_slates, 0.3), rng)
    likelihood = slate_likelihood(lists.X, slates)

    def slow(theta):
        scores = lists.X @ theta
        return sum(
            share * slow_slate_loss(scores[rows], weight)
            for rows, weight, share in zip(slates.rows, slates.weights, slates.share, strict=True)
        )

    theta = 3.0 * rng.normal(size=4)
    value, gradient = likelihood.value_and_grad(theta)
    assert value == pytest.approx(slow(theta), abs=1e-12)
    np.testing.assert_allclose(gradient, approx_fprime(theta, slow, 1e-7), atol=1e-5)


@pytest.mark.parametrize("c", [None, np.array([3.0, 2.0, 1.0, 0.0])])
def test_tied_documents_are_summed_over(c):
    lists = some_lists(n_ratings=2)
    rng = np.random.default_rng(1)
    slates = make_slates(lists, 4, c, partial(drawn_slates, 0.3), rng)
    likelihood = slate_likelihood(lists.X, slates, find_ties(slates))

    def slow(theta):
        scores = lists.X @ theta
        return sum(
            share * slow_slate_loss(scores[rows], weight, ratings)
            for rows, weight, ratings, share in zip(
                slates.rows, slates.weights, slates.ratings, slates.share, strict=True
            )
        )

    theta = rng.normal(size=4)
    value, gradient = likelihood.value_and_grad(theta)
    assert value == pytest.approx(slow(theta), abs=1e-12)
    np.testing.assert_allclose(gradient, approx_fprime(theta, slow, 1e-7), atol=1e-5)


def test_the_likelihood_of_whole_lists_equals_enumeration():
    lists = some_lists(sizes=(5, 4, 6))
    weights = np.array([0.0, 0.7, 2.0])[lists.ratings.astype(int)]
    likelihood = whole_likelihood(lists, weights)

    def slow(theta):
        total = 0.0
        for start, end in zip(lists.offsets[:-1], lists.offsets[1:], strict=True):
            best_first = np.arange(start, end)[::-1]
            scores, c = (lists.X @ theta)[best_first], weights[best_first]
            total += slow_slate_loss(scores, c, lists.ratings[best_first])
        return total / len(lists)

    theta = np.random.default_rng(1).normal(size=4)
    value, gradient = likelihood.value_and_grad(theta)
    assert value == pytest.approx(slow(theta), abs=1e-11)
    np.testing.assert_allclose(gradient, approx_fprime(theta, slow, 1e-7), atol=1e-5)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("least", [0.0, -2.0])
def test_the_hinge_of_slates_equals_enumeration(size, least):
    lists = some_lists()
    rng = np.random.default_rng(2)
    slates = make_slates(lists, size, np.arange(size)[::-1].astype(float), partial(drawn_slates, 0.3), rng)
    hinge = slate_hinge(lists.X, slates, least)
    theta, other = rng.normal(size=(2, 4))

    def slow(params):
        scores = lists.X @ params
        return sum(
            share * slow_hinge(scores[rows], weight, ratings, least)
            for rows, weight, ratings, share in zip(
                slates.rows, slates.weights, slates.ratings, slates.share, strict=True
            )
        )

    offset, gradient = hinge.cut(theta)
    assert offset + gradient @ theta == pytest.approx(slow(theta), abs=1e-12)
    assert offset + gradient @ other <= slow(other) + 1e-12


def test_long_slates_go_through_the_assignment_solver(monkeypatch):
    lists = some_lists()
    rng = np.random.default_rng(2)
    slates = make_slates(lists, 5, np.arange(5)[::-1].astype(float), partial(drawn_slates, 0.3), rng)
    theta = rng.normal(size=4)
    few = slate_hinge(lists.X, slates, 0.0).cut(theta)
    monkeypatch.setattr("slatewise.matching.slates.hinge.MOST_IN_KERNEL", 4)
    many = slate_hinge(lists.X, slates, 0.0).cut(theta)
    assert many[0] + many[1] @ theta == pytest.approx(few[0] + few[1] @ theta, abs=1e-12)


def test_the_hinge_of_whole_lists_equals_enumeration():
    lists = some_lists(sizes=(5, 4, 6))
    weights = np.array([0.0, 0.7, 2.0])[lists.ratings.astype(int)]
    hinge = whole_hinge(lists, weights, 0.0)
    theta, other = np.random.default_rng(3).normal(size=(2, 4))

    def slow(params):
        scores, total = lists.X @ params, 0.0
        for start, end in zip(lists.offsets[:-1], lists.offsets[1:], strict=True):
            best_first = np.arange(start, end)[::-1]
            total += slow_hinge(scores[best_first], weights[best_first], lists.ratings[best_first])
        return total / len(lists)

    offset, gradient = hinge.cut(theta)
    assert offset + gradient @ theta == pytest.approx(slow(theta), abs=1e-12)
    assert offset + gradient @ other <= slow(other) + 1e-12


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 6), st.floats(-50, 50), st.sampled_from(["likelihood", "hinge"]))
def test_a_constant_added_to_the_scores_of_a_list_changes_nothing(seed, size, shift, kind):
    lists = some_lists(seed)
    rng = np.random.default_rng(seed)
    slates = make_slates(lists, min(size, 5), None, partial(drawn_slates, 0.2), rng)
    moved = lists.X + shift * rng.normal(size=(3, 4))[np.repeat(np.arange(3), np.diff(lists.offsets))]
    theta = rng.normal(size=4)

    def value(X):
        if kind == "likelihood":
            return slate_likelihood(X, slates).value_and_grad(theta)[0]
        offset, gradient = slate_hinge(X, slates, 0.0).cut(theta)
        return offset + gradient @ theta

    assert value(moved) == pytest.approx(value(lists.X), abs=1e-8)


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_the_hinge_is_at_least_the_loss_it_bounds(seed):
    lists = some_lists(seed)
    rng = np.random.default_rng(seed)
    slates = make_slates(lists, 4, np.array([3.0, 2.0, 1.0, 0.0]), partial(drawn_slates, 0.2), rng)
    theta = rng.normal(size=4)
    scores = (lists.X @ theta)[slates.rows]
    losses = [1 - ndcg(gained, np.argsort(-s)) for gained, s in zip(slates.ratings, scores, strict=True)]
    offset, gradient = slate_hinge(lists.X, slates, 0.0).cut(theta)
    assert offset + gradient @ theta >= slates.share @ losses - 1e-12


@pytest.mark.parametrize("extreme", [300.0, 1e4])
def test_extreme_scores_stay_finite(extreme):
    lists = some_lists()
    slates = make_slates(lists, 5, None, partial(drawn_slates, 0.3), np.random.default_rng(0))
    value, gradient = slate_likelihood(lists.X, slates).value_and_grad(extreme * np.ones(4))
    assert np.isfinite(value)
    assert value >= 0
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("size", [2, 3, 4, 6])
@pytest.mark.parametrize("n_ratings", [2, 3, 5])
def test_drawn_slates_show_as_many_ratings_as_they_can(size, n_ratings):
    lists = some_lists(sizes=(30, 12), n_ratings=n_ratings)
    slates = make_slates(lists, size, None, partial(drawn_slates, 0.5), np.random.default_rng(0))
    list_of = np.repeat([0, 1], [30, 12])
    drawn = np.rint(slates.share * (15 * size + 6 * size)).astype(int)
    assert [drawn[list_of[slates.rows[:, 0]] == q].sum() for q in (0, 1)] == [15 * size, 6 * size]
    for rows, ratings in zip(slates.rows, slates.ratings, strict=True):
        assert len(set(list_of[rows])) == 1
        assert len(set(rows)) == size
        assert (np.diff(ratings) <= 0).all()
        there = len(set(lists.ratings[list_of == list_of[rows[0]]]))
        assert len(set(ratings)) == min(size, there)


def test_slates_of_one_document_a_rating_are_drawn_evenly():
    ratings = np.array([0.0, 0, 0, 1, 1, 2])
    found = drawn_slates(500.0, ratings, 3, np.random.default_rng(0))
    _, counts = np.unique(found, axis=0, return_counts=True)
    assert len(counts) == 6
    expected = len(found) / 6
    assert ((counts - expected) ** 2 / expected).sum() < 20.5  # chi-square, 5 degrees of freedom, p = .001


@pytest.mark.parametrize("size", [2, 3, 4])
def test_all_slates_are_all_of_them_once(size):
    from itertools import combinations

    ratings = np.array([0.0, 0, 1, 1, 1, 2])
    found = all_slates(ratings, size, np.random.default_rng(0))
    wanted = {rows for rows in combinations(range(6), size) if len(set(ratings[list(rows)])) == min(size, 3)}
    assert {tuple(sorted(rows)) for rows in found.tolist()} == wanted
    assert len(found) == len(wanted)


def test_too_many_slates_are_refused():
    with pytest.raises(ValueError, match="slates: expected at most"):
        all_slates(np.repeat([0.0, 1.0, 2.0], 400), 3, np.random.default_rng(0))


def test_equal_slates_count_together():
    lists = RatedLists.of(np.eye(2), np.array([0.0, 1.0]), np.array([0, 2]))
    slates = make_slates(lists, 2, None, partial(drawn_slates, 10.0), np.random.default_rng(0))
    np.testing.assert_array_equal(slates.rows, [[1, 0]])
    np.testing.assert_array_equal(slates.share, [1.0])


def test_threads_do_not_change_the_bits():
    lists = some_lists(sizes=(60, 50, 70))
    slates = make_slates(lists, 4, None, partial(drawn_slates, 20.0), np.random.default_rng(0))
    theta = np.ones(4)
    for make in (
        lambda executor: slate_likelihood(lists.X, slates, (), executor).value_and_grad(theta),
        lambda executor: slate_hinge(lists.X, slates, 0.0, executor).cut(theta),
        lambda executor: whole_likelihood(lists, lists.ratings, executor).value_and_grad(theta),
        lambda executor: whole_hinge(lists, lists.ratings, 0.0, executor).cut(theta),
    ):
        one, *others = map(make, EXECUTORS)
        for other in others:
            assert one[0] == other[0]
            np.testing.assert_array_equal(one[1], other[1])


def test_a_slate_with_a_single_document_a_rating_has_no_ties():
    ratings = np.array([[2.0, 1.0, 0.0], [2.0, 2.0, 0.0], [1.0, 1.0, 1.0]])
    ties = find_ties(SlateTable(np.zeros((3, 3), dtype=np.int64), ratings, ratings, np.ones(3) / 3))
    assert [(tie.slates.tolist(), tie.first, tie.last) for tie in ties] == [([1], 0, 2), ([2], 0, 3)]


@pytest.mark.parametrize("make", [whole_hinge, whole_likelihood])
def test_whole_lists_are_weighted_and_may_be_sparse(make):
    """A list of weight 2 is the list twice; CSR rows are the dense ones."""
    rng = np.random.default_rng(0)
    X, ratings = rng.normal(size=(9, 3)) * (rng.random((9, 3)) < 0.5), np.tile([0.0, 1.0, 2.0], 3)
    offsets, theta = np.arange(0, 10, 3), rng.normal(size=3)
    twice = np.r_[0:9, 3:6]

    def of(lists):
        part = make(lists, lists.ratings, 0.0) if make is whole_hinge else make(lists, lists.ratings)
        return part.value_and_grad(theta)

    weighted = of(RatedLists.of(X, ratings, offsets, np.array([1.0, 2.0, 1.0])))
    doubled = of(RatedLists.of(X[twice], ratings[twice], np.arange(0, 13, 3)))
    sparse = of(RatedLists.of(csr_array(X), ratings, offsets, np.array([1.0, 2.0, 1.0])))
    for other in (doubled, sparse):
        assert weighted[0] == pytest.approx(other[0], rel=1e-12)
        np.testing.assert_allclose(weighted[1], other[1], rtol=1e-12, atol=1e-15)
