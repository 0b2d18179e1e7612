"""Learn to rank whole lists whose items interact, trained directly for the ranking measure.

Names load on first use, so ``import slatewise`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from slatewise._version import __version__

if TYPE_CHECKING:
    from slatewise import data, datasets, inference, losses, metrics
    from slatewise.estimators.best_feature import BestFeatureRanker
    from slatewise.estimators.cstar import CStarRanker
    from slatewise.estimators.graph_matcher import GraphMatcher
    from slatewise.estimators.latent import LatentRanker
    from slatewise.estimators.margin import MarginRanker
    from slatewise.estimators.matching import MatchingRanker
    from slatewise.estimators.metric import MetricRanker
    from slatewise.estimators.saving import load
    from slatewise.estimators.structured_reranker import StructuredReranker

__all__ = [
    "BestFeatureRanker",
    "CStarRanker",
    "GraphMatcher",
    "LatentRanker",
    "MarginRanker",
    "MatchingRanker",
    "MetricRanker",
    "StructuredReranker",
    "__version__",
    "data",
    "datasets",
    "inference",
    "load",
    "losses",
    "metrics",
]

_MODULES = frozenset({"data", "datasets", "inference", "losses", "metrics"})
_HOMES = {
    "BestFeatureRanker": "slatewise.estimators.best_feature",
    "CStarRanker": "slatewise.estimators.cstar",
    "GraphMatcher": "slatewise.estimators.graph_matcher",
    "LatentRanker": "slatewise.estimators.latent",
    "MarginRanker": "slatewise.estimators.margin",
    "MatchingRanker": "slatewise.estimators.matching",
    "MetricRanker": "slatewise.estimators.metric",
    "StructuredReranker": "slatewise.estimators.structured_reranker",
    "load": "slatewise.estimators.saving",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"slatewise.{name}")
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'slatewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
