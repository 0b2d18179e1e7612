"""Metric learning by collapsing classes (Globerson, Roweis 2006), the competitor of metric learning to rank.

    F(W) = tr(W) + C mean_i KL( p0(.|i) || p(.|i) ) ,      W positive semidefinite
    p(j|i) = exp(-d_W(i, j)) / sum over k != i of exp(-d_W(i, k)) ,     p0(j|i) the same for all j of i's class

F is convex in W. It is minimized over a factor, W = L'L, by L-BFGS; a full-rank factor has no bad local minimum, and
what it ends with is certified in W. For any distributions q, by the variational form of log-sum-exp,

    F(W) >= <I + C M(p0 - q), W> + C mean_i [H(q_i) - H(p0_i)] ,     M(S) = mean_i sum_j S_ij (x_i - x_j)(x_i - x_j)' ,

which is a lower bound where the matrix is positive semidefinite. Mixing t p + (1 - t) p0 makes it so, with
t = 1 / max(1, -smallest eigenvalue of C M(p0 - p)), and loses at most the factor t of the entropies. As M(p0 - p) is
the divergence's gradient G in W, the bound is ``t C (KL - <G, W>)``. Where the eigenvalue is below -1 the factor has
lost a direction it needs: it gets it back, and L-BFGS goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import fmin_l_bfgs_b

from slatewise.core.arrays import Floats
from slatewise.core.checks import numbers, require_finite, require_in_range
from slatewise.core.numerics.result import Fit, Round, warn_unless_converged
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import ONE_THREAD, Executor

_BLOCK_ROWS = 512
_MOST_RESTARTS = 10


@dataclass(frozen=True, eq=False)
class CollapseObjective:
    """The mean divergence of rows with classes; a row alone in its class says nothing and is left out of the mean."""

    X: Floats
    """(n, d) centered rows."""
    y: NDArray[np.int64]
    """(n,) classes from 0."""
    executor: Executor = ONE_THREAD

    @cached_property
    def partners(self) -> Floats:
        """How many others of its class each row has."""
        return (np.bincount(self.y)[self.y] - 1).astype(np.float64)

    def value_and_grad(self, L: Floats) -> tuple[float, Floats]:
        """Return the mean divergence at W = L'L and its gradient in W."""
        image = self.X @ L.T
        starts = range(0, len(self.X), _BLOCK_ROWS)
        value, pull = self.executor.sum_blocks(_block, _Point(self.X, self.y, self.partners, image), starts, _add)
        used = max(int(np.sum(self.partners > 0)), 1)
        return value / used, (pull + pull.T) / used


class _Point(NamedTuple):
    """Rows with classes, and where an L maps them."""

    X: Floats
    y: NDArray[np.int64]
    partners: Floats
    image: Floats


def _block(point: _Point, start: int) -> tuple[float, Floats]:
    """Divergences of some rows; sum_ij S_ij (x_i - x_j)(x_i - x_j)' / 2 without its transpose, S = p0 - p."""
    rows = slice(start, min(start + _BLOCK_ROWS, len(point.image)))
    own = np.arange(rows.start, rows.stop)
    image = point.image
    squares = np.einsum("nd,nd->n", image, image)
    distance = np.maximum(squares[rows, None] + squares - 2.0 * image[rows] @ image.T, 0.0)
    here = np.arange(len(own))
    distance[here, own] = np.inf
    nearest = distance.min(axis=1)
    chance = np.exp(nearest[:, None] - distance)
    total = chance.sum(axis=1)
    chance /= total[:, None]
    partners = point.partners[rows]
    same = (point.y[rows, None] == point.y).astype(np.float64)
    same[here, own] = 0.0
    distance[here, own] = 0.0
    wanted = same / np.maximum(partners, 1.0)[:, None]
    used = partners > 0
    log_chance = nearest - np.log(total)  # of distance 0
    divergence = (wanted * distance).sum(axis=1) - log_chance - np.log(np.maximum(partners, 1.0))
    weight = np.where(used[:, None], wanted - chance, 0.0)
    # Rows of S sum to 0, so the term of x_i x_i' vanishes.
    columns = weight.sum(axis=0)
    pull = 0.5 * (point.X.T * columns) @ point.X - point.X[rows].T @ (weight @ point.X)
    return float(divergence[used].sum()), pull


