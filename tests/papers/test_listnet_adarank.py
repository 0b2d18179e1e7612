"""The two competitors against their definitions."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from slatewise import datasets, metrics
from slatewise_papers.learners.adarank import fit_adarank
from slatewise_papers.learners.listnet import TopOneEntropy, fit_listnet


@pytest.fixture(scope="module")
def queries():
    return datasets.make_queries(n_queries=30, random_state=1)


def slow_entropy(X, y, offsets, theta):
    total = 0.0
    for start, end in pairwise(offsets):
        wanted, scores = np.exp(y[start:end]), np.exp(X[start:end] @ theta)
        total -= (wanted / wanted.sum() * np.log(scores / scores.sum())).sum()
    return total / (len(offsets) - 1)


def test_entropy_and_gradient_equal_the_definition():
    rng = np.random.default_rng(0)
    X, y, offsets = rng.normal(size=(12, 3)), rng.integers(0, 3, 12).astype(float), np.array([0, 5, 6, 12])
    theta = rng.normal(size=3)
    value, gradient = TopOneEntropy(X, y, offsets).value_and_grad(theta)
    assert value == pytest.approx(slow_entropy(X, y, offsets, theta))
    np.testing.assert_allclose(
        gradient, approx_fprime(theta, lambda t: slow_entropy(X, y, offsets, t), 1e-7), atol=1e-5
    )


def test_without_early_stopping_it_ends_at_the_minimum():
    rng = np.random.default_rng(0)
    X, y, offsets = rng.normal(size=(30, 3)), rng.integers(0, 3, 30).astype(float), np.arange(0, 31, 10)
    loss = TopOneEntropy(X, y, offsets)
    found = fit_listnet(loss, lambda theta: -loss.value_and_grad(theta)[0])
    judge = minimize(lambda t: slow_entropy(X, y, offsets, t), np.zeros(3))
    assert loss.value_and_grad(found)[0] == pytest.approx(judge.fun, abs=1e-6)


def test_the_best_iterate_on_held_out_lists_is_kept(queries):
    loss = TopOneEntropy(queries.X, queries.y, np.flatnonzero(np.diff(queries.qid, prepend=-1, append=-2)))
    seen = []

    def quality(theta):
        seen.append((float(np.sin(len(seen))), theta.copy()))
        return seen[-1][0]

    np.testing.assert_array_equal(fit_listnet(loss, quality), max(seen, key=lambda pair: pair[0])[1])


def test_large_scores_stay_finite():
    value, gradient = TopOneEntropy(np.eye(2) * 1e4, np.array([0.0, 1e3]), np.array([0, 2])).value_and_grad(np.ones(2))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def slow_adarank(X, y, qid, measure, rounds):
    lists = np.unique(qid)

    def per_list(scores):
        return np.array([measure(y[qid == q], scores[qid == q]) for q in lists])

    share, theta = np.full(len(lists), 1 / len(lists)), np.zeros(X.shape[1])
    for _ in range(rounds):
        values = {(f, s): per_list(s * X[:, f]) for f in range(X.shape[1]) for s in (1.0, -1.0)}
        f, s = max(values, key=lambda key: share @ values[key])
        theta[f] += s * 0.5 * np.log(share @ (1 + values[f, s]) / (share @ (1 - values[f, s])))
        share = np.exp(-per_list(X @ theta))
        share /= share.sum()
    return theta


@pytest.mark.parametrize("measure", [metrics.NDCG(10), metrics.AP(empty=1)], ids=str)
def test_adarank_equals_its_definition(queries, measure):
    X, y, qid = queries.X, queries.y, queries.qid
    last = iter(range(100))
    found = fit_adarank(X, lambda s: measure.per_list(y, s, qid), lambda theta: next(last), max_rounds=5)
    np.testing.assert_allclose(found, slow_adarank(X, y, qid, measure, 5))


def test_adarank_keeps_the_best_round_and_stops_waiting(queries):
    measure = metrics.NDCG(10)
    seen = []

    def quality(theta):
        seen.append(theta.copy())
        return -abs(len(seen) - 3)

    found = fit_adarank(
        queries.X, lambda s: measure.per_list(queries.y, s, queries.qid), quality, max_rounds=50, patience=4
    )
    np.testing.assert_array_equal(found, seen[2])
    assert len(seen) == 7
