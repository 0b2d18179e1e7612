import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.metric_bruteforce import planes, relevant_by_class, risk
from tests.shipped import EXECUTORS

from slatewise.core.running.executor import ONE_THREAD
from slatewise.metric_learning import distance
from slatewise.metric_learning.cone import Orthant, Psd
from slatewise.metric_learning.hinge import MetricHinge
from slatewise.metric_learning.oracle import Oracle
from slatewise.metric_learning.relevance import informative, listed, same_class, shared_label

LOSSES = ["auc", "precision", "map", "mrr", "ndcg", "knn"]


def classes_hinge(X, y, loss="auc", k=2, cone=None, weight=None, executor=ONE_THREAD):
    numbers = np.asarray(y, dtype=np.int64)
    weight = np.full(len(y), 1.0 / len(y)) if weight is None else weight
    relevance = same_class(numbers, numbers, np.arange(len(y)))
    return MetricHinge(X, X, relevance, weight, Oracle(loss, k), cone or Psd(), executor)


def random_problem(seed, n=6, d=3):
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0, 0, 1, 1], rng.integers(0, 2, n - 4)])
    return rng.normal(size=(n, d)), y, rng.normal(size=(d, d)) * rng.uniform(0.1, 1.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(8))
def test_the_cut_touches_the_hinge_of_all_rankings(loss, seed):
    X, y, L = random_problem(seed)
    judge = planes(X, X, relevant_by_class(y), loss, 2)
    offset, gradient = classes_hinge(X, y, loss).cut(L)
    assert offset + np.vdot(gradient, L.T @ L) == pytest.approx(risk(judge, L.T @ L))
    np.testing.assert_allclose(gradient, gradient.T, atol=1e-14)
    for other in range(20):
        M = np.random.default_rng((seed, other)).normal(size=(3, 3))
        assert offset + np.vdot(gradient, M.T @ M) <= risk(judge, M.T @ M) + 1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_the_gradient_is_the_slope(loss):
    X, y, L = random_problem(3, n=30, d=4)
    hinge, W = classes_hinge(X, y, loss, k=3, cone=Psd()), L @ L.T + 0.1 * np.eye(4)
    L = np.linalg.cholesky(W).T
    direction = np.random.default_rng(0).normal(size=(4, 4))
    direction = direction + direction.T

    def value(step):
        factor = np.linalg.cholesky(W + step * direction).T
        offset, gradient = hinge.cut(factor)
        return offset + np.vdot(gradient, factor.T @ factor)

    slope = np.vdot(hinge.cut(L)[1], direction)
    assert (value(1e-7) - value(-1e-7)) / 2e-7 == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_queries_apart_from_items():
    rng = np.random.default_rng(0)
    Q, X, L = rng.normal(size=(4, 2)), rng.normal(size=(5, 2)), rng.normal(size=(2, 2))
    wanted = np.array([[1, 0, 0, 1, -1], [0, 1, 0, 0, 0], [1, 1, 0, 0, 1], [0, -1, 1, 0, 1]])
    rows, columns = np.nonzero(wanted >= 0)
    lists = csr_array((wanted[rows, columns].astype(np.int8), (rows, columns)), shape=wanted.shape)
    hinge = MetricHinge(Q, X, listed(lists, -1, np.full(4, -1)), np.full(4, 0.25), Oracle("map"), Psd())
    offset, gradient = hinge.cut(L)
    judge = planes(Q, X, wanted, "map", 3)
    assert offset + np.vdot(gradient, L.T @ L) == pytest.approx(risk(judge, L.T @ L))


