"""Cutting planes that forget what is long out of use.

With d parameters at most d + 1 cuts hold the minimum; the quadratic program over all cuts of many rounds is slow, and
of rank d. A cut of no weight in many programs in a row is dropped. What is left is still a bound from below, and the
best bound of all rounds is kept by the learner.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats
from slatewise.core.bundle import Cuts

_PATIENCE = 50


class ActiveCuts(Cuts):
    """Cuts gathered so far, but for those without weight in the last fifty programs."""

    def __init__(self, weights: Floats) -> None:
        super().__init__(weights)
        self._idle = np.zeros(0, dtype=np.int64)

    def best_weights(self, C: float) -> tuple[NDArray[np.float64], float]:
        """Return a feasible alpha of the cuts kept, and the lower bound it proves."""
        alpha, bound = super().best_weights(C)
        idle = np.append(self._idle, np.zeros(len(alpha) - len(self._idle), dtype=np.int64))
        idle = np.where(alpha > 1e-9 * C, 0, idle + 1)
        kept = idle < _PATIENCE
        self._idle, self.offsets, self.gradients = idle[kept], self.offsets[kept], self.gradients[kept]
        self.products = self.products[np.ix_(kept, kept)]
        return alpha[kept], bound
