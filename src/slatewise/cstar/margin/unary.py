"""Scores of single labels: linear, given, or by a kernel.

    linear       s_i = w_i . (x - mean) / spread + v_i
    given        s_i = (base + a_i) x_i + v_i          x is the row of given scores, base keeps their order at a = v = 0
    kernel       s_i = sum over basis rows p of alpha_pi k(x, x_p) + v_i

``prepare_*`` turns training rows into the features a learner works on and says how its weights become coefficients; the
leaves score any rows by these coefficients. Learners see one constant feature more, as large as a typical row, for v,
and features whose size does not depend on the unit of X, so that a strength means the same whatever it is. Means and
spreads of linear features are sums over blocks of rows, so that rows in memory and rows in files have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import add
from typing import NamedTuple, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats
from slatewise.core.groups import blocks
from slatewise.core.numerics.row_kernels import RowKernel, kernel_basis
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.block_sums import BlockSum
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.rows import checked_spread, peak_unit
from slatewise.data.row_files import RowFormat, RowGroup
from slatewise.data.row_source import StoredRows

Coefficients: TypeAlias = tuple[Floats, Floats]
"""Coefficients and intercepts."""


class LabelScores(Protocol):
    """A way to score labels."""

    def scores(self, X: Floats, coef: Floats, intercept: Floats) -> Floats:
        """Return the scores (n, N) of any rows."""
        ...


@dataclass(frozen=True, eq=False)
class Prepared:
    """Features for a learner, and the way from its weights to coefficients."""

    scores: LabelScores
    phi: Floats
    """(n, d) features shared by the labels of a row, or (n * N, d) with one row per row and label."""
    offset: Floats | None
    """(n, N) fixed part of the scores."""
    coefficients: Callable[[Floats], Coefficients]
    """Turns the learner's weights (N, d) into coefficients and intercepts."""


@dataclass(frozen=True)
class LinearScores:
    """s = X coef' + intercept."""

    def scores(self, X: Floats, coef: Floats, intercept: Floats) -> Floats:
        """One matrix product."""
        return X @ coef.T + intercept


@dataclass(frozen=True)
class GivenScores:
    """s = X * coef + intercept, one coefficient per label."""

    def scores(self, X: Floats, coef: Floats, intercept: Floats) -> Floats:
        """Scale and shift every column."""
        return X * coef + intercept


@dataclass(frozen=True, eq=False)
class KernelScores:
    """s = k(X, basis) coef' + intercept."""

    kernel: RowKernel
    basis: NDArray[np.generic]

    def scores(self, X: Floats, coef: Floats, intercept: Floats) -> Floats:
        """Compare with the basis rows."""
        return self.kernel.compare(X, self.basis) @ coef.T + intercept


def prepare_given(X: Floats, typical_loss: float | None = None) -> Prepared:
    """Give every label two features of its own, its score and 1.

    For the hinge the scores are scaled to spread as much as a loss does; without a loss they stay as they are.
    """
    spread = float(X.std())
    base = 1.0 if typical_loss is None or spread == 0.0 else typical_loss / spread
    scaled = X * base
    phi = np.stack([scaled, np.ones_like(X)], axis=2).reshape(-1, 2)
    return Prepared(GivenScores(), phi, scaled, lambda W: (base * (1.0 + W[:, 0]), W[:, 1].copy()))


def prepare_kernel(kernel: RowKernel, X: Floats, n_components: int | None) -> Prepared:
    """Factor the kernel of the training rows: exactly, or with at most ``n_components`` basis rows."""
    diagonal = kernel.diagonal(X)
    basis = kernel_basis(lambda row: kernel.column(X, row), diagonal, n_components)
    length = float(np.sqrt(diagonal.mean())) or 1.0
    phi, split = _with_constant(basis.phi / length)

    def coefficients(W: Floats) -> Coefficients:
        weights, intercept = split(W)
        return np.ascontiguousarray(basis.dual(weights / length).T), intercept

    return Prepared(KernelScores(kernel, kernel.rows(X, basis.pivots)), phi, None, coefficients)


def typical_length(mean_square: float) -> float:
    """Return the size of the constant feature for rows of this mean square; 1 if they are 0."""
    return float(np.sqrt(mean_square)) or 1.0