def collapse_classes(
    X: ArrayLike,
    y: ArrayLike,
    C: float = 1.0,
    *,
    tol: float = 1e-3,
    max_iter: int = 500,
    n_jobs: int | None = None,
) -> Fit:
    """Learn the metric that draws each class together and the classes apart.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows.
    y : array-like of shape (n,)
        One class per row; at least two classes, and one of them with two rows.
    C : float
        Weight of the divergence against the trace.
    tol, max_iter
        The relative certified gap to stop at, and the most L-BFGS iterations.
    n_jobs : int, optional
        Threads over blocks of rows; the result has the same bits with any number.

    Returns
    -------
    Fit
        ``params`` is L, (rank, d), of the metric W = L'L: map rows to ``X @ L.T``.

    Examples
    --------
    >>> fit = collapse_classes([[0.0, 5.0], [0.2, 9.0], [4.0, 5.1], [4.1, 8.0]], [0, 0, 1, 1], C=10.0)
    >>> fit.params.shape, fit.converged
    ((1, 2), True)
    """
    rows = numbers("X", X, 2).astype(np.float64)
    require_finite("X", rows, lambda row: f"row {row}")
    require_in_range("X", rows)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    if codes.shape != (len(rows),):
        raise ValueError(f"y: expected one class per row, shape ({len(rows)},), found {np.shape(y)}")
    if len(classes) < 2 or len(classes) == len(rows):
        raise ValueError(f"y: expected at least two classes, one with two rows, found {len(classes)} in {len(rows)}")
    for name, number in (("C", C), ("tol", tol), ("max_iter", max_iter)):
        if not 0 < number < np.inf:
            raise ValueError(f"{name}: expected a finite number > 0, found {number}")
    rows -= rows[0]  # so that a constant column becomes exactly 0
    objective = CollapseObjective(rows - rows.mean(axis=0), codes.astype(np.int64), Executor.of(n_jobs))
    with one_blas_thread():
        return _minimize(objective, C, tol, max_iter)


def _minimize(objective: CollapseObjective, C: float, tol: float, max_iter: int) -> Fit:
    width = objective.X.shape[1]
    scale = float(np.einsum("nd,nd->", objective.X, objective.X)) / len(objective.X)
    if scale == 0.0:  # all rows are the same: no W changes the divergence, so 0 is the best
        nothing = np.zeros((0, width))
        value = C * objective.value_and_grad(nothing)[0]
        return Fit(nothing, value, value, True, (Round(0, value, value),))

    def flat(values: Floats) -> tuple[float, Floats]:
        L = values.reshape(-1, width)
        value, gradient = objective.value_and_grad(L)
        return float(values @ values) + C * value, 2.0 * (L + C * L @ gradient).ravel()

    L, done = np.eye(width) / np.sqrt(2.0 * scale), 0
    history: list[Round] = []
    bound = 0.0
    for restart in range(_MOST_RESTARTS):
        # Small steps end a run; a run that ends too early is followed by one that takes smaller ones for progress.
        small = tol * 10.0 ** -(restart + 3) / np.finfo(np.float64).eps
        found = fmin_l_bfgs_b(flat, L.ravel(), maxiter=max_iter - done, maxfun=10**9, pgtol=0.0, factr=small)
        L, done = cast("Floats", found[0]).reshape(-1, width), done + int(found[2]["nit"])
        value, gradient = objective.value_and_grad(L)
        total = float(np.einsum("rd,rd->", L, L)) + C * value
        eigenvalues, vectors = np.linalg.eigh(C * gradient)
        entropies = C * (value - float(np.einsum("rd,de,re->", L, gradient, L)))
        bound = max(bound, entropies / max(1.0, -float(eigenvalues[0])))
        history.append(Round(done, total, bound))
        if history[-1].gap <= tol or done >= max_iter:
            break
        L = _short(np.vstack([L, 1e-2 / np.sqrt(2.0 * scale) * vectors[:, eigenvalues < -1.0].T]))
    last = history[-1]
    warn_unless_converged(last.gap <= tol, last.gap, tol, done)
    return Fit(_short(L), last.objective, last.lower_bound, bool(last.gap <= tol), tuple(history))


def _short(L: Floats) -> Floats:
    """The factor with one row per direction that counts."""
    _, sizes, directions = np.linalg.svd(L, full_matrices=False)
    return (sizes[:, None] * directions)[sizes > 1e-6 * max(sizes.max(initial=0.0), 1e-300)]


def _add(one: tuple[float, Floats], other: tuple[float, Floats]) -> tuple[float, Floats]:
    return one[0] + other[0], one[1] + other[1]
