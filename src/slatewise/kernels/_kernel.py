"""The one decorator every compiled function wears."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first call, release the GIL, keep the machine code on disk where a folder is writable."""
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # read-only install without a cache folder: compile in every process instead
        return njit(nogil=True)(function)