def _with_constant(X: Floats) -> tuple[Floats, Callable[[Floats], Coefficients]]:
    constant = typical_length(float((X**2).sum(axis=1).mean()) if X.size else 0.0)
    return (
        np.column_stack([X, np.full(len(X), constant)]),
        lambda W: (np.ascontiguousarray(W[:, :-1]), W[:, -1] * constant),
    )


# --- linear features --------------------------------------------------------------------------------------------------

Point = TypeVar("Point")
_BLOCK_BYTES = 1 << 26


def prepare_linear(X: Floats | StoredRows, weight: Floats, executor: Executor = ONE_THREAD) -> Prepared:
    """Give every column mean 0 and variance 1, so that its unit changes nothing, and append the constant one."""
    held, total = executor.place_blocks(_row_blocks(X, weight), None), weight.sum()
    with one_blas_thread():
        center, largest = held.sum(_SUMS, None)
        center = center / total
        peak = held.sum(_PEAKS, center)
        unit = peak_unit(peak, largest)
        spread = checked_spread(peak, largest, unit * np.sqrt(held.sum(_SQUARES, (center, unit)) / total))
        n_rows = len(weight)
        constant = typical_length(held.sum(_LENGTHS, (center, spread)) / n_rows if n_rows and X.shape[1] else 0.0)
    phi = Standardized(center, spread, constant)

    def coefficients(W: Floats) -> Coefficients:
        coef = np.ascontiguousarray(W[:, :-1]) / spread
        return coef, W[:, -1] * constant - coef @ center

    made = cast("Floats", X.made(phi)) if isinstance(X, StoredRows) else phi.of_rows(X)
    return Prepared(LinearScores(), made, None, coefficients)


@dataclass(frozen=True, eq=False)
class Standardized:
    """Columns of mean 0 and variance 1, and the constant one."""

    center: Floats
    spread: Floats
    constant: float
    dtype: str = "float64"

    def shape(self, n_features: int) -> tuple[int, ...]:
        """One number per feature, and the constant."""
        return (n_features + 1,)

    def of(self, rows: RowFormat, group: RowGroup) -> Floats:
        """Read a piece of the rows, and standardize it."""
        return self.of_rows(rows.features(group))

    def of_rows(self, rows: Floats) -> Floats:
        """Standardize features, and append the constant."""
        return np.column_stack([(rows - self.center) / self.spread, np.full(len(rows), self.constant)])


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
    cuts = blocks(len(weight), rows) or [slice(0, 0)]
    return [_RowBlock(cast("Floats", X[cut]), weight[cut]) for cut in cuts]


def _same_point(shared: None, point: Point) -> Point:
    del shared
    return point


def _sums_of(point: None, block: _RowBlock) -> tuple[Floats, Floats]:
    del point
    return block.weight @ block.X, np.abs(block.X).max(axis=0, initial=0.0)


def _add_sums(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    return one[0] + other[0], np.maximum(one[1], other[1])


def _peaks_of(center: Floats, block: _RowBlock) -> Floats:
    return np.abs(block.X - center).max(axis=0, initial=0.0)


def _squares_of(point: tuple[Floats, Floats], block: _RowBlock) -> Floats:
    center, unit = point
    # Divided first: squares of tiny or huge numbers are 0 or infinite.
    return block.weight @ ((block.X - center) / unit) ** 2


def _lengths_of(point: tuple[Floats, Floats], block: _RowBlock) -> float:
    center, spread = point
    return float((((block.X - center) / spread) ** 2).sum(axis=1).sum())


def _scores_of(point: Coefficients, block: _RowBlock) -> tuple[Floats, ...]:
    return (LinearScores().scores(block.X, *point),)


_SUMS: BlockSum[None, None, None, _RowBlock, tuple[Floats, Floats]] = BlockSum(_same_point, _sums_of, _add_sums)
_PEAKS: BlockSum[None, Floats, Floats, _RowBlock, Floats] = BlockSum(_same_point, _peaks_of, np.maximum)
_SQUARES: BlockSum[None, Coefficients, Coefficients, _RowBlock, Floats] = BlockSum(_same_point, _squares_of, add)
_LENGTHS: BlockSum[None, Coefficients, Coefficients, _RowBlock, float] = BlockSum(_same_point, _lengths_of, add)
_SCORES: BlockSum[None, Coefficients, Coefficients, _RowBlock, tuple[Floats, ...]]
_SCORES = BlockSum(_same_point, _scores_of, add)
