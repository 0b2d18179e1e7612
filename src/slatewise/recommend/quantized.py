"""The catalogue in bytes: one query reads a quarter of the memory, and of few items the exact numbers.

A product of one query with all items waits for memory, not for sums. What comes back is exact all the same:
``kernels/quantized_index.py`` has the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints, Singles

TILE = 256
"""Items whose bounds are computed together: their sums, and the column that is added, stay in the nearest cache."""
LARGEST_SUM, LARGEST_SHORT = (1 << 31) - 1, (1 << 15) - 1


@dataclass(frozen=True, eq=False)
class QuantizedIndex:
    """Items as bytes times a scale, and the factor times first columns of a row that make their exact scores."""

    numbers: NDArray[np.int8]
    """(tiles, columns, items of a tile); behind the last item, and the last column, there are zeros."""
    scales: Singles
    rows: Singles
    width: int
    factors: Singles

    @classmethod
    def of(cls, rows: Singles, width: int, factors: Singles | None = None) -> QuantizedIndex | None:
        """Make the bytes of finite rows, whose scores are multiplied by a factor each; None if one is not finite."""
        from slatewise.recommend.kernels.quantized_index import AT_ONCE, to_bytes

        factors = np.ones(len(rows), dtype=np.float32) if factors is None else factors
        numbers = np.zeros((-(-len(rows) // TILE), -(-width // AT_ONCE) * AT_ONCE, TILE), dtype=np.int8)
        scales = np.empty(len(rows), dtype=np.float32)
        finite = to_bytes(rows, width, factors, numbers, scales)
        return cls(numbers, scales, rows, width, factors) if finite else None

    def best(self, vectors: Singles, offsets: Ints, hidden: Ints, best: Singles, items: Ints, row: int) -> None:
        """Write the scores and numbers of the best items of one finite vector, as many as there are places for.

        ``hidden`` items of row r, from ``offsets[r]`` to ``offsets[r + 1]``, ascend.
        """
        from slatewise.recommend.kernels.quantized_index import (
            LARGEST_BYTE,
            QuantizedItems,
            QuantizedQuery,
            best_by_bound,
        )

        width, vector = self.width, vectors[row, : self.width]
        unwanted = hidden[offsets[row] : offsets[row + 1]]
        sizes = np.abs(vector)
        length = float(sizes.sum(dtype=np.float64))
        finest = min(LARGEST_SHORT, LARGEST_SUM // (LARGEST_BYTE * width))
        unit = float(sizes.max()) / finest or 1.0
        whole = np.zeros(self.numbers.shape[1], dtype=np.int32)
        whole[:width] = np.rint(vector.astype(np.float64) / unit)
        slack = (0.5 + (width + 5) * 2.0**-16) * length + LARGEST_BYTE * unit * width / 2 + width * 2.0**-23
        query = QuantizedQuery(vector, whole, unit, slack)
        catalogue = QuantizedItems(self.numbers, self.scales, self.rows, self.factors)
        best_by_bound(query, catalogue, unwanted, np.empty(TILE, dtype=np.int32), best[row], items[row])
