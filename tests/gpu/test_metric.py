"""Metric learning on a GPU: the kernel against plain torch, cuts and fits against the CPU and against themselves."""

import numpy as np
import pytest

from slatewise import MetricRanker
from slatewise.metric_learning.cone import Orthant, Psd
from slatewise.metric_learning.hinge import MetricHinge
from slatewise.metric_learning.oracle import Oracle
from slatewise.metric_learning.relevance import same_class


def both_ways(device, count, n, spread, seed, **choices):
    import torch

    from slatewise.metric_learning.gpu.fused import conquer
    from slatewise.metric_learning.gpu.interleavings import LOSSES, harmonic, most_violated, try_all

    rng = np.random.default_rng(seed)
    scores = torch.as_tensor(spread * rng.normal(size=(count, n)), device=device)
    shares = (0.05, 0.8, 0.15) if seed % 2 else (0.05, 0.15, 0.8)
    relevance = torch.as_tensor(rng.choice([-1, 0, 1], size=(count, n), p=shares).astype(np.int8), device=device)
    tables = harmonic(n + 1, device)
    for method in (lambda *lists: conquer(*lists, **choices), try_all):
        yield most_violated(LOSSES["map"], scores, relevance, tables, method)


@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0])
@pytest.mark.parametrize(("n", "few"), [(1, 3), (2, 3), (7, 1), (40, 3), (65, 64)])
def test_conquer_equals_its_twin(device, n, few, spread):
    for seed in range(2):
        (lost, weights), (expected, its_weights) = both_ways(device, 3, n, spread, seed, block=16, few=few)
        np.testing.assert_array_equal(lost.cpu(), expected.cpu())
        np.testing.assert_array_equal(weights.cpu(), its_weights.cpu())


@pytest.mark.parametrize("spread", [0.01, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("choices", [{}, {"block": 32, "few": 16, "num_warps": 1}, {"few": 1}, {"few": 10_000}])
def test_conquer_equals_its_twin_at_size(gpu, spread, choices):
    for seed in range(2):
        (lost, weights), (expected, its_weights) = both_ways(gpu, 20, 3_000, spread, seed, **choices)
        np.testing.assert_allclose(lost.cpu(), expected.cpu(), rtol=1e-12)
        np.testing.assert_allclose(weights.cpu(), its_weights.cpu(), rtol=0, atol=1e-12)


def problem(n, d, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(n_classes, d))[y], y


def hinges(gpu, X, y, loss, cone):
    from slatewise.metric_learning.gpu.hinge import on_gpu

    weight = np.random.default_rng(1).uniform(size=len(y))
    wanted = same_class(y, y, np.arange(len(y)))
    here = MetricHinge(X, X, wanted, weight / weight.sum(), Oracle(loss, 3), cone)
    return here, on_gpu(here, gpu)


@pytest.mark.parametrize("loss", ["auc", "map", "mrr", "precision", "knn", "ndcg"])
@pytest.mark.parametrize("cone", [Psd(), Orthant()])
def test_a_cut_equals_the_cpus(gpu, loss, cone):
    X, y = problem(1_500, 12)
    here, there = hinges(gpu, X, y, loss, cone)
    for size in (0.0, 0.1, 1.0):
        factor = cone.start(size * cone.identity(12))
        (offset, gradient), (its_offset, its_gradient) = here.cut(factor), there.cut(factor)
        W = cone.point(factor)
        assert its_offset + np.vdot(its_gradient, W) == pytest.approx(offset + np.vdot(gradient, W), rel=1e-7)
        if size > 0.0:  # at 0 all rankings are most violated that lose all
            np.testing.assert_allclose(its_gradient, gradient, rtol=0, atol=1e-6 * np.abs(gradient).max())


def test_tiles_give_the_same_cut(gpu):
    X, y = problem(700, 8)
    _, whole = hinges(gpu, X, y, "map", Psd())
    _, parted = hinges(gpu, X, y, "map", Psd())
    parted._tiles.at_once = 37
    for one, other in zip(whole.cut(np.eye(8)), parted.cut(np.eye(8)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)


def test_a_tile_that_does_not_fit_is_halved(gpu):
    import torch

    X, y = problem(3_000, 8)
    _, hinge = hinges(gpu, X, y, "auc", Psd())
    expected = hinge.cut(np.eye(8))
    torch.cuda.empty_cache()
    room = torch.cuda.memory_reserved(gpu) + (300 << 20)
    torch.cuda.set_per_process_memory_fraction(room / torch.cuda.mem_get_info(gpu)[1], gpu)
    try:
        found = hinge.cut(np.eye(8))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, gpu)
    assert hinge._tiles.at_once < 3_000
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("regularizer", ["trace", "frobenius", "diagonal"])
@pytest.mark.parametrize("loss", ["auc", "map", "ndcg"])
def test_fits_end_at_the_same_optimum_and_at_the_same_bits(gpu, loss, regularizer):
    pytest.importorskip("daqp")
    X, y = problem(400, 6)
    settings = {"loss": loss, "C": 20.0, "regularizer": regularizer}
    here = MetricRanker(**settings).fit(X, y)
    there, again = (MetricRanker(**settings, device="cuda").fit(X, y) for _ in range(2))
    assert there.lower_bound_ <= here.objective_ * (1 + 1e-9)
    assert here.lower_bound_ <= there.objective_ * (1 + 1e-9)
    assert there.objective_ - there.lower_bound_ <= 1e-3 * there.objective_
    np.testing.assert_array_equal(there.components_, again.components_)


def test_a_file_is_of_no_device(gpu, tmp_path):
    import slatewise

    pytest.importorskip("daqp")
    X, y = problem(100, 4)
    ranker = MetricRanker(C=10.0, device="cuda").fit(X, y)
    ranker.save(tmp_path / "metric.safetensors")
    loaded = slatewise.load(tmp_path / "metric.safetensors")
    assert loaded.device is None
    np.testing.assert_array_equal(loaded.rank(X[:5], 3).ids, ranker.rank(X[:5], 3).ids)
