"""Ratios against peers, measured in one run. A benchmark never checks correctness; tests do that.

Each module has ``run(quick) -> Table``; a peer that is not installed is named in ``Table.left_out``.
"""

from __future__ import annotations

from importlib import import_module

from slatewise_papers.framework.benchmark import Row, Table

__all__ = ["BENCHMARKS", "Row", "Table", "run_benchmark"]

BENCHMARKS = {
    **{
        name: f"slatewise_papers.bench.{name.replace('-', '_')}"
        for name in (
            *("metrics", "reader", "star", "cstar", "label", "labels", "quadratic", "permanent", "metric", "warp"),
            *("topk", "bag", "neighbors", "serve", "gpu", "ray", "ray-batch", "ray-memory"),
        )
    },
    "golden": "slatewise_papers.bench.golden_metrics",
}
"""The module of each benchmark."""


def run_benchmark(name: str, quick: bool = False) -> Table:
    """Run one benchmark by name."""
    if name not in BENCHMARKS:
        raise ValueError(f"benchmark: expected one of {', '.join(BENCHMARKS)}, found {name!r}")
    table: Table = import_module(BENCHMARKS[name]).run(quick)
    return table
