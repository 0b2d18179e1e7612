"""``slatewise rank --cluster``: Parquet in, a folder of Parquet out, on the workers of a Ray cluster."""

from __future__ import annotations

from pathlib import Path

from slatewise.cli.console import working


def rank_on_cluster(model: Path, data: str, out: Path, top: int, address: str, workers: int | None) -> int:
    """Open the cluster, rank, and return how many lines there are."""
    from slatewise import cluster

    if out.exists() and not out.is_dir():
        raise ValueError(f"--out: expected a folder with --cluster, found a file, {out}")
    with working("rank"), cluster.ray(None if address == "local" else address, workers) as opened:
        return cluster.rank(opened, model, data, out, top)
