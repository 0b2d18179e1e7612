"""Learn to rank whole lists whose items interact, trained directly for the ranking measure.

Names load on first use, so ``import slatewise`` costs next to nothing. CONTRIBUTING.rst has the map of the packages;
``_registry`` says where each estimator is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from slatewise._lazy import lazy_getattr
from slatewise._registry import ESTIMATORS
from slatewise._version import __version__

if TYPE_CHECKING:
    from slatewise import (
        client,
        cluster,
        collaborative,
        data,
        datasets,
        factors,
        inference,
        kernels,
        labeling,
        losses,
        matching,
        metrics,
        sessions,
    )
    from slatewise.collaborative.ranker import CollaborativeRanker
    from slatewise.core.running.progress import set_progress
    from slatewise.cstar.margin_ranker import CStarMarginRanker
    from slatewise.cstar.ranker import CStarRanker
    from slatewise.estimators.best_feature import BestFeatureRanker
    from slatewise.latent.feature_ranker import LatentFeatureRanker
    from slatewise.latent.ranker import LatentRanker
    from slatewise.latent.reranker import StructuredReranker
    from slatewise.matching.graphs.matcher import GraphMatcher
    from slatewise.matching.slates.ranker import MatchingRanker
    from slatewise.metric_learning.margin_ranker import MarginRanker
    from slatewise.metric_learning.ranker import MetricRanker
    from slatewise.persistence.saving import load
    from slatewise.sessions.cooccurrence import SessionCooccurrence
    from slatewise.sessions.neighbors import SessionNeighbors
    from slatewise.sessions.ranker import SessionRanker

__all__ = [
    "BestFeatureRanker",
    "CStarMarginRanker",
    "CStarRanker",
    "CollaborativeRanker",
    "GraphMatcher",
    "LatentFeatureRanker",
    "LatentRanker",
    "MarginRanker",
    "MatchingRanker",
    "MetricRanker",
    "SessionCooccurrence",
    "SessionNeighbors",
    "SessionRanker",
    "StructuredReranker",
    "__version__",
    "client",
    "cluster",
    "collaborative",
    "data",
    "datasets",
    "factors",
    "inference",
    "kernels",
    "labeling",
    "load",
    "losses",
    "matching",
    "metrics",
    "sessions",
    "set_progress",
]

_MODULES = frozenset(
    {"client", "cluster", "collaborative", "data", "datasets", "factors", "inference", "kernels", "labeling"}
    | {"losses", "matching", "metrics", "sessions"}
)
_HOMES = {
    **{name: row.home for name, row in ESTIMATORS.items()},
    "load": "slatewise.persistence.saving",
    "set_progress": "slatewise.core.running.progress",
}

_first_use = lazy_getattr(globals(), _HOMES)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"slatewise.{name}")
    return _first_use(name)


def __dir__() -> list[str]:
    return sorted(__all__)
