"""What all rankers of rows share: sparse rows, weights of lists, sizes of lists, routing."""

import re

import numpy as np
import pytest
import sklearn
from scipy.sparse import coo_array, csc_matrix, csr_array, csr_matrix, random_array
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from slatewise import (
    BestFeatureRanker,
    CStarMarginRanker,
    CStarRanker,
    GraphMatcher,
    MarginRanker,
    MatchingRanker,
    MetricRanker,
    datasets,
)
from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.matching import AllSlates, Slates

RANKERS = [
    BestFeatureRanker(),
    BestFeatureRanker("map"),
    MarginRanker(tol=1e-7),
    MarginRanker("auc", C="auto", tol=1e-7),
    MatchingRanker(Slates(3, 0.1, 1), l2="auto", tol=1e-9),
    MatchingRanker("whole", tol=1e-9),
    MatchingRanker(AllSlates(2), tol=1e-9),
    MatchingRanker(Slates(3, 0.1, 1), surrogate="max-margin", tol=1e-7, l2=0.1),
]
EXACT = [ranker for ranker in RANKERS if not isinstance(getattr(ranker, "slates", None), Slates)]
EXACT = [ranker for ranker in EXACT if getattr(ranker, "C", None) != "auto"]  # folds are drawn by the number of lists


def named(ranker):
    return repr(ranker).replace("\n", "")


@pytest.fixture(scope="module")
def rows():
    """Lists of rows of which two thirds of the entries are 0, and every entry of features 2 and 7."""
    queries = datasets.make_queries(n_queries=8, random_state=0)
    X = np.where(np.random.default_rng(0).random(queries.X.shape) < 0.33, queries.X, 0.0)
    X[:, [2, 7]] = 0.0
    return X, queries.y, queries.qid


@pytest.mark.filterwarnings("ignore:.*lists are left out")
@pytest.mark.parametrize("ranker", RANKERS, ids=named)
def test_sparse_rows_give_what_dense_rows_give(rows, ranker):
    X, y, qid = rows
    dense = sklearn.clone(ranker).fit(X, y, qid)
    for made in (csr_array, csc_matrix):
        sparse = sklearn.clone(ranker).fit(made(X), y, qid)
        np.testing.assert_allclose(sparse.predict(X), dense.predict(X), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(sparse.predict(made(X)), sparse.predict(X), rtol=1e-12, atol=1e-15)
        assert sparse.score(made(X), y, qid) == pytest.approx(dense.score(X, y, qid), abs=1e-12)
        assert sparse.n_features_in_ == X.shape[1]
        if not isinstance(ranker, BestFeatureRanker):
            assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-6)
            assert sparse.coef_[[2, 7]].tolist() == [0.0, 0.0]
            chosen = "C_" if isinstance(ranker, MarginRanker) else "l2_"
            assert getattr(sparse, chosen) == pytest.approx(getattr(dense, chosen), rel=1e-9)


FEW = Slates(share=0.02, repeats=1)
HINGE = MatchingRanker(FEW, surrogate="max-margin")


@pytest.mark.parametrize("ranker", [MarginRanker(), MatchingRanker(FEW), HINGE], ids=named)
def test_a_million_features_are_never_filled_in(ranker):
    """As dense numbers these rows would take 16 GB."""
    X = random_array((2000, 1_000_000), density=2e-6, rng=np.random.default_rng(0), format="csr")
    y = np.tile([0, 1, 2, 1, 0], 400)
    X = coo_array(X + csr_array((y + 0.5, (np.arange(2000), np.full(2000, 777_777))), shape=X.shape))
    ranker = sklearn.clone(ranker).fit(X, y, group=[50] * 40)
    assert ranker.coef_.shape == (1_000_000,)
    assert ranker.coef_.argmax() == 777_777
    assert np.count_nonzero(ranker.coef_) <= X.nnz
    assert ranker.score(X, y, group=[50] * 40) > 0.9
    assert len(ranker.rank(csr_array(X)[:100], group=[60, 40])[1]) == 40


