"""Two workers of a local Ray against two threads: rounds of two learners, batch answers, and what a round costs.

Data is held before the clock starts. ``ours`` are the workers, the peer is this process with as many threads; a ratio
of 0.85 means that 15% are lost to other processes. Batch answers go from Parquet to Parquet; the plain top-k beside
them only ranks.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Callable
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slatewise.core.block_sums import BlockSum
from slatewise.core.executor import Executor, one_blas_thread
from slatewise.cstar.adjusted import AdjustedScores
from slatewise.cstar.subset_likelihood import SubsetLikelihood
from slatewise.metric_learning.interleave import Oracle
from slatewise.metric_learning.margin_hinge import MarginHinge
from slatewise_papers.bench._table import Row, Table, installed

WORKERS, ROUNDS = 2, 5
_AT_LEAST = "ratio >= 0.85"


def run(quick: bool = False) -> Table:
    """Time; ``quick``: a tenth of the rows."""
    if not installed("ray"):
        return Table("ray", [], ["ray"])
    from slatewise import cluster

    threads, n_items = Executor(WORKERS), 17_695 if quick else 176_948
    model = _model(n_items)  # which trains on one machine, so before the cluster is opened
    start = time.perf_counter()
    with cluster.ray(workers=WORKERS) as opened:
        rows = [Row("a cluster of two workers, to open", time.perf_counter() - start)]
        there = Executor(WORKERS, opened)
        empty = there.hold([0.0, 0.0], 0.0)
        rows.append(Row("a round without work", 1e3 * _seconds(lambda: empty.sum(_NOTHING, 0.0), 50), unit="ms"))
        share = 10 if quick else 1
        for make in (_margin, _likelihood):
            what, ask, size = make(share)
            on_workers, here = _seconds(ask(there), ROUNDS), _seconds(ask(threads), ROUNDS)
            rows.append(Row(f"{what}, a round", on_workers, f"{WORKERS} threads", here, bar=_AT_LEAST))
            rows.append(Row(f"{what}, bytes to and from a worker", 2 * size / 1e3, unit="kB"))
        rows.append(_batch(opened, model, 50_000 if quick else 1_000_000, n_items))
    return Table("ray", rows, [], [f"{WORKERS} workers of this machine; best of {ROUNDS} rounds"])


def _nothing(at: float, block: float) -> float:
    return at + block


_NOTHING: BlockSum[float, float, float, float, float] = BlockSum(add, _nothing, add)


def _margin(share: int) -> tuple[str, Callable[[Executor], Callable[[], object]], int]:
    """Lists of 100 rows of 46 features."""
    rng, n_rows = np.random.default_rng(0), 1_000_000 // share
    X, relevance = rng.normal(size=(n_rows, 46)), (rng.random(n_rows) < 0.1).astype(np.int8)
    offsets, w = np.arange(0, n_rows + 1, 100), rng.normal(size=46)

    def ask(executor: Executor) -> Callable[[], object]:
        hinge = MarginHinge(X, relevance, offsets, Oracle("map"), executor)
        return lambda: hinge.cut(w)

    return f"MarginRanker, {n_rows} x 46, map", ask, len(pickle.dumps(w))


def _likelihood(share: int) -> tuple[str, Callable[[Executor], Callable[[], object]], int]:
    """Given log-odds of 93 labels, 8 of them in the core."""
    rng, n_rows, core = np.random.default_rng(1), 64_000 // share, np.arange(8)
    given = rng.normal(size=(n_rows, 93)) - 2.0
    known = (rng.random(given.shape) < 0.15).astype(np.int8)
    params = 0.1 * rng.normal(size=93 * (2 + len(core)))
    AdjustedScores(given, core).unpack(params)[2][:, core] = 0.0

    def ask(executor: Executor) -> Callable[[], object]:
        likelihood = SubsetLikelihood(AdjustedScores(given, core), known, np.ones(n_rows), executor)
        return lambda: likelihood.value_and_grad(params)

    return f"c-star likelihood, {n_rows} x 93, 8 core labels", ask, len(pickle.dumps(params))


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
        start = time.perf_counter()
        rank(opened, folder / "model.safetensors", folder / "in", folder / "out", 20)
        there = time.perf_counter() - start
    plain = model.set_params(n_threads=WORKERS)
    here = _seconds(lambda: plain.rank(queries, 20), 1)
    what = f"the 20 best of {n_items} items for {n_queries} queries, Parquet to Parquet"
    return Row(what, there, f"rank, {WORKERS} threads", here, bar=_AT_LEAST)


def _model(n_items: int) -> Any:
    """Return a LatentRanker whose queries and items are numbers, after one quick epoch over a chain of items."""
    from slatewise import LatentRanker

    items: NDArray[np.int64] = np.arange(n_items)
    settings: dict[str, Any] = {"n_components": 50, "epochs": 1, "learning_rate": 0.1, "max_norm": 1.0}
    model = LatentRanker(**settings, engine="sampled", validation_fraction=0.0, random_state=0)
    return model.fit(items, np.roll(items, 1))


def _seconds(call: Callable[[], object], times: int) -> float:
    """Return the shortest of some calls, after one that is not counted."""
    found: list[float] = []
    with one_blas_thread():
        call()
        for _ in range(times):
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
    return min(found)
