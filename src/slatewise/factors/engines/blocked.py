"""The deterministic engine: steps of a few blocks against one snapshot, ranks counted, sums in block order.

A violated pair weighs L(r) / L(D), with L(r) = sum over i <= r of alpha_i and alpha_i = i ** -power. Power 1 is WARP
(harmonic: the top of the list matters most), power 0 counts all ranks alike, the AUC loss. r is the number of items
above the pair's bar, its score less a margin of 1, and is counted among

whole catalog    all items; the gradient averages over all violators, or over a systematic sample of them
on a base        the same, with the scores of a base added
drawn            the query's list + items drawn for the step, whose count is scaled

A step scores its blocks against the negatives by matrix products, one BLAS thread per block and threads over blocks;
then every touched row moves once, along the sum of the blocks' gradients in block order. So the same seed gives the
same bits with any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from slatewise.core.arrays import Floats, Ints, Singles
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import Executor
from slatewise.factors.engines.protocol import EngineKind, EngineTask, EpochStats
from slatewise.factors.offsets import Adder, ScoreOffsets
from slatewise.factors.pairs import Block, TrainingPairs, shuffled_blocks
from slatewise.factors.scoring import BaseScores, Cascade, Factors, pieces
from slatewise.factors.settings import Blocked
from slatewise.factors.tables import Entries, EpochMean, step_rows, without_padding


def rank_weights(n_items: int, power: float = 1.0) -> Singles:
    """Return the weight of every number of violators, 0 to ``n_items - 1``.

    Examples
    --------
    >>> [round(float(weight), 2) for weight in rank_weights(4)]
    [0.0, 0.48, 0.72, 0.88]
    """
    alpha = np.arange(1, n_items + 1, dtype=np.float64) ** -power
    total = np.cumsum(alpha)
    return np.concatenate(([0.0], total[:-1] / total[-1])).astype(np.float32)


ITEMS_PER_TILE = 2048
"""The number of items whose scores with a block are in memory at once."""

VIOLATORS_PER_PAIR = 64
"""Violators whose mean is the gradient; of more, half to all of this number are taken systematically."""

RANKING_PER_PAIR = 8
"""A query gets a list where ranking costs at most this number of times its pairs' scores of drawn items."""


@dataclass(frozen=True, eq=False)
class BlockGradient:
    """What a block asks for, and what it saw."""

    queries: Singles
    """A row for each row of the block."""
    items: Entries
    """Sources are rows of the block."""
    drawn: Singles | None
    """A row for each item drawn for the step."""
    loss: float
    violated: int
    score_offsets: Floats | None = None
    """Of the parameters of what is added beside products."""


class StepNegatives(Protocol):
    """Negatives of one step."""

    @property
    def drawn(self) -> Ints:
        """The items that all blocks of the step share."""
        ...

    def gradient(self, block: Block, vectors: Singles, items: Singles, rank_weight: Singles) -> BlockGradient:
        """Compare a block, whose query vectors are given, with the negatives."""
        ...


class Negatives(Protocol):
    """Gets ready for an epoch, and for each of its steps."""

    def prepare(self, factors: Factors, pairs: TrainingPairs, executor: Executor) -> Negatives:
        """Return the negatives of an epoch that begins with these factors."""
        ...

    def draw(self, items: Singles, rng: np.random.Generator) -> StepNegatives:
        """Draw for one step from the items' rows as they are now."""
        ...


