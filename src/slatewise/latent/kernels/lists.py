"""The vector that a list of items adds to a query: p_q = sum_j w_j S dbar_j."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.kernel import kernel
from slatewise.latent.kernels.singles import Singles

Ints: TypeAlias = NDArray[np.int64]


@kernel
def list_vectors(table: Singles, lists: Ints, weights: Singles, start: int, stop: int, out: Singles) -> None:
    """Write the sum of each row's list into columns ``start`` to ``stop`` of ``out``."""
    for row in range(len(lists)):
        target = out[row]
        for f in range(start, stop):
            target[f] = 0.0
        for place in range(lists.shape[1]):
            item = lists[row, place]
            if item < 0:
                break
            weight, vector = weights[place], table[item]
            for f in range(start, stop):
                target[f] += weight * vector[f]
