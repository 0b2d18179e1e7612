"""Logistic regression of many labels: scikit-learn, label by label, is the reference."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.base.logistic import Labels, LinearLogOdds, LogisticRows, fit_logistic
from slatewise.cstar.base.newton import fit_many

RNG = np.random.default_rng(0)
FITS = {"L-BFGS": (fit_logistic, 1e-14), "Newton": (fit_many, 1e-9)}


def problem(n, d, n_labels, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.choice([0.01, 1.0, 30.0], d) + rng.normal(size=d)
    Y = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(0.0, 2.0 / np.sqrt(d), (d, n_labels)) + rng.logistic(
        size=(n, n_labels)
    ) > 0.5
    return X, Y.astype(np.int8)


def judged(X, labels, strength):
    """The same problem, one label after the other, of standardised features."""
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    C = strength / float((rows**2).sum() / len(rows))
    found = []
    for answers in labels.known.T:
        is_known = answers >= 0
        model = LogisticRegression(C=C, tol=1e-10, max_iter=10_000)
        model.fit(rows[is_known], answers[is_known], sample_weight=labels.weight[is_known])
        found.append(model.decision_function(rows))
    return np.column_stack(found)


@pytest.mark.parametrize(("n", "d"), [(200, 6), (30, 60)])
@pytest.mark.parametrize("strength", [0.1, 10.0])
@pytest.mark.parametrize(("fit", "tolerance"), FITS.values(), ids=FITS)
def test_every_label_is_what_scikit_learn_finds(fit, tolerance, n, d, strength):
    X, Y = problem(n, d, 5)
    rng = np.random.default_rng(1)
    Y[rng.random(Y.shape) < 0.3] = -1
    rows, labels = LogisticRows.of(X), Labels(Y, rng.integers(1, 4, n).astype(float))
    found = rows.coefficients(fit(rows, labels, strength, ONE_THREAD, tolerance=tolerance)).log_odds(X)
    np.testing.assert_allclose(found, judged(X, labels, strength), atol=2e-3)


@pytest.mark.parametrize(("fit", "tolerance"), FITS.values(), ids=FITS)
def test_sparse_rows_are_scaled_and_not_centred(fit, tolerance):
    X, Y = problem(150, 8, 3)
    X[RNG.random(X.shape) < 0.6] = 0.0
    X[:, 7] = 0.0
    rows, labels = LogisticRows.of(csr_array(X)), Labels(Y, np.ones(150))
    found = rows.coefficients(fit(rows, labels, 1.0, ONE_THREAD, tolerance=tolerance))
    scaled = X[:, :7] / np.sqrt((X[:, :7] ** 2).mean(axis=0))
    for label in range(3):
        model = LogisticRegression(C=1.0 / 7.0, tol=1e-10, max_iter=10_000).fit(scaled, Y[:, label])
        np.testing.assert_allclose(found.log_odds(csr_array(X))[:, label], model.decision_function(scaled), atol=2e-3)
    assert (found.coef[:, 7] == 0.0).all()


def test_many_features_without_their_eigenbasis(monkeypatch):
    X, Y = problem(80, 12, 2)
    labels = Labels(Y, np.ones(80))
    fits = []
    for most in (2500, 4):
        monkeypatch.setattr("slatewise.cstar.base.logistic._MOST_BASIS", most)
        rows = LogisticRows.of(X)
        assert (rows.basis is None) == (most == 4)
        fits.append(rows.coefficients(fit_logistic(rows, labels, 3.0, ONE_THREAD, tolerance=1e-14)).log_odds(X))
    np.testing.assert_allclose(fits[0], fits[1], atol=2e-3)


@pytest.mark.parametrize("fit", [fit_logistic, fit_many])
def test_labels_that_never_change_keep_their_smoothed_frequency(fit):
    X, Y = problem(20, 3, 4)
    Y[:, :3] = 1, 0, -1
    rows = LogisticRows.of(X)
    found = rows.coefficients(fit(rows, Labels(Y, np.ones(20)), 1.0, ONE_THREAD)).log_odds(X)
    np.testing.assert_allclose(found[:, :3], np.tile(np.log([20.5 / 0.5, 0.5 / 20.5, 1.0]), (20, 1)), rtol=1e-6)
    assert np.ptp(found[:, 3]) > 0.1


@pytest.mark.parametrize("fit", [fit_logistic, fit_many])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_and_constant_rows(n, fit):
    X = np.ones((n, 2))
    X[:, 1] = np.arange(n)
    Y = np.repeat(np.arange(n)[:, None] % 2, 2, axis=1).astype(np.int8)
    rows = LogisticRows.of(X)
    found = rows.coefficients(fit(rows, Labels(Y, np.ones(n)), 1.0, ONE_THREAD))
    assert np.isfinite(found.coef).all()
    assert (found.coef[:, 0] == 0.0).all()


@pytest.mark.parametrize("fit", [fit_logistic, fit_many])
def test_a_start_and_threads_change_no_more_than_they_may(fit):
    X, Y = problem(120, 5, 130)
    rows, labels = LogisticRows.of(X), Labels(Y, np.ones(120))
    one, two = (fit(rows, labels, 3.0, Executor(threads)) for threads in (1, 2))
    assert one.features.tobytes() == two.features.tobytes()
    start = fit(rows, labels, 1.0, ONE_THREAD)
    warm = rows.coefficients(fit(rows, labels, 3.0, ONE_THREAD, start, 1e-9)).log_odds(X)
    np.testing.assert_allclose(warm, rows.coefficients(one).log_odds(X), atol=0.05)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rows_are_scored_the_same_dense_and_sparse(kind):
    coef, intercept = RNG.normal(size=(130, 9)).astype(kind), RNG.normal(size=130)
    X = np.where(RNG.random((4, 9)) < 0.4, 2.5, 0.0)
    expected = X @ coef.astype(np.float64).T + intercept
    for rows in (X, csr_array(X)):
        np.testing.assert_allclose(LinearLogOdds(coef, intercept).log_odds(rows), expected, rtol=1e-12)
