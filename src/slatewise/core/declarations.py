"""Parameters, learned attributes and settings objects, each declared once.

The body of a class declares them::

    class MarginRanker(Estimator):
        C: float | Literal["auto"] = param(POSITIVE | one_of("auto"), "Weight of the loss.", default=1.0)
        coef_: Floats = learned(learned_array(1), "One weight per feature.", shape=("n_features_in_",))

From this follow the signature of ``__init__`` (the class becomes a dataclass), validation in ``fit``, the check of a
loaded file, and the sections "Parameters" and "Attributes" of the docstring.

Parameters that matter only together belong to a :class:`Settings` object, which is the value of one parameter. A
string or a number is a shorthand for one::

    loss="ndcg"                 the same as loss=NDCG()
    stages=2                    the same as stages=Stages(2)
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, cast, dataclass_transform

import numpy as np

from slatewise.core.rules import Rule, Ruled, is_whole, rules_of

_KEY = "slatewise"
Dimension = str | int
"""A dimension of an array: a number, the name of an attribute (its value, or the length of an array), or a letter."""


@dataclass(frozen=True)
class Declaration:
    """The declaration of a parameter or a learned attribute."""

    rule: Rule
    text: str
    saved: bool = True
    """Whether it is in a model file."""
    optional: bool = False
    """Whether a fit may leave a learned attribute out."""
    shape: tuple[Dimension, ...] | None = None


def param(rule: Rule, text: str, *, default: Any, saved: bool = True, kw_only: bool | None = None) -> Any:
    """Declare a parameter of an estimator, or a field of a settings object.

    Parameters
    ----------
    rule
        The allowed values.
    text
        The meaning, for the docstring.
    default
        The default in the signature.
    saved
        Whether it belongs to the model. ``n_jobs`` and the like belong to a run and are in no model file.
    kw_only
        False for the first parameter of an estimator.
    """
    return field(
        default=default,
        kw_only=cast("bool", MISSING) if kw_only is None else kw_only,
        metadata={_KEY: Declaration(rule, text, saved)},
    )


def learned(
    rule: Rule,
    text: str,
    *,
    shape: tuple[Dimension, ...] | None = None,
    optional: bool = False,
    saved: bool = True,
    init: Literal[False] = False,
) -> Any:
    """Declare an attribute that ``fit`` sets.

    Parameters
    ----------
    shape
        The shape of an array: numbers, names of attributes (``"n_features_in_"``, or an array, of which the length
        counts), and letters for sizes that only have to agree between arrays.
    optional
        Whether some models lack the attribute. It is then absent, not None.
    rule, text, saved
        As in :func:`param`.
    init
        Always False; type checkers read it.
    """
    return field(init=init, metadata={_KEY: Declaration(rule, text, saved, optional, shape)})


JOBS_TEXT = """Threads; the result is the same, bit for bit, with any number. None: the environment variable
``SLATEWISE_THREADS``, else all cores of this process, and 1 inside a worker of joblib."""


def seed_text(what: str) -> str:
    """Return the text of ``random_state``; the sentence ``what`` names what is drawn."""
    return f"""{what} None is 0: every fit draws the same numbers.
From a RandomState or Generator each fit draws one seed, ``seed_``."""


def params_of(kind: type) -> dict[str, Declaration]:
    """Return the declared parameters of a class, in the order of its signature."""
    return {one.name: one.metadata[_KEY] for one in fields(kind) if one.init}


def learned_of(kind: type) -> dict[str, Declaration]:
    """Return the declared learned attributes of a class."""
    return {one.name: one.metadata[_KEY] for one in fields(kind) if not one.init}


def check_shapes(estimator: object) -> None:
    """Raise ValueError unless the arrays of a fitted estimator have the declared shapes."""
    sizes: dict[str, int] = {}
    for name, declared in learned_of(type(estimator)).items():
        if declared.shape is None or not hasattr(estimator, name):
            continue
        value = getattr(estimator, name)
        if not isinstance(value, np.ndarray):
            continue
        found = cast("tuple[int, ...]", value.shape)
        if len(found) != len(declared.shape):
            continue  # another of the kinds that its rule allows
        expected = tuple(
            _size(estimator, one, sizes.setdefault(str(one), size))
            for one, size in zip(declared.shape, found, strict=True)
        )
        if found != expected:
            raise ValueError(f"{name}: expected shape {expected}, found {found}")


def _size(estimator: object, dimension: Dimension, bound: int) -> int:
    if isinstance(dimension, int):
        return dimension
    value: Any = getattr(estimator, dimension, bound)
    return int(value) if is_whole(value) else len(value)


# --- settings ---------------------------------------------------------------------------------------------------------


@dataclass_transform(frozen_default=True, field_specifiers=(param,))
class Settings:
    """A few parameters that belong together, frozen: the value of one parameter of an estimator.

    A subclass declares its fields by :func:`param` and names its shorthand. Values are checked when it is made.

    Examples
    --------
    >>> from slatewise.core.rules import count
    >>> class Slates(Settings, shorthand="sampled"):
    ...     size: int = param(count(2, 20), "Documents of a slate.", default=3)
    >>> Slates(size=4)
    Slates(size=4)
    >>> Slates(size=1)
    Traceback (most recent call last):
    ValueError: Slates.size: expected a whole number from 2 to 20, found 1
    """

    shorthand: ClassVar[str | None] = None
    """The string that stands for this class with its defaults."""
    takes_number: ClassVar[bool] = False
    """Whether a number stands for this class with that number as its first field."""

    def __init_subclass__(cls, *, shorthand: str | None = None, takes_number: bool = False) -> None:
        super().__init_subclass__()
        cls.shorthand, cls.takes_number = shorthand, takes_number
        dataclass(frozen=True, repr=False)(cls)
        document(cls)

    def __post_init__(self) -> None:
        """Check every field; arrays become tuples, so that settings can be compared."""
        for name, declared in params_of(type(self)).items():
            value = getattr(self, name)
            declared.rule.check(f"{type(self).__name__}.{name}", value)
            if isinstance(value, list | np.ndarray):
                object.__setattr__(self, name, tuple(np.asarray(cast("Any", value)).tolist()))

    def __repr__(self) -> str:
        """Show the fields that differ from their defaults, as scikit-learn shows the parameters of estimators."""
        defaults = {one.name: one.default for one in fields(cast("Any", self))}
        changed = [f"{name}={getattr(self, name)!r}" for name in defaults if getattr(self, name) != defaults[name]]
        return f"{type(self).__name__}({', '.join(changed)})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the fields; with ``deep`` also those inside fields that are settings themselves."""
        return deep_params(self, rules_of_fields(type(self)), deep)

    def __sklearn_clone__(self) -> Settings:
        return self


