"""The risks of matching graphs: the likelihood of the true matchings, and the hinge of the share of wrong matches.

*Likelihood* (Petterson et al., eq. 8):  p(y) = exp(w(y)) / Z ,  Z = sum over matchings of exp(w(y)).

    L(theta) = sum_b omega_b [ log Z_b - w_b(y_b) ] ,     dL/dw_bij = omega_b (P(i is matched to j) - [y_b(i) = j])

Convex, and its gradient needs nothing but the marginals of the edges. For square graphs Z is a permanent. How Z and the
marginals are summed is decided elsewhere: exactly, or by a bound.

Given the matches of all other rows, a few rows are matched by the same model among the columns left over. The product
of such conditional likelihoods (:func:`among_few_rows`) is convex too and has the same best parameters in the long run,
at a cost that is exponential in the few rows instead of all. Which rows come together may depend on the features, not
on the matches. It matters: rows that are never taken for each other teach next to nothing, and in random parts most
rows are such, so parts are best cut where the model is in doubt (:func:`confusion`).

*Hinge* of the share of rows matched wrongly (Caetano et al. 2009; Petterson et al., section 5.2):

    R(theta) = sum_b omega_b  max over y of [ Delta(y, y_b) + w_b(y) - w_b(y_b) ] ,    Delta = |{i: y(i) != y_b(i)}| / M

Delta adds 1/M to every edge but the true ones, and to leaving a row out that has a match, so the argmax is an
assignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.block_sums import BlockObjective, BlockSum, ValueAndSlope, add_value_and_slope
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.matching.graphs.edges import EdgeScores, GraphBlock, gather_blocks
from slatewise.matching.graphs.inference import MatchingSum, best_matchings

_LEAST_PULL = 1e-9
"""Of rows never confused with those of a part, which are then added at random."""


# --- likelihood -------------------------------------------------------------------------------------------------------


def graph_likelihood(
    blocks: Sequence[GraphBlock], scores: EdgeScores, sum_matchings: MatchingSum, executor: Executor = ONE_THREAD
) -> BlockObjective:
    """Return L of graphs with known matchings, with a way to sum over the others."""
    parts = [part for block in blocks for part in block.cut()]
    held = executor.place_blocks(parts, _Model(scores, sum_matchings, executor.inside(len(parts))))
    return BlockObjective(held, _LIKELIHOOD, scores.n_params)


class _Model(NamedTuple):
    scores: EdgeScores
    sum_matchings: MatchingSum
    executor: Executor
    """For work inside a block."""


class _At(NamedTuple):
    """The likelihood at some parameters."""

    model: _Model
    params: Floats


def _likelihood_of(at: _At, block: GraphBlock) -> ValueAndSlope:
    scores, sum_matchings, executor = at.model
    unmatched, weights = scores.unmatched_score(at.params), scores.edges(at.params, block)
    log_z, marginals = sum_matchings(weights, unmatched, executor)
    value = float(block.weight @ (log_z - matching_weights(weights, block.target, unmatched)))
    change = block.weight[:, None, None] * (marginals - block.indicator(block.target))
    return value, scores.accumulate(block, change)


_LIKELIHOOD: BlockSum[_Model, Floats, _At, GraphBlock, ValueAndSlope]
_LIKELIHOOD = BlockSum(_At, _likelihood_of, add_value_and_slope)


def matching_weights(weights: Floats, columns: Ints, unmatched: float | None) -> Floats:
    """Return w(y) of one matching per graph, (B,)."""
    matched = columns >= 0
    chosen = np.take_along_axis(weights, np.maximum(columns, 0)[:, :, None], axis=2)[:, :, 0]
    return np.where(matched, chosen, 0.0 if unmatched is None else unmatched).sum(axis=1)


# --- likelihood among few rows ----------------------------------------------------------------------------------------


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
        for graph, (X, target, weight) in enumerate(zip(block.X, block.target, block.weight, strict=True)):
            for _ in range(n_partitions):
                order = (
                    rng.permutation(n_rows) if confused is None else _side_by_side(confused[number][graph], sizes, rng)
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


# --- hinge ------------------------------------------------------------------------------------------------------------


def graph_hinge(blocks: Sequence[GraphBlock], scores: EdgeScores, executor: Executor = ONE_THREAD) -> BlockObjective:
    """Return R of graphs with known matchings."""
    held = executor.place_blocks([part for block in blocks for part in block.cut()], scores)
    return BlockObjective(held, _HINGE, scores.n_params)


class _HingeAt(NamedTuple):
    """The hinge at some parameters."""

    scores: EdgeScores
    w: Floats


def _hinge_of(at: _HingeAt, block: GraphBlock) -> ValueAndSlope:
    share, true = 1.0 / block.X.shape[1], block.indicator(block.target)
    # Only the difference to being unmatched counts in a row: the true edge gains 1/M less, or, where the row has no
    # match, every edge 1/M more.
    alone = (block.target < 0)[:, :, None]
    augmented = at.scores.edges(at.w, block) + share * (alone - true)
    columns = best_matchings(augmented, at.scores.unmatched_score(at.w))
    change = block.weight[:, None, None] * (block.indicator(columns) - true)
    return float(block.weight @ (columns != block.target).mean(axis=1)), at.scores.accumulate(block, change)


_HINGE: BlockSum[EdgeScores, Floats, _HingeAt, GraphBlock, ValueAndSlope]
_HINGE = BlockSum(_HingeAt, _hinge_of, add_value_and_slope)
