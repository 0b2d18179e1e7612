"""The two decorators of compiled functions: ``kernel`` for all of them, ``loose_sums`` where a sum is only a bound."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from numba import njit

from slatewise.core.compiling import CompileNotice

_event: Any = import_module("numba.core.event")
COMPILE_NOTICE = CompileNotice()
_event.register("numba:compile", COMPILE_NOTICE)

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first call, release the GIL, keep the machine code on disk where a folder is writable."""
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # read-only install without a cache folder: compile in every process instead
        return njit(nogil=True)(function)


def loose_sums(function: Callable[P, R]) -> Callable[P, R]:
    """Compile as ``kernel`` does, and let sums be added in any order: the compiler then adds eight numbers at a time.

    The bits still depend on the machine's instructions only, never on threads. But of a loop that also writes, the
    compiler may make two and take one by where the arrays lie: sum in a loop of its own, or let
    ``tests/test_loose_sums.py`` look at it.
    """
    any_order = {"reassoc", "nsz"}
    try:
        return njit(nogil=True, cache=True, fastmath=any_order)(function)
    except RuntimeError:
        return njit(nogil=True, fastmath=any_order)(function)
