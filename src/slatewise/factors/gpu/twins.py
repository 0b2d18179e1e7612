"""Plain torch for every kernel of ``fused.py``, with the same arguments: what CI compares, and what runs on a CPU.

Rows of ``half`` hold float16 copies of the items, with a 1 in the last column, against which queries have a 0: whatever
sums rows counts them too.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeAlias

from slatewise.factors.gpu.tiles import Tiles

torch: Any = import_module("torch")
Tensor: TypeAlias = Any

ITEMS_AT_ONCE = 8192


def sum_violators(u: Tensor, half: Tensor, bars: Tensor, tiles: Tiles) -> Tensor:
    """Return, for each row of ``u``, the sum of the items' rows whose product with it is above its bar."""
    total = torch.zeros(u.shape, dtype=torch.float32, device=u.device)
    for first in range(0, len(half), ITEMS_AT_ONCE):
        v = half[first : first + ITEMS_AT_ONCE].float()
        total += (u.float() @ v.T > bars[:, None]).float() @ v
    return total


def step_items(
    values: Tensor,
    accumulators: Tensor,
    half: Tensor,
    moves: Tensor,
    n_rows: int,
    u: Tensor,
    bars: Tensor,
    shares: Tensor,
    scale: Tensor,
    pulls: Tensor,
    tiles: Tiles,
) -> None:
    """Push every item down by the shares of the pairs it violates, pull it by ``pulls``, and step it.

    ``shares`` are float16 and ``scale`` times too large, so that small ones keep their digits.
    """
    for first in range(0, n_rows, ITEMS_AT_ONCE):
        rows = slice(first, min(first + ITEMS_AT_ONCE, n_rows))
        weight = torch.where(half[rows].float() @ u.float().T > bars, shares.float(), 0.0)
        gradient = pulls[rows] - weight @ u.float() / scale
        _adagrad(values[rows], accumulators[rows], moves, gradient)
        half[rows] = values[rows].half()


def sum_rows(
    out: Tensor, rows: Tensor, ends: Tensor, coefficients: Tensor, sources: Tensor, vectors: Tensor, tiles: Tiles
) -> None:
    """Set row r to the sum of ``coefficients[e] * vectors[sources[e]]`` over its entries; entries are sorted by row.

    ``ends[e]`` is where the entries of the same row end; rows that ``out`` does not have are left out.
    """
    there = rows < len(out)
    where = rows[there].long()
    out[where] = 0.0
    out.index_add_(0, where, coefficients[there, None] * vectors[sources[there].long()])


def step_rows(
    values: Tensor,
    accumulators: Tensor,
    moves: Tensor,
    rows: Tensor,
    ends: Tensor,
    coefficients: Tensor,
    sources: Tensor,
    vectors: Tensor,
    tiles: Tiles,
) -> None:
    """Step the rows that have entries, as :func:`sum_rows` takes them, along their sums."""
    gradient = torch.zeros_like(values)
    sum_rows(gradient, rows, ends, coefficients, sources, vectors, tiles)
    _adagrad(values, accumulators, moves, gradient)


def _adagrad(values: Tensor, accumulators: Tensor, moves: Tensor, gradient: Tensor) -> None:
    """Step the segments of rows; a segment is ``moves[i]``: first column, the one behind the last, step, norm."""
    for part, (start, stop, step, norm) in enumerate(moves.tolist()):
        columns = slice(int(start), int(stop))
        own = gradient[:, columns]
        size = (own * own).sum(1)
        if not step:
            continue
        accumulators[:, part] += size / (stop - start)
        moved = (size > 0) & (accumulators[:, part] > 0)
        pace = torch.where(moved, step / accumulators[:, part].sqrt(), 0.0)
        new = values[:, columns] + torch.where(moved[:, None], pace[:, None] * own, 0.0)
        length = (new * new).sum(1).sqrt()
        shrink = torch.where(moved & (length > norm), norm / length, 1.0)
        values[:, columns] = new * shrink[:, None]
