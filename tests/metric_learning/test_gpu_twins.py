"""The plain torch of a GPU's hinge, on CPU tensors, against the Numba oracles; its kernel is tested in tests/gpu."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.metric_bruteforce import planes, relevant_by_class, risk

from slatewise import MetricRanker
from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.core.running.executor import Executor
from slatewise.metric_learning.cone import Orthant, Psd
from slatewise.metric_learning.hinge import MetricHinge
from slatewise.metric_learning.oracle import Oracle
from slatewise.metric_learning.relevance import listed, same_class
from slatewise.metric_learning.solver import MetricProblem, Regularizer, fit_metric

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'slatewise[gpu]'")
LOSSES = ["auc", "precision", "map", "mrr", "ndcg", "knn"]
CPU = torch.device("cpu")


def twin(hinge):
    from slatewise.metric_learning.gpu.hinge import on_device

    return on_device(hinge, CPU)


def problem(n, d=4, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), np.arange(n_classes), rng.integers(0, n_classes, n - 2 * n_classes)])
    return rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(n_classes, d))[y], y


def classes_hinge(X, y, loss, cone, scale=None):
    weight = np.arange(1.0, len(y) + 1.0)
    wanted = same_class(y, y, np.arange(len(y)))
    return MetricHinge(X, X, wanted, weight / weight.sum(), Oracle(loss, 3), cone, Executor(2), scale)


@pytest.mark.parametrize("loss", ["auc", "map"])
@pytest.mark.parametrize("spread", [0.01, 0.3, 10.0])
def test_rankings_equal_those_of_the_numba_oracles(loss, spread):
    from slatewise.metric_learning.gpu import interleavings

    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 10, 47):
        scores = spread * rng.normal(size=(30, n))
        relevance = rng.choice([-1, 0, 1], size=(30, n), p=[0.2, 0.5, 0.3]).astype(np.int8)
        losses, weights = np.empty(30), np.empty(30 * n)
        Oracle(loss).most_violated_block(scores.ravel(), relevance.ravel(), np.arange(31) * n, losses, weights)
        lost, its_weights = interleavings.most_violated(
            interleavings.LOSSES[loss],
            torch.as_tensor(scores),
            torch.as_tensor(relevance),
            interleavings.harmonic(n + 1, CPU),
            interleavings.try_all,
        )
        np.testing.assert_allclose(lost, losses, rtol=0, atol=1e-13)
        np.testing.assert_allclose(its_weights, weights.reshape(30, n), rtol=0, atol=1e-13)


@pytest.mark.parametrize("loss", ["auc", "map"])
def test_equal_scores_lose_what_the_oracle_says(loss):
    """Rankings may differ where scores tie, the hinge may not."""
    from slatewise.metric_learning.gpu import interleavings

    rng = np.random.default_rng(1)
    scores = rng.integers(0, 3, size=(40, 12)) * 0.25
    relevance = rng.integers(0, 2, size=(40, 12)).astype(np.int8)
    losses, weights = np.empty(40), np.empty(480)
    Oracle(loss).most_violated_block(scores.ravel(), relevance.ravel(), np.arange(41) * 12, losses, weights)
    lost, its_weights = interleavings.most_violated(
        interleavings.LOSSES[loss],
        torch.as_tensor(scores),
        torch.as_tensor(relevance),
        interleavings.harmonic(13, CPU),
        interleavings.try_all,
    )
    expected = losses - (weights.reshape(40, 12) * scores).sum(axis=1)
    np.testing.assert_allclose(lost.numpy() - (its_weights.numpy() * scores).sum(axis=1), expected, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("cone", [Psd(), Orthant()])
def test_a_cut_equals_the_numba_engines(loss, cone):
    X, y = problem(60)
    hinge = classes_hinge(X, y, loss, cone, None if loss in ("auc", "map") else np.linspace(1.0, 3.0, 60))
    factor = cone.start(cone.identity(4) * np.linspace(0.2, 1.0, 4))
    (offset, gradient), (its_offset, its_gradient) = hinge.cut(factor), twin(hinge).cut(factor)
    assert its_offset == pytest.approx(offset, rel=1e-12)
    np.testing.assert_allclose(its_gradient, gradient, rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("cone", [Psd(), Orthant()])
def test_what_rankings_lose_equals_the_numba_engines(loss, cone):
    X, y = problem(60)
    hinge = classes_hinge(X, y, loss, cone)
    factor = cone.start(cone.identity(4) * np.linspace(0.2, 1.0, 4))
    its = twin(hinge)
    for judge in (Oracle(loss, 3), Oracle("map")):
        expected = hinge.ranking_loss(factor, judge)
        assert 0.0 < expected < 1.0
        assert its.ranking_loss(factor, judge) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", ["auc", "map"])
def test_a_cut_touches_the_hinge_of_all_rankings(loss):
    rng = np.random.default_rng(3)
    X, y, L = rng.normal(size=(6, 3)), np.array([0, 0, 1, 1, 0, 1]), 0.6 * rng.normal(size=(3, 3))
    judge = planes(X, X, relevant_by_class(y), loss, 2)
    wanted = same_class(y, y, np.arange(6))
    hinge = twin(MetricHinge(X, X, wanted, np.full(6, 1 / 6), Oracle(loss, 2), Psd()))
    for factor in (L, 0.0 * L):
        offset, gradient = hinge.cut(factor)
        assert offset + np.vdot(gradient, factor.T @ factor) == pytest.approx(risk(judge, factor.T @ factor))


def test_tiles_sparse_points_and_lists_give_the_same_cut(monkeypatch):
    from slatewise.metric_learning.gpu import hinge as module

    rng = np.random.default_rng(2)
    X, Q = np.where(rng.uniform(size=(40, 5)) < 0.5, rng.normal(size=(40, 5)), 0.0), rng.normal(size=(23, 5))
    lists = csr_array((rng.uniform(size=(23, 40)) < 0.4).astype(np.int8))
    wanted = listed(lists, 0, np.full(23, -1))
    hinge = MetricHinge(csr_array(Q), csr_array(X), wanted, np.full(23, 1 / 23), Oracle("map"), Psd())
    expected, factor = hinge.cut(np.eye(5)), np.eye(5)
    monkeypatch.setattr(module, "MOST_TILE", 8 * 40 * 5)  # five queries in a tile, and no room for all the relevance
    parted = twin(hinge)
    found = parted.cut(factor)
    assert parted._sent.relevance is None
    assert found[0] == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-12)


def test_a_tile_that_does_not_fit_is_halved_and_one_query_is_the_least():
    from slatewise.metric_learning.gpu.hinge import Tiles

    def work(room, tile):
        if tile.stop - tile.start > room:
            raise torch.OutOfMemoryError("too large")
        return tile.start, tile.stop

    assert list(Tiles(10, 8).over(lambda tile: work(3, tile))) == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]
    with pytest.raises(MemoryError, match="device: expected memory for one query against all items, found too"):
        list(Tiles(10, 8).over(lambda tile: work(0, tile)))


@pytest.mark.parametrize("loss", ["auc", "map"])
def test_a_fit_ends_at_the_same_optimum(loss):
    X, y = problem(120, n_classes=2)
    hinge = classes_hinge(X, y, loss, Psd())
    one, other = (fit_metric(MetricProblem(h, Psd(), Regularizer(1.0, 0.0), 20.0)) for h in (hinge, twin(hinge)))
    assert other.converged
    assert other.objective == pytest.approx(one.objective, rel=2e-3)
    assert other.lower_bound <= one.objective * (1 + 1e-9)


def test_a_gap_below_the_rounding_of_scores_is_not_trusted(monkeypatch):
    from slatewise.metric_learning.gpu import hinge as module

    X, y = problem(60)
    fits = {loss: twin(classes_hinge(X, y, loss, Psd())) for loss in ("auc", "ndcg")}
    assert fits["auc"].rounding == 2.0**-26
    assert fits["ndcg"].rounding == np.finfo(np.float64).eps  # its scores are not rounded
    monkeypatch.setattr(module, "ROUNDING", 1.0)
    with pytest.warns(ConvergenceWarning, match="distances are lost in rounding"):
        fit_metric(MetricProblem(fits["auc"], Psd(), Regularizer(1.0, 0.0), 20.0))


def test_without_a_gpu_the_error_says_so_before_any_work():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ValueError, match=r"device: expected a GPU that torch .* can use, found none"):
        MetricRanker(device="cuda").fit("no points", "no labels")