def test_weights_are_shares():
    X, y, L = random_problem(1)
    weight = np.arange(1.0, 7.0) / 21.0
    judge = planes(X, X, relevant_by_class(y), "auc", 3)
    each = [risk([one], L.T @ L) for one in judge]
    offset, gradient = classes_hinge(X, y, weight=weight).cut(L)
    assert offset + np.vdot(gradient, L.T @ L) == pytest.approx(weight @ each)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_diagonal_metric_sees_the_diagonal(loss):
    X, y, _ = random_problem(2, n=20, d=4)
    root = np.array([1.0, 0.5, 0.0, 2.0])
    offset, gradient = classes_hinge(X, y, loss).cut(np.diag(root))
    flat_offset, flat = classes_hinge(X, y, loss, cone=Orthant()).cut(root)
    assert flat_offset == pytest.approx(offset)
    np.testing.assert_allclose(flat, np.diag(gradient), atol=1e-12)


@pytest.mark.parametrize("cone", [Psd(), Orthant()])
def test_sparse_points_give_the_same_cut(cone):
    X, y, _ = random_problem(4, n=25, d=5)
    X[np.abs(X) < 0.8] = 0.0
    factor = cone.start(cone.identity(5) * 0.7)
    offset, gradient = classes_hinge(X, y, cone=cone).cut(factor)
    sparse_offset, sparse_gradient = classes_hinge(csr_array(X), y, cone=cone).cut(factor)
    assert sparse_offset == pytest.approx(offset)
    np.testing.assert_allclose(sparse_gradient, gradient, atol=1e-12)


def test_same_bits_with_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(distance, "BLOCK_BYTES", 4000)
    X, y, L = random_problem(5, n=70, d=4)
    one, *others = (classes_hinge(X, y, "map", executor=executor).cut(L) for executor in EXECUTORS)
    for other in others:
        assert one[0] == other[0]
        np.testing.assert_array_equal(one[1], other[1])


def test_blocks_do_not_change_the_hinge(monkeypatch):
    X, y, L = random_problem(6, n=50, d=3)
    offset, gradient = classes_hinge(X, y).cut(L)
    monkeypatch.setattr(distance, "BLOCK_BYTES", 1000)
    cut_offset, cut_gradient = classes_hinge(X, y).cut(L)
    assert cut_offset == pytest.approx(offset)
    np.testing.assert_allclose(cut_gradient, gradient, atol=1e-12)


@given(st.integers(0, 10_000), st.sampled_from(LOSSES))
def test_a_shift_of_all_points_changes_nothing(seed, loss):
    X, y, L = random_problem(seed, n=8)
    offset, gradient = classes_hinge(X, y, loss).cut(L)
    moved_offset, moved = classes_hinge(X + np.array([1.0, -2.0, 4.0]), y, loss).cut(L)
    value, other = offset + np.vdot(gradient, L.T @ L), moved_offset + np.vdot(moved, L.T @ L)
    assert other == pytest.approx(value, abs=1e-9)


def test_shared_labels_are_classes_where_each_row_has_one():
    y = np.array([0, 1, 2, 1, 0, 0])
    labels = csr_array(np.eye(3, dtype=np.int32)[y])
    by_class, by_label = same_class(y, y, np.arange(6)), shared_label(labels, labels, np.arange(6))
    for block in (slice(0, 6), slice(2, 5)):
        one, other = (np.empty((block.stop - block.start, 6), dtype=np.int8) for _ in range(2))
        by_class.fill(block, one)
        by_label.fill(block, other)
        np.testing.assert_array_equal(one, relevant_by_class(y)[block])
        np.testing.assert_array_equal(other, one)
    chosen = np.array([4, 1])
    one, other = np.empty((2, 6), dtype=np.int8), np.empty((2, 6), dtype=np.int8)
    by_class.some(chosen).fill(slice(0, 2), one)
    by_label.some(chosen).fill(slice(0, 2), other)
    np.testing.assert_array_equal(one, relevant_by_class(y)[chosen])
    np.testing.assert_array_equal(other, one)


def test_queries_whose_items_are_all_alike_teach_nothing():
    y = np.array([0, 0, 1, 2, 2])
    assert informative(same_class(y, y, np.arange(5))).tolist() == [True, True, False, True, True]
    assert not informative(same_class(y * 0, y * 0, np.arange(5))).any()
    none = listed(csr_array((2, 3), dtype=np.int8), -1, np.full(2, -1))
    assert not informative(none).any()