def test_the_best_feature_of_a_million():
    X = random_array((200, 1_000_000), density=2e-6, rng=np.random.default_rng(0), format="csr")
    y = np.tile([0, 1], 100)
    X = csr_array(X + csr_array((y - 0.5, (np.arange(200), np.full(200, 123_456))), shape=X.shape))
    ranker = BestFeatureRanker().fit(X, y, group=[10] * 20)
    assert (ranker.feature_, ranker.sign_, ranker.train_score_) == (123_456, 1.0, 1.0)
    assert ranker.score(X, y, group=[10] * 20) == 1.0


@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_features_that_are_all_zero_rank_as_dense_ones_do():
    """Whatever has an entry ranks badly here, up or down, in the order of the rows: the first empty feature is best."""
    X = np.zeros((6, 5))
    X[:, 0], X[:, 2] = [0, 1, 0, 1, 0, 0], [1, 0, 0, 1, 0, 1]
    for y in ([1, 0, 0, 0, 1, 0], [1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 1]):
        for measure in ("ndcg@10", "map", "p@1"):
            one, two = (BestFeatureRanker(measure).fit(rows, y, group=[3, 3]) for rows in (X, csr_array(X)))
            assert (one.feature_, one.sign_, one.train_score_) == (two.feature_, two.sign_, two.train_score_)
    assert BestFeatureRanker().fit(csr_array((4, 3)), [0, 1, 0, 1]).feature_ == 0


@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_sparse_rows_are_checked():
    X = csr_array(np.eye(4))
    X.data[2] = np.nan
    with pytest.raises(ValueError, match="X: expected finite numbers, found nan at row 2, column 2"):
        MarginRanker().fit(X, [0, 1, 0, 1])
    ranker = MarginRanker().fit(coo_array(np.eye(4)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="4 features"):
        ranker.predict(csr_matrix(np.ones((2, 5))))


# Weights of lists


@pytest.mark.filterwarnings("ignore:.*lists are left out")
@pytest.mark.parametrize("ranker", EXACT, ids=named)
def test_a_weight_of_zero_leaves_a_list_out_and_one_of_two_doubles_it(rows, ranker):
    X, y, qid = rows
    y = np.where(qid == 5, y + 1, y)  # the largest rating of all stands in a list that is left out
    X = np.where(qid[:, None] == 3, 2 * X[:, ::-1], X)
    weight = np.ones(8)
    weight[[5, 3]] = 0.0, 2.0
    weighted = sklearn.clone(ranker).fit(X, y, qid, sample_weight=weight)
    kept = np.concatenate([np.flatnonzero(qid != 5), np.flatnonzero(qid == 3)])
    names = np.where(np.arange(len(kept)) < (qid != 5).sum(), qid[kept], 99)
    doubled = sklearn.clone(ranker).fit(X[kept], y[kept], names)
    alike = sklearn.clone(ranker).fit(X, y, qid)
    per_row = sklearn.clone(ranker).fit(X, y, qid, sample_weight=weight[qid])
    np.testing.assert_array_equal(per_row.predict(X), weighted.predict(X))
    if isinstance(ranker, BestFeatureRanker):
        assert weighted.train_score_ == pytest.approx(doubled.train_score_, rel=1e-12)
        assert (weighted.feature_, weighted.sign_) == (doubled.feature_, doubled.sign_)
        return
    assert weighted.objective_ == pytest.approx(doubled.objective_, rel=1e-5)
    assert weighted.objective_ != pytest.approx(alike.objective_, rel=1e-3)
    np.testing.assert_allclose(weighted.coef_, doubled.coef_, atol=0.02 * np.abs(doubled.coef_).max())


def test_the_best_feature_is_that_of_the_lists_that_count():
    X, y, group = np.array([[1, 0], [0, 1], [0, 1], [1, 0], [0, 1], [1, 0]]), [1, 0] * 3, [2, 2, 2]
    assert BestFeatureRanker().fit(X, y, group=group).feature_ == 0  # down: two of three lists
    weighted = BestFeatureRanker().fit(X, y, group=group, sample_weight=[5, 1, 1])
    assert (weighted.feature_, weighted.sign_) == (0, 1.0)


def test_a_list_takes_the_mean_of_its_rows(rows):
    X, y, qid = rows
    per_row = np.random.default_rng(0).random(len(y))
    means = [per_row[qid == q].mean() for q in range(8)]
    one, two = (MarginRanker().fit(X, y, qid, sample_weight=weight) for weight in (per_row, means))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-9, atol=1e-12)
    assert one.score(X, y, qid, sample_weight=per_row) == pytest.approx(one.score(X, y, qid, sample_weight=means))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, 2.0], r"sample_weight: expected one weight per row, shape \(6,\), or per list, shape \(3,\)"),
        ([1.0, -1.0, 1.0], r"sample_weight: expected finite numbers >= 0, found -1.0 at 1"),
        ([1.0, np.nan, 1.0], r"sample_weight: expected finite numbers >= 0, found nan"),
        (np.zeros(6), r"sample_weight: expected a weight > 0 in some list, found zero"),
    ],
)
def test_weights_that_cannot_be_meant_are_refused(weight, message):
    for ranker in (BestFeatureRanker(), MarginRanker(), MatchingRanker()):
        with pytest.raises(ValueError, match=message):
            ranker.fit(np.arange(12.0).reshape(6, 2), [0, 1] * 3, group=[2, 2, 2], sample_weight=weight)


