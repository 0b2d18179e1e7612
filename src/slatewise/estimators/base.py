"""The base class of estimators: declared parameters, settings objects, ``get_params``, ``save``, callbacks.

Callbacks of a fit are functions that ``fit`` is given, and objects of scikit-learn's own (1.9 and newer). Those are
attached by ``set_callbacks`` and carried along by ``Pipeline`` and searches; they see the fit as a task with one
subtask per round.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from slatewise.core.declarations import (
    changed,
    check_shapes,
    deep_params,
    document,
    learned,
    learned_of,
    param,
    params_of,
)
from slatewise.core.errors import ModelFileError
from slatewise.core.rules import CALLBACKS, NAMES, Rule, check, count
from slatewise.core.running import progress
from slatewise.core.running.progress import progress_bars
from slatewise.core.seeds import is_source, seed_from
from slatewise.estimators.sklearn import BaseEstimator, available_if, check_is_fitted
from slatewise.persistence.checkpoint import Callbacks
from slatewise.persistence.file import ModelCard, ModelState, write_model
from slatewise.persistence.saving import as_json, described, from_json, take_part

_OPTIONAL = ("feature_names_in_",)


def _require_callbacks(estimator: object) -> bool:
    if find_spec("sklearn.callback") is None:
        raise AttributeError("set_callbacks: expected scikit-learn 1.9 or newer")
    return True


def _callback_support() -> Any:
    """Return scikit-learn's module, on first use: importing it imports rich."""
    return import_module("sklearn.callback._callback_support")


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(param, learned))
class Estimator(BaseEstimator):
    """An estimator whose parameters and learned attributes are declared in the body of its class.

    ``slatewise.core.declarations`` says how. A subclass becomes a dataclass when it is made.
    """

    _rules: ClassVar[Mapping[str, Rule]] = {}
    """What each parameter may be."""
    _learned: ClassVar[Mapping[str, Rule]] = {}
    """What each attribute may be that fit learns, and a file has."""
    _optional: ClassVar[frozenset[str]] = frozenset()
    """Those of ``_learned`` that some models do not have."""
    _not_saved: ClassVar[tuple[str, ...]] = ()
    """Parameters of a run, not of the model: neither written to a file nor taken from one."""
    _parts: ClassVar[tuple[str, ...]] = ()
    """Attributes that are fitted estimators, or None: their files are inside this one's. Their own parts have none."""
    _file_version: ClassVar[int] = 1
    """Which form of ``_learned`` a file has, counted up where that changes: ``load`` reads the present one only."""
    if TYPE_CHECKING:
        model_card_: ModelCard
        """What a reader of the file wants to know."""
        seed_: int
        """Of the last fit, where the class has ``random_state``: what that says, or what was drawn from it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(eq=False, repr=False, kw_only=True)(cls)
        params, attributes = params_of(cls), learned_of(cls)
        cls._rules = {name: one.rule for name, one in params.items()}
        cls._learned = {name: one.rule for name, one in attributes.items() if one.saved}
        cls._optional = frozenset(name for name, one in attributes.items() if one.optional)
        cls._not_saved = tuple(name for name, one in params.items() if not one.saved)
        document(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep`` also those inside settings objects, shorthands and estimators.

        Parameters
        ----------
        deep
            Whether to look inside: ``loss="ndcg"`` gives ``loss__k`` too.
        """
        return deep_params(self, self._rules, deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``name__field=value`` sets a field of a settings object, of a shorthand, or of an estimator.

        Parameters
        ----------
        **params
            Parameters by name. ``loss="ndcg", loss__k=5`` sets the loss first and then its field;
            ``factors__loss__alpha`` reaches into a field that has settings of its own.
        """
        nested: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in self._rules:
                raise ValueError(f"{key}: expected one of {', '.join(self._rules)} as a parameter of {self!r}")
            if inner:
                nested.setdefault(name, {})[inner] = value
            else:
                setattr(self, name, value)
        for name, changes in nested.items():
            setattr(self, name, changed(self._rules[name], name, getattr(self, name), changes))
        return self

    def __dir__(self) -> list[str]:
        """Return the names that this estimator has: a method that its parameters do not allow is not among them."""

        def is_conditional(name: str) -> bool:  # decorated by available_if
            return hasattr(getattr_static(type(self), name, None), "check")

        return [name for name in super().__dir__() if not is_conditional(name) or hasattr(self, name)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one ``.safetensors`` file; the file appears whole or not at all.

        Parameters
        ----------
        path
            Where to write; a file already there is replaced.
        """
        check_is_fitted(self)
        self._check_learned()
        write_model(path, self._state())

    def _state(self) -> ModelState:
        """Return what a file has; a parameter that is an estimator is known by its fitted part."""
        optional = [name for name in (*self._optional, *_OPTIONAL) if name in vars(self)]
        names = [*(self._learned.keys() - self._optional), "n_features_in_", *optional]
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        arrays: dict[str, NDArray[Any]] = {k: value for k, value in found.items() if isinstance(value, np.ndarray)}
        values = {name: as_json(value, name) for name, value in found.items() if name not in arrays}
        given = {name: value for name, value in self.get_params(deep=False).items() if name not in self._not_saved}
        params = {
            name: as_json(self.seed_ if is_source(value) else value, name)
            for name, value in given.items()
            if not isinstance(value, Estimator)
        }
        for part in self._parts:
            fitted: Estimator | None = getattr(self, part, None)
            own = None if fitted is None else fitted._state()
            values[part] = None if own is None else described(own)
            arrays.update({} if own is None else {f"{part}.{name}": array for name, array in own.arrays.items()})
        kind = type(self)
        return ModelState(kind.__name__, params, values, arrays, self.model_card_, kind._file_version)

    @classmethod
    def _from_state(cls, state: ModelState, name: str) -> Self:
        """Build the estimator that a model file describes; ``name`` is the file's, for messages."""
        parts = {part: take_part(state, part, name) for part in cls._parts}
        parts = {part: fitted for part, fitted in parts.items() if fitted is not None}
        found: dict[str, Any] = {**state.values, **state.arrays}
        expected = {*cls._learned, "n_features_in_"}
        if (expected - cls._optional) - found.keys() or found.keys() - expected - set(_OPTIONAL):
            raise ModelFileError(f"{name}: expected {sorted(expected)} for {cls.__name__}, found {sorted(found)}")
        if state.params.keys() - cls._rules.keys():
            raise ModelFileError(f"{name}: expected the parameters of {cls.__name__}, found {sorted(state.params)}")
        given = {key: value for key, value in state.params.items() if key not in cls._not_saved}
        estimator = cls(**{key: from_json(cls._rules[key], value, f"{name}: {key}") for key, value in given.items()})
        for attribute, value in (found | parts).items():
            rule = cls._learned.get(attribute)
            if rule is not None and rule.kinds:
                value = from_json(rule, value, f"{name}: {attribute}")
            setattr(estimator, attribute, value)
        estimator.model_card_ = state.card
        try:
            estimator._check_learned()
        except ValueError as error:
            raise ModelFileError(f"{name}: {error}") from None
        estimator._settle_seed()
        return estimator

    def _settle_seed(self) -> None:
        """Take the seed of a fit and of what is drawn after it from ``random_state``: once, when all is checked."""
        if "random_state" in self._rules:
            self.seed_ = seed_from(vars(self)["random_state"])

    @available_if(_require_callbacks)
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Attach callbacks of scikit-learn, for every fit to come; none at all takes them away.

        Parameters
        ----------
        *callbacks
            Objects as :class:`sklearn.callback.ProgressBar`; functions are an argument of ``fit``.
        """
        return _callback_support().CallbackSupportMixin.set_callbacks(self, *callbacks)

    @contextmanager
    def _watched(self, callbacks: Callbacks) -> Generator[Callable[[Any], None]]:
        """Yield a function to call with every round of a fit: it passes the round to all callbacks and the bar."""
        CALLBACKS.check("callbacks", callbacks)
        functions = tuple(callbacks or ())

        def tell(found: Any) -> None:
            progress.tell(found)
            for function in functions:
                function(found)

        if not hasattr(self, "_skl_callbacks"):  # attached by set_callbacks
            with progress_bars(type(self).__name__):
                yield tell
            return
        support = _callback_support()
        with support.callback_management_context(self):
            fit = support.CallbackSupportMixin._init_callback_context(self, max_subtasks=None)
            fit.call_on_fit_task_begin(estimator=self)

            def tell_all(found: Any) -> None:
                tell(found)
                round_ = fit.subcontext(task_name="round")
                round_.call_on_fit_task_begin(estimator=self)
                round_.call_on_fit_task_end(estimator=self, metadata={"round": found})

            yield tell_all
            fit.call_on_fit_task_end(estimator=self)

    def _check_learned(self) -> None:
        """Raise ValueError unless all is as declared; a subclass adds what holds between arrays."""
        check(self)
        count().check("n_features_in_", self.n_features_in_)
        for name, rule in self._learned.items():
            if name not in self._optional or name in vars(self):
                rule.check(name, getattr(self, name))
        if "feature_names_in_" in vars(self):
            names = vars(self)["feature_names_in_"]
            NAMES.check("feature_names_in_", names)
            if len(names) != self.n_features_in_:
                raise ValueError(f"feature_names_in_: expected {self.n_features_in_} names, found {len(names)}")
        check_shapes(self)