def settings(*kinds: type[Settings]) -> Rule:
    """Allow some settings classes and their shorthands."""
    words = [repr(kind.shorthand) for kind in kinds if kind.shorthand is not None]
    objects = ", ".join(f"{kind.__name__}(...)" for kind in kinds)
    number = " or a number" if any(kind.takes_number for kind in kinds) else ""

    def allows(value: object) -> bool:
        return expanded(kinds, value) is not None

    return Rule(f"{', '.join(words)}{' or ' if words else ''}{objects}{number}", allows, kinds)


def expanded(kinds: tuple[type[Settings], ...], value: object) -> Settings | None:
    """Return the settings object that a value is or stands for, or None."""
    for kind in kinds:
        if isinstance(value, kind):
            return value
        if isinstance(value, str) and value == kind.shorthand:
            return kind()
        if kind.takes_number and is_whole(value):
            first, declared = next(iter(params_of(kind).items()))
            return kind(**{first: value}) if declared.rule.allows(value) else None
    return None


def resolved(estimator: Ruled, name: str) -> Any:
    """Return a parameter of an estimator; a shorthand becomes its settings object."""
    value = getattr(estimator, name)
    found = expanded(rules_of(estimator)[name].kinds, value)
    return value if found is None else found


def rules_of_fields(kind: type[Settings]) -> Mapping[str, Rule]:
    """Return what each field of settings may be."""
    return {name: declared.rule for name, declared in params_of(kind).items()}


def deep_params(owner: object, rules: Mapping[str, Rule], deep: bool) -> dict[str, Any]:
    """Return parameters by name; with ``deep`` as ``name__field`` also those inside settings and estimators."""
    params: dict[str, Any] = {name: getattr(owner, name) for name in rules}
    for name in [*params] if deep else []:
        inner = expanded(rules[name].kinds, params[name]) or params[name]
        if hasattr(inner, "get_params") and not isinstance(inner, type):
            params |= {f"{name}__{key}": value for key, value in inner.get_params().items()}
    return params


def changed(rule: Rule, name: str, value: Any, changes: Mapping[str, Any]) -> Any:
    """Return the settings that a value stands for with other fields; ``field__inner`` reaches into a field.

    An estimator is changed in place.
    """
    current: Any = expanded(rule.kinds, value) or value
    if hasattr(current, "set_params"):
        return current.set_params(**changes)
    known: Mapping[str, Rule] = rules_of_fields(type(current)) if isinstance(current, Settings) else {}
    fields: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for key, new in changes.items():
        first, _, inner = key.partition("__")
        if first not in known:
            able = kinds_with(rule.kinds, first)
            hint = f"a parameter of {name}={' or '.join(map(repr, able))}" if able else "a parameter that exists"
            raise ValueError(f"{name}__{key}: expected {hint}, found {name}={value!r}")
        if inner:
            nested.setdefault(first, {})[inner] = new
        else:
            fields[first] = new
    for first, deeper in nested.items():
        fields[first] = changed(known[first], f"{name}__{first}", fields.get(first, getattr(current, first)), deeper)
    return replace(cast("Any", current), **fields)


def kinds_with(kinds: tuple[type[Settings], ...], field_name: str) -> list[str]:
    """Name the shorthands, or else the classes, of those kinds that have a field."""
    return [kind.shorthand or kind.__name__ for kind in kinds if field_name in params_of(kind)]


# --- docstrings -------------------------------------------------------------------------------------------------------

_LATER = re.compile(r"^(See Also|Notes|References|Examples)\n-+$", re.MULTILINE)


def document(kind: type) -> None:
    """Write the declared parameters and attributes into the docstring of a class."""
    if kind.__doc__ is None:  # python -OO
        return
    text = inspect.cleandoc(kind.__doc__)
    defaults = {one.name: repr(one.default) for one in fields(kind) if one.init}
    sections = _section("Parameters", params_of(kind), defaults) + _section("Attributes", learned_of(kind), {})
    later = _LATER.search(text)
    place = len(text) if later is None else later.start()
    kind.__doc__ = f"{text[:place].rstrip()}\n\n{sections}{text[place:]}".rstrip() + "\n"


def _section(title: str, declared: Mapping[str, Declaration], defaults: Mapping[str, str]) -> str:
    lines: list[str] = []
    for name, one in declared.items():
        if not one.text:
            continue
        default = f", default={defaults[name]}" if name in defaults else ""
        lines.append(f"{name} : {one.rule.expected}{default}" if name in defaults else name)
        lines.append(textwrap.indent(inspect.cleandoc(one.text), "    "))
    return "\n".join([title, "-" * len(title), *lines, "", ""]) if lines else ""
