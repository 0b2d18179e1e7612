"""The vector that a list of items adds to a query: p_q = sum_j w_j S dbar_j."""

from __future__ import annotations

from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.kernel import kernel


@kernel
def list_vectors(
    table: Singles, lists: Ints, weights: Singles, start: int, stop: int, target: int, out: Singles
) -> None:
    """Write the sum over each row's list of columns ``start`` to ``stop`` into ``out``, from column ``target`` on."""
    for row in range(len(lists)):
        total = out[row, target : target + stop - start]
        for f in range(len(total)):
            total[f] = 0.0
        for place in range(lists.shape[1]):
            item = lists[row, place]
            if item < 0:
                break
            weight, vector = weights[place], table[item, start:stop]
            for f in range(len(total)):
                total[f] += weight * vector[f]
