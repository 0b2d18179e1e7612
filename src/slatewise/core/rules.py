"""Allowed values of parameters and learned attributes, checked by ``fit`` and by ``load``.

An estimator has one :class:`Rule` for every parameter::

    {"k": count(), "C": POSITIVE | one_of("auto"), "n_jobs": JOBS}

and :func:`check` applies them. Rules over several parameters stay code in the estimator. Counts have an upper end,
because a hostile file could otherwise make NumPy allocate any amount of memory.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.seeds import is_source

MOST = 2**31 - 1
"""Largest count for which nothing is allocated."""
MOST_LISTED = 1 << 20
"""Largest length of a list and number of samples: arrays of this length are made."""
MOST_COMPONENTS = 1 << 16
"""Largest number of columns of a table of factors."""
MOST_THREADS = 1 << 12
MOST_LEARNED = 1e40
"""Largest learned number in double precision: sums of products with data stay finite."""
MOST_FACTOR = 1e10
"""Largest learned factor in single precision, and norm of a row."""
MOST_WEIGHT = 1e6
"""Largest weight of a position."""
_LARGEST, _SINGLE = sys.float_info.max, np.finfo(np.float32)


@dataclass(frozen=True)
class Rule:
    """Allowed values, in words and as a test; ``a | b`` allows what either allows.

    Examples
    --------
    >>> rule = count() | one_of("auto")
    >>> rule.check("k", 3)
    >>> rule.check("k", 2.5)
    Traceback (most recent call last):
    ValueError: k: expected a whole number from 1 to 2147483647 or 'auto', found 2.5
    """

    expected: str
    allows: Callable[[Any], bool]
    kinds: tuple[type[Any], ...] = ()
    """The settings classes among what is allowed."""

    def __or__(self, other: Rule) -> Rule:
        def allows(value: object) -> bool:
            return self.allows(value) or other.allows(value)

        return Rule(f"{self.expected} or {other.expected}", allows, self.kinds + other.kinds)

    def check(self, name: str, value: object) -> None:
        """Raise ``ValueError("name: expected ..., found ...")`` unless the value is allowed."""
        if not self.allows(value):
            raise ValueError(f"{name}: expected {self.expected}, found {short_repr(value)}")


class Ruled(Protocol):
    """An object with a table of rules."""

    _rules: ClassVar[Mapping[str, Rule]]


def rules_of(ruled: Ruled) -> Mapping[str, Rule]:
    """Return the rule of each parameter."""
    return ruled._rules  # pyright: ignore[reportPrivateUsage] # users see no tables, estimators share this one


def check(ruled: Ruled) -> None:
    """Raise ValueError for the first parameter that its rule does not allow."""
    for name, rule in rules_of(ruled).items():
        rule.check(name, getattr(ruled, name))


def short_repr(value: object) -> str:
    """Return a value for a message: cut where it is long, and never a number of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, np.ndarray):
        array = cast("NDArray[Any]", value)
        return f"{array.dtype} of shape {array.shape}"
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def count(least: int = 1, most: int = MOST) -> Rule:
    """Allow integers of Python and NumPy, but not True."""
    return Rule(
        f"a whole number from {least} to {most}", lambda value: is_whole(value) and least <= _plain(value) <= most
    )


def number(expected: str, least: float, most: float) -> Rule:
    """Allow numbers of Python and NumPy from ``least`` to ``most``, but neither True nor NaN."""
    return Rule(expected, lambda value: _is_number(value) and bool(least <= _plain(value) <= most))


def one_of(first: str, *others: str) -> Rule:
    """Allow some strings."""
    names = (first, *others)
    expected = f"one of {', '.join(names)}" if others else repr(first)
    return Rule(expected, lambda value: isinstance(value, str) and value in names)


def vector(
    expected: str, least: float = -_LARGEST, most: float = _LARGEST, whole: bool = False, empty: bool = False
) -> Rule:
    """Allow numbers from ``least`` to ``most`` in a list, a tuple or a one-dimensional array."""

    def allows(value: object) -> bool:
        numbers = _as_vector(value)
        if numbers is None or not len(numbers):
            return empty and numbers is not None
        if numbers.dtype.kind not in ("iu" if whole else "iuf"):
            return False
        return bool(((numbers >= np.float64(least)) & (numbers <= np.float64(most))).all())

    return Rule(expected, allows)


def learned_array(ndim: int, dtype: type[np.floating[Any]] = np.float64, most: float = MOST_LEARNED) -> Rule:
    """Allow arrays of learned numbers, so small that products with data are finite too."""
    most = min(most, MOST_FACTOR) if dtype is np.float32 else most
    return _array(f"numbers up to {most:g}", dtype.__name__, ndim, -most, most)


def whole_array(ndim: int, dtype: str = "int64") -> Rule:
    """Allow arrays of whole numbers >= 0."""
    return _array("numbers >= 0", dtype, ndim, 0, MOST)


