"""The 20 best of 176,948 items for every query, n = 50, against lightfm-next's predict_rank and implicit's topk.

predict_rank is timed on some of the queries, with one pair each, and one thread, as ours is beside it; implicit and we
rank for all queries with all threads. One query goes through a quantized index, as in LatentRanker.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from slatewise.core.arrays import Singles
from slatewise.core.running.executor import Executor
from slatewise.factors.queries import IdQueries
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.tables import Table as Rows
from slatewise.factors.tables import aligned_zeros, padded
from slatewise.recommend.quantized import QuantizedIndex
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.running import installed
from slatewise_papers.framework.timing import each_seconds, milliseconds, seconds

N_COMPONENTS, K = 50, 20


def run(quick: bool = False) -> Table:
    """Time; ``quick``: a tenth of the items and queries."""
    n_items = 17_695 if quick else 176_948
    few = 256 if quick else 1024
    queries, items = vectors(n_items, 0), vectors(n_items, 1)
    threads, single = Executor.of(None), Executor(1)
    ours = Cascade((Factors(IdQueries(Rows.fixed(queries)), Rows.fixed(items)),))
    ours.top(np.arange(64), K, executor=threads)  # compiles
    rows: list[Row] = []
    one_core = seconds(lambda: ours.top(np.arange(few), K, executor=single))
    left_out = [peer for peer in ("lightfm", "implicit") if not installed(peer)]
    theirs = None if "lightfm" in left_out else _predict_rank_seconds(queries, items, few)
    peer = None if theirs is None else "lightfm-next predict_rank"
    what = f"top {K} of {n_items} items"
    rows.append(Row(f"{what}, {few} queries, one thread", one_core, peer, theirs, bar="ratio >= 12"))
    everyone = seconds(lambda: ours.top(np.arange(n_items), K, executor=threads))
    theirs = None if "implicit" in left_out else _implicit_seconds(queries, items)
    peer = None if theirs is None else "implicit topk"
    rows.append(Row(f"{what}, all queries", everyone, peer, theirs, bar="ratio >= 1 (stretch 1.2)"))
    tracemalloc.start()  # in a run of its own, which it slows down
    ours.top(np.arange(n_items), K, executor=threads)
    extra = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    rows.append(Row("peak memory beyond the factors, lists included", extra, unit="MB", bar="<= 300 MB"))
    index = QuantizedIndex.of(items, N_COMPONENTS + 1)

    def quantized(stage: int) -> QuantizedIndex | None:
        return index

    indexed = replace(ours, quantized=quantized)
    for name, cascade, bar in (("one query", indexed, "<= 5 ms"), ("one query without a quantized index", ours, "")):
        cascade.top(np.arange(1), K, executor=threads)
        each = each_seconds(
            lambda query, cascade=cascade: cascade.top(np.array([query]), K, executor=threads), range(300)
        )
        rows.append(Row(f"{name}, 99th of 100", milliseconds(each, 0.99), unit="ms", bar=bar))
    made = seconds(lambda: QuantizedIndex.of(items, N_COMPONENTS + 1))
    rows.append(Row("the quantized index, once per model", 1e3 * made, unit="ms"))
    return Table("topk", rows, left_out, [f"{threads.n_threads} threads"])


def vectors(n_rows: int, seed: int) -> Singles:
    """Draw rows of factors and a bias."""
    out = aligned_zeros(n_rows, padded(N_COMPONENTS + 1))
    out[:, : N_COMPONENTS + 1] = np.random.default_rng(seed).normal(size=(n_rows, N_COMPONENTS + 1))
    return out


def _implicit_seconds(queries: Singles, items: Singles) -> float:
    topk: Any = import_module("implicit.cpu.topk").topk
    left, right = (np.ascontiguousarray(part[:, : N_COMPONENTS + 1]) for part in (queries, items))
    topk(right, left[:64], K, num_threads=0)
    return seconds(lambda: topk(right, left, K, num_threads=0))


def _predict_rank_seconds(queries: Singles, items: Singles, n_queries: int) -> float:
    from scipy.sparse import csr_matrix

    model: Any = import_module("lightfm").LightFM(N_COMPONENTS)
    shape = (len(queries), len(items))
    nothing = csr_matrix((np.ones(1, dtype=np.float32), ([0], [0])), shape=shape)
    model.fit(nothing.tocoo(), epochs=0)
    model.user_embeddings = np.ascontiguousarray(queries[:, :N_COMPONENTS])
    model.item_embeddings = np.ascontiguousarray(items[:, :N_COMPONENTS])
    some = np.arange(n_queries)
    pairs = csr_matrix((np.ones(n_queries, dtype=np.float32), (some, some)), shape=shape)
    return seconds(lambda: model.predict_rank(pairs, num_threads=1, check_intersections=False))
