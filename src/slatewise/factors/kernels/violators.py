"""Which items violate a pair's margin: exact counts over a tile of scores, and a systematic sample of those found.

Item j violates the pair (q, d) when ``s_j + 1 > s_d``, j other than d. The violators of a pair are numbered as they
come, in item order. Those kept have numbers ``start + i * stride``; whenever more would be kept than fit, the stride
doubles and every second one goes. The start is random, so each violator is as likely kept as any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.kernel import kernel
from slatewise.recommend.kernels.singles import Number, count_above

if TYPE_CHECKING:
    from slatewise.factors.pairs import Block
    from slatewise.factors.tables import Entries


CHUNK, FEW = 256, 32
"""Items whose violators are counted at once; only where one of them is kept, fewer at a time, and then one by one."""


class Violators(NamedTuple):
    """What is known of the violators of each pair so far."""

    counts: Ints
    strides: Ints
    kept: Ints
    items: Ints
    """(pairs, most) those kept."""
    scores: Singles
    """(pairs, most) theirs."""


@kernel
def scan_tile(
    scores: Singles,
    first_item: int,
    n_items: int,
    block: Block,
    bars: Singles,
    found: Violators,
) -> None:
    """Add the violators of the tile that begins at ``first_item``; row r of ``scores`` is row r of the block.

    ``n_items`` is the size of the whole catalogue, and ``bars`` are the scores of the positives less 1. Before the
    first tile counts and kept are 0.
    """
    _, ends, positives, _, starts = block
    counts, strides, kept, items, item_scores = found
    most, size = items.shape[1], scores.shape[1]
    for row in range(len(ends)):
        values = scores[row]
        for pair in range(ends[row - 1] if row else 0, ends[row]):
            bar, positive = bars[pair], positives[pair] - first_item
            own = np.float32(0.0)
            if 0 <= positive < size:  # out of the way, for this pair
                own, values[positive] = values[positive], -np.inf
            if first_item == 0:
                # A stride that will about do, from the first tile: a smaller one would be doubled again and again.
                guess = count_above(values, bar) * n_items // (size * most)
                strides[pair] = 1
                while 2 * strides[pair] <= guess:
                    strides[pair] *= 2
            seen, stride, held = counts[pair], strides[pair], kept[pair]
            wanted = starts[pair] % stride + held * stride
            for first in range(0, size, CHUNK):
                chunk = values[first : first + CHUNK]
                above = count_above(chunk, bar)
                while wanted < seen + above:
                    if held == most:
                        held = _keep_every_second(items[pair], item_scores[pair], starts[pair], stride)
                        stride *= 2
                        wanted = starts[pair] % stride + held * stride
                        continue
                    place = _nth_above(chunk, bar, wanted - seen)
                    items[pair, held], item_scores[pair, held] = first_item + first + place, chunk[place]
                    held += 1
                    wanted += stride
                seen += above
            counts[pair], strides[pair], kept[pair] = seen, stride, held
            if 0 <= positive < size:
                values[positive] = own


@kernel
def _nth_above(scores: Singles, bar: Number, n: int) -> int:
    """Return the place of the n-th score above the bar, from 0; there is one."""
    first, count = 0, 0
    while True:
        here = count_above(scores[first : first + FEW], bar)
        if count + here > n:
            break
        count += here
        first += FEW
    place = first - 1
    while count <= n:
        place += 1
        count += scores[place] > bar
    return place


@kernel
def _keep_every_second(items: Ints, scores: Singles, start: int, stride: int) -> int:
    """Thin out a full sample; return how many are left."""
    first = 0 if start % (2 * stride) < stride else 1
    left = 0
    for place in range(first, len(items), 2):
        items[left], scores[left] = items[place], scores[place]
        left += 1
    return left


@kernel
def catalogue_gradient(
    table: Singles,
    block: Block,
    rank_weight: Singles,
    bars: Singles,
    found: Violators,
    gradient: Singles,
    entries: Entries,
    totals: NDArray[np.float64],
) -> int:
    """Add up what the kept violators ask for: ``gradient`` of the query vectors, and entries for the items' rows.

    A pair pushes its positive up by ``a = weight * L(count)`` and its violators down by a in all. Return the number of
    entries; ``totals`` gets the loss and the number of pairs that had a violator.
    """
    _, ends, positives, weights, _ = block
    counts, _, kept, items, item_scores = found
    entry_items, entry_coefficients, entry_rows = entries
    width = table.shape[1]
    entry = 0
    for row in range(len(ends)):
        step = gradient[row]
        for pair in range(ends[row - 1] if row else 0, ends[row]):
            if counts[pair] == 0:
                continue
            amount = weights[pair] * rank_weight[counts[pair]]
            share = np.float32(amount / kept[pair])
            hinge = 0.0
            for place in range(kept[pair]):
                item = items[pair, place]
                hinge += item_scores[pair, place] - bars[pair]
                vector = table[item]
                for f in range(width):
                    step[f] -= share * vector[f]
                entry_items[entry], entry_coefficients[entry], entry_rows[entry] = item, -share, row
                entry += 1
            vector = table[positives[pair]]
            for f in range(width):
                step[f] += amount * vector[f]
            entry_items[entry], entry_coefficients[entry], entry_rows[entry] = positives[pair], amount, row
            entry += 1
            totals[0] += amount * hinge / kept[pair]
            totals[1] += 1.0
    return entry
