"""The cut of a linear ranker's hinge: its value by all rankings, its slope by differences, its sum by blocks."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from tests.shipped import EXECUTORS

from slatewise import metrics
from slatewise.metric_learning import margin_hinge
from slatewise.metric_learning.margin_hinge import MarginHinge
from slatewise.metric_learning.oracle import Oracle

MEASURES = {"map": metrics.AP(), "mrr": metrics.RR(), "precision": metrics.Precision(2), "auc": metrics.AUC()}


def made(loss, n_lists=6, size=5, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    relevance = np.tile([1, 0, 1, 0, 0], n_lists).astype(np.int8)[: n_lists * size]
    X = rng.normal(size=(n_lists * size, n_features)) + relevance[:, None] * 0.3
    return MarginHinge(X, relevance, np.arange(0, len(X) + 1, size), Oracle(loss, 2))


def psi(scores, relevance, order):
    """The score of a ranking: mean over pairs of +-(s_i - s_j)."""
    place = np.argsort(order)
    relevant, others = np.flatnonzero(relevance), np.flatnonzero(relevance == 0)
    return np.mean([(scores[i] - scores[j]) * (1 if place[i] < place[j] else -1) for i in relevant for j in others])


@pytest.mark.parametrize("loss", ["map", "mrr", "auc"])
def test_value_is_the_largest_over_all_rankings(loss):
    hinge, w = made(loss), np.array([0.5, -0.2, 0.8])
    total = 0.0
    for q in range(hinge.n_lists):
        rows = slice(hinge.offsets[q], hinge.offsets[q + 1])
        scores, relevance = hinge.X[rows] @ w, hinge.relevance[rows]
        ideal = psi(scores, relevance, np.argsort(-relevance, kind="stable"))
        total += max(
            1 - MEASURES[loss]([relevance], [-np.argsort(order)]) + psi(scores, relevance, order) - ideal
            for order in permutations(range(5))
        )
    offset, gradient = hinge.cut(w)
    assert offset + gradient @ w == pytest.approx(total / hinge.n_lists)


@pytest.mark.parametrize("oracle", [Oracle("map"), Oracle("auc"), Oracle("ordered_pairs")])
def test_gradient_by_differences(oracle):
    hinge = made("map", n_lists=40)
    if oracle == Oracle("ordered_pairs"):
        hinge = replace(hinge, relevance=np.random.default_rng(1).integers(0, 4, len(hinge.X)))
    hinge = replace(hinge, oracle=oracle)
    w, step = np.array([0.3, 0.1, -0.4]), 1e-7

    def risk(w):
        offset, gradient = hinge.cut(w)
        return offset + gradient @ w

    gradient = hinge.cut(w)[1]
    for i, unit in enumerate(np.eye(3)):
        assert gradient[i] == pytest.approx((risk(w + step * unit) - risk(w - step * unit)) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("loss", list(MEASURES))
def test_ranking_loss_is_the_measure(loss):
    hinge, w = made(loss, n_lists=30, seed=2), np.array([0.2, 0.9, -0.5])
    qid = np.repeat(np.arange(30), 5)
    assert hinge.ranking_loss(w) == pytest.approx(1 - MEASURES[loss](hinge.relevance, hinge.X @ w, qid))


@pytest.mark.parametrize("loss", list(MEASURES))
def test_ranking_loss_does_not_see_where_a_list_lies(loss):
    """Lists far from each other and narrow inside: only the inside is ranked."""
    hinge, w = made(loss, n_lists=30, seed=2), np.array([0.2, 0.9, -0.5])
    place = np.repeat(np.random.default_rng(3).integers(-4, 5, (30, 3)), 5, axis=0)
    moved = replace(hinge, X=1e-4 * hinge.X + 1e5 * place)
    assert moved.ranking_loss(w) == pytest.approx(hinge.ranking_loss(w))
    assert moved.spread == pytest.approx(1e-8 * hinge.spread, rel=1e-5)


def test_equal_rows_have_the_worst_loss_and_no_spread():
    hinge, w = made("auc"), np.array([0.2, 0.9, -0.5])
    flat = replace(hinge, X=np.full_like(hinge.X, 0.1))
    assert flat.spread == 1.0
    assert flat.ranking_loss(w) == 1.0


def test_blocks_and_threads_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(margin_hinge, "BLOCK_BYTES", 500)
    hinge, w = made("map", n_lists=50), np.array([0.5, -0.2, 0.8])
    one, *others = (replace(hinge, executor=executor).cut(w) for executor in EXECUTORS)
    for other in others:
        assert one[0] == other[0]
        assert one[1].tobytes() == other[1].tobytes()
    monkeypatch.undo()
    whole = made("map", n_lists=50).cut(w)
    np.testing.assert_allclose(one[1], whole[1])


def test_parts_add_up():
    hinge, w = made("auc", n_lists=10), np.array([0.5, -0.2, 0.8])
    odd, even = hinge.part(np.arange(1, 10, 2)), hinge.part(np.arange(0, 10, 2))
    np.testing.assert_allclose((odd.cut(w)[1] + even.cut(w)[1]) / 2, hinge.cut(w)[1])
    centred = hinge.X - np.repeat(hinge.X.reshape(10, 5, 3).mean(axis=1), 5, axis=0)
    assert hinge.spread == pytest.approx((centred**2).sum() / len(centred))
