"""Every parameter of every estimator has a rule, and fit refuses by its name whatever the rule does not allow."""

import inspect
import os
import re
from pathlib import Path

import numpy as np
import pytest

from slatewise import (
    BestFeatureRanker,
    CollaborativeRanker,
    CStarMarginRanker,
    CStarRanker,
    GraphMatcher,
    LatentFeatureRanker,
    LatentRanker,
    MarginRanker,
    MatchingRanker,
    MetricRanker,
    SessionCooccurrence,
    SessionNeighbors,
    SessionRanker,
    StructuredReranker,
)
from slatewise.core import rules
from slatewise.core.declarations import params_of
from slatewise.core.running.executor import thread_count
from slatewise.factors import Blocked, Factors, Gpu, Sampled, Stages, Warp
from slatewise.kernels import Chi2, Intersection, Precomputed, Rbf
from slatewise.losses import AUC, KNN, MAP, MRR, NDCG, Precision
from slatewise.matching import AllSlates, Likelihood, Sample, Slates, WholeQueries
from slatewise.sessions import Blend

X = np.array([[3.0, 1.0], [1.0, 2.0], [2.0, 5.0], [9.0, 4.0], [0.5, 0.25], [4.0, 4.5]])
LABELS = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1]])
GRAPHS = [np.arange(8.0).reshape(2, 2, 2)]
IDS = (np.array([0, 1, 2, 0, 1, 2]), np.array([1, 2, 0, 2, 0, 1]))
FITS = {
    BestFeatureRanker: lambda ranker: ranker.fit(X, [0, 1, 2, 0, 1, 2]),
    SessionCooccurrence: lambda ranker: ranker.fit([[0, 1], [1, 2]]),
    CStarMarginRanker: lambda ranker: ranker.fit(X, LABELS),
    CollaborativeRanker: lambda ranker: ranker.fit(*IDS),
    CStarRanker: lambda ranker: ranker.fit(X, LABELS),
    GraphMatcher: lambda matcher: matcher.fit(GRAPHS, [[0, 1]]),
    LatentRanker: lambda ranker: ranker.fit(*IDS),
    MarginRanker: lambda ranker: ranker.fit(X, [0, 1, 2, 0, 1, 2]),
    MatchingRanker: lambda ranker: ranker.fit(X, [0, 1, 2, 0, 1, 2]),
    MetricRanker: lambda ranker: ranker.fit(X, [0, 1, 2, 0, 1, 2]),
    LatentFeatureRanker: lambda ranker: ranker.fit(X, [0, 1, 2, 0, 1, 2]),
    SessionRanker: lambda ranker: ranker.fit([[0, 1], [1, 2]]),
    SessionNeighbors: lambda ranker: ranker.fit([[0, 1], [1, 2]]),
    StructuredReranker: lambda reranker: reranker.fit(*IDS),
}
ANYTHING = {
    **{name: name for name in ("auto", "", "7", "no such thing")},
    "None": None,
    "True": True,
    "list": [1.5, "x"],
    "nested": [[1], [2, 3]],
    "negative numbers": [-1.0, -2.0],
    "NaN inside": [1.0, float("nan")],
    "dict": {"a": 1},
    "set": {1, 2},
    "object": object(),
    "class": int,
    "complex": 1 + 2j,
    "bytes": b"auto",
    "NaN": float("nan"),
    "infinity": float("inf"),
    "-infinity": float("-inf"),
    "-1": -1,
    "-2": -2,
    "0": 0,
    "-0.5": -0.5,
    "2.5": 2.5,
    "3.0": 3.0,
    "1e300": 1e300,
    "1e-300": 1e-300,
    "10 ** 30": 10**30,
    "10 ** 5000": 10**5000,
    "2 ** 40": 2**40,
    "zero dimensions": np.array(3),
    "array of objects": np.array([None, "x"], dtype=object),
    "NumPy's NaN": np.float32("nan"),
    "NumPy's True": np.bool_(True),
}
# What is allowed, by hand and not by the rules: a whole number, any number, -1, and so on, by parameter.
WHOLE, NUMBER = {"2 ** 40"}, {"2.5", "3.0", "1e300", "1e-300", "2 ** 40", "10 ** 30"}
ALLOWED = {
    **dict.fromkeys(("C", "C_pair", "l2", "gamma", "tol"), NUMBER),
    "threshold": {*NUMBER, "0", "-1", "-2", "-0.5"},
    "unmatched": {*NUMBER, "0", "-1", "-2", "-0.5"},
    "learning_rate": NUMBER - {"1e300", "1e-300"},
    "max_norm": {"2.5", "3.0"},
    "base_scale": NUMBER - {"1e300", "1e-300"},
    "decay": {"auto"},
    "dropout": {"0", "1e-300"},
    **{name: {"2.5", "3.0", "1e-300", "0", "auto"} for name in ("last_weight", "repeat_weight", "backward")},
    "reach": {*NUMBER, "None", "auto"} - {"1e300"},
    "row_power": {"0", "1e-300", "auto"},
    "validation_fraction": {"0", "1e-300"},
    "parts": {"auto"},
    "core": {"0", "auto"},
    "targets": {"auto"},
    "random_state": {"0", "None", *WHOLE},
    "n_jobs": {"None", "-1", "-2"},
    "callbacks": {"None"},
    "device": {"None"},
    "checkpoint": {"None", "auto", "7", "no such thing"},
}
OF_SESSIONS = {"window": {"None"}, "base": {"None"}, "factors": {"None"}}
MAY_BE_NONE = ("base", "C_pair", "gamma", "threshold", "batch_size", "max_draws", "tol", "n_components")
MAY_BE_AUTO = (
    "C",
    "l2",
    "unmatched",
    "learning_rate",
    "max_norm",
)


