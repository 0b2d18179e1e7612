"""A query that training never saw, from the items it was seen with: its row u of U, the items' rows being fixed.

    min over |u| <= C of   log sum_d exp(u.v_d + b_d)  -  sum_d c_d (u.v_d + b_d),        sum_d c_d = 1

c_d is the share of item d in what was seen and C the norm that training allowed. Like WARP this pushes down most what
stands at the top, but it is convex and smooth, so there is one answer and no chance in it. Steps are of projected
gradient with momentum (Beck and Teboulle 2009); the Hessian is a covariance of rows v, so its norm is at most the
largest |v|^2. By convexity no u in the ball is better by more than ``u.g + C |g|``, g being the gradient at u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import ONE_THREAD, Executor

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats: TypeAlias = NDArray[np.floating[Any]]

TOLERANCE = 1e-3
"""Nats that a row may lack."""
MOST_STEPS, STEPS_PER_CHECK = 1000, 10
_SCORES_PER_BLOCK = 1 << 21


@dataclass(frozen=True, eq=False)
class FoldedQueries:
    """Queries that training never saw, as :meth:`slatewise.LatentRanker.fold_in` returns them for ``rank``."""

    vectors: NDArray[np.float32]
    """(queries, n), a row of U each."""

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> FoldedQueries:
        return FoldedQueries(self.vectors[rows])


@dataclass(frozen=True, eq=False)
class FoldedIn:
    """Rows of U, what each costs, and what none can cost less than."""

    rows: Floats
    objective: Floats
    lower_bound: Floats

    @property
    def gap(self) -> float:
        """The most that a row lacks."""
        return float((self.objective - self.lower_bound).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Wanted:
    """All that the cost knows of what a query saw: sums over the items of c_d v_d and of c_d b_d."""

    factors: Floats
    biases: Floats


def fold_in(
    seen: csr_array, factors: Floats, biases: Floats, max_norm: float, executor: Executor = ONE_THREAD
) -> FoldedIn:
    """Find a row for every query.

    Parameters
    ----------
    seen
        (queries, items) weights >= 0 of what was seen. A query that saw nothing gets zeros: its order is that of the
        biases.
    factors, biases
        Row v and number b of every item.
    max_norm
        Largest norm of a row.
    executor
        Works over blocks of queries; the result has the same bits with any number of threads.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> found = fold_in(csr_array([[1.0, 0.0]]), np.array([[1.0], [-1.0]]), np.zeros(2), 2.0)
    >>> found.rows.round(3).tolist(), found.gap < 1e-3
    ([[2.0]], True)
    """
    from scipy.sparse import csr_array, diags_array

    # In units of the largest, no sum of weights is infinite and none is too small to divide by.
    most = seen.max(axis=1).toarray().reshape(-1)
    weights = seen.data / np.repeat(np.where(most > 0, most, 1.0), np.diff(seen.indptr))
    seen = csr_array((weights, seen.indices, seen.indptr), shape=seen.shape)
    sums = np.asarray(seen.sum(axis=1)).reshape(-1)
    with_items = np.flatnonzero(sums > 0)
    largest = max(float((factors**2).sum(axis=1).max()), 1e-12)
    step = max(1, _SCORES_PER_BLOCK // len(factors))

    rows, objective, lower_bound = np.zeros((len(sums), factors.shape[1])), np.zeros(len(sums)), np.zeros(len(sums))

    def solve(first: int) -> None:
        numbers = with_items[first : first + step]
        shares = diags_array(1.0 / sums[numbers]) @ seen[numbers]
        wanted = Wanted((shares @ factors).astype(factors.dtype), shares @ biases)
        found = _descend(wanted, factors, biases, max_norm, largest)
        rows[numbers], objective[numbers], lower_bound[numbers] = found.rows, found.objective, found.lower_bound

    with one_blas_thread():
        executor.fill_blocks(solve, range(0, len(with_items), step))
    return FoldedIn(rows, objective, lower_bound)


def cost_and_gradient(u: Floats, wanted: Wanted, factors: Floats, biases: Floats) -> tuple[Floats, Floats]:
    """Return the formula above for each row of ``u`` (queries, n), and its gradient."""
    scores = u @ factors.T
    scores += biases
    top = scores.max(axis=1, keepdims=True)
    scores -= top
    np.exp(scores, out=scores)
    total = scores.sum(axis=1, keepdims=True)
    scores /= total
    own = np.einsum("qf,qf->q", u, wanted.factors) + wanted.biases
    return (np.log(total) + top)[:, 0] - own, scores @ factors - wanted.factors


def _descend(wanted: Wanted, factors: Floats, biases: Floats, max_norm: float, largest: float) -> FoldedIn:
    """Step until no row lacks more than the tolerance."""
    u = ahead = np.zeros(wanted.factors.shape, dtype=factors.dtype)
    momentum = 1.0
    cost, slope = cost_and_gradient(u, wanted, factors, biases)
    gap = max_norm * np.linalg.norm(slope, axis=1)
    for step in range(1, MOST_STEPS + 1):
        if gap.max() <= TOLERANCE:
            break
        _, slope = cost_and_gradient(ahead, wanted, factors, biases)
        moved = ahead - slope / largest
        moved *= np.minimum(1.0, max_norm / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-12))
        # A row that has converged stays, so that none depends on the rows beside it.
        moved = np.where((gap <= TOLERANCE)[:, None], u, moved)
        faster = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = moved + (momentum - 1.0) / faster * (moved - u)
        u, momentum = moved, faster
        if step % STEPS_PER_CHECK == 0:
            cost, slope = cost_and_gradient(u, wanted, factors, biases)
            gap = np.einsum("qf,qf->q", u, slope) + max_norm * np.linalg.norm(slope, axis=1)
    return FoldedIn(u, cost, cost - np.maximum(gap, 0.0))
