"""Stages on top of scores that came from elsewhere: f(q, d) = b(q, d) + p_q . (S d), p_q made of q's list.

b is any scorer's, the list the k best items of the stage before (of b itself, at first), and only the pair term is
learnt. The base is asked for whole rows, a few queries at a time, so its scores are never all in memory unless it keeps
them: memory is that of ``MOST_SCORES`` a thread, or of one row where a row has more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from slatewise.core import executor
from slatewise.latent.blocked import BlockedEngine
from slatewise.latent.engine import Factors
from slatewise.latent.negatives import (
    ITEMS_A_TILE,
    VIOLATORS_A_PAIR,
    BlockGradient,
    EpochNegatives,
    StepNegatives,
    gradient_of_scan,
)
from slatewise.latent.pair_terms import PairTerm, Silent
from slatewise.latent.pairs import Block, TrainingPairs
from slatewise.latent.rank_weights import rank_weights
from slatewise.latent.tables import Entries, Ints, Singles, Table, padded, without_padding
from slatewise.latent.top_k import TopItems
from slatewise.latent.training import EpochReport, Schedule, Validation

if TYPE_CHECKING:
    from scipy.sparse import csr_array

QUERIES_A_BLOCK = 128
MOST_SCORES = 1 << 22
"""Scores (16 MB) that a thread holds; the rows of a block are taken in pieces of so many, which the data decide."""


class BaseScores(Protocol):
    """Scores of all items for queries that are called by number; asked from several threads."""

    def rows(self, queries: Ints) -> Singles:
        """Return a fresh array (queries, items)."""
        ...


@dataclass(frozen=True, eq=False)
class OnBase:
    """Every item is a negative, scored by the base and the vectors together; serves every step itself."""

    base: BaseScores

    @property
    def drawn(self) -> Ints:
        """No items."""
        return np.empty(0, dtype=np.int64)

    def prepare(self, factors: Factors, pairs: TrainingPairs, n_threads: int | None) -> EpochNegatives:
        """Return itself."""
        return self

    def draw(self, items: Singles, rng: np.random.Generator) -> StepNegatives:
        """Return itself."""
        return self

    def gradient(self, block: Block, vectors: Singles, items: Singles, rank_weight: Singles) -> BlockGradient:
        """Count the violators of whole rows; the base's part of a score has no gradient."""
        parts: list[BlockGradient] = []
        entries: list[Entries] = []
        for rows in pieces(len(block.queries), len(items)):
            part = self._gradient(_rows_of(block, rows), vectors[rows], items, rank_weight)
            parts.append(part)
            entries.append(Entries(part.items.rows, part.items.coefficients, part.items.sources + rows.start))
        return BlockGradient(
            np.concatenate([part.queries for part in parts]),
            Entries.join(entries),
            None,
            sum(part.loss for part in parts),
            sum(part.violated for part in parts),
        )

    def _gradient(self, block: Block, vectors: Singles, items: Singles, rank_weight: Singles) -> BlockGradient:
        scores = _scores(self.base, block.queries, vectors, items)
        rows = np.repeat(np.arange(len(block.ends)), np.diff(block.ends, prepend=0))
        bars = scores[rows, block.positives] - np.float32(1.0)
        return gradient_of_scan(block, vectors, items, rank_weight, bars, [(0, scores)], VIOLATORS_A_PAIR)


def top_on_base(
    base: BaseScores,
    factors: Factors,
    numbers: Ints,
    k: int,
    exclude: csr_array | None = None,
    n_threads: int | None = None,
) -> TopItems:
    """Rank all items by the base and the factors together; arguments as in :func:`slatewise.latent.top_k.top_items`."""
    from slatewise.latent.kernels.catalogue_topk import keep_best

    best = np.full((len(numbers), k), -np.inf, dtype=np.float32)
    names = np.full((len(numbers), k), -1, dtype=np.int64)
    values = factors.items.values

    def rank(part: slice) -> None:
        scores = _scores(base, numbers[part], factors.queries.vectors(numbers[part]), values)
        if exclude is not None:
            hidden = exclude[part].tocoo()
            scores[hidden.row, hidden.col] = -np.inf
        keep_best(scores, 0, best[part], names[part])

    with executor.one_blas_thread():
        for _ in executor.map_blocks(rank, pieces(len(numbers), len(values), QUERIES_A_BLOCK), n_threads):
            pass
    return TopItems(names, best)


def base_scores(base: BaseScores, numbers: Ints, items: Ints, n_items: int) -> Singles:
    """Return the base's scores of given items, (queries, given), for each query."""
    out = np.empty(items.shape, dtype=np.float32)
    with executor.one_blas_thread():
        for part in pieces(len(numbers), n_items, QUERIES_A_BLOCK):
            out[part] = np.take_along_axis(base.rows(numbers[part]), items[part], axis=1)
    return out


