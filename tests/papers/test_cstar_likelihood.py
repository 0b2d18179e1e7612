"""Fitting the likelihood: the certificate, the coordinates, the choice."""

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.cstar.likelihood.test_fixed_size import free, slow_value

from slatewise import datasets
from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.cstar.inference.fixed_size import star_log_odds
from slatewise.cstar.likelihood.fit import Settings
from slatewise.cstar.likelihood.objective import AdjustedScores, FixedSizeLikelihood
from slatewise.cstar.margin.training import relevant_hinge
from slatewise.cstar.margin.unary import prepare_given, prepare_linear
from slatewise.labeling import simulate
from slatewise_papers.cstar.likelihood import (
    LikelihoodGivenK,
    choose_likelihood,
    likelihood_fit,
    likely_core,
    probable_precision,
    unexplained_core,
)

CORE = np.array([4, 1, 2])


def small_problem(seed=0):
    rng = np.random.default_rng(seed)
    Y = (rng.random((7, 6)) < 0.4).astype(float)
    Y = Y[Y.sum(axis=1) > 0]
    given = rng.normal(size=Y.shape)
    return relevant_hinge(prepare_given(given), Y, np.ones(len(Y)), CORE).problem, given, Y


def test_the_certificate_encloses_the_optimum():
    problem, given, Y = small_problem()
    fit = likelihood_fit(problem, Settings(1.5, 0.25, 1e-8, 500, 0))
    model = AdjustedScores(given, CORE)
    likelihood = FixedSizeLikelihood(model, Y, Y.sum(axis=1).astype(np.int64), np.ones(len(Y)))
    weights = np.ones(model.n_params)
    model.unpack(weights)[2][:] = 0.25
    flags = free(model)
    judge = minimize(
        lambda p: 1.5 * slow_value(likelihood, p * flags) + 0.5 * p @ (weights * p),
        np.zeros(model.n_params),
        options={"maxiter": 40},
    )
    assert fit.converged
    assert fit.lower_bound <= judge.fun + 1e-6
    assert fit.objective == pytest.approx(judge.fun, abs=1e-4)
    W, G = problem.unpack(fit.params)
    a, v, pair = model.unpack(judge.x * flags)
    np.testing.assert_allclose(W, np.column_stack([a, v]), atol=1e-2)
    np.testing.assert_allclose(G, pair, atol=1e-2)


def test_stopping_early_is_a_warning():
    with pytest.warns(ConvergenceWarning):
        assert not likelihood_fit(small_problem()[0], Settings(100.0, 1.0, 1e-9, 1, 0)).converged


def test_it_needs_given_scores():
    _, given, Y = small_problem()
    problem = relevant_hinge(prepare_linear(given, np.ones(len(Y))), Y, np.ones(len(Y)), CORE).problem
    with pytest.raises(ValueError, match="problem: expected given scores, found none"):
        likelihood_fit(problem, Settings(1.0, 1.0, 1e-3, 10, 0))


def test_without_pairs_the_most_probable_labels_have_the_highest_scores():
    problem, given, Y = small_problem(1)
    found = probable_precision(problem, np.zeros(problem.n_params))
    k = Y.sum(axis=1).astype(int)
    hits = [labels[np.argsort(-row)[:size]].mean() for row, labels, size in zip(given, Y, k, strict=True)]
    assert found == pytest.approx(np.mean(hits))


def test_the_core_is_what_the_scores_do_not_say():
    rng = np.random.default_rng(4)
    Y = (rng.random((800, 8)) < 0.35).astype(float)
    Y[:, 1] = Y[:, 0]  # come together, and the scores say so
    Y[:, 5] = np.where(rng.random(800) < 0.9, Y[:, 4], Y[:, 5])  # come together, and they do not
    Y = Y[Y.sum(axis=1) > 0]
    given = np.log(0.35 / 0.65) + rng.normal(0, 0.3, Y.shape)
    given[:, :2] = 6.0 * (2 * Y[:, :2] - 1)
    problem = relevant_hinge(prepare_given(given), Y, np.ones(len(Y)), np.zeros(0, dtype=np.int64)).problem
    settings = Settings(1.0, 1.0, 1e-3, 200, 0)
    assert unexplained_core(problem, 1, settings)[0] in (4, 5)
    both = unexplained_core(problem, 2, settings)
    assert len(set(both)) == 2
    assert set(both) != {4, 5}  # the second of the pair has nothing left to say
    assert likely_core(problem, 1, settings)[0] in (4, 5)
    assert len(likely_core(problem, 0, settings)) == 0


def test_a_start_changes_the_way_and_not_the_end():
    problem, _, _ = small_problem(2)
    settings = Settings(10.0, 0.5, 1e-9, 500, 0)
    first = likelihood_fit(problem, settings)
    again = likelihood_fit(problem, settings, start=first.params)
    assert again.history[-1].round <= 1
    np.testing.assert_allclose(again.params, first.params, atol=1e-3)


def test_pairs_are_chosen_where_labels_come_together_and_noise_is_left_alone():
    scenes = datasets.make_label_scenes(400, n_labels=8, random_state=3)
    Y = scenes.Y[scenes.Y.sum(axis=1) > 0].astype(float)
    rng = np.random.default_rng(0)
    weight, core = np.ones(len(Y)), np.array([0, 1, 2])
    noisy = 1.0 * (2 * Y - 1) + rng.normal(0, 2.0, Y.shape)
    choice = choose_likelihood(
        relevant_hinge(prepare_given(noisy), Y, weight, core).problem, Settings(1.0, 1.0, 1e-3, 200, 0)
    )
    assert choice.C > 0
    perfect = 9.0 * (2 * Y - 1)
    problem = relevant_hinge(prepare_given(perfect), Y, weight, core).problem
    assert choose_likelihood(problem, Settings(1.0, 1.0, 1e-3, 200, 0)).C == 0.0


def test_the_model_scores_by_the_most_probable_labels_given_k():
    rng = np.random.default_rng(0)
    first = rng.random((600, 1)) < 0.5
    likely = np.where(first == (np.arange(8) < 3), 0.8, 0.1) * np.where(np.arange(8) < 6, 1.0, 3.0)
    Y = (rng.random((600, 8)) < np.minimum(likely, 0.8)).astype(float)
    X = 0.5 * (2 * Y - 1) + rng.normal(0, 1.0, Y.shape)
    model = LikelihoodGivenK(2, C=0.5).fit(X[:400], Y[:400])
    rows, labels = X[400:], Y[400:]
    margins = star_log_odds(model.label_scores(rows), model.pair_, model.core_, labels.sum(axis=1).astype(int))
    order = np.argsort(-margins, axis=1, kind="stable")
    hits = [row[places[: int(row.sum())]].mean() for row, places in zip(labels, order, strict=True) if row.any()]
    assert model.score(rows, labels) == pytest.approx(np.mean(hits))
    assert simulate(model, rows, labels, questions=(0,)).mean()[0] == pytest.approx(np.mean(hits))
    assert model.score(rows, labels) > LikelihoodGivenK(0, C=0.5).fit(X[:400], Y[:400]).score(rows, labels) + 0.01
