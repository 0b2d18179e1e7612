"""WARP training at 176,948 items x 5.4M generated pairs, n = 50, against lightfm-next on the same pairs and threads.

Recall is R@10 on pairs of sessions that were not trained on. The race: how long the blocked engine takes to the recall
that lightfm-next has after ten epochs at 100 draws. Steps and norms are the defaults, and not tuned on this data.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np

from slatewise import parallel
from slatewise.bench._table import Row, Table, installed
from slatewise.data.records import Sessions
from slatewise.datasets import make_sessions
from slatewise.warp.blocked import BlockedEngine
from slatewise.warp.engine import Factors, WarpEngine
from slatewise.warp.negatives import Negatives, SharedNegatives, WholeCatalogue
from slatewise.warp.pairs import TrainingPairs
from slatewise.warp.queries import IdQueries
from slatewise.warp.rank_weights import rank_weights
from slatewise.warp.recall import recall_at
from slatewise.warp.sampled import SampledEngine
from slatewise.warp.stages import Shape
from slatewise.warp.tables import Ints
from slatewise.warp.tables import Table as Rows

N_COMPONENTS, STEP_PAIRS, NEGATIVES = 50, 2048, 1024
PEER_EPOCHS, MOST_EPOCHS, TEST_PAIRS = 10, 10, 20_000


@dataclass(frozen=True, eq=False)
class Race:
    """Pairs to train on and pairs to test with."""

    n_items: int
    queries: Ints
    items: Ints
    test_queries: Ints
    test_items: Ints

    @property
    def pairs(self) -> TrainingPairs:
        """The training pairs, grouped."""
        return TrainingPairs.of(self.queries, self.items, np.ones(len(self.queries), dtype=np.float32))

    def recall(self, factors: Factors) -> float:
        """Return R@10 on the test pairs."""
        return recall_at(factors, self.test_queries, self.test_items, (10,))[10]


def run(quick: bool = False) -> Table:
    """Train; ``quick``: a thirtieth of the items and pairs."""
    race = _sessions(5_900 if quick else 176_948, 37_000 if quick else 1_130_000)
    threads = parallel.thread_count()
    with_peer = installed("lightfm")
    rows: list[Row] = []
    for draws, bar in ((10, 4.5), (100, 5.0)):
        factors = _start(race.n_items)
        ours = _pairs_per_second(SampledEngine(_table(factors), rank_weights(race.n_items), draws), factors, race)
        theirs = _peer_epochs(race, draws, 2, threads)[1][-1] if with_peer else None
        seconds = len(race.queries) / ours
        peer = f"lightfm-next, {draws} draws" if with_peer else None
        rows.append(Row(f"sampled, {draws} draws, second epoch", seconds, peer, theirs, bar=f"ratio >= {bar:g}"))
    goal, peer_seconds = None, None
    if with_peer:
        peer_factors, each = _peer_epochs(race, 100, PEER_EPOCHS, threads)
        goal, peer_seconds = race.recall(peer_factors), sum(each)
    seconds, epochs, reached = _until(race, SharedNegatives(NEGATIVES, 0), goal)
    what = f"blocked, {NEGATIVES} shared negatives: {epochs} epochs"
    peer = f"lightfm-next, 100 draws, {PEER_EPOCHS} epochs" if with_peer else None
    rows.append(Row(what, seconds, peer, peer_seconds, bar="ratio >= 5 (stretch 10)"))
    rows.append(Row("R@10 reached", reached, peer, goal, unit="", bar="not below the peer's"))
    rows += _same_bits(race)
    left_out = [] if with_peer else ["lightfm"]
    return Table("warp", rows, left_out, [f"{threads} threads, {len(race.queries)} pairs, {race.n_items} items"])


def _sessions(n_items: int, n_sessions: int) -> Race:
    sessions = make_sessions(n_sessions, n_items, n_clusters=max(10, n_items // 177), random_state=0).sessions
    cut = int(0.95 * n_sessions)
    event = int(sessions.offsets[cut])
    train = Sessions(sessions.items[:event], sessions.offsets[: cut + 1]).pairs()
    test = Sessions(sessions.items[event:], sessions.offsets[cut:] - event).pairs()
    return Race(n_items, train.queries, train.items, test.queries[:TEST_PAIRS], test.items[:TEST_PAIRS])


def _start(n_items: int) -> Factors:
    queries, items = Shape(N_COMPONENTS, n_items, n_items, 0.3, 2.5, 0.3, 0.1, 1.0).tables(0)
    rng = np.random.default_rng(0)
    for table in (queries, items):
        table.values[:, :N_COMPONENTS] = rng.normal(0, N_COMPONENTS**-0.5, (n_items, N_COMPONENTS))
    return Factors(IdQueries(queries), items)


def _table(factors: Factors) -> Rows:
    queries: Any = factors.queries
    return queries.table


def _pairs_per_second(engine: WarpEngine, factors: Factors, race: Race) -> float:
    """Time the second epoch: compiled, and past the start, at which every item violates."""
    pairs = race.pairs
    engine.epoch(factors, pairs, np.random.default_rng(0))
    start = time.perf_counter()
    engine.epoch(factors, pairs, np.random.default_rng(1))
    return len(pairs) / (time.perf_counter() - start)


def _peer_epochs(race: Race, draws: int, epochs: int, threads: int) -> tuple[Factors, list[float]]:
    """Train lightfm-next; return its factors and the seconds of each epoch."""
    from scipy.sparse import coo_matrix

    model: Any = import_module("lightfm").LightFM(N_COMPONENTS, loss="warp", max_sampled=draws, random_state=0)
    ones = np.ones(len(race.queries), dtype=np.float32)
    matrix = coo_matrix((ones, (race.queries, race.items)), shape=(race.n_items, race.n_items))
    model.fit(matrix, epochs=0)
    seconds: list[float] = []
    for _ in range(epochs):
        start = time.perf_counter()
        model.fit_partial(matrix, epochs=1, num_threads=threads)
        seconds.append(time.perf_counter() - start)
    factors = _start(race.n_items)
    _table(factors).values[:, :N_COMPONENTS] = model.user_embeddings
    factors.items.values[:, :N_COMPONENTS] = model.item_embeddings
    factors.items.values[:, N_COMPONENTS] = model.item_biases
    return factors, seconds


def _until(race: Race, negatives: Negatives, goal: float | None) -> tuple[float, int, float]:
    """Train until the recall is reached (without a goal: one epoch); return seconds, epochs and recall.

    Seconds include grouping the pairs and the start of the tables, not the tests of recall.
    """
    warm = _start(race.n_items)
    engine = BlockedEngine(negatives, rank_weights(race.n_items), STEP_PAIRS)
    few = TrainingPairs.of(race.queries[:500], race.items[:500], np.ones(500, dtype=np.float32))
    engine.epoch(warm, few, np.random.default_rng(0))
    start = time.perf_counter()
    factors, pairs = _start(race.n_items), race.pairs
    seconds = time.perf_counter() - start
    recall = 0.0
    for epoch in range(MOST_EPOCHS):
        start = time.perf_counter()
        engine.epoch(factors, pairs, np.random.default_rng((0, epoch)))
        seconds += time.perf_counter() - start
        recall = race.recall(factors)
        if goal is None or recall >= goal:
            return seconds, epoch + 1, recall
    return seconds, MOST_EPOCHS, recall


def _same_bits(race: Race) -> list[Row]:
    """Compare our threads over blocks with one thread that calls threaded BLAS: the same steps, other bits."""
    few = 4096
    pairs = TrainingPairs.of(race.queries[:few], race.items[:few], np.ones(few, dtype=np.float32))
    weight = rank_weights(race.n_items)

    def seconds(n_threads: int | None) -> float:
        engine = BlockedEngine(WholeCatalogue(), weight, STEP_PAIRS, n_threads)
        factors = _start(race.n_items)
        start = time.perf_counter()
        engine.epoch(factors, pairs, np.random.default_rng(0))
        return time.perf_counter() - start

    seconds(None)
    ours = min(seconds(None) for _ in range(3))
    with patch.object(parallel, "one_blas_thread", nullcontext):
        theirs = min(seconds(1) for _ in range(3))
    what = "blocked, whole catalogue, 4,096 pairs, bits that do not depend on threads"
    return [Row(what, ours, "the same on threaded BLAS", theirs, bar="ratio >= 0.77 (at most 1.3x its time)")]
