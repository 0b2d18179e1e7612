"""The hinge of a linear ranker of documents (Joachims 2005; Yue et al. 2007), for any exact oracle over lists.

    R(w) = sum_q omega_q  max over rankings m of [ Delta_q(m) + w.psi_q(m) - w.psi_q(best) ] ,     s = X w

The oracle gives each list's loss and the coefficients a of its items' scores, so that a list's hinge is ``loss - a.s``;
the cut is then ``(sum_q omega_q loss_q, -X'(omega a))``: one product with X per round, whatever the loss.

Rows are arrays, or remain in their files: then blocks name rows, which are read where the blocks are held. Lists,
blocks and sums are the same either way, to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import BLOCK_BYTES, Features, bytes_before, cut_points, row_range
from slatewise.core.groups import mean_within_list_variance, take_rows
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.block_sums import BlockObjective, BlockSum, ValueAndSlope, add_value_and_slope
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.data.row_source import AS_THEY_ARE, ListTable, Make, RowSource, StoredRows
from slatewise.metric_learning.oracle import Oracle

_FAR = 1e6


@dataclass(frozen=True, eq=False)
class MarginHinge:
    """The hinge of lists of rows; all arrays are checked by the caller."""

    X: Features
    """(n, d) rows in list order, dense or CSR."""
    relevance: NDArray[Any]
    """(n,) as the oracle reads it."""
    offsets: Ints
    oracle: Oracle
    executor: Executor = ONE_THREAD
    weight: Floats | None = None
    """(L,) the weight of each list, omega up to their sum; None: ones."""

    @property
    def n_lists(self) -> int:
        """The number of lists."""
        return len(self.offsets) - 1

    @cached_property
    def weights(self) -> Floats:
        """The weight of each list."""
        return np.ones(self.n_lists) if self.weight is None else self.weight

    @property
    def n_params(self) -> int:
        """Length of w."""
        return int(self.X.shape[1])

    def cut(self, w: Floats) -> ValueAndSlope:
        """Return (offset, gradient) of the plane that touches R at w."""
        return self.risk.cut(w)

    @cached_property
    def risk(self) -> BlockObjective:
        """R as a sum over blocks of lists."""
        blocks: list[ListBlock] = []
        for first, last in cut_points(bytes_before(self.X, int(self.offsets[-1]))[self.offsets], BLOCK_BYTES):
            offsets = self.offsets[first : last + 1]
            rows = slice(int(offsets[0]), int(offsets[-1]))
            X, relevance = row_range(self.X, rows), self.relevance[rows]
            blocks.append(ListBlock(X, relevance, offsets - offsets[0], self.weights[first:last]))
        held, total = self.executor.place_blocks(blocks, self.oracle), float(self.weights.sum())
        return BlockObjective(held, _RISK, self.n_params, total)

    def ranking_loss(self, w: Floats) -> float:
        """Return the mean loss of ranking by score; tied items are in the worst order.

        Scores far enough apart in their list outweigh any loss: the most violated ranking is then the ranking itself.
        """
        with one_blas_thread():
            scores: Floats = self.X @ w
        far = np.sqrt(mean_within_list_variance(scores[:, None], self.offsets))
        return self.cut(w * (_FAR / far) if far > 0.0 else w)[0]

    @property
    def spread(self) -> float:
        """Mean squared distance of a row from the center of its list, all the hinge sees of the features; 1 if 0."""
        return mean_within_list_variance(self.X, self.offsets) or 1.0

    def part(self, chosen: Ints) -> MarginHinge:
        """Return the hinge of some of the lists, given by rising number."""
        sizes = np.diff(self.offsets)
        rows = np.flatnonzero(np.repeat(np.isin(np.arange(self.n_lists), chosen), sizes))
        offsets = np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64)
        X, relevance = take_rows(self.X, rows), self.relevance[rows]
        return replace(self, X=X, relevance=relevance, offsets=offsets, weight=self.weights[chosen])


class ListBlock(NamedTuple):
    """A block of lists."""

    X: Features
    relevance: NDArray[Any]
    offsets: Ints
    weights: Floats


class _At(NamedTuple):
    """The parameters at which the oracle makes a cut."""

    oracle: Oracle
    w: Floats


def _cut_of(at: _At, lists: ListBlock) -> ValueAndSlope:
    X: Any = lists.X
    losses, slopes = np.empty(len(lists.weights)), np.empty(int(lists.offsets[-1]))
    at.oracle.most_violated_block(X @ at.w, lists.relevance, lists.offsets, losses, slopes)
    omega = lists.weights
    return float((omega * losses).sum()), -((np.repeat(omega, np.diff(lists.offsets)) * slopes) @ X)


_RISK: BlockSum[Oracle, Floats, _At, ListBlock, ValueAndSlope] = BlockSum(_At, _cut_of, add_value_and_slope)


# --- rows in files ----------------------------------------------------------------------------------------------------


def source_hinge(
    source: RowSource, lists: ListTable, used: NDArray[np.bool_], levels: Make, oracle: Oracle, executor: Executor
) -> BlockObjective:
    """Return R of the lists that are used, whose rows remain in their files."""
    starts, sizes = lists.offsets[:-1][used], np.diff(lists.offsets)[used]
    ends = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)

    def stored(first: int, last: int, make: Make) -> StoredRows:
        # Neighboring lists are one run.
        begins = np.flatnonzero(np.append(True, starts[first + 1 : last] != (starts + sizes)[first : last - 1]))
        rows = np.add.reduceat(sizes[first:last], begins)
        return StoredRows.of(source, starts[first:last][begins], rows, make)

    blocks = [
        ListBlock(
            cast("Features", stored(first, last, AS_THEY_ARE)),
            cast("Any", stored(first, last, levels)),
            ends[first : last + 1] - ends[first],
            np.ones(last - first),
        )
        for first, last in cut_points(ends * 8 * source.n_features, BLOCK_BYTES)
    ]
    return BlockObjective(executor.place_blocks(blocks, oracle), _RISK, source.n_features, float(len(starts)))
