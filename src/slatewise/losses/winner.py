"""Winner takes all: only the first item counts.

    Delta = 1 - z[order[0]],    a = (1, 0, .., 0),    b = 1 - z

This is precision at 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from slatewise.losses.linear import LinearLoss, Vectors, binary, cutoff, grades


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
