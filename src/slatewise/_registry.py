"""One row per estimator: what other parts of the library need to know of it before it is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Row:
    """Where an estimator lives, and how the command line calls it."""

    home: str
    """Its module."""
    command: str | None = None
    """``slatewise fit COMMAND``; None: the command line does not fit it."""


ESTIMATORS: Mapping[str, Row] = {
    "BestFeatureRanker": Row("slatewise.estimators.best_feature", "feature"),
    "CStarMarginRanker": Row("slatewise.cstar.margin_ranker", "cstar-margin"),
    "CStarRanker": Row("slatewise.cstar.ranker", "cstar"),
    "GraphMatcher": Row("slatewise.matching.graphs.matcher"),
    "LatentFeatureRanker": Row("slatewise.latent.feature_ranker", "latent-features"),
    "LatentRanker": Row("slatewise.latent.ranker", "latent"),
    "MarginRanker": Row("slatewise.metric_learning.margin_ranker", "margin"),
    "MatchingRanker": Row("slatewise.matching.slates.ranker", "matching"),
    "MetricRanker": Row("slatewise.metric_learning.ranker", "metric"),
    "SessionBlend": Row("slatewise.sessions.blend"),
    "SessionCooccurrence": Row("slatewise.sessions.cooccurrence", "cooccurrence"),
    "SessionNeighbors": Row("slatewise.sessions.neighbors", "neighbors"),
    "SessionRanker": Row("slatewise.sessions.ranker", "sessions"),
    "StructuredReranker": Row("slatewise.latent.reranker"),
}


def estimator_class(name: str) -> Any:
    """Import an estimator by its name."""
    return getattr(import_module(ESTIMATORS[name].home), name)
