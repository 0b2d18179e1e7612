import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import slatewise
from slatewise import BestFeatureRanker, metrics
from slatewise.core.errors import ModelFileError
from slatewise.persistence.file import ModelState, read_model, write_model


@parametrize_with_checks([BestFeatureRanker()])
@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


VALUES = {"feature_": 0, "sign_": 1.0, "train_score_": 0.0, "has_qid_": True, "n_features_in_": 4}


@pytest.fixture
def rows():
    rng = np.random.default_rng(1)
    return rng.normal(size=(60, 4)), rng.integers(0, 3, 60), np.repeat(np.arange(6), 10)


def test_no_other_feature_is_better(rows):
    X, y, qid = rows
    ranker = BestFeatureRanker("map").fit(X, y, qid)
    measure = metrics.parse("map")
    everything = [measure(y, sign * X[:, j], qid) for j in range(4) for sign in (1, -1)]
    assert ranker.train_score_ == max(everything)
    assert measure(y, ranker.predict(X), qid) == max(everything)


@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_small_mean_ranks_are_good():
    ranker = BestFeatureRanker("mean_rank").fit([[1.0], [2.0], [3.0]], [0, 0, 1])
    assert (ranker.sign_, ranker.train_score_) == (1.0, 1.0)


@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_a_measure_that_counts_no_list_is_refused():
    with pytest.raises(ValueError, match="y: expected a list that auc"):
        BestFeatureRanker("auc").fit([[1.0], [2.0]], [0, 0])


@pytest.mark.parametrize("measure", [5, None, metrics.NDCG(3)])
def test_a_measure_goes_by_name(measure):
    with pytest.raises(ValueError, match=r"measure: expected (a string|one of)"):
        BestFeatureRanker(measure).fit([[1.0], [2.0]], [0, 1])


def test_scoring_before_fit_is_refused():
    with pytest.raises(NotFittedError):
        BestFeatureRanker().score([[1.0]], [1])


@pytest.mark.parametrize("weight", [np.ones(5), np.ones(99), -np.ones(60), np.full(60, np.nan), np.zeros(60)])
def test_bad_weights_are_refused(rows, weight):
    X, y, qid = rows
    ranker = BestFeatureRanker().fit(X, y, qid)
    with pytest.raises(ValueError, match="sample_weight: expected"):
        ranker.score(X, y, qid, sample_weight=weight)


def test_order_of_rows_does_not_matter(rows):
    X, y, qid = rows
    shuffle = np.random.default_rng(2).permutation(60)
    one = BestFeatureRanker().fit(X, y, qid)
    two = BestFeatureRanker().fit(X[shuffle], y[shuffle], qid[shuffle])
    assert (one.feature_, one.sign_) == (two.feature_, two.sign_)


def test_rank_gives_rows_best_first(rows):
    X, y, qid = rows
    ranker = BestFeatureRanker().fit(X, y, qid)
    scores = ranker.predict(X)
    answer = ranker.rank(X, qid)
    for query, order in zip(answer.query_ids, answer, strict=True):
        assert sorted(order) == np.flatnonzero(qid == query).tolist()
        assert np.all(np.diff(scores[order]) <= 0)


def test_row_weights_weigh_lists(rows):
    X, y, qid = rows
    ranker = BestFeatureRanker().fit(X, y, qid)
    only_first = (qid == 0).astype(float)
    first = ranker.score(X[qid == 0], y[qid == 0], qid[qid == 0])
    assert ranker.score(X, y, qid, sample_weight=only_first) == pytest.approx(first)


def test_saved_and_loaded_it_predicts_the_same(tmp_path, rows):
    X, y, qid = rows
    ranker = BestFeatureRanker("map").fit(X, y, qid)
    ranker.save(tmp_path / "m.safetensors")
    back = slatewise.load(tmp_path / "m.safetensors")
    assert type(back) is BestFeatureRanker
    assert back.get_params() == ranker.get_params()
    assert back.model_card_ == ranker.model_card_
    assert back.model_card_.n_lists == 6
    np.testing.assert_array_equal(back.predict(X), ranker.predict(X))
    with pytest.raises(ValueError, match="qid"):
        back.score(X, y)


def test_feature_names_survive(tmp_path, rows):
    import pandas as pd

    X, y, qid = rows
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    BestFeatureRanker().fit(frame, y, qid).save(tmp_path / "m")
    back = slatewise.load(tmp_path / "m")
    assert back.predict(frame).shape == (60,)
    with pytest.raises(ValueError, match="feature names"):
        back.predict(frame[["b", "a", "c", "d"]])


def test_the_same_fit_gives_the_same_bytes(tmp_path, rows):
    X, y, qid = rows
    for name in ("one", "two"):
        BestFeatureRanker().fit(X, y, qid).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"estimator": "os.system"},
        {"params": {"measure": "map", "fit": 1}},
        {"values": {"feature_": 0}},
        {"values": {**VALUES, "feature_": 4}},
        {"values": {**VALUES, "feature_": "0"}},
        {"values": {**VALUES, "sign_": 2.0}},
        {"values": {**VALUES, "has_qid_": 1}},
        {"values": {**VALUES, "n_features_in_": []}},
        {"values": {**VALUES, "fit": 3}},
    ],
)
def test_a_file_with_other_content_is_refused(tmp_path, rows, change):
    X, y, qid = rows
    BestFeatureRanker().fit(X, y, qid).save(tmp_path / "m")
    state = read_model(tmp_path / "m")
    parts = {name: getattr(state, name) for name in ("estimator", "params", "values", "arrays", "card")}
    write_model(tmp_path / "m", ModelState(**{**parts, **change}))
    with pytest.raises(ModelFileError):
        slatewise.load(tmp_path / "m")


def test_unfitted_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        BestFeatureRanker().save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("y", [[0, np.nan], [0, np.inf], ["a", "b"], [1], None])
def test_bad_relevance_is_refused(y):
    with pytest.raises(ValueError, match=r"y|inconsistent"):
        BestFeatureRanker().fit([[1.0], [2.0]], y)


def test_bad_qid_is_refused():
    with pytest.raises(ValueError, match="qid"):
        BestFeatureRanker().fit([[1.0], [2.0]], [0, 1], qid=[1])
