"""The structured hinge of rankings as matchings: DORM (Le and Smola 2007) on the slates of RankMatch.

    R(theta) = mean of  max over pi of [ 1 - NDCG(pi) + sum_i s_i c[pi_i] ]  -  sum_i s_i c[y_i] ,      s = X theta

1 - NDCG is linear in the ranking, ``sum_i b_i a[pi_i]`` (:mod:`slatewise.losses.dcg`), so the maximum is an assignment:
over few documents by ``kernels/slate_assignment.py``, otherwise by
:func:`slatewise.inference.linear_loss_ranking`. The smallest rating gains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from slatewise.core.checks import Features
from slatewise.core.executor import ONE_THREAD, Executor
from slatewise.losses.dcg import DCGLoss
from slatewise.losses.linear import Vectors
from slatewise.matching.slates import Floats, Ints, RatedLists, Slates

MOST_IN_KERNEL = 10
"""Documents; more of them go through the assignment solver one slate at a time."""
_BLOCK_SLATES = 4096


@dataclass(frozen=True, eq=False)
class SlateHinge:
    """Mean over slates; ``least`` is the rating that gains nothing."""

    X: Features
    slates: Slates
    least: float
    executor: Executor = ONE_THREAD

    @property
    def n_params(self) -> int:
        """Length of theta."""
        return int(self.X.shape[1])

    def cut(self, w: Floats) -> tuple[float, Floats]:
        """Return (offset, gradient) of the plane that touches R at w."""
        slates = self.slates
        scored = _Scored((self.X @ w)[slates.rows], slates.weights, self._costs)
        blocks = [slice(first, first + _BLOCK_SLATES) for first in range(0, len(slates.rows), _BLOCK_SLATES)]
        place = np.concatenate(list(self.executor.map_blocks(_best, scored, blocks)))
        change = np.take_along_axis(slates.weights, place, axis=1) - slates.weights
        slopes = np.bincount(slates.rows.ravel(), (change * slates.share[:, None]).ravel(), self.X.shape[0])
        losses = (self._costs.items * np.take_along_axis(self._costs.positions, place, axis=1)).sum(axis=1)
        return float(slates.share @ losses), slopes @ self.X

    @cached_property
    def _costs(self) -> Vectors:
        """The two vectors of each slate's loss, (B, M)."""
        patterns, which = np.unique(self.slates.ratings - self.least, axis=0, return_inverse=True)
        vectors = [DCGLoss().vectors(pattern) for pattern in patterns]
        return Vectors(*(np.array(part)[which.ravel()] for part in zip(*vectors, strict=True)))


class _Scored(NamedTuple):
    """Scores, weights and costs: of all slates (B, M)."""

    scores: Floats
    weights: Floats
    costs: Vectors


def _best(scored: _Scored, block: slice) -> Ints:
    """Return where the documents of some slates stand in their most violated ranking."""
    from slatewise.core.assignment import linear_loss_ranking
    from slatewise.matching.kernels.slate_assignment import best_rankings

    s, c, a, b = scored.scores[block], scored.weights[block], *(part[block] for part in scored.costs)
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
        scores = self.lists.X @ w
        found = list(self.executor.map_blocks(_worst_list, (scores, self.weights), self._costs))
        losses, slopes = zip(*found, strict=True)
        weights = self.lists.weights
        gradient = (self.lists.row_weights * np.concatenate(slopes)) @ self.lists.X
        return float((weights * np.array(losses)).sum() / weights.sum()), gradient / float(weights.sum())

    @cached_property
    def _costs(self) -> tuple[tuple[slice, Vectors], ...]:
        """Rows, and a and b, of each list."""
        gained = self.lists.ratings - self.least
        rows = (slice(int(a), int(b)) for a, b in zip(self.lists.offsets[:-1], self.lists.offsets[1:], strict=True))
        return tuple((part, DCGLoss().vectors(gained[part])) for part in rows)


def _worst_list(scored: tuple[Floats, Floats], part: tuple[slice, Vectors]) -> tuple[float, Floats]:
    """Return the loss of one list's most violated ranking, and its slopes."""
    from slatewise.core.assignment import linear_loss_ranking

    rows, (a, b) = part
    scores, weights = (of_all[rows] for of_all in scored)
    falling = weights[::-1]
    order = linear_loss_ranking(scores, falling, a, b).order
    placement = np.empty(len(order))
    placement[order] = falling
    return float(a @ b[order]), placement - weights
