import os
import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.metric_bruteforce import relevant_by_class

import slatewise
from slatewise import MetricRanker, kernels, load, losses
from slatewise.core.errors import ModelFileError
from slatewise.core.numerics.result import ConvergenceWarning, NothingLearnedWarning
from slatewise.core.running import devices
from slatewise.metric_learning import distance
from slatewise.persistence.file import read_model, write_model

LOSSES = ["auc", "precision", "map", "mrr", "ndcg", "knn"]


# Some of scikit-learn's own data have labels at random: there is nothing to learn, and fit says so.
@pytest.mark.filterwarnings("ignore::slatewise.core.numerics.result.NothingLearnedWarning")
@parametrize_with_checks([MetricRanker()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def ranker(wine):
    return MetricRanker(C=10).fit(*wine)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("regularizer", ["trace", "frobenius", "diagonal"])
def test_every_fit_is_certified(wine, loss, regularizer):
    X, y = wine[0][::2], wine[1][::2]
    ranker = MetricRanker(loss=loss, C=10, regularizer=regularizer).fit(X, y)
    assert 0 < ranker.lower_bound_ <= ranker.objective_
    assert ranker.objective_ - ranker.lower_bound_ <= 1e-3 * ranker.objective_
    assert ranker.model_card_.converged
    W = ranker.metric_
    assert np.linalg.eigvalsh(W)[0] >= -1e-12
    np.testing.assert_allclose(ranker.components_.T @ ranker.components_, W)
    if regularizer == "diagonal":
        assert np.count_nonzero(W - np.diag(W.diagonal())) == 0


def test_distances_are_those_of_the_metric(wine, ranker):
    X = wine[0]
    Z = ranker.transform(X)
    differences = X[:5, None] - X[5:20]
    expected = np.einsum("qid,de,qie->qi", differences, ranker.metric_, differences)
    np.testing.assert_allclose(euclidean_distances(Z[:5], Z[5:20], squared=True), expected, atol=1e-9)
    order = np.argsort(euclidean_distances(Z[:5], Z), axis=1, kind="stable")
    np.testing.assert_array_equal(ranker.rank(X[:5], k=4).ids, order[:, :4])


def test_an_answer_says_who_asks_what_is_found_and_how_near(wine, ranker):
    X = wine[0]
    answer = ranker.rank(X[:5], k=4)
    assert answer.query_ids.tolist() == [0, 1, 2, 3, 4]
    assert answer[2].tolist() == answer.ids[2].tolist()
    apart = ranker.distances(X[:5])
    np.testing.assert_allclose(answer.scores, -np.take_along_axis(apart, answer.ids, axis=1), atol=1e-9)
    assert list(answer.to_dict()[3]) == answer.ids[3].tolist()
    np.testing.assert_array_equal(ranker.scores(X[:5]), -apart)
    np.testing.assert_array_equal(ranker.scores(X[:5], X[5:9]), -ranker.distances(X[:5], X[5:9]))


def test_the_metric_is_of_low_rank_and_better_than_none(wine, ranker):
    X, y = wine
    plain = euclidean_distances(X)
    before = np.mean([average_precision_score(y == y[q], -plain[q]) for q in range(len(y))])
    learned = euclidean_distances(ranker.transform(X))
    after = np.mean([average_precision_score(y == y[q], -learned[q]) for q in range(len(y))])
    assert ranker.score(X, y) == pytest.approx(after)
    assert after > before + 0.1
    assert len(ranker.components_) <= 6


def test_in_a_pipeline_and_in_a_search(wine):
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), MetricRanker(), KNeighborsClassifier(3))
    search = GridSearchCV(model, {"metricranker__C": [0.1, 10.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    with pytest.warns(NothingLearnedWarning):
        alone = GridSearchCV(MetricRanker(), {"C": [1e-4, 10.0]}, cv=3).fit(*wine)
    assert alone.best_params_ == {"C": 10.0}


@pytest.mark.parametrize("loss", ["auc", "map"])
def test_classes_labels_and_lists_say_the_same(wine, loss):
    X, y = wine[0][::3], wine[1][::3]
    by_class = MetricRanker(loss=loss).fit(X, y)
    by_name = MetricRanker(loss=loss).fit(X, np.array(["red", "rosé", "white"])[y])
    labels = np.eye(3, dtype=int)[y]
    by_label = MetricRanker(loss=loss).fit(X, labels)
    by_sparse_label = MetricRanker(loss=loss).fit(X, csr_array(labels))
    by_list = MetricRanker(loss=loss).fit(X, relevance=csr_array((relevant_by_class(y) == 1).astype(float)))
    for other in (by_name, by_label, by_sparse_label, by_list):
        np.testing.assert_array_equal(other.components_, by_class.components_)
    assert by_label.score(X, labels) == by_class.score(X, y) == by_name.score(X, by_name.classes_[y])
    relevance = csr_array((y[:, None] == y).astype(float))
    assert by_list.score(X, relevance=relevance) == by_class.score(X, y)


def test_stored_items_only(wine):
    X, y = wine[0][::4], wine[1][::4]
    rng = np.random.default_rng(0)
    listed = rng.uniform(size=(len(y), len(y))) < 0.5
    np.fill_diagonal(listed, False)
    rows, columns = np.nonzero(listed)
    values = np.where(y[rows] == y[columns], 1.0, 0.0)
    relevance = csr_array((values, (rows, columns)), shape=listed.shape)
    some = MetricRanker(unlisted="ignored").fit(X, relevance=relevance)
    assert some.objective_ - some.lower_bound_ <= 1e-3 * some.objective_
    signs = csr_array((2 * values - 1, (rows, columns)), shape=listed.shape)
    negative = MetricRanker(unlisted="ignored").fit(X, relevance=signs)
    np.testing.assert_array_equal(some.components_, negative.components_)
    everything = MetricRanker().fit(X, relevance=relevance)
    assert everything.objective_ != some.objective_


def test_queries_outside_the_catalogue(wine):
    X, y = wine
    items, queries = X[::2], X[1::2]
    relevance = csr_array((y[1::2][:, None] == y[::2]).astype(float))
    ranker = MetricRanker(C=10).fit(items, relevance=relevance, queries=queries)
    assert ranker.catalogue_.shape[0] == len(items)
    assert ranker.score(queries, relevance=relevance) > 0.9
    assert ranker.rank(queries, k=2).ids.max() < len(items)
    assert ranker.model_card_.n_lists == len(queries)


def test_grades(wine):
    X, y = wine[0][::3], wine[1][::3]
    grades = csr_array(np.maximum(0, 2 - np.abs(y[:, None] - y)).astype(float))
    top = MetricRanker(losses.MAP(threshold=2)).fit(X, relevance=grades)
    same = MetricRanker(loss="map").fit(X, y)
    np.testing.assert_array_equal(top.components_, same.components_)
    graded = MetricRanker(losses.NDCG(5), C=10).fit(X, relevance=grades)
    assert graded.objective_ - graded.lower_bound_ <= 1e-3 * graded.objective_
    with pytest.raises(ValueError, match="whole grades"):
        MetricRanker(loss="ndcg").fit(X, relevance=grades * 0.3)


def test_queries_that_say_nothing_are_skipped_and_counted(wine):
    X, y = wine[0][::3], wine[1][::3].copy()
    y[0] = 7  # nobody shares the class of row 0
    ranker = MetricRanker().fit(X, y)
    assert ranker.n_skipped_ == 1
    weight = np.ones(len(y))
    weight[[3, 5]] = 0.0
    assert MetricRanker().fit(X, y, query_weight=weight).n_skipped_ == 3


def test_weights_of_queries(wine):
    X, y = wine[0][::2], wine[1][::2]
    relevance, chosen = csr_array((relevant_by_class(y) == 1).astype(float)), np.array([0, 3, 40, 80])
    weight = np.zeros(len(y))
    weight[chosen] = [1.0, 2.0, 1.0, 3.0]
    weighted = MetricRanker(C=3, tol=1e-5).fit(X, relevance=relevance, query_weight=weight)
    rows = np.repeat(chosen, [1, 2, 1, 3])
    lists = relevance.toarray()[rows]
    lists[np.arange(7), rows] = 1  # as queries apart from the items they find themselves: leave that out
    signs = np.where(lists > 0, 1.0, -1.0)
    signs[np.arange(7), rows] = 0.0
    repeated = MetricRanker(C=3, tol=1e-5, unlisted="ignored").fit(X, relevance=csr_array(signs), queries=X[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=2e-5)


def test_a_path_certifies_every_C(wine):
    X, y = wine
    rankers = MetricRanker(loss="map").path(X, y, [0.3, 3.0, 30.0])
    assert [ranker.C for ranker in rankers] == [0.3, 3.0, 30.0]
    for ranker in rankers:
        alone = MetricRanker(loss="map", C=ranker.C).fit(X, y)
        assert ranker.lower_bound_ <= alone.objective_
        assert ranker.objective_ - ranker.lower_bound_ <= 1e-3 * ranker.objective_
        assert ranker.transform(X).shape == (len(X), len(ranker.components_))
    assert MetricRanker().path(X, y, []) == []
    with pytest.raises(ValueError, match="C: expected"):
        MetricRanker().path(X, y, [1.0, -1.0])


def test_kernels(wine):
    X, y = wine[0][:, :6], wine[1]
    train, test = np.arange(0, 178, 2), np.arange(1, 178, 6)
    direct = MetricRanker(kernel=kernels.Rbf(0.1), C=50).fit(X[train], y[train])
    K = rbf_kernel(X[train], gamma=0.1)
    given = MetricRanker(kernel="precomputed", C=50).fit(K, y[train])
    assert given.objective_ == pytest.approx(direct.objective_, rel=2e-3)
    Z, other = direct.transform(X[test]), given.transform(rbf_kernel(X[test], X[train], gamma=0.1))
    assert Z.shape == (len(test), len(direct.components_))
    assert other.shape == (len(test), len(given.components_))
    assert direct.score(X[test], y[test]) > MetricRanker(C=50).fit(X[train], y[train]).score(X[test], y[test]) - 0.05
    few = MetricRanker(kernel=kernels.Rbf(0.1, n_basis=20), C=50).fit(X[train], y[train])
    assert few.basis_.shape == (20, 6)
    assert few.objective_ >= direct.lower_bound_
    with pytest.raises(ValueError, match="queries"):
        MetricRanker(kernel="precomputed").fit(K, relevance=csr_array(K > 0.5), queries=K)


def test_a_linear_kernel_is_the_linear_metric(wine):
    X, y = wine[0][::2], wine[1][::2]
    linear = MetricRanker(C=5, tol=1e-5).fit(X, y)
    kernel = MetricRanker(C=5, tol=1e-5, kernel="precomputed").fit(X @ X.T, y)
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=2e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_more_features_than_points(sparse):
    rng = np.random.default_rng(0)
    y = np.arange(24) % 3
    X = rng.normal(size=(24, 60)) * (rng.uniform(size=(24, 60)) < 0.3) + np.eye(3, 60)[y]
    rotation = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    wide = MetricRanker(C=5, tol=1e-4).fit(csr_array(X) if sparse else X, y)
    assert wide.components_.shape[1] == 60
    padded = X @ rotation
    turned = MetricRanker(C=5, tol=1e-4).fit(padded, y)
    assert turned.objective_ == pytest.approx(wide.objective_, rel=2e-4)
    distances = euclidean_distances(wide.transform(X))
    np.testing.assert_allclose(euclidean_distances(wide.catalogue_), distances, atol=1e-7)


@pytest.mark.parametrize("regularizer", ["trace", "diagonal"])
def test_sparse_points(wine, regularizer):
    X, y = np.where(np.abs(wine[0]) > 1, wine[0], 0.0), wine[1]
    dense = MetricRanker(C=5, tol=1e-4, regularizer=regularizer).fit(X, y)
    sparse = MetricRanker(C=5, tol=1e-4, regularizer=regularizer).fit(csr_array(X), y)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=2e-4)
    np.testing.assert_allclose(sparse.transform(csr_array(X)), sparse.transform(X), atol=1e-12)


@pytest.mark.parametrize("regularizer", ["trace", "frobenius", "diagonal"])
@pytest.mark.parametrize("shift", [1e8, 1.7e9])
def test_sparse_points_far_from_zero(wine, shift, regularizer):
    X, y = wine[0][::3], wine[1][::3]
    far = X + shift * np.eye(X.shape[1])[0]
    near = MetricRanker(C=5, regularizer=regularizer).fit(X, y)
    ranker = MetricRanker(C=5, regularizer=regularizer).fit(csr_array(far), y)
    assert ranker.lower_bound_ <= near.objective_ * (1 + 1e-6)
    assert near.lower_bound_ <= ranker.objective_ * (1 + 1e-6)
    assert ranker.model_card_.converged
    assert ranker.score(csr_array(far), y) == pytest.approx(near.score(X, y), abs=5e-3)


def test_distances_far_from_zero(wine, ranker):
    X, y = wine
    expected = euclidean_distances(ranker.transform(X[:9]), ranker.catalogue_, squared=True)
    np.testing.assert_allclose(ranker.distances(X[:9]), expected, atol=1e-9)
    shift = 1e7 * np.arange(X.shape[1])
    far = MetricRanker(C=10).fit(X + shift, y)
    found, W = far.distances(X + shift), far.metric_
    differences = X[:, None] - X
    exact = np.einsum("qid,de,qie->qi", differences, W, differences)
    np.testing.assert_allclose(found, exact, atol=1e-5 * exact.max())
    assert (found >= 0).all()


@pytest.mark.parametrize("rows", [7, 64, 178])
@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf", "C": 50}, {"loss": losses.Precision(3)}])
def test_distances_have_the_same_bits_in_both_directions(wine, settings, rows):
    X, y = wine[0][::-1][:rows].astype(np.float32), np.r_[np.zeros(3), wine[1][::-1][3:rows]]
    ranker = MetricRanker(**settings).fit(X, y)
    for found in (ranker.distances(X), ranker.distances(X, X)):
        np.testing.assert_array_equal(found, found.T)
        assert not found.diagonal().any()
    np.testing.assert_array_equal(ranker.distances(X[:3], X), ranker.distances(X, X[:3]).T)
    Z = ranker.transform(X.astype(np.float64))
    np.testing.assert_allclose(ranker.distances(X), euclidean_distances(Z, squared=True), atol=1e-7)


@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf", "C": 50}, {"regularizer": "diagonal"}])
def test_the_metric_as_a_function(wine, settings):
    X, y = wine[0][::3], wine[1][::3]
    ranker = MetricRanker(**settings).fit(X, y)
    distance = pickle.loads(pickle.dumps(ranker.get_metric()))
    assert distance(X[0], X[1]) == distance(X[1], X[0]) == pytest.approx(np.sqrt(ranker.distances(X[:1], X[1:2])[0, 0]))
    assert distance(X[2], X[2]) == 0.0
    for algorithm in ("brute", "ball_tree"):
        by_function = KNeighborsClassifier(3, metric=distance, algorithm=algorithm).fit(X, y)
        mapped = KNeighborsClassifier(3).fit(ranker.transform(X), y)
        np.testing.assert_array_equal(
            by_function.predict(wine[0][1::3]), mapped.predict(ranker.transform(wine[0][1::3]))
        )
    with pytest.raises(NotFittedError):
        MetricRanker().get_metric()


@pytest.mark.parametrize("regularizer", ["trace", "frobenius", "diagonal"])
@pytest.mark.filterwarnings("ignore:worse than nothing was learned")
def test_n_components_is_the_most_rank(wine, regularizer):
    X, y = wine
    settings = {"C": 10.0, "regularizer": regularizer}
    free = MetricRanker(**settings).fit(X, y)
    few = MetricRanker(**settings, n_components=1).fit(X, y)
    assert few.components_.shape == (1, 13) == few.get_metric().components.shape
    assert few.transform(X).shape == (178, 1)
    # The bound is of any rank; the objective of the W that is kept, better than the largest eigenvalue alone.
    assert few.lower_bound_ >= free.lower_bound_
    cut = MetricRanker(**settings, n_components=1, max_iter=1)
    with pytest.warns(ConvergenceWarning):
        cut.fit(X, y)
    assert free.objective_ < few.objective_ < cut.objective_
    assert few.model_card_.converged
    wide = MetricRanker(**settings, n_components=13).fit(X, y)
    np.testing.assert_array_equal(wide.components_, free.components_)
    path = MetricRanker(**settings, n_components=2).path(X, y, [1.0, 10.0])
    assert [len(ranker.components_) for ranker in path] == [2, 2]


@pytest.mark.filterwarnings("ignore:worse than nothing was learned")
def test_n_components_with_a_kernel(wine):
    X, y = wine[0][::2], wine[1][::2]
    free = MetricRanker(kernel="rbf", C=20.0).fit(X, y)
    few = MetricRanker(kernel="rbf", C=20.0, n_components=1).fit(X, y)
    assert few.components_.shape == (1, len(few.basis_))
    assert len(free.components_) > 1
    assert free.lower_bound_ <= few.lower_bound_ <= free.objective_ < few.objective_
    more = MetricRanker(kernel="rbf", C=20.0, n_components=10_000).fit(X, y)
    np.testing.assert_array_equal(more.components_, free.components_)


OPTIONAL = {"basis_", "gamma_", "catalogue_labels_", "classes_"}


def test_a_model_has_only_the_attributes_of_its_data_and_kernel(wine, tmp_path):
    X, y = np.abs(wine[0][::3]), wine[1][::3]
    lists = {"relevance": csr_array((y[:, None] == y).astype(float))}
    ranker = MetricRanker(C=50.0)
    for parameters, given, expected in [
        ({}, {"y": y}, {"catalogue_labels_", "classes_"}),
        ({"kernel": "rbf"}, {"y": np.eye(3)[y]}, {"basis_", "gamma_", "catalogue_labels_"}),
        ({"kernel": "intersection"}, {"y": y}, {"basis_", "catalogue_labels_", "classes_"}),
        ({"kernel": "linear"}, lists, set()),
    ]:
        ranker.set_params(**parameters).fit(X, **given)  # nothing is left of the fit before
        ranker.save(tmp_path / "m")
        back = load(tmp_path / "m")
        assert OPTIONAL & vars(ranker).keys() == OPTIONAL & vars(back).keys() == expected
        np.testing.assert_array_equal(back.transform(X), ranker.transform(X))
        assert back.kernel == ranker.kernel


@pytest.mark.parametrize("name", ["basis_", "gamma_", "classes_"])
def test_a_file_without_what_its_kernel_or_labels_need_is_refused(tmp_path, wine, name):
    X, y = wine[0][::3], wine[1][::3]
    MetricRanker(C=50.0, kernel="rbf").fit(X, y).save(tmp_path / "m")
    state = read_model(tmp_path / "m")
    for part in (state.arrays, state.values):
        part.pop(name, None)
    write_model(tmp_path / "m", state)
    with pytest.raises(ModelFileError, match=f"{name}: expected one"):
        load(tmp_path / "m")
    MetricRanker().fit(X, relevance=(y[:, None] == y).astype(float)).save(tmp_path / "m")
    state = read_model(tmp_path / "m")
    more = {"basis_": np.ones((2, 13)), "classes_": np.arange(3)}
    arrays = {key: value for key, value in more.items() if key == name}
    values = {"gamma_": 1.0} if name == "gamma_" else {}
    write_model(tmp_path / "m", replace(state, arrays={**state.arrays, **arrays}, values={**state.values, **values}))
    with pytest.raises(ModelFileError, match=f"{name}: expected none"):
        load(tmp_path / "m")


def test_a_search_reaches_into_the_loss_and_the_kernel(wine):
    X, y = np.abs(wine[0][::2]), wine[1][::2]
    ranker = MetricRanker("ndcg", C=100.0, kernel="rbf", tol=1e-2)
    grid = {"loss__k": [2, 4], "kernel__gamma": [0.01, 0.1]}
    search = GridSearchCV(ranker, grid, cv=2).fit(X, y)
    assert search.best_estimator_.loss == losses.NDCG(search.best_params_["loss__k"])
    assert search.best_estimator_.gamma_ == search.best_params_["kernel__gamma"]
    with pytest.raises(ValueError, match="loss__k: expected a parameter of loss='precision' or 'ndcg' or 'knn'"):
        MetricRanker("map").set_params(loss__k=3)
    with pytest.raises(ValueError, match="kernel__gamma: expected a parameter of kernel='rbf' or 'chi2'"):
        MetricRanker().set_params(kernel__gamma=3)


def test_single_precision_in_and_out(wine):
    X, y = wine
    ranker = MetricRanker().fit(X.astype(np.float32), y)
    assert ranker.transform(X.astype(np.float32)).dtype == np.float32
    assert ranker.transform(X).dtype == np.float64
    assert ranker.objective_ == pytest.approx(MetricRanker().fit(X, y).objective_, rel=2e-3)


@pytest.mark.parametrize("width", [13, 300])
def test_the_catalogue_is_where_transform_puts_it(wine, width):
    X, y = wine
    far = 50.0 + np.hstack([X, np.zeros((len(X), width - X.shape[1]))])
    ranker = MetricRanker(C=10.0).fit(far, y)
    np.testing.assert_allclose(ranker.catalogue_, ranker.transform(far), atol=1e-9)
    distances = euclidean_distances(ranker.transform(far))
    assert (np.take_along_axis(distances, ranker.rank(far, 1).ids, axis=1) < 1e-6).all()
    assert ranker.score(far, y) == pytest.approx(MetricRanker(C=10.0).fit(X, y).score(X, y), abs=5e-3)


def test_constant_features_and_shifts(wine):
    X, y = wine[0][::2], wine[1][::2]
    plain = MetricRanker(tol=1e-4).fit(X, y)
    more = MetricRanker(tol=1e-4).fit(np.column_stack([X + 3.0, np.full(len(X), 5.0)]), y)
    assert more.objective_ == pytest.approx(plain.objective_, rel=2e-4)
    assert np.abs(more.components_[:, -1]).max() < 1e-9
    with pytest.warns(NothingLearnedWarning, match="1.0000 of it"):
        wide = MetricRanker().fit(np.ones((6, 9)), [0, 0, 0, 1, 1, 1])
    assert wide.transform(np.ones((4, 9))).shape == (4, 0)
    with pytest.warns(NothingLearnedWarning):
        tenths = MetricRanker().fit(np.full((6, 2), 0.1), [0, 0, 0, 1, 1, 1])
    assert tenths.components_.shape == (0, 2)
    with pytest.warns(NothingLearnedWarning):
        nothing = MetricRanker().fit(np.ones((6, 2)), [0, 0, 0, 1, 1, 1])
    assert nothing.distances(np.ones((4, 2))).tolist() == [[0.0] * 6] * 4
    assert nothing.get_metric()([1.0, 2.0], [3.0, 4.0]) == 0.0
    assert nothing.components_.shape == (0, 2)
    assert nothing.transform(np.ones((4, 2))).shape == (4, 0)
    assert nothing.rank(np.ones((4, 2)), k=3).ids.tolist() == [[0, 1, 2]] * 4


BAD = [
    ({"loss": "other"}, {}, "loss: expected 'auc', 'precision', 'map', 'mrr', 'ndcg', 'knn' or"),
    ({"loss": 3}, {}, "loss: expected"),
    ({"C": 0}, {}, "C: expected"),
    ({"C": "much"}, {}, "C: expected"),
    ({"C": np.inf}, {}, "C: expected"),
    ({"regularizer": "l1"}, {}, "regularizer: expected one of"),
    ({"tol": -1.0}, {}, "tol: expected"),
    ({"max_iter": 0}, {}, "max_iter: expected"),
    ({"kernel": "other"}, {}, "kernel: expected 'linear' or 'rbf', 'chi2', 'intersection', 'precomputed' or"),
    ({"kernel": "chi2"}, {}, "histogram"),
    ({"kernel": "precomputed"}, {}, "symmetric"),
    ({"kernel": "precomputed"}, {"X": np.zeros((20, 20))}, "not 0 everywhere"),
    ({"unlisted": "maybe"}, {}, "unlisted: expected one of"),
    ({"n_components": 0}, {}, "n_components: expected"),
    ({"n_components": 4}, {}, "n_components: expected at most 3"),
    ({"targets": 0}, {}, "targets: expected"),
    ({"targets": True}, {}, "targets: expected"),
    ({"targets": "nearest"}, {}, "targets: expected"),
    ({"pairs": "few"}, {}, "pairs: expected one of"),
    ({"kernel": 0.5}, {}, "kernel: expected"),
    ({}, {"callbacks": print}, "callbacks: expected"),
    ({}, {"checkpoint": 3}, "checkpoint: expected"),
    ({}, {"y": None}, "requires y to be passed"),
    ({}, {"y": np.zeros(20)}, "1 class"),
    ({}, {"y": np.arange(20)}, "relevant and irrelevant"),
    ({}, {"y": np.linspace(0, 1, 20)}, "Unknown label type"),
    ({}, {"y": np.r_[np.nan, np.zeros(19)]}, "NaN"),
    ({}, {"y": np.zeros(3)}, "inconsistent"),
    ({}, {"y": np.zeros((20, 2))}, "relevant and irrelevant"),
    ({}, {"y": np.full((20, 2), 3)}, "0 and 1"),
    ({}, {"X": np.r_[np.full((1, 3), np.nan), np.zeros((19, 3))]}, "NaN"),
    ({}, {"relevance": csr_array((20, 20))}, "found both"),
    ({}, {"y": None, "relevance": csr_array((20, 20))}, "relevance: expected a query with relevant"),
    ({}, {"y": None, "relevance": np.ones((20, 20))}, "relevance: expected a query with relevant"),
    ({}, {"y": None, "relevance": csr_array((20, 3))}, "relevance: expected shape"),
    ({}, {"y": None, "relevance": csr_array(np.full((20, 20), np.nan))}, "relevance: expected finite"),
    ({"unlisted": "ignored"}, {"y": None, "relevance": np.eye(20)}, "relevance: expected a SciPy sparse matrix"),
    ({}, {"queries": np.zeros((2, 3))}, "relevance: expected the relevance"),
    ({}, {"y": None, "relevance": csr_array((2, 20)), "queries": np.zeros((2, 5))}, "features"),
    ({}, {"query_weight": -np.ones(20)}, "query_weight: expected"),
    ({}, {"query_weight": np.ones(3)}, "query_weight: expected"),
    ({}, {"query_weight": np.zeros(20)}, "relevant and irrelevant"),
]


@pytest.mark.parametrize(("settings", "arguments", "message"), BAD)
def test_bad_input_to_fit(settings, arguments, message):
    rng = np.random.default_rng(0)
    given = {"X": rng.normal(size=(20, 3)), "y": np.arange(20) % 2, **arguments}
    with pytest.raises(ValueError, match=message):
        MetricRanker(**settings).fit(given.pop("X"), given.pop("y"), **given)


def test_bad_input_to_rank_and_score(wine, ranker):
    X, y = wine
    for k in (0, 179, 2.5, True):
        with pytest.raises(ValueError, match="k: expected"):
            ranker.rank(X, k)
    with pytest.raises(ValueError, match="relevant row"):
        ranker.score(X, y + 9)
    lists = MetricRanker().fit(X, relevance=csr_array((relevant_by_class(y) == 1).astype(float)))
    with pytest.raises(ValueError, match="relevance: expected"):
        lists.score(X, y)
    with pytest.raises(ValueError, match="relevance: expected a SciPy sparse matrix"):
        lists.set_params(unlisted="ignored").score(X, relevance=y[:, None] == y)
    labelled = MetricRanker().fit(X, np.eye(3)[y])
    with pytest.raises(ValueError, match="labels"):
        labelled.score(X, np.eye(4)[y])


def test_saved_and_loaded_it_maps_the_same(tmp_path, wine):
    X, y = np.abs(wine[0][::3]), wine[1][::3]
    for number, (settings, target) in enumerate(
        [
            ({}, y),
            ({"kernel": "chi2", "C": 20}, y),
            ({"regularizer": "diagonal", "C": 20}, np.eye(3)[y]),
            ({}, np.array(list("abc"))[y]),
        ]
    ):
        ranker = MetricRanker(**settings).fit(X, target)
        ranker.save(tmp_path / f"{number}.safetensors")
        back = slatewise.load(tmp_path / f"{number}.safetensors")
        np.testing.assert_array_equal(back.transform(X), ranker.transform(X))
        np.testing.assert_array_equal(back.rank(X, 3).ids, ranker.rank(X, 3).ids)
        assert back.score(X, target) == ranker.score(X, target)


@pytest.mark.parametrize(
    "change",
    [
        {"components_": np.full((2, 13), np.nan)},
        {"components_": np.zeros((2, 5))},
        {"catalogue_": np.zeros((178, 7))},
        {"catalogue_labels_": np.zeros(3, dtype=np.int64)},
        {"catalogue_labels_": np.zeros(178)},
    ],
)
def test_a_file_whose_parts_do_not_fit_is_refused(tmp_path, wine, change):
    MetricRanker().fit(*wine).save(tmp_path / "m")
    state = read_model(tmp_path / "m")
    write_model(tmp_path / "m", replace(state, arrays={**state.arrays, **change}))
    with pytest.raises(ModelFileError):
        slatewise.load(tmp_path / "m")


def test_same_bits_with_any_number_of_threads(wine, monkeypatch):
    monkeypatch.setattr(distance, "BLOCK_BYTES", 20_000)
    one, two = (MetricRanker(loss="map", C=20, n_jobs=threads).fit(*wine) for threads in (1, 2))
    np.testing.assert_array_equal(one.components_, two.components_)
    assert (one.objective_, one.lower_bound_) == (two.objective_, two.lower_bound_)


def test_callbacks_see_the_gap_close(wine):
    rounds = []
    MetricRanker().fit(*wine, callbacks=[rounds.append])
    assert rounds[-1].gap <= 1e-3 <= rounds[0].gap
    assert all(later.lower_bound >= earlier.lower_bound for earlier, later in pairwise(rounds))


def test_a_checkpoint_of_other_data_is_refused(tmp_path, wine):
    path = tmp_path / "state"

    def stop(round_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        MetricRanker().fit(*wine, checkpoint=path, callbacks=[stop])
    with pytest.raises(ValueError, match="checkpoint"):
        MetricRanker().fit(wine[0][:100], wine[1][:100], checkpoint=path)
    with pytest.raises(ValueError, match="checkpoint"):
        MetricRanker(C=2).fit(*wine, checkpoint=path)
    assert os.path.exists(path)
    MetricRanker().fit(*wine, checkpoint=path)
    assert not os.path.exists(path)


def test_not_converged_is_a_warning(wine):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        ranker = MetricRanker(C=1000, tol=1e-8, max_iter=2).fit(*wine)
    assert not ranker.model_card_.converged


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "mps", "", 0])
def test_names_that_are_no_device(device):
    with pytest.raises(ValueError, match="device: expected None or 'cpu', 'cuda' or 'cuda:0', found"):
        MetricRanker(device=device).fit("no points", "no labels")


def test_a_gpu_without_torch_is_an_error_before_any_work(monkeypatch):
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"a GPU needs torch: pip install 'slatewise\[gpu\]'"):
        MetricRanker(device="cuda").fit("no points", "no labels")


def test_the_cpu_by_name_and_files_without_a_device(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(30, 3)) + np.arange(30)[:, None] % 3, np.arange(30) % 3
    plain, named = MetricRanker(C=20.0).fit(X, y), MetricRanker(C=20.0, device="cpu").fit(X, y)
    np.testing.assert_array_equal(plain.components_, named.components_)
    named.set_params(device="cuda").save(tmp_path / "metric.safetensors")  # as if it had been fitted there
    loaded = load(tmp_path / "metric.safetensors")
    assert loaded.device is None
    np.testing.assert_array_equal(loaded.rank(X[:4], 3).ids, plain.rank(X[:4], 3).ids)
