"""The benchmark's rival computes the same thing: a ratio of times means nothing otherwise."""

import numpy as np
import pytest

from slatewise import MetricRanker
from slatewise.metric_learning.cone import Psd
from slatewise.metric_learning.hinge import MetricHinge
from slatewise.metric_learning.oracle import Oracle
from slatewise.metric_learning.relevance import same_class
from slatewise_papers.bench.gpu_metric import exact_objective
from slatewise_papers.bench.metric import classes_in_noise, sort_everything


def test_sorting_everything_gives_the_same_cut() -> None:
    X, y = classes_in_noise(150, 6, n_classes=4)
    L = np.random.default_rng(0).normal(size=(6, 6)) / 3
    hinge = MetricHinge(X, X, same_class(y, y, np.arange(150)), np.full(150, 1 / 150), Oracle("auc"), Psd())
    offset, gradient = hinge.cut(L)
    slow_offset, slow_gradient = sort_everything(X, y, L)
    assert offset == pytest.approx(slow_offset)
    np.testing.assert_allclose(gradient, slow_gradient, atol=1e-12)


def test_the_objective_computed_once_more_is_the_fits():
    X, y = classes_in_noise(120, 5, n_classes=3)
    ranker = MetricRanker("map", C=50.0, tol=1e-2).fit(X, y)
    assert exact_objective(ranker, X, y) == pytest.approx(ranker.objective_, rel=1e-9)
