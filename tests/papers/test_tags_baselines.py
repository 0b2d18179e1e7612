"""The peers of c-star on tags, each against a slow definition or somebody else's code."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from slatewise import CStarRanker, datasets
from slatewise_papers.cstar.scores import Spectrum, logistic_path
from slatewise_papers.framework.running import installed
from slatewise_papers.tags import peers as tags_peers
from slatewise_papers.tags.peers import Chain, Neighbors, Part, fit_chain, fit_links, mlknn_log_odds


def slow_mlknn(X, Y, X_test, k):
    """Zhang and Zhou (2007), formulas (1) to (6), one row and label at a time."""

    def nearest(x, without=None):
        distance = [np.inf if row == without else float(((X[row] - x) ** 2).sum()) for row in range(len(X))]
        return np.argsort(distance, kind="stable")[:k]

    out = np.empty((len(X_test), Y.shape[1]))
    for label in range(Y.shape[1]):
        prior = (1 + sum(Y[:, label])) / (2 + len(Y))
        having, lacking = [0] * (k + 1), [0] * (k + 1)
        for row in range(len(X)):
            number = int(sum(Y[near, label] for near in nearest(X[row], row)))
            (having if Y[row, label] else lacking)[number] += 1
        for row, x in enumerate(X_test):
            number = int(sum(Y[near, label] for near in nearest(x)))
            yes = prior * (1 + having[number]) / (k + 1 + sum(having))
            no = (1 - prior) * (1 + lacking[number]) / (k + 1 + sum(lacking))
            out[row, label] = np.log(yes / no)
    return out


@pytest.mark.parametrize("k", [1, 4, 10])
def test_mlknn_equals_its_definition(k):
    scenes = datasets.make_label_scenes(60, n_labels=6, random_state=k)
    X, Y, X_test = scenes.X[:40], scenes.Y[:40].astype(float), scenes.X[40:]
    Y[:, 2] = 0.0
    found = mlknn_log_odds(Neighbors.of(X, X_test, most=12), Y, k)
    np.testing.assert_allclose(found, slow_mlknn(X, Y, X_test, k), atol=1e-12)


def test_a_path_of_logistic_regressions_equals_scikit_learns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    Y = (X @ rng.normal(size=(5, 3)) + rng.normal(size=(200, 3)) > 1).astype(float)
    strengths = (0.01, 0.1, 1.0)
    for C, score in zip(strengths, logistic_path(Spectrum.of(X), Y, strengths), strict=True):
        theirs = [LogisticRegression(C=C, tol=1e-10, max_iter=5000).fit(X, y).decision_function(X) for y in Y.T]
        assert np.abs(score(X) - np.column_stack(theirs)).max() < 0.02


def test_tuned_logistic_is_scikit_learns_at_one_of_its_strengths():
    scenes = datasets.make_label_scenes(150, n_labels=6, random_state=0)
    part = Part(scenes.X[:120], scenes.Y[:120].astype(float), scenes.X[120:])
    found, tried = tags_peers.tuned_logistic(part)
    scaler = StandardScaler().fit(part.X)

    def theirs(rows, test, strength):
        C = strength / rows.var(axis=0).sum()
        fits = [LogisticRegression(C=C, tol=1e-10, max_iter=9999).fit(rows, y) for y in part.Y.T]
        return np.column_stack([fit.decision_function(test) for fit in fits])

    ways = [(part.X, part.X_test), (scaler.transform(part.X), scaler.transform(part.X_test))]
    away = [np.abs(found - theirs(*way, s)).max() for way in ways for s in tags_peers.STRENGTHS]
    assert tried == len(away) == 10
    assert min(away) < 0.05


def test_chains_stand_on_the_base_that_the_ranker_has():
    scenes = datasets.make_label_scenes(120, n_labels=6, random_state=0)
    X, Y = np.vstack([scenes.X[:80], scenes.X[:10]]), np.vstack([scenes.Y[:80], scenes.Y[:10]]).astype(float)
    base = tags_peers.own_base(Part(X, Y, scenes.X[80:]))
    np.testing.assert_array_equal(base.test, CStarRanker(random_state=0).fit(X, Y).base_scores(scenes.X[80:]))
    assert sorted(map(tuple, base.Y)) == sorted(map(tuple, Y))


def test_links_are_the_minimum_of_their_objective():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(30, 3))
    Y = (scores + rng.logistic(size=scores.shape) > 0).astype(float)
    order, C = np.array([2, 0, 1]), 0.5
    found = fit_links(scores, Y, Chain(order, C))
    for place, label in enumerate(order):
        before = order[:place]
        features = np.hstack([scores, Y[:, before]])
        rows = np.hstack([features - features.mean(axis=0), np.ones((30, 1))])

        def objective(d, label=label, rows=rows):
            margins = (2 * Y[:, label] - 1) * (scores[:, label] + rows @ d)
            return C * np.log1p(np.exp(-margins)).sum() + 0.5 * d @ d

        best = minimize(objective, np.zeros(rows.shape[1]), tol=1e-10).x
        np.testing.assert_allclose(found[[0, 1, 2, *(3 + before), 6], label], best, atol=2e-3)
        assert not found[[3 + other for other in range(3) if other not in before], label].any()


def test_a_chain_decides_along_its_order():
    rng = np.random.default_rng(0)
    first = rng.random(400) < 0.5
    Y = np.column_stack([first, ~first]).astype(float)
    scores = np.column_stack([4.0 * first - 2.0, np.zeros(400)])
    new = np.array([[3.0, 0.0], [-3.0, 0.0]])
    assert (fit_chain(scores, Y, Chain(np.array([0, 1]), 1.0))(new) > 0).tolist() == [[True, False], [False, True]]


def test_a_weak_chain_is_the_base():
    scenes = datasets.make_label_scenes(100, n_labels=6, random_state=0)
    scores = scenes.X[:, :6]
    chained = fit_chain(scores, scenes.Y.astype(float), Chain(np.arange(6), 1e-9))(scores)
    np.testing.assert_allclose(chained, scores, atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_every_way_survives_sparse_rows_and_constant_labels(sparse):
    scenes = datasets.make_label_scenes(200, n_labels=6, random_state=0)
    Y = scenes.Y.astype(float)
    Y[:, 1] = 0.0
    X = csr_array(np.maximum(scenes.X, 0.0)) if sparse else scenes.X
    part = Part(X[:150], Y[:150], X[150:])
    ways = [tags_peers.tuned_logistic, tags_peers.chains, tags_peers.mlknn]
    for way in (*ways, *[tags_peers.boosted_trees][: installed("lightgbm")]):
        found = tags_peers.timed(way, part)
        assert found.log_odds.shape == (50, 6)
        assert np.isfinite(found.log_odds).all()
        assert (found.log_odds[:, 1] < 0.0).all()
        assert found.n_settings >= 4
        assert tags_peers.quality(Y[150:], found.log_odds) > 0.4
