"""Which doors a model has, by its class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from slatewise.core.running.executor import thread_count
from slatewise.serve.catalogue import catalogue_doors
from slatewise.serve.documents import document_doors
from slatewise.serve.door import Doors
from slatewise.serve.examples import example_doors
from slatewise.serve.labels import label_doors
from slatewise.serve.limits import Limits

KINDS: dict[str, Callable[[Any, Limits], Doors]] = {
    "BestFeatureRanker": document_doors,
    "CStarMarginRanker": label_doors,
    "CStarRanker": label_doors,
    "SessionCooccurrence": catalogue_doors,
    "LatentFeatureRanker": catalogue_doors,
    "LatentRanker": catalogue_doors,
    "MarginRanker": document_doors,
    "MatchingRanker": document_doors,
    "MetricRanker": example_doors,
    "SessionNeighbors": catalogue_doors,
    "SessionRanker": catalogue_doors,
}


def doors_of(estimator: Any, limits: Limits, n_jobs: int | None = None) -> Doors:
    """Return the doors of a loaded estimator, which is the service's from now on; ValueError where it has none."""
    name = type(estimator).__name__
    if name not in KINDS:
        raise ValueError(f"model: expected one of {', '.join(sorted(KINDS))}, found {name}, which ranks nothing alone")
    if "n_jobs" in estimator.get_params(deep=False):
        estimator.set_params(n_jobs=thread_count(n_jobs))
    # Requests bring numbers without names, of which scikit-learn would warn every time.
    cast("dict[str, Any]", vars(estimator)).pop("feature_names_in_", None)
    return KINDS[name](estimator, limits)
