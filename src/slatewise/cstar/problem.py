"""A c-star training problem: lists with features, target sets and weights, whatever is minimised over them.

    f_m(t) = sum_i t_i (offset_mi + W_i . x_mi) + sum over unordered pairs G_ij t_i t_j ,      |t| = k_m

Parameters are one flat vector: W (N, d), then G (C, N) in which a pair of core items stands once, in the row of the one
that comes first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.cstar.lists import StarLists
from slatewise.cstar.pair import StarPair


@dataclass(frozen=True, eq=False)
class StarProblem:
    """Lists and what to aim at in each; all arrays are checked by the caller."""

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
    """What the weights summed to as they were given: the sum over rows is so many times the mean."""

    @property
    def n_lists(self) -> int:
        """How many lists."""
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
        return StarPair.laid_out(symmetric_pair(G, self.core), self.core)

    def scores(self, W: Floats, lists: Ints | slice = slice(None)) -> Floats:
        """Return the scores of some lists, (lists, N)."""
        s = self.phi[lists] @ W.T if self.shared else np.einsum("nid,id->ni", self._features()[lists], W)
        return s if self.offset is None else s + self.offset[lists]

    def scored(self, params: Floats) -> StarLists:
        """Return the lists as these parameters score them, to select as many items as the targets have."""
        W, G = self.unpack(params)
        return StarLists(self.scores(W), self.star_pair(G), self.k)

    def only(self, lists: Ints | slice) -> StarProblem:
        """Return some lists with the weights they have here; of neighbours, views."""
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


def symmetric_pair(G: Floats, core: Ints) -> Floats:
    """Return G with the pairs of core items in both rows, as inference reads it."""
    pair = G.copy()
    among = G[:, core]
    pair[:, core] = among + among.T
    return pair


def taken(values: Floats, selected: Ints) -> Floats:
    """Sum each row of values over its selected items."""
    return np.where(selected < 0, 0.0, np.take_along_axis(values, np.maximum(selected, 0), axis=1)).sum(axis=1)


def indicator(selected: Ints, n_items: int) -> Floats:
    """Return selections as rows of 0 and 1, (n, N)."""
    chosen = np.zeros((len(selected), n_items + 1))  # the last column takes the -1 of short rows
    np.put_along_axis(chosen, selected, 1.0, axis=1)
    return chosen[:, :n_items]