def _scores(base: BaseScores, queries: Ints, vectors: Singles, items: Singles) -> Singles:
    """Return b + x_q . z_d of all items; products tile by tile, so that there is one array of this size."""
    scores, vectors = base.rows(queries), without_padding(vectors)
    for first in range(0, len(items), ITEMS_A_TILE):
        tile = slice(first, first + ITEMS_A_TILE)
        scores[:, tile] += vectors @ items[tile, : vectors.shape[1]].T
    return scores


def pieces(n_rows: int, n_items: int, most: int | None = None) -> list[slice]:
    """Cut rows into pieces of at most ``MOST_SCORES`` scores, and ``most`` rows, but never less than a row."""
    size = max(1, min(most or n_rows, MOST_SCORES // max(n_items, 1)))
    return [slice(first, first + size) for first in range(0, n_rows, size)]


def _rows_of(block: Block, rows: slice) -> Block:
    begin, ends = int(block.ends[rows.start - 1]) if rows.start else 0, block.ends[rows]
    pairs = slice(begin, int(ends[-1]))
    return Block(block.queries[rows], ends - begin, block.positives[pairs], block.weights[pairs], block.starts[pairs])


def base_alone(n_items: int) -> Factors:
    """Return factors that add nothing: the stage that is the base itself."""
    return Factors(Silent(padded(1)), Table.zeros(n_items, padded(1), ()))


def next_factors(
    base: BaseScores,
    before: Factors,
    table: Table,
    pair: PairTerm,
    n_queries: int,
    weights: Singles,
    n_threads: int | None = None,
) -> Factors:
    """Return the factors of a stage whose lists the stage ``before`` makes."""
    k = min(len(weights), len(table.values))
    lists = top_on_base(base, before, np.arange(n_queries), k, n_threads=n_threads).items
    return Factors(pair.queries(Silent(int(table.values.shape[1])), table, lists, weights[:k]), table)


@dataclass(frozen=True, eq=False)
class StagesOnBase:
    """How the stages of one fit are trained."""

    base: BaseScores
    n_queries: int
    n_items: int
    pair: PairTerm
    pairs: TrainingPairs
    validation: Validation | None
    schedule: Schedule
    weights: Singles
    """w_1 to w_k."""
    step_pairs: int
    n_threads: int | None = None

    def fit(self, n_stages: int, watch: Callable[[EpochReport], None]) -> tuple[list[Table], list[int]]:
        """Train S of stage after stage, until one does not raise recall; return them and their epochs."""
        before = base_alone(self.n_items)
        reached = -np.inf if self.validation is None else self._recall(before, self.validation)
        tables: list[Table] = []
        epochs: list[int] = []
        for stage in range(1, n_stages + 1):
            rng = np.random.default_rng((self.schedule.seed, stage))
            segments = self.pair.segments
            table = Table.zeros(self.n_items, padded(segments[-1].stop), segments)
            size = (self.n_items, segments[-1].stop)
            table.values[:, : size[1]] = rng.normal(0, 0.1 / np.sqrt(segments[0].stop), size)
            factors = next_factors(self.base, before, table, self.pair, self.n_queries, self.weights, self.n_threads)
            best, best_epoch, reached = self._train(stage, factors, reached, watch)
            if best is None:
                break
            table.values[:] = best
            tables.append(table)
            epochs.append(best_epoch)
            before = factors
        return tables, epochs

    def _train(
        self, stage: int, factors: Factors, reached: float, watch: Callable[[EpochReport], None]
    ) -> tuple[Singles | None, int, float]:
        """Return the best S, its epoch and its recall; None where no epoch raised recall."""
        engine = BlockedEngine(OnBase(self.base), rank_weights(self.n_items), self.step_pairs, self.n_threads)
        best, best_epoch = None, 0
        for epoch in range(1, self.schedule.epochs + 1):
            seen = engine.epoch(factors, self.pairs, np.random.default_rng((self.schedule.seed, stage, epoch)))
            recall = None if self.validation is None else self._recall(factors, self.validation)
            if recall is None or recall > reached:
                best, best_epoch, reached = factors.items.values.copy(), epoch, recall or reached
            watch(EpochReport(stage, epoch, seen.loss, seen.violated, recall))
            if epoch - best_epoch >= self.schedule.patience:
                break
        return best, best_epoch, reached

    def _recall(self, factors: Factors, held: Validation) -> float:
        k = min(held.k, self.n_items)
        distinct, own = np.unique(held.queries, return_inverse=True)
        lists = top_on_base(self.base, factors, distinct, k, n_threads=self.n_threads).items
        return float((lists[own] == held.items[:, None]).any(axis=1).mean())
