"""What a linear loss is: a vector over positions and a vector over items.

    Delta(Pi, z) = <Pi a, b(z)> = sum_r a[r] b[order[r]]

(Mensink, Verbeek and Caetano 2011, section 2.) The losses here are one minus a measure that rewards relevant items for
good positions, ``1 - <Pi a, g(z)>``. The entries of ``Pi a`` have the same sum for every ranking, so the one folds in:

    b(z) = 1 / sum(a) - g(z)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import real, real_numbers, whole_number


class Vectors(NamedTuple):
    """The two vectors of a linear loss on one list."""

    positions: Floats
    """``a``: the weight of rank r."""
    items: Floats
    """``b(z)``: what an item costs, for each unit of its rank's weight."""


class LinearLoss(ABC):
    """A loss of one list that is linear in the ranking."""

    @abstractmethod
    def vectors(self, relevance: ArrayLike, k: int | None = None) -> Vectors:
        """Return a and b(z) of a list; ``k``: the ranks that count."""

    def value(self, order: ArrayLike, relevance: ArrayLike, k: int | None = None) -> float:
        """Return the loss of a ranking; ``order[r]`` is the item at rank r."""
        positions, items = self.vectors(relevance, k)
        return float(positions @ items[ranking(order, len(items))])


def ranking(order: ArrayLike, n: int) -> Ints:
    """Return the order as an array, or say why it is not a ranking of n items."""
    items = real("order", order)
    if items.shape != (n,) or items.dtype.kind not in "iu" or not np.array_equal(np.sort(items), np.arange(n)):
        raise ValueError(f"order: expected each of the items 0 to {n - 1} once, found {items}")
    return items.astype(np.int64)


def grades(relevance: ArrayLike) -> Floats:
    """Return the relevance of one list: finite numbers, at least one."""
    values = real_numbers("relevance", relevance)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"relevance: expected one number an item, found shape {values.shape}")
    if not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"relevance: expected finite numbers, found {values[at]} at item {at}")
    return values


def binary(relevance: ArrayLike) -> Floats:
    """Return relevance that is 0 or 1, of any shape."""
    values = real_numbers("relevance", relevance)
    wrong = (values != 0.0) & (values != 1.0)
    if wrong.any():
        raise ValueError(f"relevance: expected 0 or 1, found {values[wrong][0]}")
    return values


def cutoff(k: int | None, n: int) -> int:
    """Return how many ranks count: k, or all n of them where the list is shorter or k is None."""
    if k is None:
        return n
    return min(whole_number("k", k, 1), n)
