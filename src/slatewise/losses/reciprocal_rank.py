"""Reciprocal rank of the one relevant item.

    Delta = 1 - 1 / rank of the relevant item,    a_r = 1 / (r + 1) (0 from rank k on),    b = 1 / sum(a) - z

With several relevant items only the first of them counts, which is not linear in the ranking: those lists are refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from slatewise.losses.linear import LinearLoss, Vectors, binary, cutoff, grades


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
