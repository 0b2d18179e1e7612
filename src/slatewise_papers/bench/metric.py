"""Metric learning to rank: one pass over the queries, and whole trainings to a certified gap.

The pass is compared with one that sorts every list, in NumPy, with the same matrix products; whole trainings with
scikit-learn's NCA at its default settings, on the same rows. The largest problem runs in a process of its own, whose
peak memory is the figure. Without the public data the rows that need it are left out.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from slatewise import datasets
from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.blas import one_blas_thread
from slatewise.datasets import DatasetNotFound
from slatewise.datasets.records import LabelledSet
from slatewise.metric_learning.cone import Psd
from slatewise.metric_learning.hinge import MetricHinge
from slatewise.metric_learning.oracle import Oracle
from slatewise.metric_learning.ranker import MetricRanker
from slatewise.metric_learning.relevance import same_class
from slatewise_papers.bench._classes import classes_in_noise
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.timing import best_seconds, numbers_printed, timed

_BLOCK_ROWS = 128
_LARGE = """
import resource, sys, time
from slatewise_papers.bench._classes import classes_in_noise
from slatewise.metric_learning.ranker import MetricRanker
n, d = int(sys.argv[1]), int(sys.argv[2])
X, y = classes_in_noise(n, d)
start = time.perf_counter()
ranker = MetricRanker("auc", C=float(sys.argv[3]), tol=1e-2).fit(X, y)
seconds = time.perf_counter() - start
gap = (ranker.objective_ - ranker.lower_bound_) / ranker.objective_
unit = 1 << (30 if sys.platform == "darwin" else 20)  # bytes there, kibibytes elsewhere
print(seconds, gap, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
"""


def run(quick: bool = False) -> Table:
    """Time passes and trainings; ``quick`` takes a tenth of the rows and no large problem."""
    rows = [_one_pass(600 if quick else 6000, 30 if quick else 170), *_against_nca(quick)]
    left_out: list[str] = []
    if not quick:
        try:
            rows += _isolet()
        except DatasetNotFound:
            left_out.append("uci-isolet, not on this machine")
        rows += _large(20_000, 100, 10.0)
    return Table("metric", rows, left_out)


def _one_pass(n_rows: int, n_features: int) -> Row:
    X, y = classes_in_noise(n_rows, n_features)
    wanted, weight = same_class(y, y, np.arange(n_rows)), np.full(n_rows, 1.0 / n_rows)
    hinge = MetricHinge(X, X, wanted, weight, Oracle("auc"), Psd())
    rng = np.random.default_rng(1)
    factors = [rng.normal(size=(n_features, n_features)) / n_features for _ in range(3)]
    hinge.cut(factors[0])  # compiles
    ours = best_seconds(hinge.cut, factors)
    with one_blas_thread():
        theirs = best_seconds(lambda L: sort_everything(X, y, L), factors)
    what = f"one aggregated AUC cut, n={n_rows}, d={n_features}, one thread"
    return Row(what, ours, "sort every list (NumPy)", theirs, bar="ratio >= 2")


def sort_everything(X: Floats, y: Ints, L: Floats) -> tuple[float, Floats]:
    """Return offset and gradient of the AUC cut by sorting each query's whole list, wrong by less than 1/2 included."""
    image = X @ L.T
    squares = np.einsum("nd,nd->n", image, image)
    offset, products, columns = 0.0, np.zeros((X.shape[1], X.shape[1])), np.zeros(len(X))
    for start in range(0, len(X), _BLOCK_ROWS):
        rows = np.arange(start, min(start + _BLOCK_ROWS, len(X)))
        scores = 2.0 * image[rows] @ image.T - squares
        relevant = y[rows, None] == y
        raised = scores + 0.5 * ~relevant
        raised[np.arange(len(rows)), rows] = -np.inf  # a query does not rank itself: last, and not counted
        order = np.argsort(-raised, axis=1)[:, :-1]
        good = np.take_along_axis(relevant, order, axis=1)
        n_good, n_bad = good.sum(axis=1, keepdims=True), (~good).sum(axis=1, keepdims=True)
        bad_before, good_after = np.cumsum(~good, axis=1), n_good - np.cumsum(good, axis=1)
        sorted_weights = np.where(good, bad_before, -good_after) * (2.0 / (n_good * n_bad))
        weights = np.zeros(scores.shape)
        np.put_along_axis(weights, order, sorted_weights, axis=1)
        offset += float((np.where(good, bad_before, 0).sum(axis=1, keepdims=True) / (n_good * n_bad)).sum())
        products += X[rows].T @ (weights @ X)
        columns += weights.sum(axis=0)
    half = 0.5 * (X.T * columns) @ X - products
    return offset / len(X), (half + half.T) / len(X)


def _against_nca(quick: bool) -> list[Row]:
    nca: Any = import_module("sklearn.neighbors").NeighborhoodComponentsAnalysis
    rows: list[Row] = []
    sources: dict[str, Any] = {name: import_module("sklearn.datasets") for name in ("wine", "digits")}
    jobs: tuple[tuple[str, str, str], ...] = (
        ("wine", "auc", "ratio >= 0.33"),
        ("wine", "map", "ratio >= 0.33"),
        ("digits", "auc", "ratio >= 1"),
    )
    MetricRanker("auc").fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])  # compiles
    MetricRanker("map").fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])
    for name, loss, bar in jobs:
        X, y = getattr(sources[name], f"load_{name}")(return_X_y=True)
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        X, y = (X[::5], y[::5]) if quick else (X, y)
        repeats = range(1 if quick or name == "digits" else 3)
        theirs = best_seconds(lambda seed, X=X, y=y: nca(random_state=seed).fit(X, y), repeats)
        fits = [timed(lambda X=X, y=y, loss=loss: MetricRanker(loss, C=1.0).fit(X, y)) for _ in repeats]
        ranker, ours = min(fits, key=lambda fit: fit[1])
        gap = (ranker.objective_ - ranker.lower_bound_) / ranker.objective_
        rows.append(Row(f"train {name} {loss}, C=1, to a gap of 0.1%", ours, "NCA (scikit-learn)", theirs, bar=bar))
        rows.append(Row(f"certified gap, {name} {loss}", gap, unit="", bar="<= 0.001"))
    return rows


def _isolet() -> list[Row]:
    letters = datasets.load("uci-isolet", LabelledSet)
    X = letters.X[letters.is_train]
    X = X - X.mean(axis=0)
    directions = np.linalg.svd(X, full_matrices=False)[2][:170]
    X, y = X @ directions.T, letters.y[letters.is_train]
    ranker, seconds = timed(lambda: MetricRanker("auc", C=10.0, tol=1e-2).fit(X, y))
    gap = (ranker.objective_ - ranker.lower_bound_) / ranker.objective_
    what = f"train uci-isolet, n={len(X)}, d=170, AUC, C=10, to a gap of 1%"
    return [Row(what, seconds, bar="<= 300 s"), Row("certified gap, uci-isolet", gap, unit="", bar="<= 0.01")]


def _large(n_rows: int, n_features: int, C: float) -> list[Row]:
    """Train in a process of its own: peak memory is the process's."""
    seconds, gap, gigabytes = numbers_printed(_LARGE, n_rows, n_features, C)
    what = f"n={n_rows}, d={n_features}, AUC, C={C:g}"
    return [
        Row(f"train {what}, to a gap of 1%", seconds, bar="<= 1200 s"),
        Row(f"certified gap, {what}", gap, unit="", bar="<= 0.01"),
        Row(f"peak memory, {what}", gigabytes, unit="GB", bar="<= 1.5 GB"),
    ]
