"""The hinge of a learned distance, for any exact oracle over rankings (McFee and Lanckriet, eq. 1-3).

    R(W) = sum_q omega_q  max over rankings y of [ Delta_q(y) + <W, psi_q(y)> - <W, psi_q(y*)> ] ,   s = -(q-i)' W (q-i)

The oracle gives each query's loss and a row of weights S_q = psi_q(y*) - psi_q(y), which adds up to 0; its hinge is
``loss_q - S_q . s_q``, linear in W. Where psi_q is to be larger than the oracle's, scores go in and weights come out
larger by the same factor: that is the hinge of a larger W, and as convex. With D = diag(column sums of omega S),
queries Q and items X,

    R(W) >= offset + <gradient, W> ,    offset = sum_q omega_q loss_q ,   gradient = X'DX - Q'(omega S)X - X'(omega S)'Q

exact at the W it was made for: matrix products over blocks of queries, never a matrix as large as queries x items.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from slatewise.core.arrays import Floats, LazyArray
from slatewise.core.checks import row_range
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.block_sums import BlockSum, PlacedBlocks
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.metric_learning.cone import Cone
from slatewise.metric_learning.distance import Rows, catalogue_scores, row_blocks, squares
from slatewise.metric_learning.oracle import Oracle
from slatewise.metric_learning.relevance import Relevance

_FAR = 1e12
"""Mean squared distance of an item from the mean at which differences outweigh losses."""
_Sums: TypeAlias = tuple[float, Floats, Floats]
"""Of a block: the offset, Q'(omega S)X, and the column sums of omega S."""


@dataclass(frozen=True, eq=False)
class MetricHinge:
    """Queries, items and what is relevant; all arrays are checked by the caller."""

    queries: Rows
    items: Rows
    relevance: Relevance
    weight: Floats
    """(n_queries,) summing to 1."""
    oracle: Oracle
    cone: Cone
    executor: Executor = ONE_THREAD
    scale: Floats | None = None
    """(n_queries,) what the oracle's psi of each query is multiplied by; None: ones."""

    @property
    def n_features(self) -> int:
        """The number of features of a point."""
        return int(self.items.shape[1])

    @property
    def rounding(self) -> float:
        """What scores lose of the square of the largest mapped point."""
        return float(np.finfo(np.float64).eps)

    @property
    def spread(self) -> float:
        """Mean squared distance of an item from the mean: the scale of the features."""
        return _spread(self.items)

    def ranking_loss(self, factor: Floats, oracle: Oracle) -> float:
        """Return the mean loss of ranking by the W of this factor; tied items are in the worst order.

        Scores far enough apart outweigh any loss: the most violated ranking is then the ranking itself.
        """
        with one_blas_thread():
            spread = _spread(self.cone.embed(self.items, factor))
            far = factor * (np.sqrt(_FAR) / np.sqrt(spread)) if spread > 0.0 else factor
            return self.cut(far, oracle)[0]

    @cached_property
    def at_zero(self) -> float:
        """R(0): nothing is learned if no W has a smaller objective."""
        return self.cut(self.cone.start(0.0 * self.cone.identity(self.n_features)))[0]

    def largest_square(self, factor: Floats) -> float:
        """Return the largest |z|^2 of a mapped query."""
        if isinstance(self.queries, LazyArray):
            return self._held.sum(_LARGEST, (factor, self.oracle))
        return float(squares(self.cone.embed(self.queries, factor)).max())

    def cut(self, factor: Floats, oracle: Oracle | None = None) -> tuple[float, Floats]:
        """Return (offset, gradient) of the plane that touches R, or that of another oracle, at the W of this factor."""
        with one_blas_thread():
            offset, products, column_sums = self._held.sum(_CUT, (factor, oracle or self.oracle))
            # sum_i D_i x_i x_i' = X'(DX), and half of it in each of the two products.
            inner = self.cone.products(self.items, self.items * column_sums[:, None])
            return offset, self.cone.symmetric(0.5 * inner - products)

    @cached_property
    def _held(self) -> PlacedBlocks[_Shared, _Queries]:
        blocks: list[_Queries] = []
        for rows in row_blocks(len(self.weight), self.relevance.n_items):
            scale = None if self.scale is None else self.scale[rows]
            blocks.append(_Queries(row_range(self.queries, rows), self.relevance.some(rows), self.weight[rows], scale))
        return self.executor.place_blocks(blocks, _Shared(self.items, self.cone))


def _spread(points: Rows) -> float:
    mean = np.asarray(points.mean(axis=0)).ravel()
    return max(float(squares(points).mean() - mean @ mean), 0.0)


class _Queries(NamedTuple):
    """A block of queries; each ranks all items."""

    points: Rows
    relevance: Relevance
    weight: Floats
    scale: Floats | None


class _Shared(NamedTuple):
    items: Rows
    cone: Cone


class _At(NamedTuple):
    """The hinge of an oracle at one W, for work on a block of queries."""

    items: Rows
    cone: Cone
    oracle: Oracle
    factor: Floats
    mapped_items: Rows
    item_squares: Floats


def _at(shared: _Shared, factor_and_oracle: tuple[Floats, Oracle]) -> _At:
    factor, oracle = factor_and_oracle
    mapped = shared.cone.embed(shared.items, factor)
    return _At(shared.items, shared.cone, oracle, factor, mapped, squares(mapped))


def _cut_of(at: _At, queries: _Queries) -> _Sums:
    scores = catalogue_scores(at.cone.embed(queries.points, at.factor), at.mapped_items, at.item_squares)
    n_queries, n_items = scores.shape
    share = queries.weight
    if queries.scale is not None:
        scores *= queries.scale[:, None]
    relevance = np.empty(scores.shape, dtype=np.int8)
    queries.relevance.fill(slice(0, n_queries), relevance)
    losses, weights = np.empty(n_queries), np.empty(scores.size)
    offsets = np.arange(n_queries + 1, dtype=np.int64) * n_items
    at.oracle.most_violated_block(scores.ravel(), relevance.ravel(), offsets, losses, weights)
    S = weights.reshape(scores.shape)
    S *= (share if queries.scale is None else share * queries.scale)[:, None]
    return float(share @ losses), at.cone.products(queries.points, S @ at.items), S.sum(axis=0)


def _add(one: _Sums, other: _Sums) -> _Sums:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _largest_of(at: _At, queries: _Queries) -> float:
    return float(squares(at.cone.embed(queries.points, at.factor)).max())


_CUT: BlockSum[_Shared, tuple[Floats, Oracle], _At, _Queries, _Sums] = BlockSum(_at, _cut_of, _add)
_LARGEST: BlockSum[_Shared, tuple[Floats, Oracle], _At, _Queries, float] = BlockSum(_at, _largest_of, max)
