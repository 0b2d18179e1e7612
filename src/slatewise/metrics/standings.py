"""The standing of each item with a non-zero relevance: how many score higher, how many the same. Integers only.

Two engines count them, NumPy (a sort) and compiled (``kernels/standings.py``). Everything after this file is
arithmetic on those integers, shared by both, so the choice of engine never changes a bit of a result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from slatewise.core.arrays import Bools, Floats, Ints
from slatewise.core.checks import Float as Scores
from slatewise.metrics.conventions import Array, ScoreType, check_choice
from slatewise.metrics.lists import Scored

Engine: TypeAlias = Literal["auto", "numpy", "compiled"]
_BLOCK_ITEMS = 1 << 17


@dataclass(frozen=True, eq=False)
class Standings:
    """Items with a non-zero relevance, list after list, by falling score."""

    scores: Scores
    """The scores as they were compared, of all rows."""
    lists: Ints
    rows: Ints
    above: Ints
    """Items of the list with a larger score."""
    tied: Ints
    """Items of the list with the same score, itself included."""


def standings(scored: Scored, score_type: ScoreType, engine: Engine) -> Standings:
    """Count the items above and beside every item with a non-zero relevance."""
    scores = _as_type(scored.scores, score_type)
    return _engine(engine)(scores, scored.relevance, scored.offsets)


def _engine(name: Engine) -> Callable[[Scores, Floats, Ints], Standings]:
    check_choice("engine", name, ("auto", "numpy", "compiled"))
    # "auto" takes the kernel only if it is already loaded: compiling costs seconds and saves milliseconds.
    if name == "compiled" or (name == "auto" and "slatewise.metrics.kernels.standings" in sys.modules):
        return _compiled
    return _sorted


def _as_type(scores: Floats, score_type: ScoreType) -> Scores:
    if score_type == "float64":
        return scores
    with np.errstate(over="ignore"):
        rounded = scores.astype(np.float32)
    if not np.isfinite(rounded).all():
        raise ValueError(f"scores: expected numbers within float32, found {scores[~np.isfinite(rounded)][0]}")
    return rounded


@dataclass(frozen=True, eq=False)
class Block:
    """Lists of similar length side by side, padded to one width."""

    lists: Ints
    rows: Ints
    """(n_lists, width) row numbers; past a list's end any number."""
    lengths: Ints
    """Items of each list, rising."""

    @property
    def width(self) -> int:
        """Cells per list."""
        return int(self.lengths[-1])

    @property
    def inside(self) -> Bools:
        """True where a cell holds an item of its list."""
        return np.arange(self.width) < self.lengths[:, None]

    def pick(self, values: Array) -> Array:
        """Return the cells' values; past a list's end any value."""
        return values.take(self.rows, mode="clip")

    def falling(self, scores: Scores) -> Scores:
        """Return the scores negated, so that an ascending sort puts the best first and the padding last."""
        negated: Scores = np.negative(self.pick(scores))
        if self.lengths[0] < self.width:
            negated[~self.inside] = np.inf
        return negated


def blocks(offsets: Ints, lists: Ints | None = None) -> Iterator[Block]:
    """Cut lists into blocks of bounded size with little padding, shortest lists first."""
    lengths = np.diff(offsets)
    lists = np.arange(len(lengths)) if lists is None else lists
    lists = lists[lengths[lists] > 0]
    lists = lists[np.argsort(lengths[lists], kind="stable")]
    sizes = lengths[lists]
    begin = 0
    while begin < len(lists):
        # At most a quarter of a row is padding, and a block stays in the processor's cache.
        end = int(np.searchsorted(sizes, int(sizes[begin]) * 4 // 3, side="right"))
        end = min(end, begin + max(1, _BLOCK_ITEMS // int(sizes[end - 1])))
        chosen, width = lists[begin:end], int(sizes[end - 1])
        yield Block(chosen, offsets[chosen][:, None] + np.arange(width), sizes[begin:end])
        begin = end


def _sorted(scores: Scores, relevance: Floats, offsets: Ints) -> Standings:
    flags = relevance != 0.0
    found = [_sorted_block(block, scores, flags) for block in blocks(offsets)]
    lists, rows, above, tied = (np.concatenate(parts) for parts in zip(*found, strict=True)) if found else _NOTHING
    if np.any(lists[1:] < lists[:-1]):
        order = np.argsort(lists, kind="stable")
        lists, rows, above, tied = lists[order], rows[order], above[order], tied[order]
    return Standings(scores, lists, rows, above, tied)


_NOTHING = tuple(np.zeros(0, dtype=np.int64) for _ in range(4))


def _sorted_block(block: Block, scores: Scores, flags: Bools) -> tuple[Ints, Ints, Ints, Ints]:
    height, width = len(block.lists), block.width
    falling = block.falling(scores)
    order = np.argsort(falling, axis=1)
    cells = (order + np.arange(height)[:, None] * width).ravel()
    marked = block.pick(flags).ravel()[cells]
    if block.lengths[0] < width:
        marked &= block.inside.ravel()
    at = np.flatnonzero(marked)
    row_of_block = at // width
    by_score = falling.ravel()[cells].reshape(height, width)
    starts = np.empty((height, width), dtype=np.bool_)
    starts[:, 0] = True
    np.not_equal(by_score[:, 1:], by_score[:, :-1], out=starts[:, 1:])
    if starts.all():
        above, tied = at - row_of_block * width, np.ones(len(at), dtype=np.int64)
    else:
        first = np.flatnonzero(starts)
        group = np.cumsum(starts.ravel())[at] - 1
        above = first[group] - row_of_block * width
        tied = np.diff(first, append=height * width)[group]
    return block.lists[row_of_block], block.rows.ravel()[cells[at]], above, tied


def _compiled(scores: Scores, relevance: Floats, offsets: Ints) -> Standings:
    # Imported here: slatewise.metrics must not load numba unless the compiled engine is used.
    from slatewise.core.running.executor import Executor
    from slatewise.metrics.kernels.standings import stand

    rows = np.flatnonzero(relevance)
    starts = np.searchsorted(rows, offsets)
    above, tied = np.empty_like(rows), np.empty_like(rows)
    cuts = np.searchsorted(offsets, np.arange(0, len(scores), _BLOCK_ITEMS))
    cuts = np.unique(np.append(cuts, len(offsets) - 1))
    spans = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))

    def fill(span: tuple[int, int]) -> None:
        stand(scores, offsets, starts, rows, above, tied, span[0], span[1])

    Executor.of(None).fill_blocks(fill, spans)
    lists = np.repeat(np.arange(len(offsets) - 1), np.diff(starts))
    return Standings(scores, lists, rows, above, tied)
