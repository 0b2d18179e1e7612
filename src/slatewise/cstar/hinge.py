"""The hinge of a c-star model, for a linear loss: an upper bound of the loss that is convex in the parameters.

    R(w) = sum_m omega_m  max over t of [ loss_m . t + f_m(t) - f_m(target_m) ] ,        |t| = k_m
    f_m(t) = sum_i t_i (offset_mi + W_i . x_mi) + sum over unordered pairs G_ij t_i t_j      (Mensink et al., eq. 1, 6)

The argmax is inference with ``loss`` added to the scores. Parameters are one flat vector: W (N, d), then G (C, N) in
which a pair of core items stands once, in the row of the one that comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core import executor
from slatewise.core.checks import BLOCK_BYTES
from slatewise.cstar.inference import argmax_block
from slatewise.cstar.pair import StarPair

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


class Corners(NamedTuple):
    """The loss-augmented argmax of some lists."""

    selected: Ints
    """(n, largest k) items in ascending order, -1 after the last."""
    loss: Floats
    bound: Floats
    """max of loss + f, or inference's own bound on it where it stopped early."""


@dataclass(frozen=True, eq=False)
class StarHinge:
    """Lists with features, targets and losses; all arrays are checked by the caller."""

    phi: Floats
    """(n, d) features shared by the labels of a list, or (n * N, d) with a row a list and label."""
    target: Ints
    """(n, largest k) items in ascending order, -1 after the last."""
    k: Ints
    item_loss: Floats
    """(n, N) what it costs to select an item."""
    weight: Floats
    """(n,) summing to 1."""
    core: Ints
    offset: Floats | None = None
    """(n, N) fixed part of the scores."""
    n_threads: int | None = None
    total_weight: float = 1.0
    """What the weights summed to as they were given: the sum over rows is so many times the mean."""

    @property
    def n_lists(self) -> int:
        """How many lists."""
        return len(self.k)

    @property
    def n_items(self) -> int:
        """How many items a list has."""
        return self.item_loss.shape[1]

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
        return StarPair.of(symmetric_pair(G, self.core), self.core)

    def scores(self, W: Floats, lists: Ints | slice) -> Floats:
        """Return the scores of some lists, (lists, N)."""
        if self.shared:
            s = self.phi[lists] @ W.T
        else:
            s = np.einsum("nid,id->ni", self.phi.reshape(self.n_lists, self.n_items, -1)[lists], W)
        return s if self.offset is None else s + self.offset[lists]

    def corners(self, W: Floats, pair: StarPair, lists: Ints | slice, warm: Ints | None = None) -> Corners:
        """Return the loss-augmented argmax of some lists."""
        costs = self.item_loss[lists]
        found = argmax_block(self.scores(W, lists) + costs, pair, self.k[lists], warm=warm)
        return Corners(found.selected, _taken(costs, found.selected), found.upper_bound)

    def blocks(self) -> list[slice]:
        """Cut the lists; the cuts depend on the shape of the data only."""
        rows = max(1, BLOCK_BYTES // (8 * max(self.n_items, 1)))
        return [slice(start, min(start + rows, self.n_lists)) for start in range(0, self.n_lists, rows)]

    def risk(self, params: Floats) -> float:
        """Return R, with inference's upper bound where the argmax is not proven."""
        W, G = self.unpack(params)
        pair = self.star_pair(G)

        def block_risk(lists: slice) -> float:
            target_score = _taken(self.scores(W, lists), self.target[lists]) + self._pair_values(G, self.target[lists])
            return float(self.weight[lists] @ (self.corners(W, pair, lists).bound - target_score))

        return executor.sum_blocks(block_risk, self.blocks(), lambda one, two: one + two, self.n_threads)

    def cut(self, w: Floats) -> tuple[float, Floats]:
        """Return (offset, gradient) of the risk's supporting plane at w."""
        W, G = self.unpack(w)
        pair = self.star_pair(G)

        def block_cut(lists: slice) -> tuple[float, Floats]:
            found = self.corners(W, pair, lists)
            gradient = np.zeros(self.n_params)
            dW, dG = self.unpack(gradient)
            moved = indicator(found.selected, self.n_items) - indicator(self.target[lists], self.n_items)
            weighted = moved * self.weight[lists, None]
            if self.shared:
                dW += weighted.T @ self.phi[lists]
            else:
                dW += np.einsum("ni,nid->id", weighted, self.phi.reshape(self.n_lists, self.n_items, -1)[lists])
            self._add_pairs(dG, found.selected, self.weight[lists])
            self._add_pairs(dG, self.target[lists], -self.weight[lists])
            constant = found.loss if self.offset is None else found.loss + (moved * self.offset[lists]).sum(axis=1)
            return float(self.weight[lists] @ constant), gradient

        return executor.sum_blocks(
            block_cut, self.blocks(), lambda one, two: (one[0] + two[0], one[1] + two[1]), self.n_threads
        )

    def part(self, lists: Ints) -> StarHinge:
        """Return the hinge of some lists only, weighted to sum to 1: they stand for all."""
        shared = self.shared
        phi = (
            self.phi[lists]
            if shared
            else self.phi.reshape(self.n_lists, self.n_items, -1)[lists].reshape(-1, self.phi.shape[1])
        )
        weight = self.weight[lists]
        return StarHinge(
            phi,
            self.target[lists],
            self.k[lists],
            self.item_loss[lists],
            weight / weight.sum(),
            self.core,
            None if self.offset is None else self.offset[lists],
            1,
            self.total_weight,
        )

    def target_loss(self) -> Floats:
        """Return the loss of each target."""
        return _taken(self.item_loss, self.target)

    def _add_pairs(self, G: Floats, selected: Ints, amounts: Floats) -> None:
        from slatewise.cstar.kernels.bcfw import add_pairs

        for items, amount in zip(selected, amounts, strict=True):
            add_pairs(G, self.core_of, items[items >= 0], amount)

    def _pair_values(self, G: Floats, selected: Ints) -> Floats:
        chosen = indicator(selected, self.n_items)
        return np.einsum("na,ai,ni->n", chosen[:, self.core], G, chosen)


def symmetric_pair(G: Floats, core: Ints) -> Floats:
    """Return G with the pairs of core items in both rows, as inference reads it."""
    pair = G.copy()
    among = G[:, core]
    pair[:, core] = among + among.T
    return pair


def _taken(values: Floats, selected: Ints) -> Floats:
    """Sum each row of values over its selected items."""
    return np.where(selected < 0, 0.0, np.take_along_axis(values, np.maximum(selected, 0), axis=1)).sum(axis=1)


def indicator(selected: Ints, n_items: int) -> Floats:
    """Return selections as rows of 0 and 1, (n, N)."""
    chosen = np.zeros((len(selected), n_items + 1))  # the last column takes the -1 of short rows
    np.put_along_axis(chosen, selected, 1.0, axis=1)
    return chosen[:, :n_items]
