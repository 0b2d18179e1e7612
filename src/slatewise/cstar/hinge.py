"""The hinge of a c-star problem, for a linear loss: an upper bound of the loss that is convex in the parameters.

    R(w) = sum_m omega_m  max over t of [ loss_m . t + f_m(t) - f_m(target_m) ] ,        |t| = k_m

with f of :mod:`slatewise.cstar.problem` (Mensink et al., eq. 1, 6). The argmax is inference with ``loss`` added to the
scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from operator import add
from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import BLOCK_BYTES
from slatewise.core.groups import blocks
from slatewise.core.running.block_sums import BlockSum, PlacedBlocks, ValueAndSlope, add_value_and_slope
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.inference import argmax_block
from slatewise.cstar.lists import StarLists
from slatewise.cstar.pair import StarPair
from slatewise.cstar.problem import StarProblem, indicator, taken


class Corners(NamedTuple):
    """The loss-augmented argmax of some lists."""

    selected: Ints
    """(n, largest k) items in ascending order, -1 after the last."""
    loss: Floats
    bound: Floats
    """max of loss + f, or inference's own bound on it where it stopped early."""


class _Point(NamedTuple):
    """Where the risk is asked for."""

    W: Floats
    G: Floats
    pair: StarPair


@dataclass(frozen=True, eq=False)
class StarHinge:
    """A problem with a loss."""

    problem: StarProblem
    item_loss: Floats
    """(n, N) what it costs to select an item."""
    executor: Executor = ONE_THREAD

    def with_core(self, core: Ints) -> StarHinge:
        """Return the hinge of the same lists with another core."""
        return replace(self, problem=replace(self.problem, core=core))

    def part(self, lists: Ints) -> StarHinge:
        """Return the hinge of some lists only, weighted to sum to 1: they stand for all."""
        return StarHinge(self.problem.part(lists), self.item_loss[lists])

    def corners(self, W: Floats, pair: StarPair, lists: Ints | slice = slice(None)) -> Corners:
        """Return the loss-augmented argmax of some lists."""
        costs, problem = self.item_loss[lists], self.problem
        found = argmax_block(StarLists(problem.scores(W, lists) + costs, pair, problem.k[lists]))
        return Corners(found.selected, taken(costs, found.selected), found.upper_bound)

    def risk(self, params: Floats) -> float:
        """Return R, with inference's upper bound where the argmax is not proven."""
        return self._held.sum(_RISK, params)

    def cut(self, w: Floats) -> tuple[float, Floats]:
        """Return (offset, gradient) of the risk's supporting plane at w."""
        return self._held.sum(_CUT, w)

    def target_loss(self) -> Floats:
        """Return the loss of each target."""
        return taken(self.item_loss, self.problem.target)

    @cached_property
    def _held(self) -> PlacedBlocks[StarProblem, StarHinge]:
        """The lists in blocks, whose cuts depend on the shape of the data only; what they share is without lists."""
        cuts = blocks(self.problem.n_lists, max(1, BLOCK_BYTES // (8 * max(self.problem.n_items, 1))))
        parts = [StarHinge(self.problem.only(lists), self.item_loss[lists]) for lists in cuts]
        return self.executor.place_blocks(parts, self.problem.only(slice(0, 0)))


def _at(problem: StarProblem, params: Floats) -> _Point:
    W, G = problem.unpack(params)
    return _Point(W, G, problem.star_pair(G))


def _risk(at: _Point, block: StarHinge) -> float:
    problem = block.problem
    target_score = taken(problem.scores(at.W), problem.target) + _pair_values(problem, at.G)
    return float(problem.weight @ (block.corners(at.W, at.pair).bound - target_score))


def _cut(at: _Point, block: StarHinge) -> ValueAndSlope:
    problem, found = block.problem, block.corners(at.W, at.pair)
    gradient = np.zeros(problem.n_params)
    dW, dG = problem.unpack(gradient)
    moved = indicator(found.selected, problem.n_items) - indicator(problem.target, problem.n_items)
    dW += problem.pull_back(moved * problem.weight[:, None])
    _add_pairs(problem, dG, found.selected, problem.weight)
    _add_pairs(problem, dG, problem.target, -problem.weight)
    constant = found.loss if problem.offset is None else found.loss + (moved * problem.offset).sum(axis=1)
    return float(problem.weight @ constant), gradient


_RISK: BlockSum[StarProblem, Floats, _Point, StarHinge, float] = BlockSum(_at, _risk, add)
_CUT: BlockSum[StarProblem, Floats, _Point, StarHinge, ValueAndSlope] = BlockSum(_at, _cut, add_value_and_slope)


def _add_pairs(problem: StarProblem, G: Floats, selected: Ints, amounts: Floats) -> None:
    from slatewise.cstar.kernels.bcfw import add_pairs

    for items, amount in zip(selected, amounts, strict=True):
        add_pairs(G, problem.core_of, items[items >= 0], amount)


def _pair_values(problem: StarProblem, G: Floats) -> Floats:
    chosen = indicator(problem.target, problem.n_items)
    return np.einsum("na,ai,ni->n", chosen[:, problem.core], G, chosen)
