"""Rankings with tied positions against every ranking, and against permanents with equal columns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.matchings import log_sum_and_marginals

from slatewise.inference import permanent, tied_log_sum


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], []), r"scores: expected one finite number an item, found shape \(0,\)"),
        (([[1.0]], [1], [1.0]), r"scores: expected one finite number an item, found shape \(1, 1\)"),
        (([1.0, np.inf], [1, 1], [1.0, 0.0]), "scores: expected one finite number an item, found inf"),
        (
            ([1.0, 2.0], [1, 2], [1.0, 0.0]),
            r"class_sizes: expected whole numbers >= 0 that add up to 2, found \[1, 2\]",
        ),
        (([1.0, 2.0], [3, -1], [1.0, 0.0]), "class_sizes: expected whole numbers >= 0 that add up to 2"),
        (([1.0, 2.0], [1.0, 1.0], [1.0, 0.0]), "class_sizes: expected whole numbers >= 0 that add up to 2"),
        (([1.0, 2.0], [1, 1], [1.0]), r"class_values: expected 2 finite numbers, found shape \(1,\)"),
        (([1.0, 2.0], [1, 1], [1.0, np.nan]), "class_values: expected 2 finite numbers, found nan"),
        ((np.zeros(4000), [1000] * 4, [0.0] * 4), "class_sizes: expected at most 2147483648 states, found"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        tied_log_sum(*arguments)