def allowed(estimator, parameter):
    default = inspect.signature(estimator).parameters[parameter].default
    names = set(ALLOWED.get(parameter, ()))
    if parameter in MAY_BE_NONE and default is None:
        names.add("None")
    if estimator is SessionRanker:
        names |= OF_SESSIONS.get(parameter, set())
    if parameter == "tol" and estimator in (CStarMarginRanker, CStarRanker, GraphMatcher):
        names.add("0")
    if parameter in MAY_BE_AUTO and estimator not in (MetricRanker, StructuredReranker):
        names.add("auto")
    return names


TRIPLES = [
    pytest.param(estimator, parameter, value, id=f"{estimator.__name__}({parameter}={name})")
    for estimator in FITS
    for parameter in inspect.signature(estimator).parameters
    for name, value in ANYTHING.items()
    if name not in allowed(estimator, parameter)
]


def test_there_are_thousands_of_bad_values():
    assert len(TRIPLES) > 2500


def refusal(estimator, parameter, value):
    settings = {"base": np.eye(3)} if estimator is StructuredReranker else {}
    try:
        FITS[estimator](estimator(**{**settings, parameter: value}))
    except ValueError as error:
        return str(error)
    return "accepted"


@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_fit_refuses_every_bad_value_by_name():
    for triple in TRIPLES:
        message = refusal(*triple.values)
        assert re.fullmatch(rf"{triple.values[1]}: expected .+, found .+", message), f"{triple.id}: {message}"
        assert len(message) < 400, triple.id


SETTINGS = (
    *(AUC, KNN, MAP, MRR, NDCG, Precision),
    *(Chi2, Intersection, Precomputed, Rbf),
    *(AllSlates, Likelihood, Sample, Slates, WholeQueries),
    *(Blend, Blocked, Factors, Gpu, Sampled, Stages, Warp),
)
# What fields allow, by hand.
FIELDS = {
    "alpha": {*NUMBER, "0"},
    **{name: {"None"} for name in ("batch_size", "max_draws", "window")},
    "dropout": {"0", "1e-300"},
    "learning_rate": {*NUMBER, "auto"} - {"1e300", "1e-300"},
    "max_norm": {"2.5", "3.0", "auto"},
    "self_weight": {"2.5", "3.0", "1e-300", "0"},
    "gamma": {*NUMBER, "None"},
    "n_basis": {"None"},
    "part_size": {"None", "auto"},
    "position_weights": {"negative numbers"},
    "rating_weights": {"negative numbers"},
    "share": {"2.5", "3.0", "1e-300"},
    "size": {"None"},
    "threshold": {*NUMBER, "0", "-1", "-2", "-0.5", "None"},
}


@pytest.mark.parametrize("kind", SETTINGS, ids=lambda kind: kind.__name__)
def test_settings_refuse_every_bad_value_by_name(kind):
    for field in params_of(kind):
        for name, value in ANYTHING.items():
            if name in FIELDS.get(field, set()) and not (kind is Stages and field == "position_weights"):
                kind(**{field: value})
                continue
            with pytest.raises(ValueError, match=rf"^{kind.__name__}\.{field}: expected .+, found .+") as caught:
                kind(**{field: value})
            assert len(str(caught.value)) < 400


@pytest.mark.parametrize("estimator", FITS, ids=lambda estimator: estimator.__name__)
def test_every_parameter_has_a_rule_that_allows_its_default(estimator):
    parameters = inspect.signature(estimator).parameters
    assert list(estimator._rules) == list(parameters)
    for name, parameter in parameters.items():
        estimator._rules[name].check(name, parameter.default)


@pytest.mark.parametrize("value", [1, np.int64(7), np.uint8(3), 4096, -1, None])
def test_threads_that_are_allowed(value):
    rules.JOBS.check("n_jobs", value)


def test_minus_one_is_all_cores(monkeypatch):
    monkeypatch.delenv("SLATEWISE_THREADS", raising=False)
    assert thread_count(-1) == thread_count()
    monkeypatch.setenv("SLATEWISE_THREADS", "1")
    assert thread_count(-1) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("value", ["core.part", np.str_("core.part"), Path("a")])
def test_paths_that_are_allowed(value):
    rules.CHECKPOINT.check("checkpoint", value)


@pytest.mark.parametrize("value", ["", "a\0b", b"a", 3])
def test_paths_that_are_not(value):
    with pytest.raises(ValueError, match="checkpoint: expected None or a path"):
        rules.CHECKPOINT.check("checkpoint", value)


def test_numbers_of_numpy_are_numbers():
    rules.count().check("k", np.int32(4))
    rules.POSITIVE.check("C", np.float32(0.5))
    rules.WEIGHTS.check("weights", np.array([1, 2]))
    rules.vector("label numbers", 0, whole=True, empty=True).check("core", [])


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(ValueError, match=r"found '(x{96})\.\.\.$"):
        rules.POSITIVE.check("C", "x" * 5000)
    with pytest.raises(ValueError, match="found a whole number of 3322 bits"):
        rules.count().check("k", 10**1000)
