"""Permanents with all marginals on a GPU, in float64; log weights N(0, 1) that lie there. Part of ``bench gpu``."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from slatewise.inference import permanent
from slatewise_papers.bench._gpu import peak, seconds
from slatewise_papers.framework.benchmark import Row

_BARS = {(1, 30): "<= 0.02 s", (1, 36): "<= 2 s", (1_000_000, 5): "<= 0.05 s"}


def rows(quick: bool) -> list[Row]:
    """Time single large matrices and batches of small ones."""
    shapes = [(1, 20), (1, 24), (1, 30), (1, 36), (1_000, 20), (100_000, 12), (1_000_000, 3), (1_000_000, 5)]
    shapes += [(1_000_000, 6), (1_000_000, 8)]
    found: list[Row] = []
    for count, size in shapes[:3] + shapes[6:8] if quick else shapes:
        what, w = f"permanents of {count:,} x {size} x {size}, all marginals", _drawn(count, size)
        taken = seconds(lambda w=w: permanent(w, device="cuda"), 3 if size > 30 else 7)
        found.append(Row(what, taken, "limit", _least_seconds(count, size), bar=_BARS.get((count, size), "")))
    return found


def _least_seconds(count: int, size: int) -> float:
    """Return the device's limit: four operations per row and sign vector, or each number read and written once."""
    if size > 8:
        return count * 2.0 ** (size - 1) * 4 * size / peak().fp64
    return count * 16.0 * size * size / peak().copy


def choices() -> None:
    """Print how long each choice of tiles takes, the kernels alone."""
    fused: Any = import_module("slatewise.matching.gpu.fused")
    twins: Any = import_module("slatewise.matching.gpu.twins")
    for size, lows in ((30, (10, 14)), (36, (14, 17)), (20, (9,))):
        count = 256 if size == 20 else 1
        columns = _drawn(count, size).softmax(dim=2)
        columns = (columns / twins.GRAIN).round() * twins.GRAIN
        for low in lows:
            for lanes, warps, registers in _TILES if size == 30 else _TILES[:3]:
                signs = partial(fused.signs, lane_columns=lanes, num_warps=warps, maxnreg=registers)
                least = 2 * count * 2.0 ** (size - 1) * 4 * size / peak().fp64
                try:
                    taken = seconds(lambda signs=signs, low=low, w=columns: twins.sum_all_signs(w, low, signs), 2)
                except Exception as error:
                    print(f"signs M={size} low={low} lanes=2^{lanes} warps={warps}: {error!r:.100}", flush=True)
                    continue
                print(
                    f"signs {count} x M={size} low={low} lanes=2^{lanes} warps={warps} registers={registers}: "
                    f"{1e3 * taken:.3f} ms, {least / taken:.1%} of the float64 limit (two passes)",
                    flush=True,
                )
    for size in (3, 5, 6):
        w = _drawn(1_000_000, size)
        for block, warps in ((32, 1), (64, 2), (128, 4), (256, 8), (128, 2)):
            taken = seconds(lambda w=w, block=block, warps=warps: fused.subsets(w, block, warps), 9)
            print(f"subsets 1M x M={size} block={block} warps={warps}: {1e3 * taken:.3f} ms", flush=True)


_TILES: list[tuple[int, int, int | None]] = [
    (5, 1, None),
    (6, 2, None),
    (7, 4, None),
    (6, 1, None),
    (5, 1, 168),
    (7, 4, 168),
]


def _drawn(count: int, size: int) -> Any:
    torch: Any = import_module("torch")
    made = torch.Generator(device="cuda").manual_seed(0)
    return torch.randn((count, size, size), dtype=torch.float64, device="cuda", generator=made)
