"""Rankings that maximize a linear score: loss-augmented inference with independent item scores.

    f(Pi) = s' Pi c + <Pi a, b> = sum_i s_i c[pos_i] + b_i a[pos_i]

a and b are the vectors of a linear loss (:mod:`slatewise.losses`). This is a linear assignment problem with a matrix of
rank two, the kind on which general solvers are slowest, so structure comes first:

- *sort*: up to added constants c and a are multiples of each other, or s and b are. One vector of keys is left.
- *counts*: one of b, s, a, c takes few values (ratings; the ones and zeros of a top k). See
  ``kernels/count_grid.py``: O(R prod(m_r + 1)) for R values taken m_r times.
- *assignment*: SciPy's solver, O(N^3), whatever the matrix.

Precision at k with c = 1 in the top k and 0 elsewhere is the sort; its first k items are the best top k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import LARGEST, bounded
from slatewise.core.kernels.count_grid import walk_counts

Method: TypeAlias = Literal["auto", "sort", "counts", "assignment"]

MOST_STATES = 1 << 25
"""A grid of counts is not walked beyond this many states (9 bytes each), nor beyond N^3: an assignment is cheaper."""


@dataclass(frozen=True, eq=False)
class LinearRanking:
    """The best ranking, its score f, and the method that found it. All methods are exact."""

    order: Ints
    score: float
    method: str


@dataclass(frozen=True, eq=False)
class _Costs:
    """Rows to columns: f = sum_i s_i c[column of i] + b_i a[column of i]."""

    s: Floats
    c: Floats
    b: Floats
    a: Floats

    def transposed(self) -> _Costs:
        return _Costs(self.c, self.s, self.a, self.b)

    def exchanged(self) -> _Costs:
        return _Costs(self.b, self.a, self.s, self.c)


def linear_loss_ranking(
    s: ArrayLike, c: ArrayLike, a: ArrayLike, b: ArrayLike, method: Method = "auto"
) -> LinearRanking:
    """Return the ranking that maximizes ``sum_i s_i c[pos_i] + b_i a[pos_i]``.

    Parameters
    ----------
    s : array-like of shape (N,)
        Item scores. Numbers beyond 1e50 in size, here and below, are refused: their sums could leave the range.
    c : array-like of shape (N,)
        What each position weighs in the model.
    a, b : array-like of shape (N,)
        What each position, and each item, weighs in the loss: ``*loss.vectors(relevance, k)``.
    method : {"auto", "sort", "counts", "assignment"}
        ``"auto"`` sorts where it may, else walks the counts where that is cheaper than an assignment.

    Returns
    -------
    result : LinearRanking
        ``result.order[r]`` is the item at rank r.

    Examples
    --------
    >>> from slatewise.losses import DCGLoss
    >>> a, b = DCGLoss().vectors([1, 0, 0])
    >>> result = linear_loss_ranking([0.6, 0.2, 0.3], [3, 2, 1], a, b)
    >>> result.order.tolist(), result.method
    ([2, 0, 1], 'counts')
    """
    if method not in ("auto", *_SOLVERS):
        raise ValueError(f"method: expected one of auto, {', '.join(_SOLVERS)}, found {method!r}")
    scores = _vector("s", s, None)
    n = len(scores)
    costs = _Costs(scores, _vector("c", c, n), b=_vector("b", b, n), a=_vector("a", a, n))
    for name in _SOLVERS if method == "auto" else (method,):
        order = _SOLVERS[name](costs)
        if order is not None:
            return LinearRanking(order, float(costs.s[order] @ costs.c + costs.b[order] @ costs.a), name)
    raise ValueError(f"method: expected 'auto' or 'assignment' for these vectors, which do not allow {method!r}")


def best_assignment(scores: Floats) -> Ints:
    """Return the order that maximises ``sum_r scores[order[r], r]``."""
    return linear_sum_assignment(scores.T, maximize=True)[1].astype(np.int64)


def _vector(name: str, values: ArrayLike, n: int | None) -> Floats:
    vector = bounded(name, values)
    if vector.ndim != 1 or len(vector) == 0 or (n is not None and len(vector) != n):
        expected = "one number an item" if n is None else f"{n} numbers, as many as in s"
        raise ValueError(f"{name}: expected {expected}, found shape {vector.shape}")
    return vector


def _sorted_order(costs: _Costs) -> Ints | None:
    """Return the best order if one vector of keys for items and one for positions are enough, else None."""
    s, c, b, a = costs.s, costs.c, costs.b, costs.a
    if (factor := _multiple(a, c, b)) is not None:
        return _matched(s + factor * b, c)
    if (factor := _multiple(c, a, s)) is not None:
        return _matched(factor * s + b, a)
    if (factor := _multiple(b, s, a)) is not None:
        return _matched(s, c + factor * a)
    if (factor := _multiple(s, b, c)) is not None:
        return _matched(b, factor * c + a)
    return None


def _multiple(vector: Floats, of: Floats, partner: Floats) -> float | None:
    """Return x with vector = x * of + a constant, or None, as where x times the partner would leave the range.

    The constant adds the same to every ranking.
    """
    spread, base = vector - vector.mean(), of - of.mean()
    square = float(base @ base)
    factor = float(spread @ base) / square if square > 0.0 else 0.0
    close = np.abs(spread - factor * base).max() <= 1e-13 * np.abs(vector).max()
    in_range = abs(factor) * float(np.abs(partner).max()) <= LARGEST**2
    return factor if close and in_range else None


def _matched(items: Floats, positions: Floats) -> Ints:
    """Give larger positions to larger items; equal ones keep their order."""
    order = np.empty(len(items), dtype=np.int64)
    order[np.argsort(-positions, kind="stable")] = np.argsort(-items, kind="stable")
    return order


def _counted_order(costs: _Costs) -> Ints | None:
    """Walk the smallest grid of counts: of items with equal b or equal s, or of positions with equal a or equal c."""
    transposed = costs.transposed()
    by_items, by_positions = (costs, costs.exchanged()), (transposed, transposed.exchanged())
    smallest = min((*by_items, *by_positions), key=_states)
    if _states(smallest) > min(MOST_STATES, len(costs.s) ** 3):
        return None
    columns = _columns_by_counts(smallest)
    return inverse(columns) if smallest in by_items else columns


def _states(costs: _Costs) -> int:
    """Return how many states the grid has when rows with equal b form a class."""
    sizes = np.unique(costs.b, return_counts=True)[1]
    return math.prod((sizes + 1).tolist())


def _columns_by_counts(costs: _Costs) -> Ints:
    """Return the column of each row."""
    values, class_of_row = np.unique(costs.b, return_inverse=True)
    rows = np.lexsort((-costs.s, class_of_row))
    starts = np.searchsorted(class_of_row[rows], np.arange(len(values) + 1))
    strides = np.concatenate(([1], np.cumprod(np.diff(starts) + 1)))
    columns = np.argsort(-costs.c, kind="stable")
    best = np.empty(strides[-1])
    last = np.empty(strides[-1], dtype=np.int8)
    walk_counts(costs.s[rows], starts, values, costs.c[columns], costs.a[columns], strides[:-1], best, last)
    out = np.empty(len(rows), dtype=np.int64)
    left = np.diff(starts)
    state = int(strides[-1]) - 1
    for column in columns[::-1]:
        taken = int(last[state])
        left[taken] -= 1
        out[rows[starts[taken] + left[taken]]] = column
        state -= int(strides[taken])
    return out


_SOLVERS: dict[str, Callable[[_Costs], Ints | None]] = {
    "sort": _sorted_order,
    "counts": _counted_order,
    "assignment": lambda costs: best_assignment(np.outer(costs.s, costs.c) + np.outer(costs.b, costs.a)),
}
"""Cheapest first; one that does not fit the vectors returns None."""


def inverse(permutation: Ints) -> Ints:
    """Turn an order into the positions of the items, or back."""
    out = np.empty_like(permutation)
    out[permutation] = np.arange(len(permutation))
    return out
