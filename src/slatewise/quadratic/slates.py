"""The best slate of a whole catalog whose items attract each other (Weston and Blitzer 2012, eqs. 3 to 9).

    f(d_1 .. d_k) = sum_i w_i s[d_i] + sum_ij w_i w_j v[d_i] . v[d_j] = s.t + |V' t|^2 ,      w_1 >= ... >= w_k >= 0

``v[d] = S d`` is an item's row of the pair term S'S and t_d the weight of the position of item d, 0 outside the slate.
The best slate is a quadratic assignment, so it is searched:

greedy     position after position, the item that adds most: w_p s_d + 2 w_p v_d . P + w_p^2 |v_d|^2,  P = sum so far
beam       the same with several slates kept at every position
iterated   t <- the sorted list of s + 2 V V' t, until f no longer rises

f is convex in t and ``s + 2 V V' t`` its gradient, so a step never loses; with the paper's factor 1 all but the first
may. Nothing here is larger than queries by items: V V' is never formed. An upper bound comes with every slate: by
convexity ``|sum_j w_j v_j|^2 <= W sum_j w_j |v_j|^2`` with W = sum_j w_j, and the right side is maximized by a sort.

Of the pair term S'T, rows u and v, ``sum_ij w_i w_j u[d_i] . v[d_j] = |A' t|^2 - |B' t|^2`` with rows (u + v)/2 of A
and (u - v)/2 of B: the same sums, some with a minus sign, and the bound is that of A. f is not convex, so a step may
lose. But |t|^2 is the same for all slates: ``f + h |t|^2`` has the same best slate, is convex where h is at least the
largest eigenvalue of B'B, and its steps hold on to the slate they start from. A step that would lose is tried again
with more of h.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import bounded, whole_number
from slatewise.core.groups import blocks
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import Executor

_VALUES_PER_BLOCK = 1 << 21
"""Scores in memory at once, per thread."""


@dataclass(frozen=True, eq=False)
class Slates:
    """A slate for each query."""

    items: Ints
    """(queries, k), best position first."""
    score: Floats
    """(queries,) their f."""
    upper_bound: Floats
    """(queries,) no slate scores more."""


def iterated_slates(
    s: ArrayLike,
    factors: ArrayLike,
    weights: ArrayLike,
    start: ArrayLike | None = None,
    n_jobs: int | None = None,
    *,
    listed: ArrayLike | None = None,
) -> Slates:
    """Climb from the list sorted by ``s``, or from given slates, until no step raises f.

    Parameters
    ----------
    s : array-like, ``(queries, items)`` or ``(items,)``
        Scores of the items by themselves. Numbers beyond 1e50 in size, here and below, are refused: their products
        could leave the range.
    factors : array-like, ``(items, r)``
        The row v of every item.
    weights : array-like of shape (k,)
        Position weights, never rising and not negative.
    start : array-like of shape (queries, k), optional
        Slates to begin with, such as those of :func:`beam_slates`.
    n_jobs : int, optional
        Threads over blocks of queries; the result has the same bits with any number.
    listed : array-like ``(items, r)``, optional
        The row T d of every item, where the pair term is S'T and ``factors`` has the rows S d. Default: S'S.

    Examples
    --------
    Items 1 and 2 belong together and beat item 0, which is the best by itself:

    >>> found = iterated_slates([1.0, 0.9, 0.8], [[0.0], [1.0], [1.0]], [1.0, 0.5])
    >>> found.items.tolist(), found.score.round(2).tolist()
    ([[1, 2]], [3.55])

    Items 0 and 1 push each other out, which S'S cannot express:

    >>> rows, listed = [[0.5], [0.5], [0.0]], [[-0.5], [-0.5], [0.0]]
    >>> iterated_slates([1.0, 0.9, 0.5], rows, [1.0, 0.5], listed=listed).items.tolist()
    [[0, 2]]
    """
    model, executor = _Model.of(s, factors, weights, listed), Executor.of(n_jobs)
    begin = model.sorted(executor) if start is None else model.checked_start(start)
    return _searched(executor.map_blocks(_climb, (model, begin), model.blocks()))


def beam_slates(
    s: ArrayLike,
    factors: ArrayLike,
    weights: ArrayLike,
    width: int = 8,
    n_jobs: int | None = None,
    *,
    listed: ArrayLike | None = None,
) -> Slates:
    """Fill the positions from the top, keeping the ``width`` best slates so far; one is the greedy search.

    Parameters
    ----------
    s, factors, weights, n_jobs, listed
        As in :func:`iterated_slates`.
    width : int
        Slates kept per query.

    Examples
    --------
    >>> beam_slates([1.0, 0.9, 0.8], [[0.0], [1.0], [1.0]], [1.0, 0.5], width=2).items.tolist()
    [[1, 2]]
    """
    width = whole_number("width", width, 1)
    model = _Model.of(s, factors, weights, listed)
    return _searched(Executor.of(n_jobs).map_blocks(_fill, (model, width), model.blocks(width)))


def greedy_slates(
    s: ArrayLike,
    factors: ArrayLike,
    weights: ArrayLike,
    n_jobs: int | None = None,
    *,
    listed: ArrayLike | None = None,
) -> Slates:
    """Fill the positions from the top, each with the item that adds most to f: a beam of width 1.

    Parameters
    ----------
    s, factors, weights, n_jobs, listed
        As in :func:`iterated_slates`.
    """
    return beam_slates(s, factors, weights, 1, n_jobs, listed=listed)


@dataclass(frozen=True, eq=False)
class _PairTerm:
    """t' F t as a sum of squares, ``sum_r signs[r] (rows[:, r] . t)^2``."""

    rows: Floats
    signs: Floats
    norms: Floats
    """The diagonal of F."""
    attraction: Floats
    """(items,) the squares that have a plus sign."""
    holds: Floats
    """How much of h a step tries, one after the other; with the last it cannot lose."""

    @classmethod
    def of(cls, factors: Floats, listed: Floats | None) -> _PairTerm:
        if listed is None:
            norms = (factors**2).sum(axis=1)
            return cls(np.ascontiguousarray(factors), np.ones(int(factors.shape[1])), norms, norms, np.zeros(1))
        # u . v is (c u).(v / c) too: factors of equal size leave the least to B.
        sizes = np.sqrt((factors**2).sum()), np.sqrt((listed**2).sum())
        c = float(np.sqrt(sizes[1] / sizes[0])) if all(sizes) else 1.0
        plus, minus = (c * factors + listed / c) / 2, (c * factors - listed / c) / 2
        signs: Floats = np.repeat(np.array([1.0, -1.0]), factors.shape[1])
        hold = float(np.linalg.eigvalsh(minus.T @ minus)[-1]) if minus.any() else 0.0
        return cls(
            np.hstack([plus, minus]),
            signs,
            (factors * listed).sum(axis=1),
            (plus**2).sum(axis=1),
            hold * np.array([0.0, 1 / 16, 1 / 4, 1.0]) if hold > 0 else np.zeros(1),
        )

    def slopes(self, sums: Floats) -> Floats:
        """Return 2 F t from the sums ``rows' t``, (..., items)."""
        return 2.0 * (sums * self.signs) @ self.rows.T

    def values(self, sums: Floats) -> Floats:
        """Return t' F t."""
        return sums**2 @ self.signs


