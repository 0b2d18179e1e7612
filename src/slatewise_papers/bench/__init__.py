"""Ratios against peers, measured in one run. A benchmark never checks correctness; tests do that.

Each module has ``run(quick) -> Table``; a peer that is not installed is named in ``Table.left_out``.
"""

from __future__ import annotations

from importlib import import_module

from slatewise_papers.bench._table import Row, Table, best_seconds, installed

__all__ = ["BENCHMARKS", "Row", "Table", "best_seconds", "installed", "run_benchmark"]

BENCHMARKS = {
    "metrics": "slatewise_papers.bench.metrics",
    "reader": "slatewise_papers.bench.reader",
    "star": "slatewise_papers.bench.star",
    "cstar": "slatewise_papers.bench.cstar",
    "label": "slatewise_papers.bench.label",
    "labels": "slatewise_papers.bench.labels",
    "quadratic": "slatewise_papers.bench.quadratic",
    "permanent": "slatewise_papers.bench.permanent",
    "metric": "slatewise_papers.bench.metric",
    "warp": "slatewise_papers.bench.warp",
    "topk": "slatewise_papers.bench.topk",
    "bag": "slatewise_papers.bench.bag",
    "neighbors": "slatewise_papers.bench.neighbors",
    "serve": "slatewise_papers.bench.serve",
    "gpu": "slatewise_papers.bench.gpu",
    "ray": "slatewise_papers.bench.ray",
    "ray-batch": "slatewise_papers.bench.ray_batch",
    "ray-memory": "slatewise_papers.bench.ray_memory",
    "golden": "slatewise_papers.bench.golden_metrics",
}


def run_benchmark(name: str, quick: bool = False) -> Table:
    """Run one benchmark by name."""
    if name not in BENCHMARKS:
        raise ValueError(f"benchmark: expected one of {', '.join(BENCHMARKS)}, found {name!r}")
    table: Table = import_module(BENCHMARKS[name]).run(quick)
    return table
