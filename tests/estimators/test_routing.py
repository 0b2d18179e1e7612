"""qid through scikit-learn: routed it arrives everywhere, unrouted it is an error and never one silent list."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slatewise import BestFeatureRanker, metrics


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    qid = rng.permutation(np.repeat(np.arange(12), 10))
    # The scale of feature 1 differs by query: over all rows as one list it ranks badly, inside queries perfectly.
    X[:, 1] += 100.0 * (qid % 5)
    y = np.zeros(120)
    for query in range(12):
        members = np.flatnonzero(qid == query)
        y[members[np.argsort(X[members, 1])[-3:]]] = 2
    return X, y, qid


def test_routed_through_pipeline_search_and_folds(rows):
    X, y, qid = rows
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            make_pipeline(StandardScaler(), BestFeatureRanker()),
            {"bestfeatureranker__measure": ["ndcg@10", "map"]},
            cv=GroupKFold(4),
            error_score="raise",
        )
        search.fit(X, y, qid=qid, groups=qid)
        assert search.best_score_ == pytest.approx(1.0)
        assert search.best_estimator_[-1].feature_ == 1
        assert search.score(X, y, qid=qid) == pytest.approx(1.0)


def test_routed_scorer(rows):
    X, y, qid = rows
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            BestFeatureRanker(),
            {"measure": ["ndcg@10", "map"]},
            scoring=metrics.scorer(metrics.AP()),
            cv=GroupKFold(3),
            error_score="raise",
        )
        search.fit(X, y, qid=qid, groups=qid)
    assert search.best_score_ == pytest.approx(1.0)


def test_pipeline_without_routing_is_an_error(rows):
    X, y, qid = rows
    with pytest.raises(ValueError, match="qid"):
        make_pipeline(StandardScaler(), BestFeatureRanker()).fit(X, y, qid=qid)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("scoring", [None, metrics.scorer(metrics.NDCG(k=10))])
def test_pipeline_in_a_search_without_routing_is_an_error(rows, scoring):
    X, y, qid = rows
    search = GridSearchCV(make_pipeline(StandardScaler(), BestFeatureRanker()), {}, cv=GroupKFold(3), scoring=scoring)
    with pytest.raises(ValueError, match="qid"):
        search.fit(X, y, qid=qid, groups=qid)


@pytest.mark.parametrize("scoring", [None, metrics.scorer(metrics.NDCG(k=10))])
def test_bare_ranker_in_a_search_without_routing_has_no_score(rows, scoring):
    """scikit-learn turns an error while scoring into NaN and a warning that quotes it, unless told to raise."""
    X, y, qid = rows
    search = GridSearchCV(BestFeatureRanker(), {}, cv=GroupKFold(3), scoring=scoring)
    with pytest.warns(UserWarning, match=r"enable_metadata_routing|non-finite"):
        search.fit(X, y, qid=qid, groups=qid)
    assert np.isnan(search.best_score_)
    with pytest.raises(ValueError, match="qid"):
        search.set_params(error_score="raise").fit(X, y, qid=qid, groups=qid)


def test_score_without_qid_after_fit_with_qid_is_an_error(rows):
    X, y, qid = rows
    ranker = BestFeatureRanker().fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        ranker.score(X, y)


@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_score_over_one_list_is_fine_where_fit_saw_one(rows):
    X, y, _ = rows
    assert 0 <= BestFeatureRanker().fit(X, y).score(X, y) <= 1
