"""The structured hinge of rankings as matchings: DORM (Le and Smola 2007) on the slates of RankMatch.

    R(theta) = mean of  max over pi of [ 1 - NDCG(pi) + sum_i s_i c[pi_i] ]  -  sum_i s_i c[y_i] ,      s = X theta

1 - NDCG is linear in the ranking, ``sum_i b_i a[pi_i]`` (:mod:`slatewise.losses.linear`), so the maximum is an
assignment: over few documents by ``kernels/slate_assignment.py``, otherwise by
:func:`slatewise.inference.linear_loss_ranking`. The smallest rating gains nothing, and the gain doubles with each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import Features
from slatewise.core.running.block_sums import BlockObjective, BlockSum, ValueAndSlope, add_value_and_slope
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.losses.linear import DCGLoss, Vectors
from slatewise.matching.slates.slates import At, ListBlock, RatedLists, SlateBlock, SlateTable, cut_slates, whole_lists

MOST_IN_KERNEL = 10
"""Documents; more of them go through the assignment solver one slate at a time."""
_BLOCK_SLATES = 4096
_MOST_DOUBLINGS = 500.0


def check_gains(ratings: Floats) -> None:
    """Raise ValueError unless the gains of all these ratings are numbers."""
    if float(np.ptp(ratings)) > _MOST_DOUBLINGS:
        raise ValueError(
            f"y: expected ratings at most {_MOST_DOUBLINGS:g} apart for surrogate='max-margin', where the gain doubles "
            f"with each, found {ratings.min():g} and {ratings.max():g}"
        )


# --- slates -----------------------------------------------------------------------------------------------------------


def slate_hinge(X: Features, slates: SlateTable, least: float, executor: Executor = ONE_THREAD) -> BlockObjective:
    """Return the mean hinge of slates; ``least`` is the rating that gains nothing."""
    patterns, which = np.unique(slates.ratings - least, axis=0, return_inverse=True)
    vectors = [DCGLoss().vectors(pattern) for pattern in patterns]
    a, b = (np.array(part)[which.ravel()] for part in zip(*vectors, strict=True))
    blocks = [_Slates(block, Vectors(a[cut], b[cut])) for cut, block in cut_slates(X, slates, _BLOCK_SLATES)]
    return BlockObjective(executor.place_blocks(blocks, executor.inside(len(blocks))), _OF_SLATES, int(X.shape[1]))


class _Slates(NamedTuple):
    """A block of slates."""

    block: SlateBlock
    costs: Vectors
    """(B, M) each."""


def _of_slates(at: At, part: _Slates) -> ValueAndSlope:
    X: Any = part.block.X
    slates, costs = part.block.slates, part.costs
    place = _best((X @ at.params)[slates.rows], slates.weights, costs)
    change = np.take_along_axis(slates.weights, place, axis=1) - slates.weights
    slopes = np.bincount(slates.rows.ravel(), (change * slates.share[:, None]).ravel(), X.shape[0])
    losses = (costs.items * np.take_along_axis(costs.positions, place, axis=1)).sum(axis=1)
    return float(slates.share @ losses), slopes @ X


_OF_SLATES: BlockSum[Executor, Floats, At, _Slates, ValueAndSlope]
_OF_SLATES = BlockSum(At, _of_slates, add_value_and_slope)


def _best(s: Floats, c: Floats, costs: Vectors) -> Ints:
    """Return the positions of the documents of slates in their most violated ranking."""
    from slatewise.core.numerics.assignment import linear_loss_ranking
    from slatewise.matching.kernels.slate_assignment import best_rankings

    a, b = costs
    place = np.empty(s.shape, dtype=np.int64)
    if s.shape[1] <= MOST_IN_KERNEL:
        best_rankings(s, c, b, a, place)
        return place
    for slate in range(len(s)):
        order = linear_loss_ranking(s[slate], c[slate], a[slate], b[slate]).order
        place[slate, order] = np.arange(len(order))
    return place


# --- whole lists ------------------------------------------------------------------------------------------------------


def whole_hinge(lists: RatedLists, weights: Floats, least: float, executor: Executor = ONE_THREAD) -> BlockObjective:
    """Return the mean hinge of whole lists; ``least`` is the rating that gains nothing.

    ``weights`` are c of each row, constant inside a rating and growing with it.
    """

    def costs(lists: RatedLists, _: Floats) -> Iterator[tuple[slice, Vectors]]:
        gained = lists.ratings - least
        for start, end in zip(lists.offsets[:-1], lists.offsets[1:], strict=True):
            rows = slice(int(start), int(end))
            yield rows, DCGLoss().vectors(gained[rows])

    return whole_lists(lists, weights, _OF_LISTS, costs, executor)


def _of_lists(at: At, block: ListBlock[tuple[slice, Vectors]]) -> ValueAndSlope:
    X: Any = block.lists.X
    found = at.executor.map_blocks(_worst_list, (X @ at.params, block.weights), block.each)
    losses, slopes = zip(*found, strict=True)
    gradient = (block.lists.row_weights * np.concatenate(slopes)) @ X
    return float((block.lists.weights * np.array(losses)).sum()), gradient


def _worst_list(scored: tuple[Floats, Floats], part: tuple[slice, Vectors]) -> tuple[float, Floats]:
    """Return the loss of one list's most violated ranking, and its slopes."""
    from slatewise.core.numerics.assignment import linear_loss_ranking

    rows, (a, b) = part
    scores, weights = (of_all[rows] for of_all in scored)
    falling = weights[::-1]
    order = linear_loss_ranking(scores, falling, a, b).order
    placement = np.empty(len(order))
    placement[order] = falling
    return float(a @ b[order]), placement - weights


_OF_LISTS: BlockSum[Executor, Floats, At, ListBlock[tuple[slice, Vectors]], ValueAndSlope]
_OF_LISTS = BlockSum(At, _of_lists, add_value_and_slope)
