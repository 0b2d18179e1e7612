"""Losses of the first ranks: target neighbours, psi over the pairs of the top, the warning if nothing is learned."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import scale
from tests.metric_bruteforce import nearest_of, planes, relevant_by_class, risk

from slatewise import MetricRanker, losses
from slatewise.core.numerics.result import NothingLearnedWarning
from slatewise.inference import most_violated
from slatewise.metrics import AP

TOP = ["precision", "ndcg", "knn", "mrr"]
LOSSES = ["auc", "map", *TOP]


def loss_of(name, k):
    """The loss that looks at the first k ranks, if there is a k."""
    return {"precision": losses.Precision, "ndcg": losses.NDCG, "knn": losses.KNN}.get(name, lambda k: name)(k)


def few_points(seed):
    rng = np.random.default_rng(seed)
    y = np.array([0, 0, 0, 0, 1, 1])
    return rng.normal(size=(6, 2)) * [1.0, 3.0] + 3.0 * y[:, None], y


@pytest.mark.filterwarnings("ignore::slatewise.core.numerics.result.NothingLearnedWarning")
@pytest.mark.parametrize("pairs", ["top", "all"])
@pytest.mark.parametrize("targets", ["all", 2])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_is_that_of_all_rankings(loss, targets, pairs):
    X, y = few_points(len(loss))
    ranker = MetricRanker(loss_of(loss, 2), C=4.0, targets=targets, pairs=pairs).fit(X, y)
    wanted = relevant_by_class(y) if targets == "all" else nearest_of(relevant_by_class(y), X, targets)
    top = {"auc": None, "map": None, "precision": 2, "ndcg": 2, "knn": 1, "mrr": 1}[loss] if pairs == "top" else None
    judge, W = planes(X, X, wanted, loss, 2, top), ranker.metric_
    assert ranker.objective_ == pytest.approx(np.trace(W) + 4.0 * risk(judge, W))
    for seed in range(30):
        M = np.random.default_rng(seed).normal(size=(2, 2)) / 4
        assert ranker.lower_bound_ <= np.trace(M.T @ M) + 4.0 * risk(judge, M.T @ M)


@pytest.mark.parametrize("loss", LOSSES)
def test_targets_by_default(loss):
    X, y = few_points(0)
    X, y = np.vstack([X, X + np.array([0.3, 2.0])]), np.tile(y, 2)
    loss, count = loss_of(loss, 2), {"mrr": 3}.get(loss, 2) if loss in TOP else "all"
    default = MetricRanker(loss, C=20).fit(X, y)
    named = MetricRanker(loss, C=20, targets=count).fit(X, y)
    np.testing.assert_array_equal(default.components_, named.components_)
    # A list says what is to come first, all of it.
    lists = csr_array((relevant_by_class(y) == 1).astype(float))
    whole = MetricRanker(loss, C=200, targets="all").fit(X, y)
    np.testing.assert_array_equal(MetricRanker(loss, C=200).fit(X, relevance=lists).components_, whole.components_)
    nearest = MetricRanker(loss, C=20, targets=2 if count == "all" else count).fit(X, relevance=lists)
    assert (nearest.objective_ == default.objective_) == (count != "all")


def test_targets_of_queries_that_are_skipped_and_of_few(wine_rows):
    X, y = wine_rows
    y = y.copy()
    y[0] = 7  # nobody shares the class of row 0
    alone = MetricRanker("precision").fit(X, y)
    assert alone.n_skipped_ == 1
    more = MetricRanker("precision", targets=10_000).fit(X, y)
    whole = MetricRanker("precision", targets="all").fit(X, y)
    np.testing.assert_array_equal(more.components_, whole.components_)


@pytest.fixture(scope="module")
def wine_rows():
    X, y = load_wine(return_X_y=True)
    return scale(X)[::2], y[::2]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_every_loss_learns_by_default(load, loss):
    X, y = load(return_X_y=True)
    X, y = scale(X)[::3], y[::3]
    ranker = MetricRanker(loss).fit(X, y)  # a warning would be an error
    assert ranker.lower_bound_ < 0.97
    assert ranker.objective_ - ranker.lower_bound_ <= 1e-3 * ranker.objective_


def test_nothing_learned_is_a_warning_with_numbers(wine_rows):
    X, y = wine_rows
    with pytest.warns(NothingLearnedWarning, match="nothing or next to nothing was learned") as caught:
        ranker = MetricRanker("knn", targets="all", pairs="all").fit(X, y)
    assert len(ranker.components_)  # what was found is kept
    text = str(caught[0].message)
    zero, bound = (float(number) for number in re.findall(r"is ([0-9.]+), and no W is below ([0-9.]+),", text)[0])
    assert zero == pytest.approx(1.0)
    assert bound == pytest.approx(ranker.lower_bound_, rel=1e-5)
    assert "targets=k" in text
    with pytest.warns(NothingLearnedWarning, match="C=0.01"):
        MetricRanker("auc", C=0.01).fit(X, y)
    with pytest.warns(NothingLearnedWarning, match="C=0.001"):
        MetricRanker("auc").path(X, y, [0.001, 1.0])


@pytest.mark.parametrize("scaled", [16.0, 1.0])
def test_ranking_worse_than_euclid_is_a_warning_with_numbers(scaled):
    """C has a unit: what helps pixels from 0 to 16 left three directions of those from 0 to 1, without a word."""
    X, y = load_digits(return_X_y=True)
    X, y = X[::3] * scaled / 16.0, y[::3]
    if scaled > 1.0:
        MetricRanker(tol=1e-2).fit(X, y)  # a warning would be an error
        return
    with pytest.warns(
        NothingLearnedWarning, match="worse than nothing was learned: the learned distance ranks"
    ) as caught:
        ranker = MetricRanker(tol=1e-2).fit(X, y)
    assert ranker.lower_bound_ < 0.97  # the neighborhood of W = 0 is not what it is about
    learned, euclidean = (1.0 - _precision_of_others(Z, y) for Z in (ranker.transform(X), X))
    found = re.findall(r"1 - map is ([0-9.]+) instead of ([0-9.]+)", str(caught[0].message))
    np.testing.assert_allclose(np.array(found[0], dtype=float), [learned, euclidean], atol=1e-3)  # of pixels some tie
    assert learned > euclidean


def _precision_of_others(Z, y):
    """Mean average precision of every row against all others."""
    others = ~np.eye(len(y), dtype=bool)
    scores, relevance = -euclidean_distances(Z, squared=True), y[:, None] == y
    return AP()(relevance[others].reshape(len(y), -1).astype(float), scores[others].reshape(len(y), -1))


@pytest.mark.parametrize("loss", LOSSES)
def test_what_rankings_lose_is_the_loss_of_all_that_is_relevant(wine_rows, loss):
    X, y = wine_rows
    ranker = MetricRanker(loss_of(loss, 3))
    task = ranker._task(ranker._validate(X, y, None, None, None))
    others = ~np.eye(len(y), dtype=bool)
    scores, relevance = -euclidean_distances(X, squared=True), (y[:, None] == y).astype(np.int8)
    lists = zip(scores[others].reshape(len(y), -1), relevance[others].reshape(len(y), -1), strict=True)
    judge = "map" if loss == "auc" else loss
    expected = np.mean([most_violated(judge, 1e8 * s, z, k=3).loss for s, z in lists])
    assert task.euclidean_loss == pytest.approx(expected, abs=1e-9)
    assert task.ranking_loss(9.0 * np.eye(X.shape[1])) == pytest.approx(expected, abs=1e-9)


def test_a_larger_psi_is_a_larger_metric():
    """Where all queries have as many irrelevant items, C of the one is C k/N of the other, and W is k/N as large."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 15)
    X, settings = rng.normal(size=(30, 3)) + y[:, None], {"targets": 3, "tol": 1e-5}
    loss = losses.Precision(3)
    paper = MetricRanker(loss, C=40.0, pairs="all", **settings).fit(X, y)
    top = MetricRanker(loss, C=40.0 * 3 / 15, **settings).fit(X, y)
    assert paper.objective_ * 3 / 15 == pytest.approx(top.objective_, rel=2e-5)
    squares = MetricRanker(loss, C=40.0, pairs="all", regularizer="frobenius", **settings).fit(X, y)
    scaled = MetricRanker(loss, C=40.0 * (3 / 15) ** 2, regularizer="frobenius", **settings).fit(X, y)
    assert squares.objective_ * (3 / 15) ** 2 == pytest.approx(scaled.objective_, rel=2e-5)


def test_grades_have_no_targets(wine_rows):
    X, y = wine_rows
    grades = csr_array(np.maximum(0, 2 - np.abs(y[:, None] - y)).astype(float))
    assert MetricRanker("ndcg", C=10).fit(X, relevance=grades).lower_bound_ > 0
    with pytest.raises(ValueError, match="targets: expected 'auto' or 'all' with grades"):
        MetricRanker("ndcg", targets=3).fit(X, relevance=grades)