@dataclass(frozen=True, eq=False)
class _Model:
    """s (queries, items) of some queries, the pair term and w."""

    s: Floats
    pair: _PairTerm
    weights: Floats

    @classmethod
    def of(cls, s: ArrayLike, factors: ArrayLike, weights: ArrayLike, listed: ArrayLike | None) -> _Model:
        scores = np.atleast_2d(bounded("s", s))
        rows, w = bounded("factors", factors), bounded("weights", weights)
        other = None if listed is None else bounded("listed", listed)
        n_items = scores.shape[-1]
        if scores.ndim != 2 or not scores.size:
            raise ValueError(f"s: expected shape (queries, items) or (items,), found {np.shape(s)}")
        if rows.ndim != 2 or len(rows) != n_items:
            raise ValueError(f"factors: expected a row for each of {n_items} items, found shape {rows.shape}")
        if other is not None and other.shape != rows.shape:
            raise ValueError(f"listed: expected the shape of factors, {rows.shape}, found {other.shape}")
        if w.ndim != 1 or not 1 <= len(w) <= n_items:
            raise ValueError(f"weights: expected from 1 to {n_items} numbers, one per position, found shape {w.shape}")
        if (np.diff(w) > 0).any() or w[-1] < 0:
            raise ValueError(f"weights: expected numbers >= 0 that never rise, found {w.tolist()}")
        return cls(np.ascontiguousarray(scores), _PairTerm.of(rows, other), w)

    def block(self, rows: slice | Ints) -> _Model:
        """Return the model of some queries."""
        return _Model(self.s[rows], self.pair, self.weights)

    def checked_start(self, start: ArrayLike) -> Ints:
        slates = np.atleast_2d(np.asarray(start))
        shape = (len(self.s), len(self.weights))
        if slates.shape != shape or slates.dtype.kind not in "iu":
            raise ValueError(f"start: expected item numbers of shape {shape}, found {slates.dtype} {slates.shape}")
        ordered = np.sort(slates, axis=1)
        if ordered.min() < 0 or ordered.max() >= self.s.shape[1] or (np.diff(ordered, axis=1) == 0).any():
            raise ValueError(f"start: expected {shape[1]} different numbers below {self.s.shape[1]} per slate")
        return slates.astype(np.int64)

    def sums(self, slates: Ints) -> Floats:
        """Return P = V' t of each slate."""
        return np.einsum("p,qpr->qr", self.weights, self.pair.rows[slates])

    def score(self, slates: Ints) -> Floats:
        """Return f of each slate."""
        own = np.take_along_axis(self.s, slates, axis=1) @ self.weights
        return own + self.pair.values(self.sums(slates))

    def sorted(self, executor: Executor) -> Ints:
        """Return the items with the k largest scores of each query."""
        return np.concatenate(list(executor.map_blocks(_sorted, self, self.blocks())))

    def upper_bound(self) -> Floats:
        """Return a score that no slate of a query exceeds: every item gets the most that others can add to it."""
        alone = self.s + float(self.weights.sum()) * self.pair.attraction
        return np.take_along_axis(alone, _largest(alone, len(self.weights)), axis=1) @ self.weights

    def blocks(self, copies: int = 1) -> list[slice]:
        """Cut the queries; each needs ``copies`` rows of scores."""
        return blocks(len(self.s), max(1, _VALUES_PER_BLOCK // (copies * self.s.shape[1])))


_Found: TypeAlias = tuple[Ints, Floats, Floats]
"""Slates of a block, their scores and upper bounds."""


def _sorted(model: _Model, rows: slice) -> Ints:
    return _largest(model.s[rows], len(model.weights))


def _searched(parts: Iterator[_Found]) -> Slates:
    with one_blas_thread():
        found = list(parts)
    slates, scores, bounds = (np.concatenate(part) for part in zip(*found, strict=True))
    return Slates(slates, scores, np.maximum(bounds, scores))  # rounding may put a bound below its score


def _climb(search: tuple[_Model, Ints], rows: slice) -> _Found:
    """Climb from the slates of some queries."""
    model, slates = search[0].block(rows), search[1][rows].copy()
    scores, active = model.score(slates), np.arange(len(slates))
    tries, holds = np.zeros(len(slates), dtype=np.int64), model.pair.holds
    while len(active):
        rising, now = model.block(active), slates[active]
        slopes = rising.s + model.pair.slopes(rising.sums(now))
        slopes[np.arange(len(active))[:, None], now] += 2.0 * holds[tries[active], None] * model.weights
        new = _largest(slopes, len(model.weights))
        reached = rising.score(new)
        higher = reached > scores[active]
        tries[active] = np.where(higher, 0, tries[active] + 1)
        slates[active[higher]], scores[active[higher]] = new[higher], reached[higher]
        active = active[tries[active] < len(holds)]
    return slates, model.score(slates), model.upper_bound()


def _fill(search: tuple[_Model, int], rows: slice) -> _Found:
    """Search by beams; axes of the arrays below are queries, slates kept, and positions, components or items."""
    model, width = search[0].block(rows), search[1]
    n_queries, n_items = len(model.s), int(model.s.shape[1])
    slates, scores = np.empty((n_queries, 1, 0), dtype=np.int64), np.zeros((n_queries, 1))
    sums = np.zeros((n_queries, 1, model.pair.rows.shape[1]))
    each = np.arange(n_queries).reshape(-1, 1)
    for weight in model.weights:
        gains = weight * model.pair.slopes(sums.reshape(-1, sums.shape[2]))
        reached = gains.reshape(n_queries, -1, n_items) + weight * (model.s + weight * model.pair.norms)[:, None]
        reached += scores[:, :, None]
        np.put_along_axis(reached, slates, -np.inf, axis=2)
        kept = min(width, slates.shape[1] * (n_items - slates.shape[2]))
        parents, items = np.divmod(_largest(reached.reshape(n_queries, -1), kept), n_items)
        scores = reached[each, parents, items]
        slates = np.concatenate([slates[each, parents], items[:, :, None]], axis=2)
        sums = sums[each, parents] + weight * model.pair.rows[items]
    best = slates[:, 0]
    return best, model.score(best), model.upper_bound()


def _largest(values: Floats, k: int) -> Ints:
    """Return the columns of the k largest values of each row, largest first; of equals the first column."""
    out = np.empty((len(values), k), dtype=np.int64)
    for row, of in enumerate(values):
        at_least = np.flatnonzero(of >= np.partition(of, len(of) - k)[len(of) - k])
        out[row] = at_least[np.argsort(-of[at_least], kind="stable")[:k]]
    return out
