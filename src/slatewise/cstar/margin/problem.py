"""A c-star training problem, and its hinge: an upper bound of the loss that is convex in the parameters.

    f_m(t) = sum_i t_i (offset_mi + W_i . x_mi) + sum over unordered pairs G_ij t_i t_j ,      |t| = k_m

    R(w) = sum_m omega_m  max over t of [ loss_m . t + f_m(t) - f_m(target_m) ]        (Mensink et al., eq. 1, 6)

Lists have features, target sets and weights; the argmax is inference with ``loss`` added to the scores. Parameters are
one flat vector: W (N, d), then G (C, N) in which a pair of core items stands once, in the row of the one that comes
first.
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
from slatewise.cstar.inference.best_set import argmax_block
from slatewise.cstar.inference.model import StarLists, StarPair, symmetric_pair


@dataclass(frozen=True, eq=False)
class StarProblem:
    """Lists and the target set of each; all arrays are checked by the caller."""

    n_items: int
    phi: Floats
    """(n, d) features shared by the labels of a list, or (n * N, d) with one row per list and label."""
    target: Ints
    """(n, largest k) items in ascending order, -1 after the last."""
    k: Ints
    weight: Floats
    """(n,) summing to 1."""
    core: Ints
    offset: Floats | None = None
    """(n, N) fixed part of the scores."""
    total_weight: float = 1.0
    """The sum of the weights as they were given: the sum over rows is this times the mean."""

    @property
    def n_lists(self) -> int:
        """The number of lists."""
        return len(self.k)

    @property
    def shared(self) -> bool:
        """Whether the labels of a list share its features."""
        return len(self.phi) == self.n_lists

    @property
    def n_params(self) -> int:
        """Length of the flat parameter vector."""
        return self.n_items * (self.phi.shape[1] + len(self.core))

    @cached_property
    def core_of(self) -> Ints:
        """(N,) the core row of an item, -1 for the others."""
        rows = np.full(self.n_items, -1, dtype=np.int64)
        rows[self.core] = np.arange(len(self.core))
        return rows

    def unpack(self, params: Floats) -> tuple[Floats, Floats]:
        """Return views W (N, d) and G (C, N)."""
        split = self.n_items * self.phi.shape[1]
        return params[:split].reshape(self.n_items, -1), params[split:].reshape(len(self.core), self.n_items)

    def star_pair(self, G: Floats) -> StarPair:
        """Lay G out for inference."""
        return StarPair.from_symmetric(symmetric_pair(G, self.core), self.core)

    def scores(self, W: Floats, lists: Ints | slice = slice(None)) -> Floats:
        """Return the scores of some lists, (lists, N)."""
        s = self.phi[lists] @ W.T if self.shared else np.einsum("nid,id->ni", self._features()[lists], W)
        return s if self.offset is None else s + self.offset[lists]

    def scored(self, params: Floats) -> StarLists:
        """Return the lists as these parameters score them, to select as many items as the targets have."""
        W, G = self.unpack(params)
        return StarLists(self.scores(W), self.star_pair(G), self.k)

    def only(self, lists: Ints | slice) -> StarProblem:
        """Return some lists with their weights; of a slice, views."""
        return replace(
            self,
            phi=self.phi[lists] if self.shared else self._features()[lists].reshape(-1, self.phi.shape[1]),
            target=self.target[lists],
            k=self.k[lists],
            weight=self.weight[lists],
            offset=None if self.offset is None else self.offset[lists],
        )

    def part(self, lists: Ints) -> StarProblem:
        """Return some of the lists, weighted to sum to 1: they stand for all."""
        some = self.only(lists)
        return replace(some, weight=some.weight / some.weight.sum())

    def pull_back(self, item: Floats) -> Floats:
        """Return the gradient in W of ``sum (item * scores)``."""
        return item.T @ self.phi if self.shared else np.einsum("ni,nid->id", item, self._features())

    def _features(self) -> Floats:
        return self.phi.reshape(self.n_lists, self.n_items, -1)


def taken(values: Floats, selected: Ints) -> Floats:
    """Sum each row of values over its selected items."""
    return np.where(selected < 0, 0.0, np.take_along_axis(values, np.maximum(selected, 0), axis=1)).sum(axis=1)


def indicator(selected: Ints, n_items: int) -> Floats:
    """Return selections as rows of 0 and 1, (n, N)."""
    chosen = np.zeros((len(selected), n_items + 1))  # the last column takes the -1 of short rows
    np.put_along_axis(chosen, selected, 1.0, axis=1)
    return chosen[:, :n_items]


# --- the hinge --------------------------------------------------------------------------------------------------------


class Corners(NamedTuple):
    """The loss-augmented argmax of some lists."""

    selected: Ints
    """(n, largest k) items in ascending order, -1 after the last."""
    loss: Floats
    bound: Floats
    """The maximum of loss + f, or the bound of inference if it stopped early."""


class _Point(NamedTuple):
    """Where the risk is evaluated."""

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
    chosen = indicator(problem.target, problem.n_items)
    of_pairs = np.einsum("na,ai,ni->n", chosen[:, problem.core], at.G, chosen)
    target_score = taken(problem.scores(at.W), problem.target) + of_pairs
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
