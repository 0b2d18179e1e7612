"""The pair terms of a c-star model, checked and laid out once for all lists that share them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from slatewise.core.arrays import Floats, Ints
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
        """How many core items there are."""
        return self.arrays.outer.shape[0]

    @property
    def n_items(self) -> int:
        """How many items there are, core items included."""
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
        own = np.flatnonzero(inner.diagonal())
        if len(own):
            at = int(own[0])
            raise ValueError(f"pair: expected 0 between an item and itself, found {inner[at, at]} at row {at}")
        apart = np.argwhere(inner != inner.T)
        if len(apart):
            a, b = apart[0]
            raise ValueError(
                f"pair: expected the same number from both of two core items, found {inner[a, b]} at row {a}, "
                f"column {items[b]} and {inner[b, a]} at row {b}, column {items[a]}"
            )
        return cls.laid_out(rows, items)

    @classmethod
    def laid_out(cls, pair: Floats, core: Ints) -> StarPair:
        """Lay out ``pair``, as :meth:`of` does, for callers that know that it is right."""
        is_core = np.zeros(pair.shape[1], dtype=np.bool_)
        is_core[core] = True
        rest = np.flatnonzero(~is_core)
        inner, outer = np.ascontiguousarray(pair[:, core]), np.ascontiguousarray(pair[:, rest])
        return cls(Pair(core, rest, inner, outer, np.ascontiguousarray(pair)))
