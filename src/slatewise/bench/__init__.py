"""Ratios against peers, measured in one run. A benchmark never checks correctness; tests do that.

Each module has ``run(quick) -> Table``; a peer that is not installed is named in ``Table.left_out``.
"""

from __future__ import annotations

from importlib import import_module

from slatewise.bench._table import Row, Table, best_seconds, installed

__all__ = ["BENCHMARKS", "Row", "Table", "best_seconds", "installed", "run_benchmark"]

BENCHMARKS = {
    "metrics": "slatewise.bench.metrics",
    "reader": "slatewise.bench.reader",
    "star": "slatewise.bench.star",
    "cstar": "slatewise.bench.cstar",
    "quadratic": "slatewise.bench.quadratic",
    "permanent": "slatewise.bench.permanent",
    "metric": "slatewise.bench.metric",
    "warp": "slatewise.bench.warp",
    "topk": "slatewise.bench.topk",
    "golden": "slatewise.bench.golden_metrics",
}


def run_benchmark(name: str, quick: bool = False) -> Table:
    """Run one benchmark by name."""
    if name not in BENCHMARKS:
        raise ValueError(f"benchmark: expected one of {', '.join(BENCHMARKS)}, found {name!r}")
    table: Table = import_module(BENCHMARKS[name]).run(quick)
    return table
