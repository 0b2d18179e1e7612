"""Features of linear label scores: every column with mean 0 and variance 1, and a constant one.

    s_i = w_i . (x - mean) / spread + v_i

Means and spreads are sums over blocks of rows, so that rows in memory and rows in files have the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import add
from typing import NamedTuple, TypeVar, cast

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.block_sums import BlockSum
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.label_scores import (
    Coefficients,
    LinearScores,
    Prepared,
    checked_spread,
    peak_unit,
    typical_length,
)
from slatewise.data.row_files import RowFormat, RowGroup
from slatewise.data.row_source import StoredRows

Point = TypeVar("Point")
_BLOCK_BYTES = 1 << 26


def prepare_linear(X: Floats | StoredRows, weight: Floats, executor: Executor = ONE_THREAD) -> Prepared:
    """Give every column mean 0 and variance 1, so that its unit changes nothing, and append the constant one."""
    held, total = executor.place_blocks(_row_blocks(X, weight), None), weight.sum()
    with one_blas_thread():
        centre, largest = held.sum(_SUMS, None)
        centre = centre / total
        peak = held.sum(_PEAKS, centre)
        unit = peak_unit(peak, largest)
        spread = checked_spread(peak, largest, unit * np.sqrt(held.sum(_SQUARES, (centre, unit)) / total))
        n_rows = len(weight)
        constant = typical_length(held.sum(_LENGTHS, (centre, spread)) / n_rows if n_rows and X.shape[1] else 0.0)
    phi = Standardised(centre, spread, constant)

    def coefficients(W: Floats) -> Coefficients:
        coef = np.ascontiguousarray(W[:, :-1]) / spread
        return coef, W[:, -1] * constant - coef @ centre

    made = cast("Floats", X.made(phi)) if isinstance(X, StoredRows) else phi.of_rows(X)
    return Prepared(LinearScores(), made, None, coefficients)


@dataclass(frozen=True, eq=False)
class Standardised:
    """Columns of mean 0 and variance 1, and the constant one."""

    centre: Floats
    spread: Floats
    constant: float
    dtype: str = "float64"

    def shape(self, n_features: int) -> tuple[int, ...]:
        """One number per feature, and the constant."""
        return (n_features + 1,)

    def of(self, rows: RowFormat, group: RowGroup) -> Floats:
        """Read a piece, and make them."""
        return self.of_rows(rows.features(group))

    def of_rows(self, rows: Floats) -> Floats:
        """Make them of features."""
        return np.column_stack([(rows - self.centre) / self.spread, np.full(len(rows), self.constant)])


def linear_scores(X: Floats | StoredRows, coef: Floats, intercept: Floats, executor: Executor = ONE_THREAD) -> Floats:
    """Return the scores (n, N) of rows by blocks, so that rows in files and in memory have the same bits."""
    held = executor.place_blocks(_row_blocks(X, np.ones(len(X))), None)
    with one_blas_thread():
        return np.concatenate(held.sum(_SCORES, (coef, intercept)))


class _RowBlock(NamedTuple):
    X: Floats
    weight: Floats


def _row_blocks(X: Floats | StoredRows, weight: Floats) -> list[_RowBlock]:
    rows = max(1, _BLOCK_BYTES // (8 * max(int(X.shape[1]), 1)))
    cuts = [slice(first, first + rows) for first in range(0, max(len(weight), 1), rows)]
    return [_RowBlock(cast("Floats", X[cut]), weight[cut]) for cut in cuts]


def _same_point(shared: None, point: Point) -> Point:
    del shared
    return point


def _sums_of(point: None, block: _RowBlock) -> tuple[Floats, Floats]:
    del point
    return block.weight @ block.X, np.abs(block.X).max(axis=0, initial=0.0)


def _add_sums(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    return one[0] + other[0], np.maximum(one[1], other[1])


def _peaks_of(centre: Floats, block: _RowBlock) -> Floats:
    return np.abs(block.X - centre).max(axis=0, initial=0.0)


def _squares_of(point: tuple[Floats, Floats], block: _RowBlock) -> Floats:
    centre, unit = point
    # Divided first: squares of tiny or huge numbers are 0 or infinite.
    return block.weight @ ((block.X - centre) / unit) ** 2


def _lengths_of(point: tuple[Floats, Floats], block: _RowBlock) -> float:
    centre, spread = point
    return float((((block.X - centre) / spread) ** 2).sum(axis=1).sum())


def _scores_of(point: Coefficients, block: _RowBlock) -> tuple[Floats, ...]:
    return (LinearScores().scores(block.X, *point),)


_SUMS: BlockSum[None, None, None, _RowBlock, tuple[Floats, Floats]] = BlockSum(_same_point, _sums_of, _add_sums)
_PEAKS: BlockSum[None, Floats, Floats, _RowBlock, Floats] = BlockSum(_same_point, _peaks_of, np.maximum)
_SQUARES: BlockSum[None, Coefficients, Coefficients, _RowBlock, Floats] = BlockSum(_same_point, _squares_of, add)
_LENGTHS: BlockSum[None, Coefficients, Coefficients, _RowBlock, float] = BlockSum(_same_point, _lengths_of, add)
_SCORES: BlockSum[None, Coefficients, Coefficients, _RowBlock, tuple[Floats, ...]]
_SCORES = BlockSum(_same_point, _scores_of, add)
