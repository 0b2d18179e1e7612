"""Two workers of a local Ray against two threads: fits and rounds of two learners, and what a round costs.

``ours`` are the workers, the peer is this process with as many threads; a ratio of 0.85 means that 15% are lost to
other processes. A fit is timed from its first round on, when data is where it is summed, and as a whole.
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Callable
from operator import add
from typing import Any, NamedTuple

import numpy as np

from slatewise.core.numerics.result import Round
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.block_sums import BlockSum
from slatewise.core.running.executor import Executor
from slatewise.cstar.likelihood.objective import AdjustedScores, AnySizeLikelihood
from slatewise.metric_learning.margin_hinge import MarginHinge
from slatewise.metric_learning.oracle import Oracle
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.running import installed
from slatewise_papers.framework.timing import best_seconds

WORKERS, ROUNDS = 2, 5
AT_LEAST = "ratio >= 0.85"
Fit = Callable[[Callable[[Round], None]], object]


class Learner(NamedTuple):
    """What is timed."""

    name: str
    n_bytes: int
    """Of the parameters, and of a sum."""
    ask: Callable[[Executor], Callable[[], object]]
    """Hold the data, and return what asks for one round."""
    fit: Fit


def run(quick: bool = False) -> Table:
    """Time; ``quick``: a tenth of the rows."""
    if not installed("ray"):
        return Table("ray", [], ["ray"])
    from slatewise import cluster

    share = 10 if quick else 1
    learners = [margin(1_000_000 // share), likelihood(64_000 // share)]
    start = time.perf_counter()
    with cluster.ray(workers=WORKERS) as opened:
        rows = [Row("a cluster of two workers, to open", time.perf_counter() - start)]
        there, threads = Executor(WORKERS, opened), Executor(WORKERS)
        empty = there.place_blocks([0.0, 0.0], 0.0)
        rows.append(Row("a round without work", 1e3 * best_round(lambda: empty.sum(_NOTHING, 0.0), 50), unit="ms"))
        for learner in learners:
            on_workers, here = best_round(learner.ask(there), ROUNDS), best_round(learner.ask(threads), ROUNDS)
            rows.append(Row(f"{learner.name}, a round", on_workers, f"{WORKERS} threads", here, bar=AT_LEAST))
            rows.append(Row(f"{learner.name}, bytes to and from a worker", 2 * learner.n_bytes / 1e3, unit="kB"))
        for learner in learners:
            ours = fit_seconds(learner.fit)
            theirs = _elsewhere(learner.fit)
            for what, place, bar in (("a fit from its first round on", 0, AT_LEAST), ("the whole fit", 1, "")):
                rows.append(Row(f"{learner.name}, {what}", ours[place], f"{WORKERS} threads", theirs[place], bar=bar))
    return Table("ray", rows, [], [f"{WORKERS} workers of this machine; best of {ROUNDS} rounds, one fit each"])


def fit_seconds(fit: Fit) -> tuple[float, float]:
    """Return the seconds of a fit after its first round, and of all of it."""
    rounds: list[float] = []
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(lambda _: rounds.append(time.perf_counter()))
    end = time.perf_counter()
    return end - rounds[0], end - start


def _elsewhere(fit: Fit) -> tuple[float, float]:
    """Time a fit in a context of its own, which is on no cluster."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:  # a new thread has no cluster
        return pool.submit(fit_seconds, fit).result()


def _nothing(at: float, block: float) -> float:
    return at + block


_NOTHING: BlockSum[float, float, float, float, float] = BlockSum(add, _nothing, add)


def margin(n_rows: int) -> Learner:
    """Lists of 100 rows of 46 features."""
    from slatewise import MarginRanker

    rng = np.random.default_rng(0)
    relevance = (rng.random(n_rows) < 0.1).astype(np.int8)
    X = rng.normal(size=(n_rows, 46)) + relevance[:, None] * rng.normal(scale=0.3, size=46)
    offsets, w = np.arange(0, n_rows + 1, 100), rng.normal(size=46)

    def ask(executor: Executor) -> Callable[[], object]:
        hinge = MarginHinge(X, relevance, offsets, Oracle("map"), executor)
        return lambda: hinge.cut(w)

    def fit(tell: Callable[[Round], None]) -> object:
        settings: dict[str, Any] = {"C": 100.0, "tol": 1e-3, "n_jobs": WORKERS, "callbacks": [tell]}
        return MarginRanker("map", **settings).fit(X, relevance, group=np.full(n_rows // 100, 100))

    return Learner(f"MarginRanker, {n_rows} x 46, map", len(pickle.dumps(w)), ask, fit)


def likelihood(n_rows: int) -> Learner:
    """Given log-odds of 93 labels, 8 of them in the core."""
    from slatewise import CStarRanker

    rng, core = np.random.default_rng(1), np.arange(8)
    given = rng.normal(size=(n_rows, 93)) - 2.0
    known = (rng.random(given.shape) < 1.0 / (1.0 + np.exp(-given))).astype(np.int8)
    params = 0.1 * rng.normal(size=93 * (2 + len(core)))
    AdjustedScores(given, core).unpack(params)[2][:, core] = 0.0

    def ask(executor: Executor) -> Callable[[], object]:
        model = AnySizeLikelihood(AdjustedScores(given, core), known, np.ones(n_rows), executor)
        return lambda: model.value_and_grad(params)

    def fit(tell: Callable[[Round], None]) -> object:
        settings: dict[str, Any] = {"core": core, "C": 1.0, "max_iter": 12, "n_jobs": WORKERS}
        return CStarRanker("precomputed", **settings).fit(given, known, callbacks=[tell])

    return Learner(f"c-star likelihood, {n_rows} x 93, 8 core labels", len(pickle.dumps(params)), ask, fit)


def best_round(call: Callable[[], object], times: int) -> float:
    """Return the shortest of some calls, after one that is not counted."""
    with one_blas_thread():
        call()
        return best_seconds(lambda _: call(), range(times))