# Sizes of lists


def test_sizes_stand_for_ids(rows):
    X, y, qid = rows
    order = np.argsort(qid, kind="stable")
    X, y, qid = X[order], y[order], qid[order]
    sizes = np.bincount(qid)
    for ranker in (BestFeatureRanker(), MarginRanker(), MatchingRanker(Slates(2, 0.1, 1))):
        by_id, by_size = sklearn.clone(ranker).fit(X, y, qid=qid), sklearn.clone(ranker).fit(X, y, group=sizes)
        np.testing.assert_array_equal(by_id.predict(X), by_size.predict(X))
        assert by_size.score(X, y, group=sizes) == by_id.score(X, y, qid)
        np.testing.assert_array_equal(by_size.rank(X, group=sizes).ids, by_id.rank(X, qid).ids)
        with pytest.raises(ValueError, match="qid: expected one id per row, as in fit"):
            by_size.score(X, y)
    assert by_size.loss(X, y, group=sizes) == by_id.loss(X, y, qid)


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ([2, 3], "group: expected sizes that add up to the 6 rows, found 5"),
        ([6, 0], "group: expected sizes from 1 to the 6 rows, found 0"),
        ([7, -1], "group: expected sizes from 1 to the 6 rows, found 7"),
        ([3.0, 3.0], "group: expected whole numbers, one a list, found float64"),
        ([[3, 3]], "group: expected whole numbers, one a list"),
    ],
)
def test_sizes_that_cannot_be_meant_are_refused(group, message):
    X = np.arange(12.0).reshape(6, 2)
    with pytest.raises(ValueError, match=message):
        MarginRanker().fit(X, [0, 1] * 3, group=group)


def test_sizes_and_ids_together_are_refused():
    X, y = np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]
    ranker = MarginRanker().fit(X, y, group=[2, 2])
    for call in (ranker.fit, ranker.score, MatchingRanker(Slates(2)).fit(X, y, group=[2, 2]).loss):
        with pytest.raises(ValueError, match="group: expected either qid or group, found both"):
            call(X, y, qid=[0, 0, 1, 1], group=[2, 2])
    with pytest.raises(ValueError, match="group: expected either qid or group, found both"):
        ranker.rank(X, qid=[0, 0, 1, 1], group=[2, 2])


# Routing


def test_weights_are_routed_where_asked_for(rows):
    X, y, qid = rows
    weight = np.where(qid < 4, 1.0, 0.25)
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = MarginRanker().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(MaxAbsScaler(), ranker)
        search = GridSearchCV(pipeline, {"marginranker__C": [1.0]}, cv=GroupKFold(2), error_score="raise")
        search.fit(csr_array(X), y, qid=qid, groups=qid, sample_weight=weight)
        direct = MarginRanker().fit(MaxAbsScaler().fit_transform(X), y, qid, sample_weight=weight)
    np.testing.assert_allclose(search.best_estimator_[-1].coef_, direct.coef_, rtol=1e-3, atol=1e-6)
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(ValueError, match="sample_weight"):
        make_pipeline(MaxAbsScaler(), MarginRanker()).fit(X, y, qid=qid, sample_weight=weight)


