"""The c-star model as inference reads it: scores, pair terms, and what is known of each list; checked once.

    f(t) = sum_i t_i s_i + sum over unordered pairs G_ij t_i t_j ,      t in {0, 1}^N

G is zero unless i or j is one of C core items. Errors name the argument and the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.checks import numbers, real, require_finite, require_in_range
from slatewise.cstar.kernels.layout import Pair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class StarPair:
    """G, non-zero only where one of two items is a core item: core-core and core-rest blocks apart.

    Examples
    --------
    >>> pair = StarPair.of(pair=[[0.0, 2.0, -1.0]], core=[0])
    >>> pair.n_core, pair.n_items
    (1, 3)
    >>> pair.arrays.outer
    array([[ 2., -1.]])
    """

    arrays: Pair

    @property
    def n_core(self) -> int:
        """The number of core items."""
        return self.arrays.outer.shape[0]

    @property
    def n_items(self) -> int:
        """The number of items, core items included."""
        return sum(self.arrays.outer.shape)

    @classmethod
    def of(cls, pair: ArrayLike, core: ArrayLike) -> StarPair:
        """Check ``pair`` (C, N), row a holding G[core[a], :], and lay it out.

        Core-core entries must agree, ``pair[a, core[b]] == pair[b, core[a]]``, and count once; an item has no pair
        with itself.
        """
        rows = numbers("pair", pair, 2).astype(np.float64)
        require_finite("pair", rows, lambda row: f"row {row}")
        require_in_range("pair", rows)
        items = real("core", core)
        if items.size == 0:
            items = items.astype(np.int64)
        if items.ndim != 1 or items.dtype.kind not in "iu":
            raise ValueError(f"core: expected item numbers, found dtype {items.dtype} and shape {items.shape}")
        items = items.astype(np.int64)
        n_core, n_items = rows.shape
        if len(items) != n_core:
            raise ValueError(f"pair: expected one row for each of {len(items)} core items, found shape {rows.shape}")
        if n_core > n_items:
            raise ValueError(f"core: expected at most {n_items} items, as many as pair has columns, found {n_core}")
        outside = np.flatnonzero((items < 0) | (items >= n_items))
        if len(outside):
            at = int(outside[0])
            raise ValueError(f"core: expected items from 0 to {n_items - 1}, found {items[at]} at position {at}")
        if len(np.unique(items)) < n_core:
            at = int(np.flatnonzero(np.triu(items[:, None] == items, 1).any(axis=0))[0])
            raise ValueError(f"core: expected each item once, found {items[at]} again at position {at}")
        inner = rows[:, items]
        with_itself = np.flatnonzero(inner.diagonal())
        if len(with_itself):
            at = int(with_itself[0])
            raise ValueError(f"pair: expected 0 between an item and itself, found {inner[at, at]} at row {at}")
        apart = np.argwhere(inner != inner.T)
        if len(apart):
            a, b = apart[0]
            raise ValueError(
                f"pair: expected the same number from both of two core items, found {inner[a, b]} at row {a}, "
                f"column {items[b]} and {inner[b, a]} at row {b}, column {items[a]}"
            )
        return cls.from_symmetric(rows, items)

    @classmethod
    def from_symmetric(cls, pair: Floats, core: Ints) -> StarPair:
        """Lay out ``pair`` without checking it: pairs of core items must stand in both rows."""
        is_core = np.zeros(pair.shape[1], dtype=np.bool_)
        is_core[core] = True
        rest = np.flatnonzero(~is_core)
        inner, outer = np.ascontiguousarray(pair[:, core]), np.ascontiguousarray(pair[:, rest])
        return cls(Pair(core, rest, inner, outer, np.ascontiguousarray(pair)))


def symmetric_pair(G: Floats, core: Ints) -> Floats:
    """Return G, in which a pair of core items stands once, with such pairs in both rows, as inference reads it."""
    pair = G.copy()
    among = G[:, core]
    pair[:, core] = among + among.T
    return pair


@dataclass(frozen=True, eq=False)
class StarLists:
    """Scores of the items of each list, the pair terms all lists share, and the number of items to select.

    The constructor trusts its arrays; arguments of users are checked by :meth:`of`.
    """

    s: Floats
    """(n, N) C-contiguous."""
    pair: StarPair
    k: Ints
    """(n,)."""
    known: Bytes | None = None
    """(n, N) 1 where an item must be in, 0 where it must be out, -1 elsewhere."""

    @classmethod
    def of(
        cls, s: ArrayLike, pair: ArrayLike, core: ArrayLike, k: ArrayLike, known: ArrayLike | None = None
    ) -> StarLists:
        """Check arguments of users, see :func:`slatewise.inference.star_top_k`."""
        scores, star = checked_model(s, pair, core)
        counts, given = checked_counts(k, scores.shape), checked_known(known, scores.shape)
        check_known_fits(given, counts)
        return cls(scores, star, counts, given)


class Selection(NamedTuple):
    """The selected items of all lists, list after list, and the scores that order them."""

    items: Ints
    scores: Floats

    @classmethod
    def of(cls, items: Ints, scores: Floats, k: Ints) -> Selection:
        """Take the first k of each row."""
        kept = np.arange(items.shape[1], dtype=np.int64) < k[:, None]
        return cls(items[kept], scores[kept])


# --- arguments of users -----------------------------------------------------------------------------------------------


def checked_scores(s: ArrayLike) -> Floats:
    """Return finite (n, N) scores; one row is one list."""
    array = real("s", s)
    lists = numbers("s", array[None] if array.ndim == 1 else array, 2).astype(np.float64)
    require_finite("s", lists, lambda row: f"row {row}")
    require_in_range("s", lists)
    return lists


def checked_model(s: ArrayLike, pair: ArrayLike, core: ArrayLike) -> tuple[Floats, StarPair]:
    """Return scores (n, N), and the pair terms of the same N items."""
    star, scores = StarPair.of(pair, core), checked_scores(s)
    if scores.shape[1] != star.n_items:
        raise ValueError(f"pair: expected {scores.shape[1]} columns, as many as s has, found {star.n_items}")
    return scores, star


def checked_counts(k: ArrayLike, shape: tuple[int, int]) -> Ints:
    """Return the number of items to select from each list."""
    n_lists, n_items = shape
    counts = real("k", k)
    if counts.dtype.kind not in "iu" or counts.shape not in ((), (n_lists,)):
        raise ValueError(f"k: expected a whole number or one for each of {n_lists} lists, found {k!r}")
    counts = np.array(np.broadcast_to(counts, n_lists), dtype=np.int64)  # own: kernels are compiled once more for views
    bad = np.flatnonzero((counts < 0) | (counts > n_items))
    if len(bad):
        raise ValueError(f"k: expected 0 to {n_items}, the number of items, found {counts[bad[0]]} at row {bad[0]}")
    return counts


def checked_known(known: ArrayLike | None, shape: tuple[int, ...]) -> Bytes | None:
    """Return what is known of each list and item: 1, 0 or -1."""
    if known is None:
        return None
    given = real("known", known)
    if given.ndim == 1:
        given = given[None]
    if given.shape != shape:
        raise ValueError(f"known: expected the shape of s, {shape}, found {given.shape}")
    odd = np.argwhere((given != -1) & (given != 0) & (given != 1))
    if len(odd):
        row, item = odd[0]
        raise ValueError(f"known: expected -1, 0 or 1, found {given[row, item]} at row {row}, item {item}")
    return np.ascontiguousarray(given, dtype=np.int8)


def check_known_fits(known: Bytes | None, counts: Ints) -> None:
    """Raise ValueError unless what is known leaves sets of ``counts`` items."""
    if known is None:
        return
    n_in, n_open = (known == 1).sum(axis=1), (known != 0).sum(axis=1)
    over = np.flatnonzero(n_in > counts)
    if len(over):
        row = over[0]
        raise ValueError(f"known: expected at most k = {counts[row]} items in, found {n_in[row]} at row {row}")
    short = np.flatnonzero(n_open < counts)
    if len(short):
        row = short[0]
        raise ValueError(f"known: expected at least k = {counts[row]} items not out, found {n_open[row]} at row {row}")


def checked_warm_start(warm_start: ArrayLike | None, s: Floats) -> Ints | None:
    """Return rows of items, -1 where there is none."""
    if warm_start is None:
        return None
    warm = real("warm_start", warm_start)
    if warm.ndim == 1:
        warm = warm[None]
    if warm.ndim != 2 or len(warm) != len(s) or warm.dtype.kind not in "iu":
        raise ValueError(f"warm_start: expected a row of items for each of {len(s)} lists, found shape {warm.shape}")
    bad = np.argwhere((warm < -1) | (warm >= s.shape[1]))
    if len(bad):
        row, at = bad[0]
        raise ValueError(f"warm_start: expected items below {s.shape[1]} or -1, found {warm[row, at]} at row {row}")
    return np.ascontiguousarray(warm, dtype=np.int64)
