"""Measures as scikit-learn scorers: routed qid works, no qid is an error."""

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slatewise.metrics import NDCG, MeanRank, scorer


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=120)), 0, 3)
    return X, y, np.array([f"q{i}" for i in range(12)]).repeat(10)


def test_scores_list_by_list():
    X, y, qid = data()
    model = Ridge().fit(X, y)
    assert scorer(NDCG(5))(model, X, y, qid=qid) == NDCG(5)(y, model.predict(X), qid)
    assert scorer("mean_rank")(model, X, y, qid=qid) == -MeanRank()(y, model.predict(X), qid)


def test_grid_search_routes_qid():
    X, y, qid = data()
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            make_pipeline(StandardScaler(), Ridge()),
            {"ridge__alpha": [0.1, 10.0]},
            scoring=scorer("ndcg@5"),
            cv=GroupKFold(3),
            error_score="raise",
        ).fit(X, y, groups=qid, qid=qid)
        best = search.best_estimator_
        assert search.score(X, y, qid=qid) == NDCG(5)(y, best.predict(X), qid)
    folds: list[float] = []
    for train, test in GroupKFold(3).split(X, y, qid):
        model = make_pipeline(StandardScaler(), Ridge(alpha=0.1)).fit(X[train], y[train])
        folds.append(NDCG(5)(y[test], model.predict(X[test]), qid[test]))
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(folds))


def test_several_scorers_at_once():
    X, y, qid = data()
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            Ridge(), X, y, scoring={"ndcg": scorer("ndcg@5"), "map": scorer("map")}, params={"qid": qid}, cv=3
        )
    assert set(found) >= {"test_ndcg", "test_map"}


def test_without_qid_is_an_error():
    X, y, _ = data()
    with pytest.raises(ValueError, match=r"qid: the ndcg@5 scorer needs .*enable_metadata_routing"):
        scorer("ndcg@5")(Ridge().fit(X, y), X, y)
    search = GridSearchCV(Ridge(), {"alpha": [1.0]}, scoring=scorer("ndcg@5"), error_score="raise")
    with pytest.raises(ValueError, match="qid: the ndcg@5 scorer needs"):
        search.fit(X, y)