@dataclass(frozen=True, eq=False)
class WholeCatalogue:
    """Every item is a negative; nothing is drawn, so it serves every step itself."""

    most: int = VIOLATORS_PER_PAIR
    score_offsets: ScoreOffsets | None = None
    """What queries add to the scores of few items."""
    base: BaseScores | None = None
    """What is added to all scores."""

    @property
    def drawn(self) -> Ints:
        """No items."""
        return np.empty(0, dtype=np.int64)

    def prepare(self, factors: Factors, pairs: TrainingPairs, executor: Executor) -> WholeCatalogue:
        """Return the whole catalog, with what scores are made of beside vectors."""
        return replace(self, score_offsets=factors.queries.score_offsets, base=factors.base)

    def draw(self, items: Singles, rng: np.random.Generator) -> StepNegatives:
        """Return itself."""
        return self

    def gradient(self, block: Block, vectors: Singles, items: Singles, rank_weight: Singles) -> BlockGradient:
        """Scan the catalog tile by tile, or with a base whole rows in pieces that fit in memory."""
        if self.base is not None:
            return self._gradient_on_base(self.base, block, vectors, items, rank_weight)
        rows = np.repeat(np.arange(len(block.ends)), np.diff(block.ends, prepend=0))
        bars = np.einsum("pf,pf->p", vectors[rows], items[block.positives]) - np.float32(1.0)
        tiles, own = _tiles(vectors, items), self.score_offsets
        if own is None:
            return gradient_of_scan(block, vectors, items, rank_weight, bars, tiles, self.most)
        bars += own.of_pairs(block.queries[rows], block.positives)
        tiles = _added(tiles, own.adders(block.queries))
        found = gradient_of_scan(block, vectors, items, rank_weight, bars, tiles, self.most)
        return replace(found, score_offsets=own.gradient(block.queries, found.items))

    def _gradient_on_base(
        self, base: BaseScores, block: Block, vectors: Singles, items: Singles, rank_weight: Singles
    ) -> BlockGradient:
        """Put the gradients of pieces together; the base's part has none."""
        parts: list[BlockGradient] = []
        entries: list[Entries] = []
        for piece in pieces(len(block.queries), len(items)):
            inside, own = block.rows(piece), vectors[piece]
            scores = base.rows(inside.queries)
            for first, product in _tiles(own, items):
                scores[:, first : first + product.shape[1]] += product
            rows = np.repeat(np.arange(len(inside.ends)), np.diff(inside.ends, prepend=0))
            bars = scores[rows, inside.positives] - np.float32(1.0)
            part = gradient_of_scan(inside, own, items, rank_weight, bars, [(0, scores)], self.most)
            parts.append(part)
            entries.append(_shift(part.items, piece.start))
        return BlockGradient(
            np.concatenate([part.queries for part in parts]),
            Entries.join(entries),
            None,
            sum(part.loss for part in parts),
            sum(part.violated for part in parts),
        )


def _added(tiles: Iterable[tuple[int, Singles]], adders: tuple[Adder, ...]) -> Iterator[tuple[int, Singles]]:
    for first, scores in tiles:
        for add in adders:
            add(scores, first)
        yield first, scores


def _tiles(vectors: Singles, items: Singles) -> Iterator[tuple[int, Singles]]:
    tile, vectors = min(ITEMS_PER_TILE, len(items)), without_padding(vectors)
    buffer = np.empty((len(vectors), tile), dtype=np.float32)
    for first in range(0, len(items), tile):
        part = items[first : first + tile, : vectors.shape[1]]
        scores = buffer if len(part) == tile else np.empty((len(vectors), len(part)), dtype=np.float32)
        yield first, np.matmul(vectors, part.T, out=scores)


def gradient_of_scan(
    block: Block,
    vectors: Singles,
    items: Singles,
    rank_weight: Singles,
    bars: Singles,
    tiles: Iterable[tuple[int, Singles]],
    most: int,
) -> BlockGradient:
    """Count the items above each pair's bar in tiles of scores, (first item, scores), and average over some of them."""
    from slatewise.factors.kernels.violators import Violators, catalogue_gradient, scan_tile

    n_pairs = len(block.positives)
    found = Violators(
        np.zeros(n_pairs, dtype=np.int64),
        np.empty(n_pairs, dtype=np.int64),
        np.zeros(n_pairs, dtype=np.int64),
        np.empty((n_pairs, most), dtype=np.int64),
        np.empty((n_pairs, most), dtype=np.float32),
    )
    for first, scores in tiles:
        scan_tile(scores, first, len(items), block, bars, found)
    gradient, totals = np.zeros(vectors.shape, dtype=np.float32), np.zeros(2)
    entries = Entries.empty(int(found.kept.sum()) + int((found.kept > 0).sum()))
    catalogue_gradient(items, block, rank_weight, bars, found, gradient, entries, totals)
    return BlockGradient(gradient, entries, None, float(totals[0]), int(totals[1]))


