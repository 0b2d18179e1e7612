"""Base scores: by models that did not see their rows, calibrated, of any classifier."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from slatewise import CStarRanker, datasets
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.base.calibration import calibrate_log_odds, calibrate_margins
from slatewise.cstar.base.classifiers import ClassifierBase, LogisticBase, SvcBase, make_folds
from slatewise.cstar.base.logistic import Labels


def problem(n=150, n_labels=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = X @ rng.normal(size=(3, n_labels)) + 0.7 * rng.logistic(size=(n, n_labels)) > 0.5
    return X, Labels(Y.astype(np.int8), np.ones(n))


def log_loss(log_odds, labels):
    return (labels.counts * np.logaddexp(0.0, -labels.sign * log_odds)).sum() / labels.counts.sum()


BASES = {
    "logistic": LogisticBase(),
    "svc": SvcBase(),
    "forest": ClassifierBase(RandomForestClassifier(8, random_state=0)),
    "neighbours": ClassifierBase(KNeighborsClassifier(9)),
    "ridge": ClassifierBase(RidgeClassifier()),
    "one by one": ClassifierBase(GaussianNB()),
}


@pytest.mark.parametrize("name", BASES)
def test_log_odds_are_learned_and_calibrated(name):
    rows, every = problem(550)
    X, test_X, labels, test = (
        rows[:150],
        rows[150:],
        every.some(np.arange(150)),
        every.some(np.arange(150, 550)),
    )
    found = BASES[name].cross_fit(X, labels, 0, ONE_THREAD)
    frequency = log_loss(np.tile(labels.log_odds(), (400, 1)), test)
    assert log_loss(found.fitted.log_odds(test_X), test) < 0.9 * frequency
    assert log_loss(found.out_of_fold, labels) < frequency
    assert 0.6 < calibrate_log_odds(found.fitted.log_odds(test_X), test).slope.mean() < 1.5


@pytest.mark.parametrize("name", ["svc", "forest", "logistic"])
def test_a_row_is_scored_by_models_that_did_not_see_its_labels(name):
    X = np.random.default_rng(0).normal(size=(150, 3))
    labels = problem(150, seed=1)[1]  # of other rows: nothing to learn
    found = BASES[name].cross_fit(X, labels, 0, ONE_THREAD)
    assert log_loss(found.out_of_fold, labels) > 0.97 * log_loss(np.tile(labels.log_odds(), (150, 1)), labels)
    seen = SvcBase()._fit(X, labels, 3.0).log_odds(X)  # rows that were seen look as if there were
    assert log_loss(seen, labels) < 0.6 * log_loss(found.out_of_fold, labels)


def test_sparse_rows_masks_and_threads():
    X, labels = problem(120)
    X[np.abs(X) < 0.5] = 0.0
    labels.known[np.random.default_rng(0).random(labels.known.shape) < 0.3] = -1
    sparse = LogisticBase().cross_fit(csr_array(X), labels, 0, ONE_THREAD)
    assert np.abs(sparse.out_of_fold - LogisticBase().cross_fit(X, labels, 0, ONE_THREAD).out_of_fold).mean() < 0.2
    for base in (BASES["logistic"], BASES["svc"], BASES["one by one"]):
        here, there = (base.cross_fit(X, labels, 0, threads) for threads in (ONE_THREAD, Executor(2)))
        np.testing.assert_array_equal(here.out_of_fold, there.out_of_fold)
        np.testing.assert_array_equal(here.fitted.log_odds(X), there.fitted.log_odds(X))


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_many_labels_are_learned_by_some_at_a_time(monkeypatch, form):
    """As all together apart from rounding, and where the searches end; with the same bits by any number of threads."""
    X, labels = problem(90, 150)
    labels.known[:, 7], labels.known[:20, 8] = 0, -1
    together = LogisticBase((1.0,)).cross_fit(form(X), labels, 0, ONE_THREAD)
    monkeypatch.setattr("slatewise.cstar.base.classifiers.MANY", 70)
    one, two = (LogisticBase((1.0,)).cross_fit(form(X), labels, 0, Executor(threads)) for threads in (1, 2))
    assert one.out_of_fold.tobytes() == two.out_of_fold.tobytes()
    assert one.fitted.coef.tobytes() == two.fitted.coef.tobytes()
    assert one.fitted.coef.dtype == np.float32
    np.testing.assert_allclose(one.out_of_fold, together.out_of_fold, rtol=0.02, atol=0.02)
    np.testing.assert_allclose(one.fitted.log_odds(X), together.fitted.log_odds(X), rtol=0.02, atol=0.02)
    assert LogisticBase((1.0,)).cross_fit(form(1e9 * X), labels, 0, ONE_THREAD).fitted.coef.dtype == np.float64


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_few_rows_are_told(name, n):
    X, labels = problem(n)
    labels.known[:, 0] = 1
    if name == "neighbours":
        pytest.skip("needs nine rows")
    with pytest.warns(UserWarning, match=f"base: expected at least 5 rows for 5 folds, found {n} different ones"):
        found = BASES[name].cross_fit(X, labels, 0, ONE_THREAD)
    assert np.isfinite(found.out_of_fold).all()
    assert (found.fitted.log_odds(X)[:, 0] > 0).all()


def test_the_machines_are_scikit_learns():
    X, labels = problem(60)
    margins = SvcBase()._fit(X, labels, 0.5).log_odds(X)
    for label in range(4):
        machine = SVC(C=2.0, gamma=0.5).fit(X, labels.sign[:, label])
        np.testing.assert_allclose(margins[:, label], machine.decision_function(X), atol=1e-9)


def test_calibration_is_the_minimum_of_its_objective():
    X, labels = problem(80)
    scores = 3.0 * X[:, :1] + np.zeros((1, 4)) + 1.0
    slope, shift = calibrate_log_odds(scores, labels)
    for label in range(4):

        def objective(point, label=label):
            losses = np.logaddexp(0.0, -labels.sign[:, label] * (point[0] * scores[:, label] + point[1]))
            return losses.sum() + 5.0 * (point[0] - 1.0) ** 2 + 0.25 * point[1] ** 2

        best = minimize(objective, [1.0, 0.0], tol=1e-12).x
        np.testing.assert_allclose([slope[label], shift[label]], [max(best[0], 0.0), best[1]], atol=1e-4)


def test_margins_in_any_unit_are_the_same_log_odds():
    X, labels = problem(200)
    margins = X @ np.random.default_rng(1).normal(size=(3, 4))
    here, there = (calibrate_margins(unit * margins, labels) for unit in (1.0, 1e-6))
    np.testing.assert_allclose(there.slope * 1e-6, here.slope, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(there.shift, here.shift, atol=1e-4)


def test_weights_go_to_classifiers_that_take_them():
    X, labels = problem(60)
    weighted = Labels(labels.known, 1.0 + np.arange(60) % 3)
    ClassifierBase(LogisticRegression()).cross_fit(X, weighted, 0, ONE_THREAD)
    with pytest.raises(ValueError, match="sample_weight: expected equal weights, as base=KNeighborsClassifier takes"):
        ClassifierBase(KNeighborsClassifier(3)).cross_fit(X, weighted, 0, ONE_THREAD)


def test_what_is_no_classifier_is_refused():
    X, labels = problem(20)
    with pytest.raises(ValueError, match="base: expected a classifier, found Ridge"):
        ClassifierBase(Ridge()).cross_fit(X, labels, 0, ONE_THREAD)


def test_five_rows_are_enough_for_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sorted(np.concatenate(make_folds(5, 0)).tolist()) == list(range(5))


@pytest.mark.parametrize("base", [None, "svc", GaussianNB()])
def test_base_scores_are_what_the_base_says(base):
    scenes = datasets.make_label_scenes(120, n_labels=6, random_state=0)
    ranker = CStarRanker(base=base).fit(scenes.X, scenes.Y)
    alone = ranker.base_scores(scenes.X)
    np.testing.assert_allclose(ranker.label_scores(scenes.X), alone * ranker.coef_ + ranker.intercept_, atol=1e-9)
    chance = 1.0 / (1.0 + np.exp(-alone))
    assert np.abs(chance.mean(axis=0) - scenes.Y.mean(axis=0)).max() < 0.1


def test_only_a_base_has_base_scores():
    ranker = CStarRanker("precomputed")
    with pytest.raises(AttributeError, match="base_scores"):
        ranker.base_scores([[0.0]])
