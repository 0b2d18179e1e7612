"""Quadratic ranking: items whose scores depend on where other items stand (Mensink et al. 2011, eqs. 4 and 5).

    f(Pi) = s' Pi c + Tr(F Pi D Pi') = sum_i s_i c[pos_i] + sum_ij F_ij D[pos_i, pos_j]

With D[k, l] = |k - l|, F_ij < 0 draws items i and j together and F_ij > 0 drives them apart. The best ranking is a
quadratic assignment problem, NP-hard in general: small or structured ones are solved exactly, the others searched, and
an upper bound says how much better any ranking could be.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import bounded
from slatewise.core.running.blas import one_blas_thread
from slatewise.quadratic.form import QuadraticForm
from slatewise.quadratic.solvers import best_of_starts, by_enumeration, by_subsets, by_tabu, later_weights

Method: TypeAlias = Literal["auto", "enumeration", "subsets", "faq", "tabu"]

_AUTO_ENUMERATED, _AUTO_SUBSETS = 8, 22


@dataclass(frozen=True, eq=False)
class QuadraticRanking:
    """A ranking, its score, and how much higher any ranking could score."""

    order: Ints
    """``order[r]`` is the item at rank r."""
    score: float
    upper_bound: float
    """No ranking scores more (up to rounding)."""
    method: str

    @property
    def proven_best(self) -> bool:
        """Whether the bound proves that no ranking is better; False says that there is no such certificate."""
        return self.score >= self.upper_bound


def quadratic_ranking(
    s: ArrayLike,
    c: ArrayLike,
    F: ArrayLike,
    D: ArrayLike,
    method: Method = "auto",
    time_limit: float | None = None,
    random_state: int | np.random.Generator | None = 0,
    *,
    linear: ArrayLike | None = None,
) -> QuadraticRanking:
    """Find a ranking with a large ``sum_i s_i c[pos_i] + sum_ij F_ij D[pos_i, pos_j]``.

    Parameters
    ----------
    s, c : array-like of shape (N,)
        Item scores and position weights. Numbers beyond 1e50 in size, here and below, are refused: their sums could
        leave the range.
    F, D : array-like of shape (N, N)
        How items interact, and how positions weigh that; neither need be symmetric.
    method : {"auto", "enumeration", "subsets", "faq", "tabu"}
        ``"enumeration"`` tries all rankings (N <= 10). ``"subsets"`` is exact in O(N 2^N) where D depends on the later
        of the two positions only (N <= 25), as for average precision and Kemeny's rule. ``"faq"`` is Frank-Wolfe from
        several starts, ``"tabu"`` goes on from there by robust tabu search. ``"auto"`` takes the first of subsets
        (N <= 22), enumeration (N <= 8) and tabu that applies.
    time_limit : float, optional
        Seconds for ``"faq"`` and ``"tabu"``, whose result then depends on the machine. None: a number of steps that
        depends on N only, about a second for up to 100 items. The exact methods run to their end.
    random_state : int, Generator or None
        The same number gives the same ranking; None draws a new one.
    linear : array-like of shape (N, N), optional
        ``linear[i, p]`` is added for item i at position p: a linear loss is ``np.outer(b, a)``.

    Returns
    -------
    result : QuadraticRanking

    Examples
    --------
    Items 0 and 2 want to be neighbors:

    >>> F = np.zeros((4, 4))
    >>> F[0, 2] = -1.0
    >>> D = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    >>> result = quadratic_ranking([0.9, 0.8, 0.75, 0.1], [3, 2, 1, 0], F, D)
    >>> result.order.tolist(), result.proven_best
    ([0, 2, 1, 3], True)
    """
    if method not in get_args(Method):
        raise ValueError(f"method: expected one of {', '.join(get_args(Method))}, found {method!r}")
    if time_limit is not None and not time_limit > 0.0:
        raise ValueError(f"time_limit: expected seconds > 0 or None, found {time_limit}")
    form = _form(s, c, F, D, linear)
    with one_blas_thread():
        return _solved(form, _chosen(form) if method == "auto" else method, time_limit, random_state)


def _form(s: ArrayLike, c: ArrayLike, F: ArrayLike, D: ArrayLike, linear: ArrayLike | None) -> QuadraticForm:
    scores = bounded("s", s)
    if scores.ndim != 1 or len(scores) == 0:
        raise ValueError(f"s: expected one number per item, found shape {scores.shape}")
    n = len(scores)
    unary = np.outer(scores, _checked("c", c, (n,)))
    if linear is not None:
        unary += _checked("linear", linear, (n, n))
    return QuadraticForm.of(unary, _checked("F", F, (n, n)), _checked("D", D, (n, n)))


def _checked(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    array = bounded(name, values)
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape} for {shape[0]} items, found {array.shape}")
    return array


def _chosen(form: QuadraticForm) -> str:
    if form.n <= _AUTO_SUBSETS and later_weights(form.position_pairs) is not None:
        return "subsets"
    return "enumeration" if form.n <= _AUTO_ENUMERATED else "tabu"


def _solved(
    form: QuadraticForm, method: str, limit: float | None, random_state: int | np.random.Generator | None
) -> QuadraticRanking:
    if method in ("enumeration", "subsets"):
        order = by_enumeration(form) if method == "enumeration" else by_subsets(form)
        score = form.score(order)
        return QuadraticRanking(order, score, score, method)
    rng, seconds, now = np.random.default_rng(random_state), math.inf if limit is None else limit, time.monotonic()
    bound = form.upper_bound()
    enough = bound - form.rounding()  # rounding alone separates such a score from the bound: the ranking is the best
    if method == "faq":
        order = best_of_starts(form, rng, enough, now + seconds)
    else:
        start = best_of_starts(form, rng, enough, now + seconds / 2)
        # Without a limit: half a second or so from 30 items on.
        steps = max(1000, min(10_000 * form.n, 400_000_000 // form.n**2)) if limit is None else math.inf
        order = by_tabu(form, start, rng, enough, steps, now + seconds)
    score = form.score(order)
    return QuadraticRanking(order, score, score if score >= enough else bound, method)