@dataclass(frozen=True, eq=False)
class SharedNegatives:
    """Items drawn uniformly for each step, beside a list per query: its k best items at the start of the epoch.

    Without such lists (k = 0) drawn items rarely hit the top of a large catalog. Of 176,948 artists and 2,048 drawn, a
    quarter have the 11 pairs that a list takes, and nine tenths of all pairs.
    """

    number: int
    k: int = 0
    lists: Ints | None = None
    """(queries, k) items, -1 after the last, for every epoch; None: made when an epoch begins."""

    def prepare(self, factors: Factors, pairs: TrainingPairs, executor: Executor) -> SharedNegatives:
        """Rank the catalog for the queries that have enough pairs, unless the lists are given."""
        if factors.base is not None:
            raise NotImplementedError("negatives: expected the whole catalogue where a base scores first")
        if factors.queries.score_offsets is not None:
            raise NotImplementedError("negatives: expected the whole catalogue where queries hold items")
        if self.lists is not None:
            return self
        lists = np.full((int(pairs.queries.max()) + 1, self.k), -1, dtype=np.int64)
        if self.k:
            items = factors.items.values
            numbers = np.flatnonzero(np.bincount(pairs.queries) * RANKING_PER_PAIR * self.number >= len(items))
            k = min(self.k, len(items))
            lists[numbers, :k] = Cascade((factors,)).top(numbers, k, executor=executor).items
        return replace(self, lists=lists)

    def draw(self, items: Singles, rng: np.random.Generator) -> StepNegatives:
        """Draw without repeats."""
        if self.lists is None:
            raise RuntimeError("negatives: expected prepare before draw")
        chosen = rng.choice(len(items), min(self.number, len(items)), replace=False, shuffle=False)
        chosen = np.sort(chosen.astype(np.int64))
        return _Drawn(chosen, items[chosen], self.lists)


@dataclass(frozen=True, eq=False)
class _Drawn:
    drawn: Ints
    rows: Singles
    """Those of the drawn items, taken together once for all blocks of the step."""
    lists: Ints

    def gradient(self, block: Block, vectors: Singles, items: Singles, rank_weight: Singles) -> BlockGradient:
        from slatewise.factors.kernels.shared import shared_gradient

        scores = vectors @ self.rows.T
        lists = self.lists[block.queries]
        coefficients = np.zeros(scores.shape, dtype=np.float32)
        gradient, totals = np.zeros(vectors.shape, dtype=np.float32), np.zeros(2)
        entries = Entries.empty(len(block.positives) + lists.size)
        n_entries = shared_gradient(
            items, vectors, scores, self.drawn, lists, block, rank_weight, coefficients, gradient, entries, totals
        )
        gradient += coefficients @ self.rows
        used = Entries(entries.rows[:n_entries], entries.coefficients[:n_entries], entries.sources[:n_entries])
        return BlockGradient(gradient, used, coefficients.T @ vectors, float(totals[0]), int(totals[1]))


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
        """Train on every pair once, a step at a time."""
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
        offsets = factors.queries.score_offsets
        if offsets is not None:
            offsets.step(np.add.reduce([result.score_offsets for result in wanted if result.score_offsets is not None]))
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
        negatives = SharedNegatives(drawn, lists=task.lists) if task.stage else SharedNegatives(drawn, settings.depth)
    weight = rank_weights(task.n_items, settings.rank_power)
    # Later stages leave U and V as they are: there is nothing to keep from learning too much.
    dropout = 0.0 if task.stage else settings.dropout
    return BlockedEngine(negatives, weight, engine.batch_size or step_size(task.n_pairs), task.executor, dropout)


KIND = EngineKind(blocked_engine)
