"""Triton kernels of a WARP step: each does what the function of its name in ``twins.py`` does.

Scores are made tile by tile, compared with the bars, multiplied again, and never stored. No sum is shared by programs,
and parts of a sum are added in order: the same bits every time on the same GPU.
"""

# Triton reads the annotations of kernels itself, and knows no others than its own.
# pyright: reportInvalidTypeForm=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeAlias

from slatewise.factors.gpu.tiles import Tiles

torch: Any = import_module("torch")
triton: Any = import_module("triton")
tl: Any = import_module("triton.language")
Tensor: TypeAlias = Any

ENTRIES_AT_ONCE = 16
"""Of a row's sum."""


@triton.jit
def _sum_violators(
    u_rows,
    half,
    bars,
    out,
    n_pairs,
    n_items,
    per_share,
    WIDTH: tl.constexpr,
    PAIRS: tl.constexpr,
    ITEMS: tl.constexpr,
):
    share = tl.program_id(1)
    pairs, columns = tl.program_id(0) * PAIRS + tl.arange(0, PAIRS), tl.arange(0, WIDTH)
    inside = tl.arange(0, ITEMS)[:, None] * WIDTH + columns[None, :]
    u = tl.load(u_rows + pairs[:, None] * WIDTH + columns[None, :])
    bar = tl.load(bars + pairs)
    total = tl.zeros((PAIRS, WIDTH), tl.float32)
    first = share.to(tl.int64) * per_share
    for item in range(first, min(first + per_share, n_items), ITEMS):
        v = tl.load(half + item * WIDTH + inside)
        above = (tl.dot(u, tl.trans(v)) > bar[:, None]).to(tl.float16)
        total = tl.dot(above, v, total)
    here = share.to(tl.int64) * n_pairs + pairs
    tl.store(out + here[:, None] * WIDTH + columns[None, :], total)


@triton.jit
def _moved(value, gradient, accumulators, rows, moves, ok, N_PARTS: tl.constexpr):
    """Return rows of values after a step; accumulators are stored."""
    columns = tl.arange(0, value.shape[1]).to(tl.float32)
    for part in tl.static_range(N_PARTS):
        start, stop = tl.load(moves + 4 * part), tl.load(moves + 4 * part + 1)
        step, norm = tl.load(moves + 4 * part + 2), tl.load(moves + 4 * part + 3)
        own = (columns - start) * (stop - 1.0 - columns) >= 0.0
        pulls = tl.where(own[None, :], gradient, 0.0)
        size = tl.sum(pulls * pulls, 1)
        place = accumulators + rows * N_PARTS + part
        spent = tl.load(place, mask=ok, other=0.0)
        spent = tl.where(step != 0.0, spent + size / (stop - start), spent)
        tl.store(place, spent, mask=ok)
        moving = tl.where(spent > 0.0, size * tl.abs(step), 0.0) > 0.0
        pace = tl.where(moving, step / tl.sqrt(tl.where(spent > 0.0, spent, 1.0)), 0.0)
        value = value + pace[:, None] * pulls
        length = tl.sqrt(tl.sum(tl.where(own[None, :], value * value, 0.0), 1))
        long = tl.where(moving, length, 0.0) > norm
        shrink = tl.where(long, norm / tl.where(long, length, 1.0), 1.0)
        value = tl.where(own[None, :], value * shrink[:, None], value)
    return value


@triton.jit
def _step_items(
    values,
    accumulators,
    half,
    moves,
    n_rows,
    u_rows,
    bars,
    shares,
    scale,
    pulls,
    n_pairs,
    WIDTH: tl.constexpr,
    N_PARTS: tl.constexpr,
    PAIRS: tl.constexpr,
    ITEMS: tl.constexpr,
):
    columns = tl.arange(0, WIDTH)
    first = tl.program_id(0).to(tl.int64) * ITEMS
    rows = tl.arange(0, ITEMS)
    there = rows < n_rows - first
    here = rows[:, None] * WIDTH + columns[None, :]
    inside = tl.arange(0, PAIRS)[:, None] * WIDTH + columns[None, :]
    half += first * WIDTH
    v = tl.load(half + here)
    pushed = tl.zeros((ITEMS, WIDTH), tl.float32)
    for pair in range(0, n_pairs, PAIRS):
        u = tl.load(u_rows + pair * WIDTH + inside)
        bar, share = tl.load(bars + pair + tl.arange(0, PAIRS)), tl.load(shares + pair + tl.arange(0, PAIRS))
        weight = tl.where(tl.dot(v, tl.trans(u)) > bar[None, :], share[None, :], 0.0).to(tl.float16)
        pushed = tl.dot(weight, u, pushed)
    gradient = tl.load(pulls + first * WIDTH + here) - pushed / tl.load(scale)
    gradient = tl.where(there[:, None], gradient, 0.0)
    values += first * WIDTH
    accumulators += first * N_PARTS
    value = _moved(tl.load(values + here), gradient, accumulators, rows, moves, there, N_PARTS)
    tl.store(values + here, value)
    tl.store(half + here, value.to(tl.float16))


