"""Metric learning on a GPU: one pass over all queries, and a training to a gap of 1%. Part of ``bench gpu``.

Points are :func:`slatewise_papers.bench._classes.classes_in_noise`, ten classes, seed 0. A training is given as many
passes as fit into 60 s. The objective of the W it returns is then computed once more on the CPU, by the exact oracles
in float64 over all queries, which share no code with the GPU's.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.devices import require_gpu
from slatewise.core.running.executor import Executor
from slatewise.metric_learning.cone import Psd
from slatewise.metric_learning.distance import catalogue_scores, row_blocks, squares
from slatewise.metric_learning.hinge import MetricHinge
from slatewise.metric_learning.oracle import Oracle
from slatewise.metric_learning.ranker import MetricRanker
from slatewise.metric_learning.relevance import Relevance, same_class
from slatewise_papers.bench._classes import classes_in_noise
from slatewise_papers.bench._gpu import seconds
from slatewise_papers.framework.benchmark import Row

_MOST_SECONDS, _C, _GAP = 60.0, 10.0, 0.01


def rows(quick: bool) -> list[Row]:
    """Time cuts, and a training."""
    n, d = (6_000, 64) if quick else (60_000, 512)
    X, y = classes_in_noise(n, d)
    L, least = np.eye(d) / np.sqrt(2 * d), 4.0 * n * n * d / _product_rate()
    cuts = {loss: _hinge(X, y, loss) for loss in ("auc", "map")}
    taken = {loss: seconds(partial(hinge.cut, L), 3) for loss, hinge in cuts.items()}
    what = f"n={n}, d={d}"
    found = [Row(f"one {loss.upper()} cut, {what}", took, "products alone", least) for loss, took in taken.items()]
    cuts.clear()
    if find_spec("daqp") is None:
        print("left out: training, daqp is not installed", flush=True)
        return found
    return [*found, *_training(X, y, what, max(10, int(_MOST_SECONDS / taken["map"])))]


def _training(X: Floats, y: NDArray[np.int64], what: str, most_passes: int) -> list[Row]:
    start = time.perf_counter()

    def tell(found: Any) -> None:
        took = time.perf_counter() - start
        print(f"  {took:6.2f} s, pass {found.round}: {found.objective:.6f}, gap {found.gap:.4f}", flush=True)

    ranker = MetricRanker("map", C=_C, tol=_GAP, max_iter=most_passes, device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker.fit(X, y, callbacks=[tell])
    took = time.perf_counter() - start
    exact = exact_objective(ranker, X, y)
    gap = (exact - ranker.lower_bound_) / exact
    rank = len(ranker.components_)
    what = f"MAP, C={_C:g}, {what}"
    return [
        Row(f"train {what}, {ranker.n_iter_} passes, rank {rank}, to a gap of 1%", took, bar="<= 60 s"),
        Row(f"gap by the exact objective on the CPU, {what}", gap, unit="", bar="<= 0.01"),
        Row("the GPU's objective is off by, relatively", abs(exact - ranker.objective_) / exact, unit=""),
    ]


class _Queries(NamedTuple):
    points: Floats
    squares: Floats
    wanted: Relevance


def exact_objective(ranker: MetricRanker, X: Floats, y: NDArray[np.int64]) -> float:
    """Return tr(W) + C times the mean hinge of a MAP fit, by the oracles of the CPU over all queries."""
    points = (X - X.mean(axis=0)) @ ranker.components_.T
    queries = _Queries(points, squares(points), same_class(y, y, np.arange(len(y))))
    with one_blas_thread():
        sums = list(Executor.of(-1).map_blocks(_hinge_sum, queries, row_blocks(len(X), len(X))))
    return float(np.trace(ranker.metric_)) + float(ranker.C) * float(np.sum(sums)) / len(X)


def _hinge_sum(queries: _Queries, block: slice) -> float:
    scores = catalogue_scores(queries.points[block], queries.points, queries.squares)
    relevance = np.empty(scores.shape, dtype=np.int8)
    queries.wanted.fill(block, relevance)
    losses, weights = np.empty(len(scores)), np.empty(scores.size)
    offsets = np.arange(len(scores) + 1, dtype=np.int64) * scores.shape[1]
    Oracle("map").most_violated_block(scores.ravel(), relevance.ravel(), offsets, losses, weights)
    return float(losses.sum() - weights @ scores.ravel())


def _hinge(X: Floats, y: NDArray[np.int64], loss: str) -> MetricHinge:
    from slatewise.metric_learning.gpu.hinge import on_gpu

    wanted, weight = same_class(y, y, np.arange(len(y))), np.full(len(y), 1.0 / len(y))
    return on_gpu(MetricHinge(X, X, wanted, weight, Oracle(loss), Psd(), Executor.of(-1)), require_gpu("cuda"))


def _product_rate() -> float:
    """Return the operations per second of float64 matrix products."""
    torch: Any = import_module("torch")
    a = torch.randn((8192, 8192), dtype=torch.float64, device="cuda")
    return 2 * 8192**3 / seconds(lambda: a @ a, 3)


def choices() -> None:
    """Print what the parts of one tile take, and each choice of blocks."""
    torch: Any = import_module("torch")
    parts: Any = import_module("slatewise.metric_learning.gpu.interleavings")
    fused: Any = import_module("slatewise.metric_learning.gpu.fused")
    n, d = 60_000, 512
    X, y = (torch.as_tensor(part, device="cuda") for part in classes_in_noise(n, d))
    print(f"float64 products: {_product_rate() / 1e12:.1f} TFLOP/s", flush=True)
    for share, rows_at_once in ((1.0, 1118), (1.0, 2236), (0.1, 2236)):
        Z = X * share / (2 * d) ** 0.5
        scores = torch.addmm(-(Z * Z).sum(dim=1), Z[:rows_at_once], Z.T, alpha=2.0)
        relevance = (y[:rows_at_once, None] == y).to(torch.int8)
        relevance.fill_diagonal_(-1)
        lists, tables = parts.sort_lists(scores, relevance), parts.harmonic(n + 1, "cuda")
        S = torch.randn_like(scores)
        jobs: dict[str, Callable[[], object]] = {
            "scores": partial(torch.addmm, -(Z * Z).sum(dim=1), Z[:rows_at_once], Z.T, alpha=2.0),
            "S @ X": partial(torch.matmul, S, X),
            "sort_lists": partial(parts.sort_lists, scores, relevance),
            "sort of int32": partial(torch.sort, lists.key, dim=1, stable=True),
            "sort of float64": partial(torch.sort, scores, dim=1),
            "auc whole": partial(parts.most_violated, parts.LOSSES["auc"], scores, relevance, tables, fused.conquer),
            "map whole": partial(parts.most_violated, parts.LOSSES["map"], scores, relevance, tables, fused.conquer),
        }
        for block, few, warps in ((128, 64, 4), (128, 16, 4), (128, 256, 4), (64, 32, 2), (32, 16, 1), (256, 64, 8)):
            conquer = partial(fused.conquer, block=block, few=few, num_warps=warps)
            jobs[f"map x: block={block} few={few} warps={warps}"] = partial(parts.map_before, lists, tables, conquer)
        for name, job in jobs.items():
            print(f"{rows_at_once} queries, scores x {share}: {name}: {1e3 * seconds(job, 3):.2f} ms", flush=True)
        del scores, S, lists, jobs