# What is told of


@pytest.mark.parametrize(
    "ranker", [BestFeatureRanker(), MarginRanker(), MatchingRanker(Slates(2, repeats=1))], ids=named
)
def test_rows_that_all_become_one_list_are_told_of(rows, ranker):
    """They are what a forgotten qid leaves."""
    X, y, _ = rows
    said = (
        f"^all {len(y)} rows are one list without qid: pass qid, one id per row, or group=\\[{len(y)}\\] if they are$"
    )
    with pytest.warns(UserWarning, match=said):
        alone = sklearn.clone(ranker).fit(X, y)
    for ask in (alone.rank, lambda rows: alone.score(rows, y)):
        with pytest.warns(UserWarning, match=said):
            ask(X)
    meant = sklearn.clone(ranker).fit(X, y, group=[len(y)])  # a warning would be an error
    np.testing.assert_array_equal(meant.predict(X), alone.predict(X))
    assert meant.score(X, y, group=[len(y)]) == alone.score(X, y, group=[len(y)])
    assert meant.rank(X, group=[len(y)]).ids.tolist() == meant.rank(X, qid=np.zeros(len(y))).ids.tolist()
    assert len(meant.rank(X[:1])) == 1


ADVICE = {"max_iter", "tol", "C", "l2", "solver"}
"""Parameters that a warning of a fit that stopped early may name."""


@pytest.mark.parametrize(
    "ranker",
    [
        MarginRanker(max_iter=1),
        MarginRanker(max_iter=1, C="auto"),
        MatchingRanker(Slates(3, repeats=1), max_iter=1, l2=1e-6),
        MatchingRanker(Slates(3, repeats=1), max_iter=1, surrogate="max-margin"),
        MatchingRanker("whole", max_iter=1, l2="auto"),
        MetricRanker(max_iter=1),
        GraphMatcher(max_iter=1, l2=1e-6),
        GraphMatcher(max_iter=1, surrogate="max-margin"),
        CStarRanker(core=2, max_iter=1, C=10.0, tol=1e-9),
        CStarMarginRanker(core=2, max_iter=1, C=10.0),
        CStarMarginRanker(core=2, max_iter=1, C=10.0, solver="bundle"),
        CStarMarginRanker(core=2, max_iter=1, C=10.0, solver="subgradient"),
    ],
    ids=named,
)
@pytest.mark.filterwarnings("ignore:.*lists are left out")
@pytest.mark.filterwarnings("ignore:nothing was learned")
def test_a_fit_that_stops_early_names_its_own_parameters(rows, ranker):
    X, y, qid = rows
    rng = np.random.default_rng(0)
    graphs = rng.normal(size=(8, 5, 5, 2))
    scenes = datasets.make_label_scenes(60, n_labels=6, random_state=0)
    of = {
        MetricRanker: (X, y > 1),
        GraphMatcher: (list(graphs), [np.arange(5)] * 8),
        CStarMarginRanker: (scenes.X, scenes.Y),
        CStarRanker: (scenes.X, scenes.Y),
    }
    with pytest.warns(ConvergenceWarning) as caught:
        sklearn.clone(ranker).fit(*of.get(type(ranker), (X, y, qid)))
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            named = set(re.findall(r"\w+", str(warning.message))) & ADVICE
            assert named
            assert named <= set(ranker.get_params())


@pytest.mark.parametrize(
    ("loss", "advice"), [("map", "check the features"), ("mrr", "'map' and 'auc' look at"), ("ndcg", "or a larger k")]
)
def test_where_nothing_is_learned_k_is_named_if_the_loss_has_one(rows, loss, advice):
    X, y, qid = rows
    with pytest.warns(UserWarning, match="nothing was learned") as caught:
        MarginRanker(loss).fit(np.full_like(X, 0.1), y, qid)
    text = next(str(one.message) for one in caught if "nothing" in str(one.message))
    assert advice in text
    assert ("larger k" in text) == (loss == "ndcg")
