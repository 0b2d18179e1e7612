"""Sums over all lists of a c-star model against enumeration."""

import numpy as np
import pytest
from tests.cstar.inference.test_best_set_exact import KINDS, all_sets, possible_scores, small_lists, small_model

from slatewise.core.running.executor import Executor
from slatewise.cstar.inference.fixed_size import most_probable, star_log_odds, star_sums
from slatewise.cstar.inference.model import StarLists


@pytest.mark.parametrize("kind", KINDS)
def test_sums_over_all_lists(kind):
    rng = np.random.default_rng([KINDS.index(kind), 5])
    for n_items in np.tile(np.arange(1, 10), 4):
        pair, core = small_model(rng, n_items, rng.integers(n_items + 1), kind)
        s, k, known = small_lists(rng, n_items, kind, n_items)
        sets, weight = all_sets(n_items, n_items), rng.random(len(s))
        scores = possible_scores(s, pair, core, k, known, sets)
        chance = np.exp(scores - scores.max(axis=1, keepdims=True))
        log_z = np.log(chance.sum(axis=1)) + scores.max(axis=1)
        chance /= chance.sum(axis=1, keepdims=True)
        found = star_sums(StarLists.of(s, pair, core, k, known), weight)
        np.testing.assert_allclose(found.log_z, log_z, atol=1e-10)
        np.testing.assert_allclose(found.item, chance @ sets, atol=1e-10)
        for row, c in enumerate(core):
            earlier = core[: row + 1]  # their pairs stand in the rows above
            together = weight @ chance @ (sets * sets[:, [c]])
            together[earlier] = 0.0
            np.testing.assert_allclose(found.joint[row], together, atol=1e-10)
        log_odds = star_log_odds(s, pair, core, k, known)
        inside, outside = chance @ sets, chance @ (1 - sets)
        sure = (inside < 1e-12) | (outside < 1e-12)
        np.testing.assert_allclose(log_odds[~sure], np.log(inside[~sure] / outside[~sure]), atol=1e-6)
        possible = np.isfinite(scores).astype(float)
        np.testing.assert_array_equal(log_odds == np.inf, possible @ (1 - sets) == 0)
        np.testing.assert_array_equal(log_odds == -np.inf, (possible @ sets == 0) & (possible @ (1 - sets) > 0))


def test_large_scores_neither_overflow_nor_vanish():
    rng = np.random.default_rng(0)
    s = rng.normal(0, 15, (3, 60))
    pair = np.abs(rng.normal(0, 10, (2, 60)))
    pair[:, :2] = 0.0
    found = star_sums(StarLists.of(s, pair, [0, 1], [1, 20, 59]), np.ones(3))
    assert np.isfinite(found.log_z).all()
    np.testing.assert_allclose(found.item.sum(axis=1), [1, 20, 59])


def test_the_same_bits_with_one_and_two_threads():
    rng = np.random.default_rng(1)
    s, k = rng.normal(size=(200, 20)), rng.integers(0, 21, 200)
    pair, core = small_model(rng, 20, 4, "real")
    one, two = (star_sums(StarLists.of(s, pair, core, k), np.ones(200), Executor(n)) for n in (1, 2))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one, two, strict=True))


def test_no_lists_and_too_many_core_items():
    assert star_log_odds(np.empty((0, 3)), np.empty((0, 3)), [], 2).shape == (0, 3)
    with pytest.raises(ValueError, match="core: expected at most 10 items to sum over all settings, found 13"):
        star_log_odds(np.zeros(20), np.zeros((13, 20)), np.arange(13), 3)


def test_sure_items_come_by_score():
    s = np.array([[60.0, 55.0, 50.0, -20.0, -30.0, -40.0]])
    found = most_probable(StarLists.of(s[:, ::-1].copy(), np.zeros((1, 6)), [0], 3))
    assert found.items.tolist() == [5, 4, 3]


def test_pair_terms_beyond_exp_are_refused():
    rng = np.random.default_rng(1)
    pair = rng.normal(size=(1, 6)) * 500.0
    pair[0, 0] = 0.0
    with pytest.raises(ValueError, match="pair: expected terms whose exponentials can be summed"):
        star_log_odds(rng.normal(size=(5, 6)), pair, [0], 3)
    assert np.isfinite(star_log_odds(rng.normal(size=(5, 6)), 0.2 * pair, [0], 3)).all()
