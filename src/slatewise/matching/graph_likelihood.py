"""The likelihood of matchings (Petterson et al., eq. 8):  p(y) = exp(w(y)) / Z , Z = sum over matchings of exp(w(y)).

    L(theta) = sum_b omega_b [ log Z_b - w_b(y_b) ] ,     dL/dw_bij = omega_b (P(i is matched to j) - [y_b(i) = j])

Convex, and its gradient asks for nothing but the marginals of the edges. For square graphs Z is a permanent. How Z and
marginals are summed is another's matter: exactly, or by a bound.

Given the matches of all other rows, a few rows are matched by the same model among the columns left over. The product
of such conditional likelihoods (:func:`among_few_rows`) is convex too and has the same best parameters in the long run,
at a cost that is exponential in the few rows instead of all. Which rows come together may depend on the features, not
on the matches. It matters: rows that are never taken for each other teach next to nothing, and in random parts most
rows that are stand apart, so parts are best cut where the model is in doubt (:func:`confusion`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.block_sums import BlockSum, PlacedBlocks, ValueAndSlope, add_value_and_slope
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.matching.graph_edges import EdgeScores, GraphBlock, gather_blocks

_LEAST_PULL = 1e-9
"""Of rows never confused with those of a part, which then come by chance."""


class MatchingSum(Protocol):
    """A sum over the matchings of every graph of a block."""

    def __call__(
        self, weights: Floats, unmatched: float | None, executor: Executor = ONE_THREAD
    ) -> tuple[Floats, Floats]:
        """Return log Z, (B,), and the marginals of the edges, (B, M, N)."""
        ...


@dataclass(frozen=True, eq=False)
class GraphLikelihood:
    """Graphs with known matchings, and a way to sum over the others."""

    blocks: tuple[GraphBlock, ...]
    scores: EdgeScores
    sum_matchings: MatchingSum
    executor: Executor = ONE_THREAD

    @property
    def n_params(self) -> int:
        """Length of the parameter vector."""
        return self.scores.n_params

    def value_and_grad(self, params: Floats) -> tuple[float, Floats]:
        """Return L and its gradient."""
        return self._held.sum(_SUM, params)

    @cached_property
    def _held(self) -> PlacedBlocks[_Shared, GraphBlock]:
        blocks = [part for block in self.blocks for part in block.cut()]
        return self.executor.place_blocks(
            blocks, _Shared(self.scores, self.sum_matchings, self.executor.inside(len(blocks)))
        )


class _Shared(NamedTuple):
    scores: EdgeScores
    sum_matchings: MatchingSum
    executor: Executor


class _Point(NamedTuple):
    """Where the likelihood is evaluated."""

    shared: _Shared
    params: Floats


def _of_graphs(at: _Point, block: GraphBlock) -> ValueAndSlope:
    scores, sum_matchings, executor = at.shared
    unmatched, weights = scores.unmatched_score(at.params), scores.edges(at.params, block)
    log_z, marginals = sum_matchings(weights, unmatched, executor)
    value = float(block.weight @ (log_z - matching_weights(weights, block.target, unmatched)))
    change = block.weight[:, None, None] * (marginals - block.indicator(block.target))
    return value, scores.accumulate(block, change)


_SUM: BlockSum[_Shared, Floats, _Point, GraphBlock, ValueAndSlope] = BlockSum(_Point, _of_graphs, add_value_and_slope)


def matching_weights(weights: Floats, columns: Ints, unmatched: float | None) -> Floats:
    """Return w(y) of one matching per graph, (B,)."""
    matched = columns >= 0
    chosen = np.take_along_axis(weights, np.maximum(columns, 0)[:, :, None], axis=2)[:, :, 0]
    return np.where(matched, chosen, 0.0 if unmatched is None else unmatched).sum(axis=1)


def confusion(
    blocks: Sequence[GraphBlock],
    scores: EdgeScores,
    params: Floats,
    marginals: MatchingSum,
    executor: Executor = ONE_THREAD,
) -> list[Floats]:
    """Return how likely two rows of a graph are taken for each other, (B, M, M) a block: ``sum_j P_ij P_kj``."""
    unmatched = scores.unmatched_score(params)
    found = (marginals(scores.edges(params, block), unmatched, executor)[1] for block in blocks)
    return [P @ P.transpose(0, 2, 1) for P in found]


def among_few_rows(
    blocks: Sequence[GraphBlock],
    most_rows: int,
    n_partitions: int,
    rng: np.random.Generator,
    confused: Sequence[Floats] | None = None,
) -> tuple[GraphBlock, ...]:
    """Cut the rows of each graph into random parts of at most ``most_rows``, several times.

    A part keeps the columns that match no row outside it: those of its own rows, and the free ones. Weights add up to
    those of the graphs, a partition counting its share. ``confused`` (:func:`confusion`) brings rows together.
    """
    parts: list[Floats] = []
    targets: list[Ints] = []
    shares: list[float] = []
    for number, block in enumerate(blocks):
        n_rows = block.X.shape[1]
        n_parts = -(-n_rows // most_rows)
        sizes = [n_rows // n_parts + (part < n_rows % n_parts) for part in range(n_parts)]
        for place, (X, target, weight) in enumerate(zip(block.X, block.target, block.weight, strict=True)):
            for _ in range(n_partitions):
                order = (
                    rng.permutation(n_rows) if confused is None else _side_by_side(confused[number][place], sizes, rng)
                )
                for rows in np.split(order, np.cumsum(sizes)[:-1]):
                    taken = np.delete(target, rows)
                    left = np.ones(X.shape[1], dtype=np.bool_)
                    left[taken[taken >= 0]] = False
                    if not left.any():  # its rows can only stay unmatched, whatever the parameters are
                        continue
                    column = np.cumsum(left) - 1
                    parts.append(X[rows][:, left])
                    targets.append(np.where(target[rows] >= 0, column[target[rows]], target[rows]))
                    shares.append(float(weight) / n_partitions)
    cut = gather_blocks(parts, targets)
    return tuple(GraphBlock(block.X, block.target, np.array(shares)[block.members], block.members) for block in cut)


def _side_by_side(confused: Floats, sizes: Sequence[int], rng: np.random.Generator) -> Ints:
    """Order rows so that parts of these sizes hold rows that are confused: each is drawn by those before it."""
    free = np.ones(len(confused), dtype=np.bool_)
    order: list[int] = []
    for size in sizes:
        pull = np.full(len(confused), _LEAST_PULL)
        for _ in range(size):
            odds = np.where(free, pull, 0.0)
            row = int(rng.choice(len(odds), p=odds / odds.sum()))
            order.append(row)
            free[row] = False
            pull += confused[row]
    return np.array(order, dtype=np.int64)
