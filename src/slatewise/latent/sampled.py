"""The engine that draws: threads without locks over one pair of tables, so it is reproducible with one thread only.

It steps rows of ids at once, which is what makes it cheap a pair; queries that are more than rows need the blocked
engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core import executor
from slatewise.latent.engine import EpochStats, Factors
from slatewise.latent.pairs import Block, TrainingPairs, shuffled_blocks
from slatewise.latent.tables import Singles, Table, aligned_zeros, padded

Bytes: TypeAlias = NDArray[np.int8]

PAIRS_A_TASK = 1 << 15


@dataclass(frozen=True, eq=False)
class SampledEngine:
    """Up to ``max_draws`` items are drawn for a pair; fewer than all make the weight of the top ranks too small."""

    queries: Table
    """The rows of the queries: the very table that the factors' vectors come from."""
    rank_weight: Singles
    max_draws: int
    n_threads: int | None = None

    def epoch(self, factors: Factors, pairs: TrainingPairs, rng: np.random.Generator) -> EpochStats:
        """Visit every pair once."""
        from slatewise.latent.kernels.sampled import sampled_epoch

        items, own, bias = factors.items, factors.items.segments[0], factors.items.segments[1]
        screen = screen_of(items.values, bias.stop)

        def visit(task: tuple[Block, int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            block, seed = task
            totals = np.zeros(2)
            sampled_epoch(
                self.queries.values,
                self.queries.accumulators,
                items.values,
                items.accumulators,
                screen,
                own.stop,
                own.step,
                own.max_norm,
                bias.step,
                block.queries,
                block.ends,
                block.positives,
                block.weights,
                self.rank_weight,
                self.max_draws,
                seed,
                totals,
            )
            return totals

        blocks = shuffled_blocks(pairs, PAIRS_A_TASK, rng)
        seeds = rng.integers(1, 1 << 62, size=len(blocks)).tolist()
        loss, violated = sum(executor.map_blocks(visit, zip(blocks, seeds, strict=True), self.n_threads), np.zeros(2))
        return EpochStats(float(loss) / len(pairs), float(violated) / len(pairs))


def screen_of(rows: Singles, n_columns: int) -> Bytes:
    """Return the first columns of all rows in bytes, with a byte for the exponent, in whole cache lines."""
    from slatewise.latent.kernels.screen import screen_rows

    screen = aligned_zeros(len(rows), padded(n_columns // 4 + 1)).view(np.int8)
    screen_rows(rows, n_columns, screen)
    return screen
