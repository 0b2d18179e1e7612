from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

def njit(
    *, nogil: bool = ..., cache: bool = ..., inline: str = ..., fastmath: set[str] = ...
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
