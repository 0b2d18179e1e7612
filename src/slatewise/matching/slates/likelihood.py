"""The likelihood of rankings as matchings of documents and positions (Petterson et al. 2009, eq. 3, 8, 11 and 16).

    -log p(y | s) = log sum over rankings pi of exp(sum_i s_i c[pi_i])  -  sum_i s_i c[y_i] ,      s = X theta

Convex in theta, with gradient ``X' (E[c[pi]] - c[y])``: the expected minus the observed placement. Slates of few
documents are summed exactly by :func:`slatewise.matching.sums.exact.log_permanents`, whole queries by
:func:`slatewise.matching.sums.tied.tied_log_sum` with c constant inside a rating.

Ties need a choice. A slate's order inside a rating is either taken as observed (it was drawn at random) or summed over:
then y stands for all orders that keep ratings apart, and a sum over the tied documents and positions alone takes the
place of the last term. That is a difference of convex functions, and convex only where c is constant inside a rating.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import Features
from slatewise.core.running.block_sums import BlockObjective, BlockSum, ValueAndSlope, add_value_and_slope
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.matching.slates.slates import At, ListBlock, RatedLists, SlateBlock, SlateTable, cut_slates, whole_lists
from slatewise.matching.sums.exact import log_permanents
from slatewise.matching.sums.tied import tied_log_sum

_BLOCK_NUMBERS, _BLOCK_SUBSETS = 1 << 17, 1 << 22  # of the matrices made at a time; of documents, in their sums
_MOST_STATES = 1 << 20
"""Counts of documents by grade, except the most frequent grade, that a whole list is summed over: some 100 MB."""


# --- slates -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ties:
    """Slates whose documents at positions ``first`` to ``last - 1`` have the same rating."""

    slates: Ints
    first: int
    last: int


def find_ties(slates: SlateTable) -> tuple[Ties, ...]:
    """Return all runs of two or more equal ratings, slates with the same run together."""
    size = slates.ratings.shape[1]
    edge = np.ones((len(slates.ratings), size + 1), dtype=np.bool_)
    edge[:, 1:-1] = slates.ratings[:, 1:] != slates.ratings[:, :-1]
    runs = ((first, last) for first in range(size) for last in range(first + 2, size + 1))
    found = (
        Ties(np.flatnonzero(edge[:, first] & edge[:, last] & ~edge[:, first + 1 : last].any(axis=1)), first, last)
        for first, last in runs
    )
    return tuple(ties for ties in found if len(ties.slates))


def slate_likelihood(
    X: Features, slates: SlateTable, ties: tuple[Ties, ...] = (), executor: Executor = ONE_THREAD
) -> BlockObjective:
    """Return the mean over slates of -log p; without ``ties`` the order of a slate is the observed one."""
    size = slates.rows.shape[1]
    blocks: list[_Slates] = []
    for cut, block in cut_slates(X, slates, max(1, min(_BLOCK_NUMBERS // size**2, _BLOCK_SUBSETS >> size))):
        ranges = [np.searchsorted(tied.slates, (cut.start, cut.stop)) for tied in ties]
        inside = (
            Ties(tied.slates[first:last] - cut.start, tied.first, tied.last)
            for tied, (first, last) in zip(ties, ranges, strict=True)
            if first < last
        )
        blocks.append(_Slates(block, tuple(inside)))
    held = executor.place_blocks(blocks, executor.inside(len(blocks)))
    return BlockObjective(held, _OF_SLATES, int(X.shape[1]))


class _Slates(NamedTuple):
    """A block of slates, and their ties, counted from its first slate."""

    block: SlateBlock
    ties: tuple[Ties, ...]


def _of_slates(at: At, part: _Slates) -> ValueAndSlope:
    X: Any = part.block.X
    slates = part.block.slates
    scores = (X @ at.params)[slates.rows]
    log_z, expected = _sums(scores, slates.weights, at.executor)
    losses, excess = log_z - (scores * slates.weights).sum(axis=1), expected - slates.weights
    for tied in part.ties:
        at_ties = np.ix_(tied.slates, np.arange(tied.first, tied.last))
        log_tied, expected_tied = _sums(scores[at_ties], slates.weights[at_ties], at.executor)
        losses[tied.slates] -= log_tied - (scores[at_ties] * slates.weights[at_ties]).sum(axis=1)
        excess[at_ties] -= expected_tied - slates.weights[at_ties]
    slopes = np.bincount(slates.rows.ravel(), (excess * slates.share[:, None]).ravel(), X.shape[0])
    return float(slates.share @ losses), slopes @ X


_OF_SLATES: BlockSum[Executor, Floats, At, _Slates, ValueAndSlope]
_OF_SLATES = BlockSum(At, _of_slates, add_value_and_slope)


def _sums(scores: Floats, weights: Floats, executor: Executor) -> tuple[Floats, Floats]:
    """Return log Z (B,) and the expected weight of each item's position (B, M)."""
    n, size = scores.shape
    log_z, expected = np.empty(n), np.empty(scores.shape)
    step = max(1, _BLOCK_NUMBERS // size**2)
    for first in range(0, n, step):
        block = slice(first, first + step)
        # Only differences count: small numbers lose fewer digits.
        centered = scores[block] - scores[block].mean(axis=1, keepdims=True)
        found, marginals = log_permanents(centered[:, :, None] * weights[block][:, None, :], executor)
        log_z[block] = found + scores[block].mean(axis=1) * weights[block].sum(axis=1)
        expected[block] = np.einsum("bij,bj->bi", marginals, weights[block])
    return log_z, expected


# --- whole lists ------------------------------------------------------------------------------------------------------


def whole_likelihood(lists: RatedLists, weights: Floats, executor: Executor = ONE_THREAD) -> BlockObjective:
    """Return the mean over whole lists of -log p(which documents have which rating), given how many have each.

    ``weights`` are c of each row, the same for all rows of a rating and growing with it.
    """
    _check_grades(lists)

    def classes(lists: RatedLists, weights: Floats) -> Iterator[_List]:
        for start, end, weight in zip(lists.offsets[:-1], lists.offsets[1:], lists.weights, strict=True):
            values, sizes = np.unique(weights[start:end], return_counts=True)
            yield _List(slice(int(start), int(end)), sizes.astype(np.int64), values, float(weight))

    return whole_lists(lists, weights, _OF_LISTS, classes, executor)


def _check_grades(lists: RatedLists) -> None:
    """Raise ValueError if a list has too many grades: their sum would take all memory."""
    for start, end in zip(lists.offsets[:-1].tolist(), lists.offsets[1:].tolist(), strict=True):
        sizes = np.unique(lists.ratings[start:end], return_counts=True)[1]
        if _states(sizes.tolist()) > _MOST_STATES:
            n = end - start
            most = max(r for r in range(1, n + 1) if _states([n // r] * r) <= _MOST_STATES)
            raise ValueError(
                f"y: expected at most about {most} different relevance grades in a list of {n} rows for "
                f"slates='whole', found {len(sizes)}: round y to fewer, or learn from slates='sampled'"
            )


def _states(sizes: list[int]) -> int:
    return math.prod(size + 1 for size in sizes) // (max(sizes) + 1)


class _List(NamedTuple):
    """Rows of one list, sizes and weights of its classes, and its own weight."""

    rows: slice
    sizes: Ints
    values: Floats
    weight: float


def _of_lists(at: At, block: ListBlock[_List]) -> ValueAndSlope:
    X: Any = block.lists.X
    found = at.executor.map_blocks(_of_list, (X @ at.params, block.weights), block.each)
    losses, slopes = zip(*found, strict=True)
    return math.fsum(losses), (block.lists.row_weights * np.concatenate(slopes)) @ X


def _of_list(scored: tuple[Floats, Floats], part: _List) -> tuple[float, Floats]:
    """Return -log p of one list, and its slopes, from the scores and weights of all rows."""
    scores, weights = (of_all[part.rows] for of_all in scored)
    found = tied_log_sum(scores, part.sizes, part.values)
    same = math.fsum(math.lgamma(size + 1) for size in part.sizes.tolist())  # rankings that show the same ratings
    loss = part.weight * (found.log_z - same - float(scores @ weights))
    return loss, found.marginals @ part.values - weights


_OF_LISTS: BlockSum[Executor, Floats, At, ListBlock[_List], ValueAndSlope]
_OF_LISTS = BlockSum(At, _of_lists, add_value_and_slope)
