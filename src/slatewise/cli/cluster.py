"""``slatewise fit``, ``rank`` and ``evaluate`` with ``--cluster``: on the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from slatewise.cli.console import working
from slatewise.metrics import Measure


def opened(address: str | None, workers: int | None) -> AbstractContextManager[object]:
    """Open the cluster that was asked for, if any."""
    from slatewise import cluster

    if address is None:
        if workers is not None:
            raise ValueError("--workers: expected with --cluster, found it alone")
        return nullcontext()
    return cluster.ray(_address(address), workers)


def rank_on_cluster(model: Path, data: str, out: Path, top: int, address: str, workers: int | None) -> int:
    """Open the cluster, rank, and return how many lines there are."""
    from slatewise import cluster

    if out.exists() and not out.is_dir():
        raise ValueError(f"--out: expected a folder with --cluster, found a file, {out}")
    with working("rank"), cluster.ray(_address(address), workers) as opened:
        return cluster.rank(opened, model, data, out, top)


def evaluate_on_cluster(
    model: Path, data: str, measures: Sequence[Measure], address: str, workers: int | None
) -> list[float]:
    """Open the cluster, and measure a model there."""
    from slatewise import cluster

    with working("evaluate"), cluster.ray(_address(address), workers) as opened:
        return cluster.evaluate(opened, model, data, measures)


def _address(text: str) -> str | None:
    return None if text == "local" else text
