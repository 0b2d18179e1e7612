"""``save`` and ``load`` for every estimator, without pickle.

A class names in ``saved_attributes`` what fit learns; parameters, these attributes and the model card are the file.
Only the classes of the table below can come out of a file, and only attributes they name can go in.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from slatewise._version import __version__
from slatewise.errors import ModelFileError
from slatewise.estimators._sklearn import BaseEstimator, check_is_fitted
from slatewise.model_file import Json, ModelCard, ModelState, raw_bytes, read_model, write_model
from slatewise.rules import Rule

_HOMES = {
    "BestFeatureRanker": "slatewise.estimators.best_feature",
    "CStarRanker": "slatewise.estimators.cstar",
    "GraphMatcher": "slatewise.estimators.graph_matcher",
    "LatentRanker": "slatewise.estimators.latent",
    "MarginRanker": "slatewise.estimators.margin",
    "MatchingRanker": "slatewise.estimators.matching",
    "MetricRanker": "slatewise.estimators.metric",
    "StructuredReranker": "slatewise.estimators.structured_reranker",
}
_OPTIONAL = ("feature_names_in_",)
_OF_ONE_RUN = ("callbacks", "checkpoint")
"""Parameters that belong to a run, not to the model."""


class SavedEstimator(BaseEstimator):
    """An estimator that can be written to one file and read back."""

    rules: ClassVar[Mapping[str, Rule]] = {}
    """What each parameter may be."""
    saved_attributes: ClassVar[tuple[str, ...]] = ()
    model_card_: ModelCard

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one ``.safetensors`` file; the file appears whole or not at all.

        Parameters
        ----------
        path
            Where to write; a file already there is replaced.
        """
        check_is_fitted(self)
        names = [*self.saved_attributes, "n_features_in_", *(name for name in _OPTIONAL if name in vars(self))]
        learned: dict[str, Any] = {name: getattr(self, name) for name in names}
        arrays: dict[str, NDArray[Any]] = {k: value for k, value in learned.items() if isinstance(value, np.ndarray)}
        values = {name: as_json(value, name) for name, value in learned.items() if name not in arrays}
        given = {name: value for name, value in self.get_params(deep=False).items() if name not in _OF_ONE_RUN}
        params = {name: as_json(value, name) for name, value in given.items()}
        write_model(path, ModelState(type(self).__name__, params, values, arrays, self.model_card_))

    @classmethod
    def from_state(cls, state: ModelState, name: str) -> Self:
        """Build the estimator that a model file describes; ``name`` is the file's, for messages."""
        learned: dict[str, Any] = {**state.values, **state.arrays}
        expected = {*cls.saved_attributes, "n_features_in_"}
        if expected - learned.keys() or learned.keys() - expected - set(_OPTIONAL):
            raise ModelFileError(f"{name}: expected {sorted(expected)} for {cls.__name__}, found {sorted(learned)}")
        try:
            estimator = cls(**state.params)
        except TypeError as error:
            raise ModelFileError(f"{name}: expected the parameters of {cls.__name__}, found {error}") from None
        if type(state.values.get("n_features_in_")) is not int:
            raise ModelFileError(f"{name}: expected a whole number as n_features_in_, found another value")
        for attribute, value in learned.items():
            setattr(estimator, attribute, value)
        estimator.model_card_ = state.card
        try:
            estimator.check_learned()
        except ValueError as error:
            raise ModelFileError(f"{name}: {error}") from None
        return estimator

    def check_learned(self) -> None:
        """Raise ValueError unless what a file said was learned has types and sizes that fit together."""


def load(path: str | os.PathLike[str], mmap: bool = False) -> Any:
    """Read a model file and return its estimator, ready to predict.

    Every byte is checked against the file's own checksums first; nothing in the file is executed.

    Parameters
    ----------
    path
        A file written by an estimator's ``save``.
    mmap
        Leave the arrays in the file: they are read-only and shared by all processes that load it. The checksums are
        compared here too, which reads the file once. ``save`` puts a new file in its place and leaves this one to those
        who have it; nothing else may write to it meanwhile.

    Returns
    -------
    estimator
        An instance of the class that was saved, with its model card in ``model_card_``.
    """
    state = read_model(path, mmap)
    if state.estimator not in _HOMES:
        raise ModelFileError(f"{os.fspath(path)}: expected one of {sorted(_HOMES)}, found {state.estimator!r}")
    estimator_class = cast("type[SavedEstimator]", getattr(import_module(_HOMES[state.estimator]), state.estimator))
    return estimator_class.from_state(state, os.fspath(path))


def card_for(n_lists: int, *arrays: NDArray[Any], **certificate: Any) -> ModelCard:
    """Describe a fit: how much data, its hash, and the certificate where the learner gives one."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(raw_bytes(np.ascontiguousarray(array)))
    return ModelCard(
        library=f"slatewise {__version__}",
        n_lists=n_lists,
        n_rows=len(arrays[0]),
        data_sha256=digest.hexdigest(),
        **certificate,
    )


def as_json(value: object, name: str) -> Json:
    """Return a parameter as JSON has it, all digits kept; ``name`` is for the message."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.generic():
            return cast("Json", value.item())
        case np.ndarray():
            return cast("Json", value.tolist())
        case list() | tuple():
            return [as_json(part, name) for part in cast("list[object]", value)]
        case _:
            raise ModelFileError(f"{name}: expected a number, a string or a list to save, found {type(value).__name__}")
