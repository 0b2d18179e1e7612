"""Where tensors are computed. torch is loaded on first use; what is missing is named before any work starts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

Size = TypeVar("Size")
Result = TypeVar("Result")

MOST_TILE = 1 << 30
"""Bytes of a tile at most: more would not be faster."""


def gpu_of(name: str, values: Any, device: str | None) -> Any:
    """Return the GPU that ``device`` names, or None for the CPU; a tensor must lie where it is to be computed.

    Arrays are copied to the device. ``name`` is what a message calls ``values``.

    Examples
    --------
    >>> gpu_of("log_weights", [[1.0]], "cpu") is None
    True
    """
    torch: Any = sys.modules.get("torch")  # nothing is a tensor where torch was never loaded
    lies_on: Any = values.device if torch is not None and isinstance(values, torch.Tensor) else None
    if device is None or device == "cpu":
        if lies_on is not None and lies_on.type != "cpu":
            raise ValueError(f"device: expected {str(lies_on)!r}, where {name} is, found {device!r}")
        return None
    wanted = require_gpu(device)
    if lies_on is not None and lies_on != wanted:
        raise ValueError(f"device: expected {str(lies_on)!r}, where {name} is, found {device!r}")
    return wanted


def require_gpu(device: str, argument: str = "device", instead: str = "None is the CPU") -> Any:
    """Return a torch device for "cuda" or "cuda:1", or raise an error that says what to do, or what to take instead."""
    kind, _, number = str(device).partition(":")
    if kind != "cuda" or (":" in str(device) and not number.isdecimal()):
        raise ValueError(f"{argument}: expected None, 'cpu', 'cuda' or 'cuda:0', found {device!r}")
    if find_spec("torch") is None:
        raise ImportError("a GPU needs torch: pip install 'slatewise[gpu]'")
    torch: Any = import_module("torch")
    if not torch.cuda.is_available():
        raise ValueError(f"{argument}: expected a GPU that torch {torch.__version__} can use, found none ({instead})")
    if find_spec("triton") is None:  # torch's builds for CUDA bring it along
        raise ImportError("a GPU needs triton: pip install triton")
    count = int(torch.cuda.device_count())
    if number and int(number) >= count:
        raise ValueError(f"{argument}: expected one of {count} GPUs, 'cuda:0' to 'cuda:{count - 1}', found {device!r}")
    return torch.device("cuda", int(number) if number else torch.cuda.current_device())


def tile_bytes(device: Any) -> int:
    """Return how many bytes a tile may take: less where other work has filled the GPU."""
    if device.type == "cpu":
        return MOST_TILE >> 4
    torch: Any = import_module("torch")
    free, _ = torch.cuda.mem_get_info(device)
    return min(MOST_TILE, int(free) // 8)


def working_on(device: Any) -> AbstractContextManager[None]:
    """Make a device the one that kernels are launched on."""
    torch: Any = import_module("torch")
    return torch.cuda.device(device) if torch.device(device).type == "cuda" else nullcontext()


def with_less_memory(
    attempt: Callable[[Size], Result],
    size: Size,
    smaller: Callable[[Size], Size | None],
    what: str,
    instead: str,
) -> Result:
    """Return ``attempt(size)``, with smaller sizes while memory does not do; MemoryError where none is left."""
    torch: Any = import_module("torch")
    while True:
        try:
            return attempt(size)
        except _out_of_memory() as error:
            less = smaller(size)
            if less is None:
                raise MemoryError(f"device: expected memory for {what}, found too little; try {instead}") from error
            size = less
        if torch.cuda.is_available():  # here, where what was tried is free again
            torch.cuda.empty_cache()


def halved(count: int) -> int | None:
    """Return half of what was tried; None where that is nothing.

    Examples
    --------
    >>> halved(5), halved(1)
    (2, None)
    """
    return count // 2 or None


def _out_of_memory() -> tuple[type[Exception], ...]:
    kinds: tuple[type[Exception], ...] = (import_module("torch").OutOfMemoryError,)
    if find_spec("triton") is not None:
        kinds += (import_module("triton.runtime.errors").OutOfResources,)
    return kinds
