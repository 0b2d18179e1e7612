"""One row per estimator: what other parts of the library need to know of it before it is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

Data = Literal["lists", "label sets", "examples", "pairs", "interactions", "feature pairs", "sessions", "graphs"]
"""What ``fit`` reads: rows of lists with a qid, rows with label sets, rows with a class or labels, pairs of ids, users
and their items, rows with an item, sessions, or graphs with a feature vector per edge."""
Service = Literal["documents", "labels", "examples", "items"]
"""What the service answers: the order of the documents of a request, labels, examples of the catalog, or items."""


@dataclass(frozen=True)
class Row:
    """Where an estimator lives, and what it is to the command line, the service and a cluster."""

    home: str
    """Its module."""
    data: Data
    command: str | None = None
    """``slatewise fit COMMAND``; None: the command line does not fit it."""
    service: Service | None = None
    """None: the service does not load it."""
    takes_source: bool = False
    """Whether ``fit`` takes files that stay where they are, and ``slatewise.cluster`` therefore trains it."""


ESTIMATORS: Mapping[str, Row] = {
    "BestFeatureRanker": Row("slatewise.estimators.best_feature", "lists", "feature", "documents"),
    "CStarMarginRanker": Row("slatewise.cstar.margin_ranker", "label sets", "cstar-margin", "labels", True),
    "CStarRanker": Row("slatewise.cstar.ranker", "label sets", "cstar", "labels", True),
    "CollaborativeRanker": Row("slatewise.collaborative.ranker", "interactions", "collaborative", "items"),
    "GraphMatcher": Row("slatewise.matching.graphs.matcher", "graphs"),
    "LatentFeatureRanker": Row("slatewise.latent.feature_ranker", "feature pairs", "latent-features", "items"),
    "LatentRanker": Row("slatewise.latent.ranker", "pairs", "latent", "items"),
    "MarginRanker": Row("slatewise.metric_learning.margin_ranker", "lists", "margin", "documents", True),
    "MatchingRanker": Row("slatewise.matching.slates.ranker", "lists", "matching", "documents", True),
    "MetricRanker": Row("slatewise.metric_learning.ranker", "examples", "metric", "examples", True),
    "SessionBlend": Row("slatewise.sessions.blend", "sessions"),  # in files of SessionRanker only
    "SessionCooccurrence": Row("slatewise.sessions.cooccurrence", "sessions", "cooccurrence", "items"),
    "SessionNeighbors": Row("slatewise.sessions.neighbors", "sessions", "neighbors", "items"),
    "SessionRanker": Row("slatewise.sessions.ranker", "sessions", "sessions", "items"),
    "StructuredReranker": Row("slatewise.latent.reranker", "pairs"),  # its base is not in its file
}


def estimator_class(name: str) -> Any:
    """Import an estimator by its name."""
    return getattr(import_module(ESTIMATORS[name].home), name)
