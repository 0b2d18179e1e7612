"""``save`` and ``load`` for every estimator, without pickle.

A class has two tables: ``rules`` says what each parameter may be, ``learned`` what each attribute that fit leaves may
be. Parameters, these attributes and the model card are the file. Only the classes of the table below can come out of a
file, only what their tables name can go in, and all of it passes the rules that fit and its result passed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from slatewise._version import __version__
from slatewise.core.by_name import found_at
from slatewise.core.errors import ModelFileError
from slatewise.core.rules import NAMES, Rule, check, count, shown
from slatewise.core.seeds import is_source, seed_from
from slatewise.model.file import Json, ModelCard, ModelState, raw_bytes, read_model, write_model
from slatewise.model.migrations import migrated
from slatewise.model.sklearn import BaseEstimator, check_is_fitted

_HOMES = {
    "BestFeatureRanker": "slatewise.model.best_feature",
    "CStarRanker": "slatewise.cstar.ranker",
    "CooccurrenceRanker": "slatewise.latent.cooccurrence_ranker",
    "GraphMatcher": "slatewise.matching.graph_matcher",
    "LatentRanker": "slatewise.latent.ranker",
    "MarginRanker": "slatewise.metric_learning.margin_ranker",
    "MatchingRanker": "slatewise.matching.ranker",
    "MetricRanker": "slatewise.metric_learning.ranker",
    "SessionBlend": "slatewise.latent.session_blend",
    "SessionNeighbors": "slatewise.latent.session_neighbors",
    "StructuredReranker": "slatewise.latent.structured_reranker",
}
_OPTIONAL = ("feature_names_in_",)


class SavedEstimator(BaseEstimator):
    """An estimator that can be written to one file and read back."""

    rules: ClassVar[Mapping[str, Rule]] = {}
    """What each parameter may be."""
    learned: ClassVar[Mapping[str, Rule]] = {}
    """What each attribute may be that fit learns, and a file has."""
    not_saved: ClassVar[tuple[str, ...]] = ("callbacks", "checkpoint", "n_threads")
    """Parameters of a run, not of the model: neither written to a file nor taken from one."""
    parts: ClassVar[tuple[str, ...]] = ()
    """Attributes that are fitted estimators, or None: their files are inside this one's. Their own parts have none."""
    file_version: ClassVar[int] = 1
    """Which form of ``learned`` a file has: counted up where that changes, with a line in ``model.migrations``."""
    model_card_: ModelCard
    seed_: int
    """Of the last fit, where the class has ``random_state``: what that says, or what was drawn from it."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one ``.safetensors`` file; the file appears whole or not at all.

        Parameters
        ----------
        path
            Where to write; a file already there is replaced.
        """
        check_is_fitted(self)
        self.check_learned()
        write_model(path, self._state())

    def _state(self) -> ModelState:
        """Return what a file has; a parameter that is an estimator is known by its fitted part."""
        names = [*self.learned, "n_features_in_", *(name for name in _OPTIONAL if name in vars(self))]
        learned: dict[str, Any] = {name: getattr(self, name) for name in names}
        arrays: dict[str, NDArray[Any]] = {k: value for k, value in learned.items() if isinstance(value, np.ndarray)}
        values = {name: as_json(value, name) for name, value in learned.items() if name not in arrays}
        given = {name: value for name, value in self.get_params(deep=False).items() if name not in self.not_saved}
        params = {
            name: as_json(self.seed_ if is_source(value) else value, name)
            for name, value in given.items()
            if not isinstance(value, SavedEstimator)
        }
        for part in self.parts:
            fitted: SavedEstimator | None = getattr(self, part)
            own = None if fitted is None else fitted._state()
            values[part] = None if own is None else _described(own)
            arrays.update({} if own is None else {f"{part}.{name}": array for name, array in own.arrays.items()})
        kind = type(self)
        return ModelState(kind.__name__, params, values, arrays, self.model_card_, kind.file_version)

    @classmethod
    def from_state(cls, state: ModelState, name: str) -> Self:
        """Build the estimator that a model file describes; ``name`` is the file's, for messages."""
        parts = {part: _take_part(state, part, name) for part in cls.parts}
        learned: dict[str, Any] = {**state.values, **state.arrays}
        expected = {*cls.learned, "n_features_in_"}
        if expected - learned.keys() or learned.keys() - expected - set(_OPTIONAL):
            raise ModelFileError(f"{name}: expected {sorted(expected)} for {cls.__name__}, found {sorted(learned)}")
        if state.params.keys() - cls.rules.keys():
            raise ModelFileError(f"{name}: expected the parameters of {cls.__name__}, found {sorted(state.params)}")
        estimator = cls(**{name: value for name, value in state.params.items() if name not in cls.not_saved})
        for attribute, value in (learned | parts).items():
            setattr(estimator, attribute, value)
        estimator.model_card_ = state.card
        try:
            estimator.check_learned()
        except ValueError as error:
            raise ModelFileError(f"{name}: {error}") from None
        estimator._settle_seed()
        return estimator

    def _settle_seed(self) -> None:
        """Take the seed of a fit and of what is drawn after it from ``random_state``: once, when all is checked."""
        if "random_state" in self.rules:
            self.seed_ = seed_from(self.get_params(deep=False)["random_state"])

    def check_learned(self) -> None:
        """Raise ValueError unless parameters and all that was learned follow their rules; a subclass adds sizes."""
        check(self)
        count().check("n_features_in_", self.n_features_in_)
        for name, rule in self.learned.items():
            rule.check(name, getattr(self, name))
        if "feature_names_in_" in vars(self):
            names = vars(self)["feature_names_in_"]
            NAMES.check("feature_names_in_", names)
            if len(names) != self.n_features_in_:
                raise ValueError(f"feature_names_in_: expected {self.n_features_in_} names, found {len(names)}")


