"""The deterministic engine: steps of a few blocks against one snapshot, ranks counted, sums in block order.

A step scores its blocks against the negatives by matrix products, one BLAS thread per block and threads over blocks;
then every touched row moves once, along the sum of what the blocks ask for, taken in block order. So the same seed
gives the same bits with any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Singles
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import Executor
from slatewise.factors.averaging import EpochMean
from slatewise.factors.engine import EngineKind, EngineTask, EpochStats, Factors
from slatewise.factors.negatives import (
    BlockGradient,
    Negatives,
    SharedNegatives,
    SharedWithLists,
    StepNegatives,
    WholeCatalogue,
)
from slatewise.factors.pairs import Block, TrainingPairs, shuffled_blocks
from slatewise.factors.rank_weights import rank_weights
from slatewise.factors.settings import Blocked
from slatewise.factors.tables import Entries, step_rows

BLOCKS_PER_STEP = 4
"""Fewer are wider matrix products, more can run side by side."""


def step_size(n_pairs: int) -> int:
    """Return how many pairs a step takes by default: a hundredth of an epoch, between 64 and 2,048."""
    return int(np.clip(n_pairs // 100, 64, 2048))


class _Snapshot(NamedTuple):
    """What all blocks of a step are compared with."""

    factors: Factors
    negatives: StepNegatives
    rank_weight: Singles
    dropout: float


@dataclass(frozen=True, eq=False)
class BlockedEngine:
    """Steps of ``step_pairs`` pairs."""

    negatives: Negatives
    rank_weight: Singles
    step_pairs: int
    executor: Executor
    dropout: float = 0.0
    """Share of a query's numbers, of those that meet V, which are 0 for a step; the others are larger instead."""

    def epoch(
        self, factors: Factors, pairs: TrainingPairs, rng: np.random.Generator, mean: EpochMean | None = None
    ) -> EpochStats:
        """Visit every pair once, a step at a time."""
        values = factors.items.values
        blocks = shuffled_blocks(pairs, -(-self.step_pairs // BLOCKS_PER_STEP), rng)
        negatives = self.negatives.prepare(factors, pairs, self.executor)
        loss, violated = 0.0, 0
        with one_blas_thread():
            for first in range(0, len(blocks), BLOCKS_PER_STEP):
                step = blocks[first : first + BLOCKS_PER_STEP]
                seen = self._step(factors, step, negatives.draw(values, rng))
                loss, violated = loss + seen[0], violated + seen[1]
                if mean is not None:
                    mean.count(sum(len(block.queries) for block in step))
        return EpochStats(loss / len(pairs), violated / len(pairs))

    def _step(self, factors: Factors, blocks: list[Block], negatives: StepNegatives) -> tuple[float, int]:
        snapshot = _Snapshot(factors, negatives, self.rank_weight, self.dropout)
        results = list(self.executor.map_blocks(_compare, snapshot, blocks))
        wanted = [result for _, result in results]
        queries = np.concatenate([block.queries for block in blocks])
        gradient = np.concatenate([result.queries for result in wanted])
        # What an item's row is moved by: vectors of queries, sums over the blocks for drawn items, and, where vectors
        # depend on rows of items, the gradient of those vectors.
        sources = [vectors for vectors, _ in results]
        n_rows = len(queries)
        entries = [_shift(wanted[i].items, int(sum(len(part) for part in sources[:i]))) for i in range(len(wanted))]
        drawn = [result.drawn for result in wanted if result.drawn is not None]
        if drawn:
            total = drawn[0]
            for other in drawn[1:]:
                total += other
            sources.append(total)
            entries.append(_whole(negatives.drawn, n_rows))
            n_rows += len(total)
        backward = factors.queries.backward(queries, gradient)
        if backward is not None:
            sources.append(backward.vectors)
            entries.append(_shift(backward.entries, n_rows))
        step_rows(factors.items, Entries.join(entries), np.concatenate(sources), self.executor)
        factors.queries.step(queries, gradient, self.executor)
        added = factors.queries.added
        if added is not None:
            added.step(np.add.reduce([result.added for result in wanted if result.added is not None]))
        return sum(result.loss for result in wanted), sum(result.violated for result in wanted)


def _compare(snapshot: _Snapshot, block: Block) -> tuple[Singles, BlockGradient]:
    factors = snapshot.factors
    vectors, items = factors.queries.vectors(block.queries), factors.items
    if not snapshot.dropout:
        return vectors, snapshot.negatives.gradient(block, vectors, items.values, snapshot.rank_weight)
    own = slice(items.segments[0].start, items.segments[0].stop)
    shares = _kept_shares(block, own.stop - own.start, snapshot.dropout)
    vectors[:, own] *= shares
    found = snapshot.negatives.gradient(block, vectors, items.values, snapshot.rank_weight)
    found.queries[:, own] *= shares
    return vectors, found


def _kept_shares(block: Block, width: int, dropout: float) -> Singles:
    """Return what a row's numbers are multiplied by: the random number of its first pair decides."""
    from slatewise.factors.kernels.dropout import kept_shares

    starts = block.starts[np.append(0, block.ends[:-1])]
    states = (starts + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # odd: no state is 0, near ones differ much
    out = np.empty((len(starts), width), dtype=np.float32)
    kept_shares(states, dropout, out)
    return out


def _shift(entries: Entries, by: int) -> Entries:
    return Entries(entries.rows, entries.coefficients, entries.sources + by)


def _whole(rows: np.ndarray[tuple[int], np.dtype[np.int64]], first: int) -> Entries:
    return Entries(rows, np.ones(len(rows), dtype=np.float32), np.arange(first, first + len(rows)))


def blocked_engine(task: EngineTask) -> BlockedEngine:
    """Compare with the whole catalogue, or with drawn items and lists."""
    settings = task.settings
    engine = settings.engine if isinstance(settings.engine, Blocked) else Blocked()
    negatives: Negatives = WholeCatalogue()
    if engine.negatives != "all":
        # A later stage begins at the lists it was handed, and moves little.
        drawn = int(engine.negatives)
        negatives = SharedWithLists(drawn, task.lists) if task.stage else SharedNegatives(drawn, settings.depth)
    weight = rank_weights(task.n_items, settings.rank_power)
    # Later stages leave U and V as they are: there is nothing to keep from learning too much.
    dropout = 0.0 if task.stage else settings.dropout
    return BlockedEngine(negatives, weight, engine.batch_size or step_size(task.n_pairs), task.executor, dropout)


KIND = EngineKind(blocked_engine)
