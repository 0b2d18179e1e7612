"""Less at once where a device's memory does not do."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

torch: Any = import_module("torch")

Size = TypeVar("Size")
Result = TypeVar("Result")


def _out_of_memory() -> tuple[type[Exception], ...]:
    kinds: tuple[type[Exception], ...] = (torch.OutOfMemoryError,)
    if find_spec("triton") is not None:
        kinds += (import_module("triton.runtime.errors").OutOfResources,)
    return kinds


def with_less_memory(
    attempt: Callable[[Size], Result],
    size: Size,
    smaller: Callable[[Size], Size | None],
    what: str,
    instead: str,
) -> Result:
    """Return ``attempt(size)``, with smaller sizes while memory does not do; MemoryError where none is left."""
    while True:
        try:
            return attempt(size)
        except _out_of_memory() as error:
            less = smaller(size)
            if less is None:
                raise MemoryError(f"device: expected memory for {what}, found too little; try {instead}") from error
            size = less
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
