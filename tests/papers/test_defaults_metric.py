"""MetricRanker with default settings, on a part of one data set."""

import numpy as np
import pytest

from slatewise_papers import reproduce
from slatewise_papers.defaults import metric as defaults_metric
from slatewise_papers.mlr.data import Fold


def test_every_loss_has_an_error_beside_the_plain_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults_metric, "DATA", ("iris",))
    table = reproduce("defaults", "metric", quick=True)
    errors = {row.name.removeprefix("iris: "): row.measured["error"] for row in table.rows}
    losses = [f"MetricRanker({loss})" for loss in ("'auc'", "Precision(k=3)", "'map'", "'mrr'", "NDCG(k=3)", "'knn'")]
    assert list(errors) == ["Euclidean", "NCA (scikit-learn)", *losses, "MetricRanker('auc'), C chosen"]
    assert all(0 <= error <= 25 for error in errors.values())


def test_where_nothing_is_learned_all_rows_are_in_one_place() -> None:
    fold = Fold(np.eye(4), np.array([0, 0, 0, 1]), np.eye(4), np.array([0, 1, 1, 0]))
    assert defaults_metric.error(fold, lambda rows: rows[:, :0]) == 50.0
