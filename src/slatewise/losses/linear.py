"""What a linear loss is: a vector over positions and a vector over items.

    Delta(Pi, z) = <Pi a, b(z)> = sum_r a[r] b[order[r]]

(Mensink, Verbeek and Caetano 2011, section 2.) The losses here are one minus a measure that rewards relevant items for
good positions, ``1 - <Pi a, g(z)>``. The entries of ``Pi a`` have the same sum for every ranking, so the one folds in:

    b(z) = 1 / sum(a) - g(z)

*Discounted cumulative gain*, by what the best ranking has more:

    Delta = DCG(best ranking) - DCG(ranking),    DCG = sum_{r < k} discount_r gain(z[order[r]])

    a = discount (0 from rank k on),    b = DCG(best) / sum(a) - gain(z)

Normalized, b is divided by DCG(best): Delta = 1 - NDCG@k.

*Reciprocal rank* of the one relevant item:

    Delta = 1 - 1 / rank of the relevant item,    a_r = 1 / (r + 1) (0 from rank k on),    b = 1 / sum(a) - z

With several relevant items only the first of them counts, which is not linear in the ranking: those lists are refused.

*Winner takes all*, precision at 1:

    Delta = 1 - z[order[0]],    a = (1, 0, .., 0),    b = 1 - z
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import real, real_numbers, whole_number
from slatewise.metrics.conventions import DISCOUNTS, GAINS, Discount, Gain, check_choice

LARGEST_GAIN = 1e300
"""Of one item: beyond, DCG could leave the range."""


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


@dataclass(frozen=True)
class DCGLoss(LinearLoss):
    """One minus NDCG@k, or the missing part of DCG@k. A list whose best ranking gains nothing has nothing to lose: 0.

    Parameters
    ----------
    gain : {"exp2", "linear", "positive"}
        ``2**z - 1``, ``z``, or ``max(z, 0)``; no gain may be negative, or above 1e300.
    discount : {"log2", "letor"}
        ``1 / log2(rank + 1)``, or LETOR's 1 on ranks 1 and 2, then ``1 / log2(rank)``.
    normalised : bool
        Divide by the best DCG of the list.

    Examples
    --------
    >>> DCGLoss().value(order=[0, 1, 2], relevance=[2, 0, 1], k=2)
    0.173...
    """

    gain: Gain = "exp2"
    discount: Discount = "log2"
    normalised: bool = True

    def __post_init__(self) -> None:
        check_choice("gain", self.gain, GAINS)
        check_choice("discount", self.discount, DISCOUNTS)

    def vectors(self, relevance: ArrayLike, k: int | None = None) -> Vectors:
        """Return a and b(z) of a list."""
        with np.errstate(over="ignore"):
            gains = GAINS[self.gain](grades(relevance))
        if (gains < 0.0).any() or (gains > LARGEST_GAIN).any():
            wrong = gains.min() if gains.min() < 0.0 else gains.max()
            raise ValueError(f"relevance: expected gains from 0 to {LARGEST_GAIN:g}, found {wrong:g}")
        n = len(gains)
        weights = DISCOUNTS[self.discount](n)
        weights[cutoff(k, n) :] = 0.0
        best = float(weights @ np.sort(gains)[::-1])
        if best == 0.0:
            return Vectors(weights, np.zeros(n))
        items = best / weights.sum() - gains
        return Vectors(weights, items / best if self.normalised else items)


@dataclass(frozen=True)
class ReciprocalRankLoss(LinearLoss):
    """One minus the reciprocal rank; exactly one item has relevance 1, the others 0.

    With ``k``, a relevant item after rank k counts nothing: the loss is 1.

    Examples
    --------
    >>> ReciprocalRankLoss().value(order=[2, 0, 1], relevance=[1, 0, 0])
    0.5...
    """

    def vectors(self, relevance: ArrayLike, k: int | None = None) -> Vectors:
        """Return a and b(z) of a list."""
        z = binary(grades(relevance))
        if z.sum() != 1.0:
            raise ValueError(f"relevance: expected exactly one relevant item, found {int(z.sum())}")
        weights = 1.0 / np.arange(1.0, len(z) + 1.0)
        weights[cutoff(k, len(z)) :] = 0.0
        return Vectors(weights, 1.0 / weights.sum() - z)


@dataclass(frozen=True)
class WinnerLoss(LinearLoss):
    """1 where the first item is irrelevant, 0 where it is relevant; relevance is 0 or 1.

    The first rank belongs to every top k, so ``k`` changes nothing.

    Examples
    --------
    >>> WinnerLoss().value(order=[2, 0, 1], relevance=[1, 0, 0])
    1.0
    """

    def vectors(self, relevance: ArrayLike, k: int | None = None) -> Vectors:
        """Return a and b(z) of a list."""
        z = binary(grades(relevance))
        cutoff(k, len(z))
        first = np.zeros(len(z))
        first[0] = 1.0
        return Vectors(first, 1.0 - z)


# --- checks -----------------------------------------------------------------------------------------------------------


def ranking(order: ArrayLike, n: int) -> Ints:
    """Return the order as an array; raise ValueError unless it is a ranking of n items."""
    items = real("order", order)
    if items.shape != (n,) or items.dtype.kind not in "iu" or not np.array_equal(np.sort(items), np.arange(n)):
        raise ValueError(f"order: expected each of the items 0 to {n - 1} once, found {items}")
    return items.astype(np.int64)


def grades(relevance: ArrayLike) -> Floats:
    """Return the relevance of one list: finite numbers, at least one."""
    values = real_numbers("relevance", relevance)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"relevance: expected one number per item, found shape {values.shape}")
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
    """Return the number of ranks that count: k, or all n of them if the list is shorter or k is None."""
    if k is None:
        return n
    return min(whole_number("k", k, 1), n)