def load(path: str | os.PathLike[str], mmap: bool = False) -> Any:
    """Read a model file and return its estimator, ready to predict.

    Every byte is checked against the file's own checksums first; nothing in the file is executed. Files of older
    versions are migrated; newer ones are refused.

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
    estimator_class = cast("type[SavedEstimator]", found_at(_HOMES[state.estimator], state.estimator))
    newest = migrated(state, estimator_class.file_version, os.fspath(path))
    return estimator_class.from_state(newest, os.fspath(path))


def _described(part: ModelState) -> Json:
    """Return all of a part but its arrays."""
    return {
        "estimator": part.estimator,
        "version": part.estimator_version,
        "params": part.params,
        "values": part.values,
    }


def _take_part(state: ModelState, part: str, name: str) -> SavedEstimator | None:
    """Take a part of an estimator out of the state of the whole; the card is that of the whole."""
    found = state.values.pop(part, "nothing")
    if found is None:
        return None
    names = [key for key in state.arrays if key.startswith(f"{part}.")]
    arrays = {key.removeprefix(f"{part}."): state.arrays.pop(key) for key in names}
    match found:
        case {"estimator": str(kind), "version": int(version), "params": dict(params), "values": dict(values)} if (
            kind in _HOMES
        ):
            own = ModelState(kind, dict(params), dict(values), arrays, state.card, version)
        case _:
            raise ModelFileError(f"{name}: expected an estimator or null as {part}, found {shown(found)}")
    inner = cast("type[SavedEstimator]", found_at(_HOMES[kind], kind))
    if any(_has_parts(own.values.get(each)) for each in inner.parts):
        raise ModelFileError(f"{name}: expected an estimator whose parts have none as {part}, found {kind}")
    return inner.from_state(migrated(own, inner.file_version, name), name)


def _has_parts(described: Json) -> bool:
    """Tell whether a part is of a class that has parts; what is no part is found out where it is taken."""
    kind = described.get("estimator") if isinstance(described, dict) else None
    return kind in _HOMES and bool(cast("type[SavedEstimator]", found_at(_HOMES[kind], kind)).parts)


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
