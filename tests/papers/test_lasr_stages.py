"""Settings and stages are chosen by lists of the validation pairs; the score of a stage is the formula's."""

from dataclasses import replace

import numpy as np
import pytest

from slatewise.factors.pair_terms import Bilinear
from slatewise_papers.lasr.data import generated_music
from slatewise_papers.lasr.lists import ranks_of
from slatewise_papers.lasr.stages import Settings, choose_first, choose_next, quality, refit

SEED = 3


@pytest.fixture(scope="module")
def problem():
    return generated_music(500, 60, seed=1)


@pytest.fixture(scope="module")
def first(problem):
    return choose_first(problem, [Settings(6, max_norm=0.2), Settings(6, max_norm=2.5)], 4, SEED)


def test_the_choice_with_the_better_lists_is_taken(problem, first):
    assert first.settings.max_norm == 2.5
    poor = choose_first(problem, [Settings(6, max_norm=0.2)], 4, SEED)
    assert quality(problem, first.lists()) > quality(problem, poor.lists())
    recall = ranks_of(first.lists(), problem.validation, problem.n_artists).recall()
    mean = np.prod([recall[f"R@{k}"] for k in (5, 10, 30, 50)]) ** 0.25
    assert quality(problem, first.lists()) == pytest.approx(mean / 100)


def test_a_stage_that_is_worse_is_not_kept(problem, first):
    wild = replace(first.settings, pair_norm=50.0, pair_step=30.0)
    assert choose_next(problem, first, [wild], 2, SEED) is first


def test_lists_of_a_stage_are_those_of_the_formula(problem, first):
    settings = replace(first.settings, term=Bilinear, pair_norm=1.0)
    # Known pairs are fitted without a judge, so the stage is there whether it helps or not.
    trial = replace(first, settings=settings, states=(first.states[0], replace(first.states[0], best_epoch=2)))
    fitted = refit(problem, trial, SEED)
    assert fitted.epochs == trial.epochs
    zero, one = fitted.states
    n = settings.n_components
    U, V, b = zero.queries.values[:, :n], zero.items.values[:, :n], zero.items.values[:, n]
    S, T = one.items.values[:, n + 1 : 2 * n + 1], one.items.values[:, 2 * n + 1 : 3 * n + 1]
    np.testing.assert_array_equal(one.items.values[:, : n + 1], zero.items.values[:, : n + 1])
    for query in (0, 7, 20):
        before = np.argsort(-(V @ U[query] + b), kind="stable")
        assert fitted.lists(0)(np.array([query]), 9)[0].tolist() == before[:9].tolist()
        score = V @ U[query] + b + sum(S @ T[j] / (place + 1) for place, j in enumerate(before[:20]))
        assert fitted.lists()(np.array([query]), 9)[0].tolist() == np.argsort(-score, kind="stable")[:9].tolist()
    assert fitted.first.scores(np.array([7]), np.arange(5))[0] == pytest.approx(V[:5] @ U[7] + b[:5], abs=1e-5)


def test_stages_done_are_not_done_again(problem, first):
    done = refit(problem, first, SEED)
    again = refit(problem, first, SEED, done)
    assert again.states == done.states
