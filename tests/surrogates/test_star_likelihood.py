import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from slatewise.learners.lbfgs import lbfgs
from slatewise.learners.result import ConvergenceWarning
from slatewise.learners.star_prior import likelihood_fit
from slatewise.learners.star_training import relevant_hinge
from slatewise.scores.label_scores import prepare_pretrained
from slatewise.surrogates.star_likelihood import StarLikelihood

CORE = np.array([4, 1, 2])


@pytest.fixture
def likelihood():
    rng = np.random.default_rng(0)
    Y = (rng.random((30, 6)) < 0.4).astype(float)
    return StarLikelihood(rng.normal(size=(30, 6)), Y, rng.random(30), CORE)


def free(likelihood):
    """Which parameters there are: not an item with itself, and a pair of core items once."""
    flags = np.ones(likelihood.n_params, dtype=bool)
    G = likelihood.unpack(flags)[2]
    for row in range(3):
        G[row, CORE[: row + 1]] = False
    return flags


def slow_value(likelihood, params):
    a, v, G = likelihood.unpack(params)
    total = 0.0
    for m, labels in enumerate(likelihood.Y):
        for i, label in enumerate(labels):
            u = (1 + a[i]) * likelihood.scores[m, i] + v[i]
            for row, c in enumerate(CORE):
                if c != i and labels[c]:
                    first = min(row, list(CORE).index(i)) if i in CORE else row
                    u += G[first, i if first == row else c]
            total += likelihood.weight[m] * np.log1p(np.exp(-(2 * label - 1) * u))
    return total


def test_value_and_gradient_equal_the_definition(likelihood):
    rng = np.random.default_rng(1)
    params = rng.normal(size=likelihood.n_params) * free(likelihood)
    value, gradient = likelihood.value_and_grad(params)
    assert value == pytest.approx(slow_value(likelihood, params))
    numeric = approx_fprime(params, lambda p: slow_value(likelihood, p), 1e-6)
    np.testing.assert_allclose(gradient, numeric * free(likelihood), atol=1e-4)


def test_the_certificate_encloses_the_optimum(likelihood):
    fit = lbfgs(likelihood, 0.5, tol=1e-6)
    judge = minimize(
        lambda p: slow_value(likelihood, p * free(likelihood)) + 0.25 * p @ p, np.zeros(likelihood.n_params)
    )
    assert fit.lower_bound <= judge.fun + 1e-6
    assert fit.objective <= judge.fun + 1e-6
    assert fit.converged


def test_stopping_early_is_a_warning(likelihood):
    with pytest.warns(ConvergenceWarning):
        assert not lbfgs(likelihood, 0.01, tol=1e-9, max_iter=1).converged


def test_parameters_come_back_in_the_hinges_coordinates(likelihood):
    Y = likelihood.Y[likelihood.Y.sum(axis=1) > 0]
    given = likelihood.scores[: len(Y)]
    weight = np.ones(len(Y))
    prepared = prepare_pretrained(given, 0.3)
    hinge = relevant_hinge(prepared, Y, weight, CORE, 1)
    fit = likelihood_fit(hinge, prepared.unit)
    a, v, G = StarLikelihood(given, Y, weight, CORE).unpack(lbfgs(StarLikelihood(given, Y, weight, CORE)).params)
    coef, intercept = prepared.coefficients(hinge.unpack(fit.params)[0])
    # All scores and pairs of the model are the likelihood's, in another unit.
    np.testing.assert_allclose(coef, prepared.unit * (1 + a), atol=1e-6)
    np.testing.assert_allclose(intercept, prepared.unit * v, atol=1e-6)
    np.testing.assert_allclose(hinge.unpack(fit.params)[1], prepared.unit * G, atol=1e-6)


def test_a_damped_fit_reports_the_objective_of_what_it_returns(likelihood):
    Y = likelihood.Y[likelihood.Y.sum(axis=1) > 0]
    prepared = prepare_pretrained(likelihood.scores[: len(Y)], 0.3)
    hinge = relevant_hinge(prepared, Y, np.ones(len(Y)), CORE, 1)
    whole, part, none = (likelihood_fit(hinge, prepared.unit, damping) for damping in (1.0, 0.3, 0.0))
    np.testing.assert_allclose(part.params, 0.3 * whole.params)
    assert whole.lower_bound <= whole.objective < part.objective < none.objective
    at_zero = StarLikelihood(likelihood.scores[: len(Y)], Y, np.ones(len(Y)), CORE)
    assert none.objective == pytest.approx(slow_value(at_zero, np.zeros(at_zero.n_params)))
