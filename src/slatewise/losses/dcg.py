"""Discounted cumulative gain, by what the best ranking has more.

    Delta = DCG(best ranking) - DCG(ranking),    DCG = sum_{r < k} discount_r gain(z[order[r]])

    a = discount (0 from rank k on),    b = DCG(best) / sum(a) - gain(z)

Normalised, b is divided by DCG(best): Delta = 1 - NDCG@k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from slatewise.losses.linear import LinearLoss, Vectors, cutoff, grades
from slatewise.metrics.conventions import DISCOUNTS, GAINS, Discount, Gain, check_choice

LARGEST_GAIN = 1e300
"""Of one item: beyond, DCG could leave the range."""


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
