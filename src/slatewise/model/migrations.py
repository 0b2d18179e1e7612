"""How a file of an older version becomes what this version reads: two tables of functions, applied in their order.

``FORMATS`` has what a format of the file wrote otherwise, whatever the estimator; ``ESTIMATORS`` what a class kept
otherwise, by the version of the class. A migration takes a state one version further. It runs before anything in the
file is believed, so it trusts nothing: where a state is not what its version wrote, it stays as it is, and the door,
which a migrated state passes like any other, refuses it.

To keep something new in the files of a class: name it in ``learned``, count the class's ``file_version`` up, and say
here what older files, which lack it, mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from slatewise.core.errors import ModelFileError
from slatewise.core.rules import shown
from slatewise.model.file import FORMAT_VERSION, ModelState

Migration: TypeAlias = Callable[[ModelState], ModelState]


def migrated(state: ModelState, newest: int, name: str) -> ModelState:
    """Return a state as version ``newest`` of its class keeps it; ``name`` is the file's, for messages."""
    while state.format < FORMAT_VERSION:
        state = replace(FORMATS[state.format](state), format=state.format + 1)
    if not 1 <= state.estimator_version <= newest:
        raise ModelFileError(
            f"{name}: expected a {state.estimator} of version 1 to {newest}, found {shown(state.estimator_version)}: "
            "read it with a newer slatewise"
        )
    while (version := state.estimator_version) < newest:
        state = replace(ESTIMATORS[state.estimator, version](state), estimator_version=version + 1)
    return state


def _first_version_of_the_class(state: ModelState) -> ModelState:
    """Format 1 says nothing of the class: its files are the first version."""
    return replace(state, estimator_version=1)


def _labels_and_their_names(state: ModelState) -> ModelState:
    """Version 1 has no names; the first files said that a row had several labels by having no classes."""
    classes, intercept = state.arrays.get("classes_"), state.arrays.get("intercept_")
    if classes is None or intercept is None or classes.ndim != 1 or intercept.ndim != 1:
        return state
    values = dict(state.values)
    if "multilabel_" not in values and "multilabel_" not in state.arrays:
        values["multilabel_"] = len(classes) == 0
        classes = classes if len(classes) else np.arange(len(intercept))
    return replace(state, values=values, arrays={**state.arrays, "classes_": classes, "label_names_": classes})


def _scores_and_likelihoods_of_before(state: ModelState) -> ModelState:
    """Version 2 had no base, and one likelihood, that of sets of k labels; other defaults, where a file is silent."""
    params = {"scores": "linear", "surrogate": "max-margin", "C": 1.0, **state.params}
    if params["surrogate"] == "likelihood":
        params["surrogate"] = "likelihood-k"
    none = {"base_coef_": np.empty((0, 0)), "base_intercept_": np.empty(0)}
    return replace(state, params=params, arrays={**state.arrays, **none})


def _told_like_any_size(state: ModelState) -> ModelState:
    """Version 3 had the same terms whether the number of labels was told or not."""
    return replace(state, arrays={**state.arrays, "told_": np.empty((0, 0))})


def _queries_that_hold_no_items(state: ModelState) -> ModelState:
    """Version 1 had no sessions, and so no base."""
    return replace(state, values={**state.values, "window_": 0, "base_": None, "learned_weight_": 1.0})


FORMATS: Mapping[int, Migration] = {1: _first_version_of_the_class}
"""By the format a file has."""
ESTIMATORS: Mapping[tuple[str, int], Migration] = {
    ("CStarRanker", 1): _labels_and_their_names,
    ("CStarRanker", 2): _scores_and_likelihoods_of_before,
    ("CStarRanker", 3): _told_like_any_size,
    ("LatentRanker", 1): _queries_that_hold_no_items,
}
"""By the class and the version a file has."""
