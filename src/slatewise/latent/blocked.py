"""The deterministic engine: steps of a few blocks against one snapshot, ranks counted, sums in block order.

A step scores its blocks against the negatives by matrix products, one BLAS thread a block and threads over blocks; then
every touched row moves once, along the sum of what the blocks ask for, taken in block order. So the same seed gives the
same bits with any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slatewise.core import executor
from slatewise.latent.engine import EpochStats, Factors
from slatewise.latent.negatives import BlockGradient, Negatives, StepNegatives
from slatewise.latent.pairs import Block, TrainingPairs, shuffled_blocks
from slatewise.latent.tables import Entries, Singles, step_rows

BLOCKS_A_STEP = 4
"""Fewer are wider matrix products, more can run side by side."""


def step_size(n_pairs: int) -> int:
    """Return how many pairs a step takes by default: a hundredth of an epoch, between 64 and 2,048."""
    return int(np.clip(n_pairs // 100, 64, 2048))


@dataclass(frozen=True, eq=False)
class BlockedEngine:
    """Steps of ``step_pairs`` pairs."""

    negatives: Negatives
    rank_weight: Singles
    step_pairs: int
    n_threads: int | None = None

    def epoch(self, factors: Factors, pairs: TrainingPairs, rng: np.random.Generator) -> EpochStats:
        """Visit every pair once, a step at a time."""
        values = factors.items.values
        blocks = shuffled_blocks(pairs, -(-self.step_pairs // BLOCKS_A_STEP), rng)
        negatives = self.negatives.prepare(factors, pairs, self.n_threads)
        loss, violated = 0.0, 0
        with executor.one_blas_thread():
            for first in range(0, len(blocks), BLOCKS_A_STEP):
                seen = self._step(factors, blocks[first : first + BLOCKS_A_STEP], negatives.draw(values, rng))
                loss, violated = loss + seen[0], violated + seen[1]
        return EpochStats(loss / len(pairs), violated / len(pairs))

    def _step(self, factors: Factors, blocks: list[Block], negatives: StepNegatives) -> tuple[float, int]:
        values = factors.items.values

        def compare(block: Block) -> tuple[Singles, BlockGradient]:
            vectors = factors.queries.vectors(block.queries)
            return vectors, negatives.gradient(block, vectors, values, self.rank_weight)

        results = list(executor.map_blocks(compare, blocks, self.n_threads))
        asked = [result for _, result in results]
        queries = np.concatenate([block.queries for block in blocks])
        gradient = np.concatenate([result.queries for result in asked])
        # What an item's row is moved by: vectors of queries, sums over the blocks for drawn items, and, where vectors
        # depend on rows of items, the gradient of those vectors.
        sources = [vectors for vectors, _ in results]
        n_rows = len(queries)
        entries = [_shift(asked[i].items, int(sum(len(part) for part in sources[:i]))) for i in range(len(asked))]
        drawn = [result.drawn for result in asked if result.drawn is not None]
        if drawn:
            total = drawn[0]
            for other in drawn[1:]:
                total += other
            sources.append(total)
            entries.append(_whole(negatives.drawn, n_rows))
            n_rows += len(total)
        onward = factors.queries.onward(queries, gradient)
        if onward is not None:
            sources.append(onward.vectors)
            entries.append(_shift(onward.entries, n_rows))
        step_rows(factors.items, Entries.join(entries), np.concatenate(sources), self.n_threads)
        factors.queries.step(queries, gradient, self.n_threads)
        return sum(result.loss for result in asked), sum(result.violated for result in asked)


def _shift(entries: Entries, by: int) -> Entries:
    return Entries(entries.rows, entries.coefficients, entries.sources + by)


def _whole(rows: np.ndarray[tuple[int], np.dtype[np.int64]], first: int) -> Entries:
    return Entries(rows, np.ones(len(rows), dtype=np.float32), np.arange(first, first + len(rows)))