@triton.jit
def _sum_of_row(entry, end, coefficients, sources, vectors, WIDTH: tl.constexpr, CHUNK: tl.constexpr):
    columns = tl.arange(0, WIDTH)
    total = tl.zeros((1, WIDTH), tl.float32)
    for first in range(entry, end, CHUNK):
        entries = first + tl.arange(0, CHUNK)
        ok = entries < end
        source = tl.load(sources + entries, mask=ok, other=0)
        coefficient = tl.load(coefficients + entries, mask=ok, other=0.0)
        vector = tl.load(vectors + source[:, None] * WIDTH + columns[None, :], mask=ok[:, None], other=0.0)
        total += tl.sum(coefficient[:, None] * vector, 0)[None, :]
    return total


@triton.jit
def _sum_rows(
    out,
    n_rows,
    rows,
    ends,
    coefficients,
    sources,
    vectors,
    WIDTH: tl.constexpr,
    CHUNK: tl.constexpr,
):
    entry = tl.program_id(0)
    row = tl.load(rows + entry).to(tl.int64)
    before = tl.load(rows + entry - 1, mask=entry > 0, other=-1).to(tl.int64)
    if tl.where(row < n_rows, row, before) != before:
        total = _sum_of_row(entry, tl.load(ends + entry), coefficients, sources, vectors, WIDTH, CHUNK)
        tl.store(out + row * WIDTH + tl.arange(0, WIDTH)[None, :], total)


@triton.jit
def _step_rows(
    values,
    accumulators,
    moves,
    n_rows,
    rows,
    ends,
    coefficients,
    sources,
    vectors,
    WIDTH: tl.constexpr,
    N_PARTS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    entry = tl.program_id(0)
    row = tl.load(rows + entry).to(tl.int64)
    before = tl.load(rows + entry - 1, mask=entry > 0, other=-1).to(tl.int64)
    if tl.where(row < n_rows, row, before) != before:
        total = _sum_of_row(entry, tl.load(ends + entry), coefficients, sources, vectors, WIDTH, CHUNK)
        place = values + row * WIDTH + tl.arange(0, WIDTH)[None, :]
        at = row + tl.arange(0, 1)
        value = _moved(tl.load(place), total, accumulators, at, moves, at < n_rows, N_PARTS)
        tl.store(place, value)


def sum_violators(u: Tensor, half: Tensor, bars: Tensor, tiles: Tiles) -> Tensor:
    """Return, for each row of ``u``, the sum of the items' rows whose product with it is above its bar."""
    (n_pairs, width), n_items = u.shape, len(half)
    per_share = -(-n_items // (tiles.shares * tiles.items)) * tiles.items
    parts = torch.empty((tiles.shares, n_pairs, width), dtype=torch.float32, device=u.device)
    _sum_violators[(n_pairs // tiles.pairs, tiles.shares)](
        u,
        half,
        bars,
        parts,
        n_pairs,
        n_items,
        per_share,
        WIDTH=width,
        PAIRS=tiles.pairs,
        ITEMS=tiles.items,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )
    return parts.sum(0)


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
    """Push every item down by the shares of the pairs it violates, pull it by ``pulls``, and step it."""
    n_pairs, width = u.shape
    _step_items[(len(values) // tiles.step_items,)](
        values,
        accumulators,
        half,
        moves,
        n_rows,
        u,
        bars,
        shares,
        scale,
        pulls,
        n_pairs,
        WIDTH=width,
        N_PARTS=len(moves),
        PAIRS=tiles.step_pairs,
        ITEMS=tiles.step_items,
        num_warps=tiles.step_warps,
        num_stages=tiles.stages,
    )


def sum_rows(
    out: Tensor, rows: Tensor, ends: Tensor, coefficients: Tensor, sources: Tensor, vectors: Tensor, tiles: Tiles
) -> None:
    """Set row r to the sum of ``coefficients[e] * vectors[sources[e]]`` over its entries; entries are sorted by row."""
    _sum_rows[(len(rows),)](
        out,
        len(out),
        rows,
        ends,
        coefficients,
        sources,
        vectors,
        WIDTH=out.shape[1],
        CHUNK=ENTRIES_AT_ONCE,
        num_warps=1,
    )


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
    _step_rows[(len(rows),)](
        values,
        accumulators,
        moves,
        len(values),
        rows,
        ends,
        coefficients,
        sources,
        vectors,
        WIDTH=values.shape[1],
        N_PARTS=len(moves),
        CHUNK=ENTRIES_AT_ONCE,
        num_warps=1,
    )