def _array(expected: str, dtype: str, ndim: int, least: float, most: float) -> Rule:
    def allows(value: object) -> bool:
        array = cast("NDArray[Any]", value) if isinstance(value, np.ndarray) else None
        if array is None or array.ndim != ndim or array.dtype != np.dtype(dtype):
            return False
        # Unlike a mask, the ends take no memory, which a mapped file would notice.
        return not array.size or bool(least <= array.min().item() and array.max().item() <= most)

    return Rule(f"a {dtype} array of {ndim} dimension{'s' * (ndim > 1)}, {expected}", allows)


def _ascending(*kinds: str) -> Callable[[object], bool]:
    def allows(value: object) -> bool:
        array = cast("NDArray[Any]", value) if isinstance(value, np.ndarray) else None
        if array is None or array.ndim != 1 or not {array.dtype.kind, array.dtype.name} & {*kinds}:
            return False
        finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
        return finite and bool((array[1:] > array[:-1]).all())

    return allows


def is_whole(value: object) -> bool:
    """Tell whether a value is an integer of Python or NumPy."""
    return not isinstance(value, bool) and isinstance(value, Integral)


def _plain(value: Any) -> Any:
    # NumPy would round the ends of a range to the value's own type.
    return cast("Any", value.item()) if isinstance(value, np.generic) else value


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real)


def _as_vector(value: object) -> NDArray[Any] | None:
    if isinstance(value, (list, tuple)):
        parts = cast("Sequence[object]", value)
        if not all(_is_number(part) for part in parts):
            return None
        value = np.asarray(parts)
    vector = cast("NDArray[Any]", value) if isinstance(value, np.ndarray) else None
    return None if vector is None or vector.ndim != 1 else vector


def _are_names(value: object) -> bool:
    array = cast("NDArray[Any]", value) if isinstance(value, np.ndarray) else None
    return array is not None and array.ndim == 1 and all(isinstance(name, str) for name in array.tolist())


def _is_path(value: object) -> bool:
    if not isinstance(value, (str, os.PathLike)):
        return False
    path = os.fspath(cast("str | os.PathLike[Any]", value))
    return isinstance(path, str) and path != "" and "\0" not in path


NONE = Rule("None", lambda value: value is None)
BOOLEAN = Rule("True or False", lambda value: isinstance(value, bool | np.bool_))
FINITE = number("a finite number", -_LARGEST, _LARGEST)
POSITIVE = number("a finite number > 0", math.ulp(0.0), _LARGEST)
NOT_NEGATIVE = number("a finite number >= 0", 0.0, _LARGEST)
SHARE = number("a number from 0 to below 1", 0.0, math.nextafter(1.0, 0.0))
SINGLE_POSITIVE = number("a finite float32 number > 0", float(_SINGLE.tiny), float(_SINGLE.max))
NORM = number(f"a number > 0 and at most {MOST_FACTOR:g}", float(_SINGLE.tiny), MOST_FACTOR)
WEIGHT = number(f"a number from 0 to {MOST_WEIGHT:g}", 0.0, MOST_WEIGHT)
WEIGHTS = vector(f"numbers from 0 to {MOST_WEIGHT:g}", 0.0, MOST_WEIGHT)
UNIT = number("a number from 1e-30 to 3.4e+38", 1e-30, float(_SINGLE.max))
"""For scores in single precision: a quotient by it neither overflows nor vanishes."""
LEARNED = number(f"a number up to {MOST_LEARNED:g}", -MOST_LEARNED, MOST_LEARNED)
LEARNED_POSITIVE = number(f"a number > 0 and at most {MOST_LEARNED:g}", math.ulp(0.0), MOST_LEARNED)
ANY_NUMBER = Rule("a number", _is_number)
"""For a figure that is only shown: NaN and infinities mean that there is none."""
COUNTS = _array(f"numbers from 0 to {MOST_LEARNED:g}", "float64", 1, 0.0, MOST_LEARNED)
STEPS = _array("numbers >= 0", "float32", 2, 0.0, math.inf)
NAMES = Rule("an array of strings of 1 dimension", _are_names)
LISTED_NAMES = Rule(
    "a list of names",
    lambda value: _are_names(np.array(value, dtype=object) if isinstance(value, list | tuple) else value),
)
IDS = Rule("int64 numbers or strings in ascending order, none twice", _ascending("int64", "U"))
CLASSES = Rule("numbers or strings in ascending order, none twice", _ascending("b", "i", "u", "f", "U"))
TEXT = Rule("a string", lambda value: isinstance(value, str))
PATH = Rule("a path", _is_path)
CALLBACKS = NONE | Rule(
    "a list or tuple of callables",
    lambda value: isinstance(value, list | tuple) and all(map(callable, cast("Sequence[object]", value))),
)
CHECKPOINT = NONE | PATH
SEED = NONE | count(0, 2**63 - 1) | Rule("a RandomState or Generator", is_source)
JOBS = NONE | count(1, MOST_THREADS) | count(-MOST_THREADS, -1)
DEVICE = NONE | Rule(
    "'cpu', 'cuda' or 'cuda:0'",
    lambda value: isinstance(value, str) and re.fullmatch(r"cpu|cuda(:\d+)?", value, re.ASCII) is not None,
)
"""Where tensors are computed; :mod:`slatewise.core.running.devices` checks whether the device is there."""
ANY = Rule("anything", lambda value: True)
"""For a parameter whose form depends on the data: fit checks it where it uses it."""
