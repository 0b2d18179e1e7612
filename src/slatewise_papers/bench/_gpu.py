"""How a GPU is timed, and what it can do at most."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from statistics import median
from typing import Any, NamedTuple

from slatewise_papers.framework.timing import each_seconds


class Peak(NamedTuple):
    """Rates per second."""

    fp64: float
    """Operations of float64 vectors: adds, products, and fused multiply-adds, which count once."""
    fp16: float
    """Floating-point operations of float16 matrix products, two per multiply-add."""
    copy: float
    """Bytes read and written."""


def seconds(function: Callable[[], object], times: int = 5) -> float:
    """Return the median time of a call, the device's work included, after one call that compiles."""
    torch: Any = import_module("torch")

    def until_done(_: int) -> None:
        function()
        torch.cuda.synchronize()

    until_done(0)
    return median(each_seconds(until_done, range(times)))


@cache
def peak() -> Peak:
    """Measure the device's limits: chains of multiply-adds, a large matrix product, a large copy."""
    torch: Any = import_module("torch")
    from slatewise_papers.bench._gpu_chain import multiply_adds

    n = 8192
    a = torch.randn((n, n), dtype=torch.float16, device="cuda")
    here = torch.empty(1 << 29, dtype=torch.float32, device="cuda").normal_()
    there = torch.empty_like(here)
    count, chains = multiply_adds()
    return Peak(
        count / seconds(chains, 9),
        2 * n**3 / seconds(lambda: a @ a, 9),
        2 * here.nbytes / seconds(lambda: there.copy_(here), 9),
    )
