"""A c-star model over whole rankings: positions matter, not only membership in the top k.

    f(Pi) = sum_i s_i t_i + sum over unordered pairs G_ij t_i t_j + sum_i linear[i, pos_i],    t_i = c[pos_i]

Once the core items have their positions, the others no longer interact: their best positions are a linear assignment.
Exact, and for small lists only: N! / (N - C)! assignments are solved. ``linear`` takes any linear loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from math import perm
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment

from slatewise.core.arrays import Ints
from slatewise.core.checks import bounded
from slatewise.cstar.inference.model import StarPair, checked_scores

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


MOST_PLACEMENTS = 100_000
"""The maximum number of ways to place the core items."""


@dataclass(frozen=True, eq=False)
class StarRanking:
    """The best ranking of one list."""

    order: Ints
    """(N,) order[r] is the item at rank r."""
    score: float


def star_permutation(
    s: ArrayLike, c: ArrayLike, pair: ArrayLike, core: ArrayLike, linear: ArrayLike | None = None
) -> StarRanking:
    """Return the ranking with the highest f.

    Parameters
    ----------
    s : (N,)
        Scores of the items.
    c : (N,)
        The weight of each position.
    pair, core
        As in :func:`slatewise.inference.star_top_k`.
    linear : (N, N), optional
        What item i adds at position p, for example a loss.

    Examples
    --------
    >>> star_permutation([0.0, 1.0, 0.5], c=[2.0, 1.0, 0.0], pair=[[0.0, 0.0, 2.0]], core=[0]).order
    array([2, 0, 1])
    """
    star, scores = StarPair.of(pair, core), checked_scores(s)[0]
    n_items = star.n_items
    weights, extra = bounded("c", c), np.zeros((n_items, n_items)) if linear is None else bounded("linear", linear)
    for name, array, shape in (
        ("s", scores, (n_items,)),
        ("c", weights, (n_items,)),
        ("linear", extra, (n_items,) * 2),
    ):
        if array.shape != shape:
            raise ValueError(f"{name}: expected shape {shape}, found {array.shape}")
    if perm(n_items, star.n_core) > MOST_PLACEMENTS:
        raise ValueError(
            f"core: expected at most {MOST_PLACEMENTS} ways to place the core items, "
            f"found {perm(n_items, star.n_core)} for {star.n_core} of {n_items} items"
        )
    items, rest, inner, outer = star.arrays.core, star.arrays.rest, star.arrays.inner, star.arrays.outer
    best, best_order = -np.inf, np.arange(n_items)
    for positions in permutations(range(n_items), star.n_core):
        taken = np.array(positions, dtype=np.int64)
        free = np.setdiff1d(np.arange(n_items), taken)
        t = weights[taken]
        value = float(scores[items] @ t + extra[items, taken].sum()) + 0.5 * float(t @ inner @ t)
        gains = np.outer(scores[rest] + t @ outer, weights[free]) + extra[np.ix_(rest, free)]
        rows, columns = linear_sum_assignment(gains, maximize=True)
        value += float(gains[rows, columns].sum())
        if value > best:
            best = value
            best_order[taken], best_order[free[columns]] = items, rest[rows]
    return StarRanking(best_order.copy(), best)
