"""The engine that draws: threads without locks over one pair of tables, so it is reproducible with one thread only.

It steps rows of ids at once, which is what makes it cheap per pair; queries that are more than rows need the blocked
engine. A step is a pair, so the mean of an epoch is taken between tasks, of which there are then as many as moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Bytes, Singles
from slatewise.core.running.executor import Executor
from slatewise.factors.engines.blocked import blocked_engine, rank_weights
from slatewise.factors.engines.protocol import EngineKind, EngineTask, EpochStats, WarpEngine
from slatewise.factors.pairs import Block, TrainingPairs, shuffled_blocks
from slatewise.factors.scoring import Factors
from slatewise.factors.settings import Sampled
from slatewise.factors.tables import MOMENTS, EpochMean, Table, aligned_zeros, padded

PAIRS_PER_TASK = 1 << 15


class _Shared(NamedTuple):
    """What all tasks of an epoch read and write."""

    queries: Table
    items: Table
    quantized: Bytes
    rank_weight: Singles
    max_draws: int


@dataclass(frozen=True, eq=False)
class SampledEngine:
    """Up to ``max_draws`` items are drawn for a pair; fewer than all make the weight of the top ranks too small."""

    queries: Table
    """The rows of the queries: the very table that the factors' vectors come from."""
    rank_weight: Singles
    max_draws: int
    executor: Executor

    def epoch(
        self, factors: Factors, pairs: TrainingPairs, rng: np.random.Generator, mean: EpochMean | None = None
    ) -> EpochStats:
        """Train on every pair once."""
        if factors.base is not None:
            raise NotImplementedError("engine: expected 'blocked' where a base scores first, found 'sampled'")
        items = factors.items
        quantized = quantized_rows(items.values, items.segments[1].stop)
        shared = _Shared(self.queries, items, quantized, self.rank_weight, self.max_draws)
        size = PAIRS_PER_TASK if mean is None else min(PAIRS_PER_TASK, -(-len(pairs) // MOMENTS))
        blocks = shuffled_blocks(pairs, size, rng)
        seeds = rng.integers(1, 1 << 62, size=len(blocks)).tolist()
        tasks = list(zip(blocks, seeds, strict=True))
        totals = np.zeros(2)
        for block, seen in zip(blocks, self.executor.map_blocks(_run_task, shared, tasks), strict=True):
            totals = totals + seen
            if mean is not None:
                mean.count(len(block.queries))
        return EpochStats(float(totals[0]) / len(pairs), float(totals[1]) / len(pairs))


def _run_task(shared: _Shared, task: tuple[Block, int]) -> NDArray[np.float64]:
    from slatewise.factors.kernels.sampled import FactorMoves, sampled_epoch

    (block, seed), totals = task, np.zeros(2)
    queries, items = shared.queries, shared.items
    own, bias = items.segments[:2]
    sampled_epoch(
        queries.values,
        queries.accumulators,
        items.values,
        items.accumulators,
        shared.quantized,
        FactorMoves(own.stop, float(own.step), float(own.max_norm), float(bias.step)),
        block,
        shared.rank_weight,
        shared.max_draws,
        seed,
        totals,
    )
    return totals


def quantized_rows(rows: Singles, n_columns: int) -> Bytes:
    """Return the first columns of all rows in bytes, with a byte for the exponent, in whole cache lines."""
    from slatewise.factors.kernels.quantized_rows import quantize_rows

    quantized = aligned_zeros(len(rows), padded(n_columns // 4 + 1)).view(np.int8)
    quantize_rows(rows, n_columns, quantized)
    return quantized


def sampled_engine(task: EngineTask) -> WarpEngine:
    """Draw for stage 0; later stages are blocked."""
    if task.stage:
        return blocked_engine(task)
    engine = cast("Sampled", task.settings.engine)
    draws = min(engine.max_draws or task.n_items, task.n_items - 1)  # more would say that a rank is below 1
    return SampledEngine(task.queries, rank_weights(task.n_items, task.settings.rank_power), draws, task.executor)


KIND = EngineKind(sampled_engine)
