"""The hinge of a linear ranker of documents (Joachims 2005; Yue et al. 2007), for any exact oracle over lists.

    R(w) = sum_q omega_q  max over rankings m of [ Delta_q(m) + w.psi_q(m) - w.psi_q(best) ] ,     s = X w

The oracle gives each list's loss and the coefficients a of its items' scores, so that a list's hinge is ``loss - a.s``;
the cut is then ``(sum_q omega_q loss_q, -X'(omega a))``: one product with X per round, whatever the loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.checks import BLOCK_BYTES, Features, bytes_before, cut_points, row_range
from slatewise.core.executor import ONE_THREAD, Executor, one_blas_thread
from slatewise.core.features import spread, take_rows

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


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
        point = _Point(w, self.X, self.relevance, self.offsets, self.weights, self.oracle)
        offset, gradient = self.executor.sum_blocks(_cut_of, point, self._blocks, _add)
        total = float(self.weights.sum())
        return offset / total, gradient / total

    def ranking_loss(self, w: Floats) -> float:
        """Return the mean loss of ranking by score; items that tie stand in the worst order.

        Scores far enough apart in their list outweigh any loss: the most violated ranking is then the ranking itself.
        """
        with one_blas_thread():
            scores: Floats = self.X @ w
        far = np.sqrt(spread(scores[:, None], self.offsets))
        return self.cut(w * (_FAR / far) if far > 0.0 else w)[0]

    @property
    def spread(self) -> float:
        """Mean squared distance of a row from the centre of its list, all the hinge sees of the features; 1 if 0."""
        return spread(self.X, self.offsets) or 1.0

    def part(self, kept: NDArray[np.bool_]) -> MarginHinge:
        """Return the hinge of the lists that are kept."""
        sizes = np.diff(self.offsets)
        rows = np.repeat(kept, sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
        X, relevance = take_rows(self.X, rows), self.relevance[rows]
        return replace(self, X=X, relevance=relevance, offsets=offsets, weight=self.weights[kept])

    @cached_property
    def _blocks(self) -> list[tuple[int, int]]:
        return cut_points(bytes_before(self.X, int(self.offsets[-1]))[self.offsets], BLOCK_BYTES)


class _Point(NamedTuple):
    """The hinge of some lists at one w, for whoever works on a block of them."""

    w: Floats
    X: Features
    relevance: NDArray[Any]
    offsets: Ints
    weights: Floats
    oracle: ListOracle


def _cut_of(point: _Point, block: tuple[int, int]) -> tuple[float, Floats]:
    first, last = block
    rows = slice(int(point.offsets[first]), int(point.offsets[last]))
    X: Any = row_range(point.X, rows)
    offsets = point.offsets[first : last + 1] - point.offsets[first]
    losses, slopes = np.empty(last - first), np.empty(int(offsets[-1]))
    point.oracle.most_violated_block(X @ point.w, point.relevance[rows], offsets, losses, slopes)
    omega = point.weights[first:last]
    return float((omega * losses).sum()), -((np.repeat(omega, np.diff(offsets)) * slopes) @ X)


def _add(one: tuple[float, Floats], other: tuple[float, Floats]) -> tuple[float, Floats]:
    return one[0] + other[0], one[1] + other[1]
