"""The structured hinge of rankings as matchings: DORM (Le and Smola 2007) on the slates of RankMatch.

    R(theta) = mean of  max over pi of [ 1 - NDCG(pi) + sum_i s_i c[pi_i] ]  -  sum_i s_i c[y_i] ,      s = X theta

1 - NDCG is linear in the ranking, ``sum_i b_i a[pi_i]`` (:mod:`slatewise.losses.dcg`), so the maximum is an assignment:
over few documents by ``kernels/slate_assignment.py``, otherwise by
:func:`slatewise.inference.linear_loss_ranking`. The smallest rating gains nothing, and the gain doubles with each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import Features
from slatewise.core.running.block_sums import BlockSum, PlacedBlocks, ValueAndSlope, add_value_and_slope
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.losses.dcg import DCGLoss
from slatewise.losses.linear import Vectors
from slatewise.matching.slates import RatedLists, SlateBlock, SlateTable, cut_slates

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


@dataclass(frozen=True, eq=False)
class SlateHinge:
    """Mean over slates; ``least`` is the rating that gains nothing."""

    X: Features
    slates: SlateTable
    least: float
    executor: Executor = ONE_THREAD

    @property
    def n_params(self) -> int:
        """Length of theta."""
        return int(self.X.shape[1])

    def cut(self, w: Floats) -> tuple[float, Floats]:
        """Return (offset, gradient) of the plane that touches R at w."""
        return self._held.sum(_OF_SLATES, w)

    @cached_property
    def _held(self) -> PlacedBlocks[None, _Slates]:
        cuts, (a, b) = cut_slates(self.X, self.slates, _BLOCK_SLATES), self._costs
        return self.executor.place_blocks([_Slates(block, Vectors(a[cut], b[cut])) for cut, block in cuts], None)

    @property
    def _costs(self) -> Vectors:
        """The two vectors of each slate's loss, (B, M)."""
        patterns, which = np.unique(self.slates.ratings - self.least, axis=0, return_inverse=True)
        vectors = [DCGLoss().vectors(pattern) for pattern in patterns]
        return Vectors(*(np.array(part)[which.ravel()] for part in zip(*vectors, strict=True)))


class _Slates(NamedTuple):
    """A block of slates."""

    block: SlateBlock
    costs: Vectors
    """(B, M) each."""


def _point(shared: None, w: Floats) -> Floats:
    del shared
    return w


def _of_slates(w: Floats, part: _Slates) -> ValueAndSlope:
    X: Any = part.block.X
    slates, costs = part.block.slates, part.costs
    place = _best((X @ w)[slates.rows], slates.weights, costs)
    change = np.take_along_axis(slates.weights, place, axis=1) - slates.weights
    slopes = np.bincount(slates.rows.ravel(), (change * slates.share[:, None]).ravel(), X.shape[0])
    losses = (costs.items * np.take_along_axis(costs.positions, place, axis=1)).sum(axis=1)
    return float(slates.share @ losses), slopes @ X


_OF_SLATES: BlockSum[None, Floats, Floats, _Slates, ValueAndSlope]
_OF_SLATES = BlockSum(_point, _of_slates, add_value_and_slope)


def _best(s: Floats, c: Floats, costs: Vectors) -> Ints:
    """Return where the documents of some slates stand in their most violated ranking."""
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


@dataclass(frozen=True, eq=False)
class WholeHinge:
    """Mean over whole lists, c constant inside a rating; ``least`` is the rating that gains nothing."""

    lists: RatedLists
    weights: Floats
    """c of each row, growing with its rating."""
    least: float
    executor: Executor = ONE_THREAD

    @property
    def n_params(self) -> int:
        """Length of theta."""
        return int(self.lists.X.shape[1])

    def cut(self, w: Floats) -> tuple[float, Floats]:
        """Return (offset, gradient) of the plane that touches R at w."""
        counted = float(self.lists.weights.sum())
        offset, gradient = self._held.sum(_OF_LISTS, w)
        return offset / counted, gradient / counted

    @cached_property
    def _held(self) -> PlacedBlocks[Executor, _Lists]:
        blocks = [self._block(*run) for run in self.lists.runs()]
        return self.executor.place_blocks(blocks, self.executor.inside(len(blocks)))

    def _block(self, first: int, last: int) -> _Lists:
        lists = self.lists.run(first, last)
        gained = lists.ratings - self.least
        rows = (slice(int(a), int(b)) for a, b in zip(lists.offsets[:-1], lists.offsets[1:], strict=True))
        weights = self.weights[self.lists.offsets[first] : self.lists.offsets[last]]
        return _Lists(lists, weights, tuple((part, DCGLoss().vectors(gained[part])) for part in rows))


class _Lists(NamedTuple):
    """A block of lists, c of their rows, and rows and costs of each."""

    lists: RatedLists
    weights: Floats
    each: tuple[tuple[slice, Vectors], ...]


class _Point(NamedTuple):
    """Where the cut is made, and the executor inside a block."""

    executor: Executor
    w: Floats


def _of_lists(at: _Point, part: _Lists) -> ValueAndSlope:
    X: Any = part.lists.X
    found = at.executor.map_blocks(_worst_list, (X @ at.w, part.weights), part.each)
    losses, slopes = zip(*found, strict=True)
    gradient = (part.lists.row_weights * np.concatenate(slopes)) @ X
    return float((part.lists.weights * np.array(losses)).sum()), gradient


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


_OF_LISTS: BlockSum[Executor, Floats, _Point, _Lists, ValueAndSlope]
_OF_LISTS = BlockSum(_Point, _of_lists, add_value_and_slope)
