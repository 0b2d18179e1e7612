"""Settings objects inside estimators: searches, clones, files."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slatewise import MarginRanker, SessionRanker, datasets, factors, load, losses
from slatewise.persistence.file import read_model


@pytest.fixture(scope="module")
def queries():
    made = datasets.make_queries(n_queries=12, random_state=0)
    return made.X, made.y, made.qid


def test_a_search_reaches_into_a_shorthand(queries):
    X, y, qid = queries
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(MarginRanker("ndcg", C=100.0, tol=0.1), {"loss__k": [2, 5]}, cv=GroupKFold(3))
        search.fit(X, y, qid=qid, groups=qid)
    assert search.best_estimator_.loss in (losses.NDCG(2), losses.NDCG(5))
    assert search.estimator.loss == "ndcg"


def test_a_pipeline_reaches_into_a_shorthand():
    pipeline = make_pipeline(StandardScaler(), MarginRanker("ndcg")).set_params(marginranker__loss__k=4)
    assert pipeline[-1].loss == losses.NDCG(4)
    assert clone(pipeline)[-1].get_params()["loss__k"] == 4


def test_names_reach_into_settings_of_settings():
    ranker = SessionRanker().set_params(factors__loss__alpha=2.0, factors__epochs=3)
    assert ranker.factors == factors.Factors(epochs=3, loss=factors.Warp(2.0))
    assert ranker.get_params()["factors__loss__alpha"] == 2.0
    with pytest.raises(ValueError, match="factors__loss__beta: expected a parameter that exists"):
        ranker.set_params(factors__loss__beta=1)
    with pytest.raises(ValueError, match="factors__loss__alpha: expected a parameter of factors__loss='warp', found"):
        ranker.set_params(factors__loss="auc", factors__loss__alpha=1.0)


def test_settings_are_in_the_file_and_come_back(tmp_path, queries):
    X, y, qid = queries
    ranker = MarginRanker(losses.NDCG(k=4, threshold=1.0), C=100.0, tol=0.1).fit(X, y, qid=qid)
    ranker.save(tmp_path / "model")
    assert read_model(tmp_path / "model").params["loss"] == {"type": "NDCG", "k": 4, "threshold": 1.0}
    back = load(tmp_path / "model")
    assert back.loss == ranker.loss
    assert repr(back) == repr(ranker)
    np.testing.assert_array_equal(back.predict(X), ranker.predict(X))
