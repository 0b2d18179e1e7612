"""Rankings with tied positions against every ranking, and against permanents with equal columns."""

import tracemalloc
from itertools import permutations
from math import lgamma

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.matchings import log_sum_and_marginals

from slatewise.inference import permanent, tied_log_sum
from slatewise.matching.sums import tied


def by_every_ranking(scores, sizes, values):
    """Log Z and class probabilities from the permanent's judge: one column a position."""
    log_z, marginals = log_sum_and_marginals(np.outer(scores, np.repeat(values, sizes)))
    return log_z, np.add.reduceat(
        np.concatenate((marginals, np.zeros((len(scores), 1))), axis=1), np.cumsum([0, *sizes[:-1]]), axis=1
    ) * (np.asarray(sizes) > 0)


@settings(max_examples=120)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.sampled_from([1.0, 10.0, 100.0]), st.integers(0, 99))
def test_equal_to_every_ranking(sizes, scale, seed):
    n = sum(sizes)
    if not 1 <= n <= 7:
        return
    rng = np.random.default_rng(seed)
    scores, values = scale * rng.normal(size=n), rng.normal(size=len(sizes))
    result = tied_log_sum(scores, sizes, values)
    log_z, marginals = by_every_ranking(scores, sizes, values)
    assert result.log_z == pytest.approx(log_z, abs=1e-11, rel=1e-13)
    np.testing.assert_allclose(result.marginals, marginals, atol=1e-11)


def test_equal_to_the_permanent_of_equal_columns():
    rng = np.random.default_rng(0)
    sizes, values, scores = [5, 4, 3, 4], [3.0, 2.0, 1.0, 0.0], 3.0 * rng.normal(size=16)
    result, full = tied_log_sum(scores, sizes, values), permanent(np.outer(scores, np.repeat(values, sizes)))
    assert result.log_z == pytest.approx(full.log_z, abs=1e-10)
    of_class = np.stack([part.sum(axis=1) for part in np.split(full.marginals, np.cumsum(sizes)[:-1], axis=1)], axis=1)
    np.testing.assert_allclose(result.marginals, of_class, atol=1e-10)


def test_two_values_are_elementary_symmetric_polynomials():
    """One class of weight 1 among 0s: the sum over subsets, read off a polynomial's coefficients."""
    x = np.random.default_rng(1).uniform(0.5, 2.0, size=30)
    coefficients = np.poly(-x)  # of prod (z + x_i): the m-th is e_m(x)
    result = tied_log_sum(np.log(x), [12, 18], [1.0, 0.0])
    orders_within = sum(np.log(np.arange(1, 13))) + sum(np.log(np.arange(1, 19)))
    assert result.log_z == pytest.approx(np.log(coefficients[12]) + orders_within, abs=1e-10)


