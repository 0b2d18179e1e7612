"""WARP training at 176,948 items x 5.4M generated pairs, n = 50, against lightfm-next on the same pairs and threads.

Recall is R@10 on all pairs of sessions that were not trained on. The race: how long the blocked engine takes to the
recall that lightfm-next has after ten epochs at 100 draws. Steps, norms and the length of lists are the defaults of
LatentRanker and of the peer, not tuned on this data.

``python -m slatewise_papers.bench.warp [--quick]`` runs the peer's ten epochs alone: its recall is what other engines,
as that of a GPU in ``bench.gpu_warp --race``, are timed to.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np

from slatewise.core.arrays import Ints
from slatewise.core.running.executor import Executor
from slatewise.datasets import make_sessions
from slatewise.factors.engines import blocked
from slatewise.factors.engines.blocked import BlockedEngine, Negatives, SharedNegatives, WholeCatalogue, rank_weights
from slatewise.factors.engines.protocol import WarpEngine
from slatewise.factors.engines.sampled import SampledEngine
from slatewise.factors.pairs import TrainingPairs
from slatewise.factors.queries import IdQueries
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.stages import Shape, recall_at
from slatewise.factors.tables import Table as Rows
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.running import installed
from slatewise_papers.framework.timing import each_seconds, seconds, timed, wall_and_cpu

N_COMPONENTS, STEP_PAIRS, NEGATIVES, LIST = 50, 2048, 1024, 20
SAMPLED_EPOCHS, PEER_EPOCHS, MOST_EPOCHS = 2, 10, 10


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
        return recall_at(Cascade((factors,)), self.test_queries, self.test_items, (10,), Executor.of(None))[10]


@dataclass(frozen=True)
class Trained:
    """Seconds of each epoch, R@10 after some of them, and CPU seconds of all threads in all epochs."""

    seconds: list[float]
    recall: dict[int, float]
    cpu_seconds: float = 0.0


def run(quick: bool = False) -> Table:
    """Train; ``quick``: a thirtieth of the items and pairs."""
    race = _generated(quick)
    threads = Executor.of(None).n_threads
    # The peer's hundred draws are run once, for both rows that they are compared in.
    peer: dict[int, Trained] = {}
    if installed("lightfm"):
        peer[10] = _peer(race, 10, SAMPLED_EPOCHS, threads)
        peer[100] = _peer(race, 100, PEER_EPOCHS, threads)
    rows = [row for draws, bar in ((10, 4.5), (100, 5.0)) for row in _sampled(race, draws, bar, peer.get(draws))]
    rows += _race(race, peer.get(100))
    rows += _same_bits(race)
    remark = f"{threads} threads, {len(race.queries)} pairs to learn from and {len(race.test_queries)} to test on, "
    return Table("warp", rows, [] if peer else ["lightfm"], [f"{remark}{race.n_items} items"])


def _sampled(race: Race, draws: int, bar: float, peer: Trained | None) -> list[Row]:
    """Compare the second epoch: compiled, and past the start, at which every item violates."""
    factors = first_factors(race.n_items)
    engine = SampledEngine(_table(factors), rank_weights(race.n_items), draws, Executor.of(None))
    ours = _train(engine, factors, race, SAMPLED_EPOCHS)
    name = None if peer is None else f"lightfm-next, {draws} draws"
    seconds, recall = (None, None) if peer is None else (peer.seconds[1], peer.recall[SAMPLED_EPOCHS])
    what = f"sampled, {draws} draws"
    return [
        Row(f"{what}, second epoch", ours.seconds[1], name, seconds, bar=f"ratio >= {bar:g}"),
        Row(f"{what}, R@10 after it", ours.recall[SAMPLED_EPOCHS], name, recall, unit="", bar="not below the peer's"),
    ]


def _race(race: Race, peer: Trained | None) -> list[Row]:
    goal = None if peer is None else peer.recall[PEER_EPOCHS]
    seconds, epochs, reached = _until(race, SharedNegatives(NEGATIVES, LIST), goal)
    what = f"blocked, {NEGATIVES} shared negatives and lists of {LIST}: {epochs} epochs"
    name = None if peer is None else f"lightfm-next, 100 draws, {PEER_EPOCHS} epochs"
    return [
        Row(what, seconds, name, None if peer is None else sum(peer.seconds), bar="ratio >= 5 (stretch 10)"),
        Row("blocked, R@10 reached", reached, name, goal, unit="", bar="not below the peer's"),
    ]


def _generated(quick: bool) -> Race:
    return generated_race(5_900 if quick else 176_948, 37_000 if quick else 1_130_000)


def generated_race(n_items: int, n_sessions: int) -> Race:
    """Generate sessions, the last of which are for testing."""
    sessions = make_sessions(n_sessions, n_items, n_clusters=max(10, n_items // 177), random_state=0).sessions
    cut = int(0.95 * n_sessions)
    train, test = sessions[:cut].pairs(), sessions[cut:].pairs()
    return Race(n_items, train.queries, train.items, test.queries, test.items)


def first_factors(n_items: int, max_norm: float = 2.5, seed: int = 0) -> Factors:
    """Return the tables that training begins with."""
    queries, items = Shape(N_COMPONENTS, n_items, n_items, 0.3, max_norm, 0.3, 0.1, 1.0).tables(0)
    rng = np.random.default_rng(seed)
    for table in (queries, items):
        table.values[:, :N_COMPONENTS] = rng.normal(0, N_COMPONENTS**-0.5, (n_items, N_COMPONENTS))
    return Factors(IdQueries(queries), items)


def _table(factors: Factors) -> Rows:
    queries: Any = factors.queries
    return queries.table


def _train(engine: WarpEngine, factors: Factors, race: Race, epochs: int) -> Trained:
    pairs = race.pairs
    taken = each_seconds(lambda epoch: engine.epoch(factors, pairs, np.random.default_rng(epoch)), range(epochs))
    return Trained(taken, {epochs: race.recall(factors)})


def _peer(race: Race, draws: int, epochs: int, threads: int) -> Trained:
    """Train lightfm-next; its recall is taken after as many epochs as ours will be, and after the last."""
    from scipy.sparse import coo_matrix

    model: Any = import_module("lightfm").LightFM(N_COMPONENTS, loss="warp", max_sampled=draws, random_state=0)
    ones = np.ones(len(race.queries), dtype=np.float32)
    matrix = coo_matrix((ones, (race.queries, race.items)), shape=(race.n_items, race.n_items))
    model.fit(matrix, epochs=0)
    taken: list[tuple[float, float]] = []
    recall: dict[int, float] = {}
    for epoch in range(1, epochs + 1):
        taken.append(wall_and_cpu(lambda: model.fit_partial(matrix, epochs=1, num_threads=threads)))
        if epoch in (SAMPLED_EPOCHS, epochs):
            recall[epoch] = race.recall(factors_of(model, first_factors(race.n_items)))
    return Trained([wall for wall, _ in taken], recall, sum(cpu for _, cpu in taken))


def factors_of(model: Any, factors: Factors) -> Factors:
    """Put a LightFM model into our tables; a bias of a query does not change its ranking."""
    _table(factors).values[:, :N_COMPONENTS] = model.user_embeddings
    factors.items.values[:, :N_COMPONENTS] = model.item_embeddings
    factors.items.values[:, N_COMPONENTS] = model.item_biases
    return factors


def _some_runs(pairs: TrainingPairs, n_pairs: int) -> TrainingPairs:
    """Take runs here and there, so that as many pairs share a row of scores as in training."""
    sizes = np.diff(pairs.offsets)
    kept = np.repeat(np.arange(len(sizes)) % (len(pairs) // n_pairs) == 0, sizes)
    return TrainingPairs.of(pairs.queries[kept], pairs.items[kept], pairs.weights[kept])


def _until(race: Race, negatives: Negatives, goal: float | None) -> tuple[float, int, float]:
    """Train until the recall is reached (without a goal: one epoch); return seconds, epochs and recall.

    Seconds include grouping the pairs and the start of the tables, not the tests of recall.
    """
    warm = first_factors(race.n_items)
    engine = BlockedEngine(negatives, rank_weights(race.n_items), STEP_PAIRS, Executor.of(None))
    few = TrainingPairs.of(race.queries[:500], race.items[:500], np.ones(500, dtype=np.float32))
    engine.epoch(warm, few, np.random.default_rng(0))
    (factors, pairs), taken = timed(lambda: (first_factors(race.n_items), race.pairs))
    recall = 0.0
    for epoch in range(MOST_EPOCHS):
        taken += seconds(lambda epoch=epoch: engine.epoch(factors, pairs, np.random.default_rng((0, epoch))))
        recall = race.recall(factors)
        if goal is None or recall >= goal:
            return taken, epoch + 1, recall
    return taken, MOST_EPOCHS, recall


def _same_bits(race: Race) -> list[Row]:
    """Compare with threaded BLAS, called from one thread or from all, whichever is faster: same steps, other bits."""
    pairs = _some_runs(race.pairs, 4096)
    weight = rank_weights(race.n_items)

    def epoch(n_jobs: int | None) -> float:
        engine = BlockedEngine(WholeCatalogue(), weight, STEP_PAIRS, Executor.of(n_jobs))
        factors = first_factors(race.n_items)
        return seconds(lambda: engine.epoch(factors, pairs, np.random.default_rng(0)))

    epoch(None)
    ours = min(epoch(None) for _ in range(3))
    with patch.object(blocked, "one_blas_thread", nullcontext):
        theirs = min(epoch(threads) for threads in (1, None) for _ in range(3))
    what = f"blocked, whole catalogue, {len(pairs)} pairs, bits that do not depend on threads"
    return [Row(what, ours, "the same on threaded BLAS", theirs, bar="ratio >= 0.77 (at most 1.3x its time)")]


def main(arguments: list[str] | None = None) -> None:
    """Print the recall of lightfm-next after its ten epochs, their seconds, and the CPU seconds of all threads."""
    parser = ArgumentParser(prog="python -m slatewise_papers.bench.warp")
    parser.add_argument("--quick", action="store_true", help="a thirtieth of the items and pairs")
    race, threads = _generated(parser.parse_args(arguments).quick), Executor.of(None).n_threads
    print(f"{race.n_items} items, {len(race.queries)} pairs, {len(race.test_queries)} to test on, {threads} threads")
    print(
        f"load of the machine before, 1 and 5 minutes: {os.getloadavg()[0]:.2f}, {os.getloadavg()[1]:.2f}", flush=True
    )
    peer = _peer(race, 100, PEER_EPOCHS, threads)
    print("lightfm-next, 100 draws, seconds of each epoch:", *(f"{one:.1f}" for one in peer.seconds))
    print(f"{sum(peer.seconds):.1f} s in all, {peer.cpu_seconds:.1f} CPU s; load after, {os.getloadavg()[0]:.2f}")
    for epochs, recall in peer.recall.items():
        print(f"R@10 after {epochs} epochs {recall:.4f}")


if __name__ == "__main__":
    main()
