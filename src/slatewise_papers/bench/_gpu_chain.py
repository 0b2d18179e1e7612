# type: ignore  (kernels are written in Triton's language, of which Python's types know nothing)
"""Nothing but float64 multiply-adds, from registers to registers: what a GPU can do of them at most."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

torch: Any = import_module("torch")
triton: Any = import_module("triton")
tl: Any = import_module("triton.language")


@triton.jit
def chain(out, factor, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """Multiply and add eight numbers per thread, STEPS times each."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(factor)
    a = lane.to(tl.float64)
    b, c, d = a + 1.0, a + 2.0, a + 3.0
    e, f, g, h = a + 4.0, a + 5.0, a + 6.0, a + 7.0
    for _ in range(STEPS):
        a, b, c, d = a * x + 1.0, b * x + 1.0, c * x + 1.0, d * x + 1.0
        e, f, g, h = e * x + 1.0, f * x + 1.0, g * x + 1.0, h * x + 1.0
    tl.store(out + lane, a + b + c + d + e + f + g + h)


def multiply_adds(steps: int = 4096) -> tuple[float, Callable[[], None]]:
    """Return how many operations a call does, and the call."""
    programs = 16 * torch.cuda.get_device_properties(0).multi_processor_count
    out = torch.empty(programs * 256, dtype=torch.float64, device="cuda")
    factor = torch.full((1,), 0.5, dtype=torch.float64, device="cuda")

    def call() -> None:
        chain[(programs,)](out, factor, steps, 256, num_warps=8)

    return programs * 256 * 8.0 * steps, call