@pytest.mark.parametrize("sizes", [[30, 20, 10], [100, 200], [40, 1, 1, 1]], ids=str)
def test_gradient_and_totals(sizes):
    rng, step = np.random.default_rng(2), 1e-5
    scores, values = rng.normal(size=sum(sizes)), np.arange(len(sizes))[::-1].astype(float)
    result = tied_log_sum(scores, sizes, values)
    np.testing.assert_allclose(result.marginals.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(result.marginals.sum(axis=0), sizes, atol=1e-10)
    for _ in range(3):
        direction = rng.normal(size=len(scores))
        ahead = tied_log_sum(scores + step * direction, sizes, values).log_z
        back = tied_log_sum(scores - step * direction, sizes, values).log_z
        assert (ahead - back) / (2 * step) == pytest.approx(direction @ result.marginals @ values, abs=1e-5)


@pytest.mark.parametrize("spread", [1.0, 100.0, 3000.0])
def test_wide_scores_neither_overflow_nor_vanish(spread):
    """Far apart, one ranking has all the weight."""
    scores = spread * np.arange(60.0)[::-1]
    result = tied_log_sum(scores, [20, 20, 20], [2.0, 1.0, 0.0])
    best = 2.0 * scores[:20].sum() + scores[20:40].sum() + 3 * sum(np.log(np.arange(1, 21)))
    assert result.log_z >= best * (1 - 1e-14)
    if spread >= 100.0:
        assert result.log_z == pytest.approx(best, rel=1e-13)
        np.testing.assert_allclose(result.marginals, np.repeat(np.eye(3), 20, axis=0), atol=1e-12)


MANY = [[150, 140, 110], [300, 40, 15], [90, 60, 50, 3], [120, 1, 1, 1]]


@pytest.mark.parametrize("spread", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("sizes", MANY, ids=str)
def test_what_is_left_out_is_known(sizes, spread, monkeypatch):
    rng = np.random.default_rng(3)
    scores, values = spread * rng.normal(size=sum(sizes)), np.arange(len(sizes), dtype=float)
    found = tied_log_sum(scores, sizes, values)
    assert 0.0 <= found.error <= 1e-13
    monkeypatch.setattr(tied, "TAIL", 0.0)
    whole = tied_log_sum(scores, sizes, values)
    assert whole.error == 0.0
    assert found.log_z == pytest.approx(whole.log_z, rel=1e-14, abs=1e-12)
    np.testing.assert_allclose(found.marginals, whole.marginals, atol=1e-13)
    # A coarse tail, so that the difference is more than rounding.
    monkeypatch.setattr(tied, "TAIL", 1e-5)
    monkeypatch.setattr(tied, "MOST_LEFT_OUT", np.inf)
    coarse = tied_log_sum(scores, sizes, values)
    assert 0.0 <= whole.log_z - coarse.log_z + 1e-10 <= coarse.error + 2e-10
    assert np.abs(whole.marginals - coarse.marginals).max() <= coarse.error + 1e-10
    if spread < 30.0 and min(sizes[:3]) > 1:
        assert coarse.error > 1e-5


def test_where_too_much_would_be_left_out_nothing_is(monkeypatch):
    scores, sizes, values = np.random.default_rng(4).normal(size=90), [40, 30, 20], [2.0, 1.0, 0.0]
    monkeypatch.setattr(tied, "MOST_LEFT_OUT", 0.0)
    found = tied_log_sum(scores, sizes, values)
    monkeypatch.setattr(tied, "TAIL", 0.0)
    whole = tied_log_sum(scores, sizes, values)
    assert found.error == whole.error == 0.0
    assert found.log_z == whole.log_z
    assert found.marginals.tobytes() == whole.marginals.tobytes()


def test_one_large_class_takes_no_square_of_memory():
    """One item each of weights 2 and 1: every pair of items less those that are the same item twice."""
    s = np.random.default_rng(6).normal(size=20_000)
    tied_log_sum(s[:5], [3, 1, 1], [0.0, 2.0, 1.0])  # compiles
    tracemalloc.start()
    result = tied_log_sum(s, [19_998, 1, 1], [0.0, 2.0, 1.0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20
    pairs = np.exp(2.0 * s).sum() * np.exp(s).sum() - np.exp(3.0 * s).sum()
    assert result.log_z == pytest.approx(np.log(pairs) + lgamma(19_999), rel=1e-14)
    np.testing.assert_allclose(result.marginals.sum(axis=0), [19_998, 1, 1], rtol=1e-10)


def test_classes_too_large_to_narrow_are_walked_whole(monkeypatch):
    rng, sizes = np.random.default_rng(7), np.array([60, 40, 30])
    scores, values = rng.normal(size=130), np.array([2.0, 1.0, 0.0])
    narrowed = tied_log_sum(scores, sizes, values)
    monkeypatch.setattr(tied, "MOST_BUFFER", 131 * 32)
    x = rng.dirichlet(np.ones(3), size=130)
    (_, lows, highs), (_, whole_lows, whole_highs) = tied._counts(x, sizes, 1e-19), tied._counts(x, sizes, 0.0)
    assert (highs[:2] - lows[:2] == whole_highs[:2] - whole_lows[:2]).all()
    assert (highs[2] - lows[2] < whole_highs[2] - whole_lows[2]).any()
    found = tied_log_sum(scores, sizes, values)
    assert found.log_z == pytest.approx(narrowed.log_z, rel=1e-14)
    np.testing.assert_allclose(found.marginals, narrowed.marginals, atol=1e-13)


@pytest.mark.parametrize("tail", [0.0, 1e-3, 0.05, 0.2])
@pytest.mark.parametrize("sizes", [[3, 2, 2], [4, 1, 2], [2, 2, 2, 1], [3, 1, 1, 1, 1]], ids=str)
def test_the_walk_sums_every_deal_between_the_bounds(sizes, tail):
    """Every way to deal the items out to the classes; those that leave the bounds weigh at most as said."""
    rng, n = np.random.default_rng(5), sum(sizes)
    x = rng.dirichlet(np.ones(len(sizes)), size=n)
    sizes = np.array(sizes)
    left_out, lows, highs = tied._counts(x, sizes, tail)
    assert (np.diff(lows) >= 0).all()
    assert (np.diff(lows) <= 1).all()
    assert (np.diff(highs) >= 0).all()
    assert (np.diff(highs) <= 1).all()
    inside = outside = 0.0
    marginals = np.zeros(x.shape)
    for deal in set(permutations(np.repeat(np.arange(len(sizes)), sizes).tolist())):
        weight = np.prod(x[np.arange(n), deal])
        counts = np.cumsum(np.eye(len(sizes), dtype=int)[list(deal)], axis=0).T
        if ((lows[:, 1:] <= counts) & (counts <= highs[:, 1:])).all():
            inside += weight
            marginals[np.arange(n), deal] += weight
        else:
            outside += weight
    assert outside <= left_out * (1 + 1e-12)
    assert outside > 0 if tail >= 0.05 else outside <= tail
    z, found = tied._walk(x, sizes, lows, highs)
    assert z == pytest.approx(inside, rel=1e-13)
    np.testing.assert_allclose(found, marginals / inside, atol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], []), r"scores: expected one finite number per item, found shape \(0,\)"),
        (([[1.0]], [1], [1.0]), r"scores: expected one finite number per item, found shape \(1, 1\)"),
        (([1.0, np.inf], [1, 1], [1.0, 0.0]), "scores: expected finite numbers, found inf"),
        (
            ([1.0, 2.0], [1, 2], [1.0, 0.0]),
            r"class_sizes: expected whole numbers >= 0 that add up to 2, found \[1, 2\]",
        ),
        (([1.0, 2.0], [3, -1], [1.0, 0.0]), "class_sizes: expected whole numbers >= 0 that add up to 2"),
        (([1.0, 2.0], [1.0, 1.0], [1.0, 0.0]), "class_sizes: expected whole numbers >= 0 that add up to 2"),
        (([1.0, 2.0], [1, 1], [1.0]), r"class_values: expected 2 finite numbers, found shape \(1,\)"),
        (([1.0, 2.0], [1, 1], [1.0, np.nan]), "class_values: expected finite numbers, found nan"),
        ((np.zeros(4000), [1000] * 4, [0.0] * 4), "class_sizes: expected at most 2147483648 states, found"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        tied_log_sum(*arguments)
