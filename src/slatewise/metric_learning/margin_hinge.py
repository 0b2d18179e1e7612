"""The hinge of a linear ranker of documents (Joachims 2005; Yue et al. 2007), for any exact oracle over lists.

    R(w) = sum_q omega_q  max over rankings m of [ Delta_q(m) + w.psi_q(m) - w.psi_q(best) ] ,     s = X w

The oracle gives each list's loss and the coefficients a of its items' scores, so that a list's hinge is ``loss - a.s``;
the cut is then ``(sum_q omega_q loss_q, -X'(omega a))``: one product with X per round, whatever the loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import BLOCK_BYTES, Features, bytes_before, cut_points, row_range
from slatewise.core.groups import mean_within_list_variance, take_rows
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.block_sums import BlockSum, PlacedBlocks, ValueAndSlope, add_value_and_slope
from slatewise.core.running.executor import ONE_THREAD, Executor

_FAR = 1e6


class ListOracle(Protocol):
    """Finds the most violated ranking of every list of a block."""

    def most_violated_block(
        self, scores: Floats, relevance: NDArray[Any], offsets: Ints, losses: Floats, weights: Floats
    ) -> None:
        """Fill the loss of each list and the coefficient of each item's score: hinge = loss - weights . scores."""
        ...


@dataclass(frozen=True, eq=False)
class MarginHinge:
    """Lists of rows with targets; all arrays are checked by the caller."""

    X: Features
    """(n, d) rows in list order, dense or CSR."""
    relevance: NDArray[Any]
    """(n,) as the oracle reads it."""
    offsets: Ints
    oracle: ListOracle
    executor: Executor = ONE_THREAD
    weight: Floats | None = None
    """(L,) how much each list counts, omega up to their sum; None: all alike."""

    @property
    def n_lists(self) -> int:
        """How many lists there are."""
        return len(self.offsets) - 1

    @cached_property
    def weights(self) -> Floats:
        """How much each list counts."""
        return np.ones(self.n_lists) if self.weight is None else self.weight

    @property
    def n_features(self) -> int:
        """Length of w."""
        return int(self.X.shape[1])

    def cut(self, w: Floats) -> tuple[float, Floats]:
        """Return (offset, gradient) of the plane that touches R at w."""
        return self._held.cut(w)

    def ranking_loss(self, w: Floats) -> float:
        """Return the mean loss of ranking by score; items that tie stand in the worst order.

        Scores far enough apart in their list outweigh any loss: the most violated ranking is then the ranking itself.
        """
        with one_blas_thread():
            scores: Floats = self.X @ w
        far = np.sqrt(mean_within_list_variance(scores[:, None], self.offsets))
        return self.cut(w * (_FAR / far) if far > 0.0 else w)[0]

    @property
    def spread(self) -> float:
        """Mean squared distance of a row from the centre of its list, all the hinge sees of the features; 1 if 0."""
        return mean_within_list_variance(self.X, self.offsets) or 1.0

    def part(self, kept: NDArray[np.bool_]) -> MarginHinge:
        """Return the hinge of the lists that are kept."""
        sizes = np.diff(self.offsets)
        rows = np.repeat(kept, sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
        X, relevance = take_rows(self.X, rows), self.relevance[rows]
        return replace(self, X=X, relevance=relevance, offsets=offsets, weight=self.weights[kept])

    @cached_property
    def _held(self) -> HeldHinge:
        cuts = list_cuts(bytes_before(self.X, int(self.offsets[-1]))[self.offsets])
        held = self.executor.place_blocks([self._block(*cut) for cut in cuts], self.oracle)
        return HeldHinge(held, self.n_features, float(self.weights.sum()))

    def _block(self, first: int, last: int) -> ListBlock:
        offsets = self.offsets[first : last + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        X, relevance = row_range(self.X, rows), self.relevance[rows]
        return ListBlock(X, relevance, offsets - offsets[0], self.weights[first:last])


def list_cuts(bytes_at: Ints) -> list[tuple[int, int]]:
    """Cut lists into blocks by how many bytes of features stand before each, and after the last."""
    return cut_points(bytes_at, BLOCK_BYTES)


@dataclass(frozen=True, eq=False)
class HeldHinge:
    """The hinge of blocks of lists, wherever they are held."""

    held: PlacedBlocks[ListOracle, ListBlock]
    n_features: int
    total: float
    """Of the weights of all lists."""

    def cut(self, w: Floats) -> tuple[float, Floats]:
        """Return (offset, gradient) of the plane that touches R at w."""
        offset, gradient = self.held.sum(_CUT, w)
        return offset / self.total, gradient / self.total


class ListBlock(NamedTuple):
    """A block of lists."""

    X: Features
    relevance: NDArray[Any]
    offsets: Ints
    weights: Floats


class _Point(NamedTuple):
    """Where the cut is taken, and by which oracle."""

    oracle: ListOracle
    w: Floats


def _cut_of(point: _Point, lists: ListBlock) -> ValueAndSlope:
    X: Any = lists.X
    losses, slopes = np.empty(len(lists.weights)), np.empty(int(lists.offsets[-1]))
    point.oracle.most_violated_block(X @ point.w, lists.relevance, lists.offsets, losses, slopes)
    omega = lists.weights
    return float((omega * losses).sum()), -((np.repeat(omega, np.diff(lists.offsets)) * slopes) @ X)


_CUT: BlockSum[ListOracle, Floats, _Point, ListBlock, ValueAndSlope] = BlockSum(_Point, _cut_of, add_value_and_slope)
