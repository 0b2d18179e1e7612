"""Batch answers of two workers, from Parquet to Parquet, against the plain top-k of two threads, which only ranks.

The plain top-k goes through its queries block by block: a tenth of them is timed, and taken times ten.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slatewise_papers.bench.ray import AT_LEAST, WORKERS, best_round
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.running import installed
from slatewise_papers.framework.timing import seconds

TENTH = 10


def run(quick: bool = False) -> Table:
    """Time; ``quick``: a tenth of the items, and fewer queries."""
    if not installed("ray"):
        return Table("ray-batch", [], ["ray"])
    from slatewise import cluster

    n_items, n_queries = (17_695, 50_000) if quick else (176_948, 1_000_000)
    model = _model(n_items)  # which trains on one machine, so before the cluster is opened
    with cluster.ray(workers=WORKERS) as opened:
        row = _batch(opened, model, n_queries, n_items)
    return Table("ray-batch", [row], [], [f"{WORKERS} workers of this machine, whose model is loaded; one run"])


def _batch(opened: Any, model: Any, n_queries: int, n_items: int) -> Row:
    """Rank all items for queries drawn at random, from Parquet to Parquet, and the same in this process."""
    from slatewise.cluster.batch import rank
    from slatewise.data.parquet import write_columns

    queries = np.random.default_rng(2).integers(0, n_items, n_queries)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save(folder / "model.safetensors")
        (folder / "in").mkdir()
        for at, part in enumerate(np.array_split(queries, max(2, n_queries // 25_000))):
            write_columns(folder / "in" / f"{at:04d}.parquet", {"query": part})
        rank(opened, folder / "model.safetensors", folder / "in" / "0000.parquet", folder / "warm", 20)
        there = seconds(lambda: rank(opened, folder / "model.safetensors", folder / "in", folder / "out", 20))
    plain, some = model.set_params(n_jobs=WORKERS), queries[: max(1, n_queries // TENTH)]
    here = n_queries / len(some) * best_round(lambda: plain.rank(some, 20), 1)
    what = f"the 20 best of {n_items} items for {n_queries} queries, Parquet to Parquet"
    return Row(what, there, f"rank, {WORKERS} threads", here, bar=AT_LEAST)


def _model(n_items: int) -> Any:
    """Return a LatentRanker whose queries and items are numbers, after one quick epoch over a chain of items."""
    from slatewise import LatentRanker

    items: NDArray[np.int64] = np.arange(n_items)
    settings: dict[str, Any] = {"n_components": 50, "epochs": 1, "learning_rate": 0.1, "max_norm": 1.0}
    model = LatentRanker(**settings, engine="sampled", validation_fraction=0.0, random_state=0)
    return model.fit(items, np.roll(items, 1))
