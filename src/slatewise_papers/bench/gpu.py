"""What one GPU does: seconds beside those that the device's own limit would take, so that a ratio of 1 is the limit.

``slatewise bench gpu``, or from a clone without installing anything
``PYTHONPATH=src python -m slatewise_papers.bench.gpu [--quick] [--choices] [--json FILE] [PART ...]``: torch, triton,
NumPy, SciPy, Numba and scikit-learn are all it needs.
``--choices`` times the tiles that each kernel could use.
"""

from __future__ import annotations

import json
import platform
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from slatewise_papers.bench._gpu import peak
from slatewise_papers.framework.benchmark import Row, Table

PARTS = ("permanent", "metric", "warp")
"""Modules ``gpu_NAME`` beside this one, each with ``rows(quick)`` and ``choices()``."""


def run(quick: bool = False, parts: tuple[str, ...] = PARTS) -> Table:
    """Time every part that is there."""
    from slatewise.core.running.devices import require_gpu

    require_gpu("cuda")
    there = [part for part in parts if _is_there(part)]
    rows: list[Row] = [row for part in there for row in import_module(f"slatewise_papers.bench.gpu_{part}").rows(quick)]
    return Table("gpu", rows, [part for part in parts if part not in there], machine())


def machine() -> list[str]:
    """Return what the figures depend on: device, versions, processor, limits."""
    torch: Any = import_module("torch")
    device, limits = torch.cuda.get_device_properties(0), peak()
    names = ("torch", "triton", "numpy", "scipy", "numba", "scikit-learn")
    return [
        f"{device.name}, {device.total_memory >> 30} GiB, {device.multi_processor_count} multiprocessors, "
        f"CUDA {torch.version.cuda}",
        f"Python {platform.python_version()}, " + ", ".join(f"{name} {_version(name)}" for name in names),
        f"CPU: {_processor()}",
        f"limits: {limits.fp64 / 1e12:.1f}e12 float64 operations/s (a fused multiply-add is one), "
        f"{limits.fp16 / 1e12:.0f} TFLOP/s in float16 products, {limits.copy / 1e12:.2f} TB/s copied, measured here",
    ]


def _is_there(part: str) -> bool:
    return find_spec(f"slatewise_papers.bench.gpu_{part}") is not None


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    import os

    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor()
    return f"{model}, {os.cpu_count()} cores"


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = ArgumentParser(prog="python -m slatewise_papers.bench.gpu")
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--choices", action="store_true")
    parser.add_argument("--json")
    given = parser.parse_args(arguments)
    table = run(given.quick, tuple(given.parts))
    for line in [*table.remarks, *(f"left out, not in this tree: {part}" for part in table.left_out)]:
        print(line)
    for row in table.rows:
        limit = (
            "" if row.theirs is None or row.ratio is None else f"{row.peer}: {row.theirs:.4g}, {row.ratio:.1%} of it"
        )
        print(f"{row.what:<72} {row.ours:10.4g} {row.unit:<4} {row.bar:<16} {limit}", flush=True)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(asdict(table), file, indent=1)
    if given.choices:
        for part in (part for part in given.parts if _is_there(part)):
            import_module(f"slatewise_papers.bench.gpu_{part}").choices()


if __name__ == "__main__":
    main(sys.argv[1:])
