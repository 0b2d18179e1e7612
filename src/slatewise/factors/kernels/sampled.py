"""WARP by sampling, without locks: draw items until one violates, then step the three rows.

    N draws until s_j + 1 > s_d:    rank ~ floor((D - 1) / N),    weight L(rank) / L(D)

Items are drawn in groups, so that their rows come from memory side by side, and looked at in bytes first, because
memory is what takes the time. Other threads write the same tables at the same time: a row may be read half-written,
which this way of training is known to bear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints, Singles
from slatewise.core.running.kernel import kernel, kernel_fastmath
from slatewise.factors.kernels.prefetch import prefetch_line, prefetch_row
from slatewise.factors.kernels.quantized_rows import half_size, largest_score, quantize_row
from slatewise.recommend.kernels.singles import Number, square

if TYPE_CHECKING:
    from slatewise.factors.pairs import Block


GROUP = 8
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd: seeds that differ little give states that differ much
_7, _13, _17, _32 = np.uint64(7), np.uint64(13), np.uint64(17), np.uint64(32)


@kernel
def _next(state: np.uint64) -> np.uint64:
    """Xorshift, 64 bits."""
    state ^= state << _13
    state ^= state >> _7
    return state ^ (state << _17)


@kernel_fastmath
def _score(table: Singles, row: int, vector: Singles) -> Number:
    # Indexed, not sliced: a view counts references, which threads would fight over.
    total = np.float32(0.0)
    for f in range(table.shape[1]):
        total += table[row, f] * vector[f]
    return total


@kernel_fastmath
def _square(table: Singles, row: int, n: int) -> Number:
    total = np.float32(0.0)
    for f in range(n):
        total += table[row, f] * table[row, f]
    return total


@kernel
def _move(
    table: Singles, accumulators: Singles, row: int, gradient: Singles, size: Number, n: int, step: float, norm: float
) -> None:
    """Step the first n numbers of a row along a gradient, whose square is ``size``, and project them."""
    accumulators[row, 0] += size / n
    if accumulators[row, 0] == 0.0:  # a gradient too small to have a square
        return
    scale = np.float32(step / np.sqrt(accumulators[row, 0]))
    for f in range(n):
        table[row, f] += scale * gradient[f]
    length = np.sqrt(_square(table, row, n))
    if length > norm:
        shrink = np.float32(norm / length)
        for f in range(n):
            table[row, f] *= shrink


@kernel
def _move_bias(table: Singles, accumulators: Singles, row: int, amount: Number, n: int, step: float) -> None:
    accumulators[row, 1] += amount * amount
    if accumulators[row, 1] == 0.0:
        return
    table[row, n] += np.float32(step * amount / np.sqrt(accumulators[row, 1]))


@kernel
def _pulls(
    table: Singles,
    good: int,
    bad: int,
    vector: Singles,
    amount: Number,
    pull: Singles,
    up: Singles,
    down: Singles,
) -> None:
    """Fill the gradients of the query's row and of both items' rows.

    Nothing is summed here: of a loop that also writes, the compiler makes two, and takes the one or the other by where
    the arrays lie, so a sum in any order would have other bits from run to run.
    """
    for f in range(len(pull)):
        there = amount * vector[f]
        pull[f], up[f], down[f] = amount * (table[good, f] - table[bad, f]), there, -there


@kernel
def _draw(state: np.uint64, size: np.uint64, quantized: Bytes, drawn: Ints) -> np.uint64:
    """Fill a group of uniform items and send for their bytes."""
    for i in range(len(drawn)):
        state = _next(state)
        drawn[i] = np.int64(((state >> _32) * size) >> _32)
        prefetch_line(quantized, int(drawn[i]))
    return state


class FactorMoves(NamedTuple):
    """How rows of U, V and b move: width, step and largest norm of the factors, and the step of the bias."""

    n: int
    step: float
    norm: float
    bias_step: float


@kernel
def sampled_epoch(
    query_table: Singles,
    query_accumulators: Singles,
    item_table: Singles,
    item_accumulators: Singles,
    quantized: Bytes,
    moves: FactorMoves,
    block: Block,
    rank_weight: Singles,
    max_draws: int,
    seed: int,
    totals: Floats,
) -> None:
    """Train on the runs of a block.

    ``totals`` gets the loss and the number of pairs for which a violator was found. Columns up to n are the factors,
    column n holds 1 in queries and the bias in items. ``quantized`` has the items' rows in bytes and is kept up to
    date; it is at least as wide as they are.
    """
    n, step, norm, bias_step = moves
    queries, ends, positives, weights, _ = block
    n_items, width = item_table.shape
    state, size = np.uint64(seed) * _SPREAD, np.uint64(n_items)
    # While one group is scored the rows of the other are on their way.
    drawn, coming = np.empty(GROUP, np.int64), np.empty(GROUP, np.int64)
    scores = np.empty(GROUP, np.float32)
    vector = np.zeros(quantized.shape[1], np.float32)
    pull, up, down = np.empty(n, np.float32), np.empty(n, np.float32), np.empty(n, np.float32)
    state = _draw(state, size, quantized, coming)
    pair = 0
    for run in range(len(queries)):
        query = int(queries[run])
        if run + 1 < len(queries):
            prefetch_row(query_table, int(queries[run + 1]))
        while pair < ends[run]:
            good = int(positives[pair])
            if pair + 1 < len(positives):
                prefetch_row(item_table, int(positives[pair + 1]))
            for f in range(width):
                vector[f] = query_table[query, f]
            bar = np.float32(_score(item_table, good, vector) - 1.0)
            slack = half_size(vector)
            draws, bad, excess = 0, -1, 0.0
            while bad < 0 and draws < max_draws:
                drawn, coming = coming, drawn
                state = _draw(state, size, quantized, coming)
                group = min(GROUP, max_draws - draws)
                for i in range(group):
                    scores[i] = largest_score(quantized, int(drawn[i]), vector, slack)
                for i in range(group):
                    if drawn[i] == good:
                        continue
                    draws += 1
                    if scores[i] > bar:
                        score = _score(item_table, int(drawn[i]), vector)
                        if score > bar:
                            bad, excess = int(drawn[i]), score - bar
                            break
            if bad >= 0:
                amount = np.float32(weights[pair] * rank_weight[max((n_items - 1) // draws, 1)])
                _pulls(item_table, good, bad, vector, amount, pull, up, down)
                of_query, of_item = square(pull), square(up)
                _move(query_table, query_accumulators, query, pull, of_query, n, step, norm)
                _move(item_table, item_accumulators, good, up, of_item, n, step, norm)
                _move(item_table, item_accumulators, bad, down, of_item, n, step, norm)
                _move_bias(item_table, item_accumulators, good, amount, n, bias_step)
                _move_bias(item_table, item_accumulators, bad, -amount, n, bias_step)
                quantize_row(item_table, good, n + 1, quantized)
                quantize_row(item_table, bad, n + 1, quantized)
                totals[0] += amount * excess
                totals[1] += 1.0
            pair += 1
