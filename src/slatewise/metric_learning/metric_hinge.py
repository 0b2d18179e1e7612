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
from operator import add
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from slatewise.core.arrays import Floats, LazyArray
from slatewise.core.checks import row_range
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.block_sums import BlockSum, PlacedBlocks
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.metric_learning.distance import Rows, catalogue_scores, row_blocks, squares
from slatewise.metric_learning.interleave import Oracle
from slatewise.metric_learning.relevance import Relevance

_FAR = 1e12
"""Mean squared distance of an item from the mean at which differences outweigh losses."""
_Sums: TypeAlias = tuple[float, Floats, Floats]
"""Of a block: the offset, Q'(omega S)X, and the column sums of omega S."""


class MetricShape(Protocol):
    """The matrices among which W is sought, given by a factor of W."""

    def identity(self, n_features: int) -> Floats:
        """Return the W of the unscaled distance."""
        ...

    def start(self, W: Floats) -> Floats:
        """Return a factor of W."""
        ...

    def embed(self, X: Rows, factor: Floats) -> Rows:
        """Map points to where distances are Euclidean."""
        ...

    def products(self, Q: Rows, SX: Floats) -> Floats:
        """Return Q'(SX), as far as W can see it."""
        ...

    def symmetric(self, products: Floats) -> Floats:
        """Return products + products'."""
        ...


@dataclass(frozen=True, eq=False)
class MetricHinge:
    """Queries, items and what is relevant; all arrays are checked by the caller."""

    queries: Rows
    items: Rows
    relevance: Relevance
    weight: Floats
    """(n_queries,) summing to 1."""
    oracle: Oracle
    shape: MetricShape
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
        mean = np.asarray(self.items.mean(axis=0)).ravel()
        return max(float(squares(self.items).mean() - mean @ mean), 0.0)

    def ranking_loss(self, factor: Floats, oracle: Oracle) -> float:
        """Return the mean loss of ranking by the W of this factor; items that tie stand in the worst order.

        Scores far enough apart outweigh any loss: the most violated ranking is then the ranking itself.
        """
        with one_blas_thread():
            mapped = self.shape.embed(self.items, factor)
            mean = np.asarray(mapped.mean(axis=0)).ravel()
            spread = max(float(squares(mapped).mean() - mean @ mean), 0.0)
            far = factor * (np.sqrt(_FAR) / np.sqrt(spread)) if spread > 0.0 else factor
            return self._loss(far, oracle)

    def _loss(self, factor: Floats, oracle: Oracle) -> float:
        return self._held.sum(_LOSS, (factor, oracle))

    @cached_property
    def at_zero(self) -> float:
        """R(0): nothing is learned if no W has a smaller objective."""
        return self.cut(self.shape.start(0.0 * self.shape.identity(self.n_features)))[0]

    def largest_square(self, factor: Floats) -> float:
        """Return the largest |z|^2 of a mapped query."""
        if isinstance(self.queries, LazyArray):
            return self._held.sum(_LARGEST, factor)
        return float(squares(self.shape.embed(self.queries, factor)).max())

    def cut(self, factor: Floats) -> tuple[float, Floats]:
        """Return (offset, gradient) of the plane that touches R at the W of this factor."""
        with one_blas_thread():
            offset, products, column_sums = self._held.sum(_CUT, factor)
            # sum_i D_i x_i x_i' = X'(DX), and half of it in each of the two products.
            inner = self.shape.products(self.items, self.items * column_sums[:, None])
            return offset, self.shape.symmetric(0.5 * inner - products)

    @cached_property
    def _held(self) -> PlacedBlocks[_Shared, _Queries]:
        blocks = [self._block(rows) for rows in row_blocks(len(self.weight), self.relevance.n_items)]
        return self.executor.place_blocks(blocks, _Shared(self.items, self.oracle, self.shape))

    def _block(self, rows: slice) -> _Queries:
        scale = None if self.scale is None else self.scale[rows]
        return _Queries(row_range(self.queries, rows), self.relevance.part(rows), self.weight[rows], scale)


class _Queries(NamedTuple):
    """A block of queries; every one ranks all items."""

    points: Rows
    relevance: Relevance
    weight: Floats
    scale: Floats | None


class _Shared(NamedTuple):
    items: Rows
    oracle: Oracle
    shape: MetricShape


class _Point(NamedTuple):
    """The hinge at one W, for work on a block of queries."""

    shared: _Shared
    factor: Floats
    mapped_items: Rows
    item_squares: Floats


def _mapped(shared: _Shared, factor: Floats) -> _Point:
    mapped = shared.shape.embed(shared.items, factor)
    return _Point(shared, factor, mapped, squares(mapped))


def _most_violated(point: _Point, queries: _Queries) -> tuple[Floats, Floats]:
    """Return the loss of each query, and (queries, items) weights."""
    _, oracle, shape = point.shared
    scores = catalogue_scores(shape.embed(queries.points, point.factor), point.mapped_items, point.item_squares)
    n_queries, n_items = scores.shape
    if queries.scale is not None:
        scores *= queries.scale[:, None]
    relevance = np.empty(scores.shape, dtype=np.int8)
    queries.relevance.fill(slice(0, n_queries), relevance)
    losses, weights = np.empty(n_queries), np.empty(scores.size)
    offsets = np.arange(n_queries + 1, dtype=np.int64) * n_items
    oracle.most_violated_block(scores.ravel(), relevance.ravel(), offsets, losses, weights)
    return losses, weights.reshape(scores.shape)


def _cut_of(point: _Point, queries: _Queries) -> _Sums:
    losses, S = _most_violated(point, queries)
    share = queries.weight
    S *= (share if queries.scale is None else share * queries.scale)[:, None]
    return float(share @ losses), point.shared.shape.products(queries.points, S @ point.shared.items), S.sum(axis=0)


def _loss_of(point: _Point, queries: _Queries) -> float:
    return float(queries.weight @ _most_violated(point, queries)[0])


def _add(one: _Sums, other: _Sums) -> _Sums:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _mapped_for(shared: _Shared, factor_and_oracle: tuple[Floats, Oracle]) -> _Point:
    factor, oracle = factor_and_oracle
    return _mapped(shared._replace(oracle=oracle), factor)


def _shape_and_factor(shared: _Shared, factor: Floats) -> tuple[MetricShape, Floats]:
    return shared.shape, factor


def _largest_of(point: tuple[MetricShape, Floats], queries: _Queries) -> float:
    shape, factor = point
    return float(squares(shape.embed(queries.points, factor)).max())


_LARGEST: BlockSum[_Shared, Floats, tuple[MetricShape, Floats], _Queries, float]
_LARGEST = BlockSum(_shape_and_factor, _largest_of, max)
_CUT: BlockSum[_Shared, Floats, _Point, _Queries, _Sums] = BlockSum(_mapped, _cut_of, _add)
_LOSS: BlockSum[_Shared, tuple[Floats, Oracle], _Point, _Queries, float]
_LOSS = BlockSum(_mapped_for, _loss_of, add)
