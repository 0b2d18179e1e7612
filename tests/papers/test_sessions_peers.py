"""Peers of the table of sessions, each against a plain calculation on a few sessions."""

import numpy as np
import pytest

from slatewise import datasets
from slatewise.data import Sessions
from slatewise_papers.sessions import networks as sessions_networks
from slatewise_papers.sessions.data import places_of
from slatewise_papers.sessions.methods import METHODS, popularity
from slatewise_papers.sessions.peers import bags, best_first, ease, forget, item_knn, library, seen_in

LOG = Sessions.of([[0, 1, 2], [0, 1], [2, 3, 3], [1, 2, 0], [3]])
ASKED = Sessions.of([[0, 1, 0, 4], [3, 2]]).prefixes()


@pytest.fixture(autouse=True)
def _forgetful():
    yield
    forget()


def test_bags_weigh_by_age():
    assert bags(ASKED, 5, 0.5).toarray().tolist() == [
        [1, 0, 0, 0, 0],
        [0.5, 1, 0, 0, 0],
        [1.25, 0.5, 0, 0, 0],
        [0, 0, 0, 1, 0],
    ]
    assert bags(ASKED, 5, 0.0).toarray()[2].tolist() == [1, 0, 0, 0, 0]


def test_item_knn_is_the_cosine():
    X = seen_in(LOG, 5).toarray()
    assert X[2].tolist() == [0, 0, 1, 1, 0]
    cosines = (X.T @ X) / np.maximum(np.outer(np.linalg.norm(X, axis=0), np.linalg.norm(X, axis=0)), 1e-9)
    np.fill_diagonal(cosines, 0)
    scores = bags(ASKED, 5, 0.5) @ cosines
    lists = item_knn(LOG, 5, 0.0, 0.5)(ASKED)
    np.testing.assert_allclose(np.take_along_axis(scores, lists, 1), -np.sort(-scores, axis=1), atol=1e-6)


def test_ease_is_ridge_regression_of_each_item_on_the_others():
    X = seen_in(LOG, 5).toarray().astype(float)
    weights = np.zeros((5, 5))
    for item in range(5):
        others = np.delete(np.arange(5), item)
        A = X[:, others]
        weights[others, item] = np.linalg.solve(A.T @ A + 2.0 * np.eye(4), A.T @ X[:, item])
    scores = bags(ASKED, 5, 0.5) @ weights
    lists = ease(LOG, 5, 2.0, 0.5)(ASKED)
    np.testing.assert_allclose(np.take_along_axis(scores, lists, 1), -np.sort(-scores, axis=1), atol=1e-6)


def test_the_best_come_first():
    scores = np.random.default_rng(0).random((7, 90)).astype(np.float32)
    assert best_first(scores).tolist() == np.argsort(-scores, axis=1)[:, :51].tolist()


def test_a_library_that_is_not_there_is_named():
    assert library("numpy")(10) is None
    assert library("no_such_library")(10) == "no_such_library is not installed"


@pytest.mark.parametrize("name", ["implicit ALS", "implicit BPR", "lightfm-next WARP", "GRU4Rec", "SASRec"])
def test_what_is_learnt_is_more_than_popularity(name, monkeypatch):
    method = METHODS[f"{name}, tuned"]
    if (missing := method.missing(60)) is not None:
        pytest.skip(missing)
    settings = dict(method.grid[0])
    if "width" in settings:  # many small steps are over soonest
        settings |= {"width": 16} | ({"learning_rate": 0.01} if "learning_rate" in settings else {})
        monkeypatch.setattr(sessions_networks, "BATCH", 16)
        monkeypatch.setattr(sessions_networks, "EPOCHS", 6)
    log = datasets.make_sessions(600, 60, n_clusters=6, random_state=0).sessions
    asked = log[-60:].prefixes()
    found = places_of(method.fit(log[:-60], 60, **settings), asked, item_differs=False)
    plain = places_of(popularity(log[:-60], 60), asked, item_differs=False)
    assert np.mean((found >= 0) & (found < 10)) > np.mean((plain >= 0) & (plain < 10))
