"""The endpoints of each kind of model, with types that check requests and document them.

``base.py`` has :class:`Endpoint`, the checked request, types of fields and known ids, which the others use:
``recommenders.py`` (queries rank all items), ``labels.py`` (rows rank labels), ``documents.py`` (queries bring their
rows) and ``examples.py`` (rows rank the rows of fit).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from slatewise._registry import ESTIMATORS, Service
from slatewise.core.running.executor import thread_count
from slatewise.serve.endpoints.base import Endpoints
from slatewise.serve.endpoints.documents import Documents
from slatewise.serve.endpoints.examples import Examples
from slatewise.serve.endpoints.labels import Labels
from slatewise.serve.endpoints.recommenders import Recommender
from slatewise.serve.settings import Limits

_BY_SERVICE: Mapping[Service, Callable[[Any, Limits], Documents | Examples | Labels | Recommender]] = {
    "documents": Documents,
    "examples": Examples,
    "items": Recommender,
    "labels": Labels,
}


def endpoints_for(estimator: Any, limits: Limits, n_jobs: int | None = None) -> Endpoints:
    """Return the endpoints of a loaded estimator, which the service owns from now on; ValueError if it has none."""
    name = type(estimator).__name__
    service = ESTIMATORS[name].service if name in ESTIMATORS else None
    if service is None:
        known = ", ".join(one for one, row in ESTIMATORS.items() if row.service)
        raise ValueError(f"model: expected one of {known}, found {name}, which ranks nothing alone")
    if "n_jobs" in estimator.get_params(deep=False):
        estimator.set_params(n_jobs=thread_count(n_jobs))
    # Requests bring numbers without names, of which scikit-learn would warn every time.
    cast("dict[str, Any]", vars(estimator)).pop("feature_names_in_", None)
    return {endpoint.name: endpoint for endpoint in _BY_SERVICE[service](estimator, limits).endpoints()}
