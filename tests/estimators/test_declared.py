"""Whatever a fitted estimator has is declared, and its public names are what a user calls."""

import inspect

import pytest
from tests.fuzz.models.fitted import fitted

from slatewise._registry import ESTIMATORS, estimator_class

BY_SCIKIT_LEARN = {"n_features_in_", "feature_names_in_"}
BY_THE_BASE_CLASS = {"model_card_", "seed_"}


def test_every_attribute_of_a_fitted_estimator_is_declared():
    for name, estimator in fitted().items():
        kind = type(estimator)
        own = {one for one in vars(estimator) if not one.startswith("_")}
        assert own <= {*kind._rules, *kind._learned, *kind._parts} | BY_SCIKIT_LEARN | BY_THE_BASE_CLASS, name
        assert set(kind._learned) - kind._optional <= own, name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_public_names_are_documented_methods(estimator):
    kind = estimator_class(estimator)
    for name in (one for one in dir(kind) if not one.startswith("_") and one not in kind._rules):
        value = inspect.getattr_static(kind, name)
        assert callable(getattr(kind, name, None)) or isinstance(value, property), name
        if not (name.startswith("set_") and name.endswith("_request")):
            assert inspect.getdoc(value), name


def test_the_service_and_the_command_line_know_the_same_estimators():
    """What the command line fits the service answers for; the other rows are for Python alone."""
    for name, row in ESTIMATORS.items():
        assert (row.command is None) == (row.service is None), name
        assert row.command is not None or not row.takes_source, name
    services = {row.data: row.service for row in ESTIMATORS.values() if row.service}
    assert services == {
        "lists": "documents",
        "label sets": "labels",
        "examples": "examples",
        "pairs": "items",
        "interactions": "items",
        "feature pairs": "items",
        "sessions": "items",
    }
