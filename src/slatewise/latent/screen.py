"""The catalogue in bytes: one query reads a quarter of the memory, and of few items the exact numbers.

A product of one query with all items waits for memory, not for sums. What comes back is exact all the same:
``kernels/byte_screen.py`` has the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Singles: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]

AT_ONCE = 16
"""Bytes that a processor multiplies at once: rows are padded to a multiple."""
LARGEST_SUM = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class Screen:
    """Items as bytes times a scale, and the factor times first columns of a row that make their exact scores."""

    numbers: NDArray[np.int8]
    scales: Singles
    rows: Singles
    width: int
    factors: Singles

    @classmethod
    def of(cls, rows: Singles, width: int, factors: Singles | None = None) -> Screen | None:
        """Make the bytes of finite rows, whose scores are multiplied by a factor each; None if one is not finite."""
        from slatewise.latent.kernels.byte_screen import to_bytes

        factors = np.ones(len(rows), dtype=np.float32) if factors is None else factors
        numbers = np.zeros((len(rows), -(-width // AT_ONCE) * AT_ONCE), dtype=np.int8)
        scales = np.empty(len(rows), dtype=np.float32)
        finite = to_bytes(rows, width, factors, numbers, scales)
        return cls(numbers, scales, rows, width, factors) if finite else None

    def best(self, vector: Singles, hidden: Ints, scores: Singles, items: Ints) -> None:
        """Write the best items of a finite vector, as many as there is room for; ``hidden`` ascend."""
        from slatewise.latent.kernels.byte_screen import LARGEST_BYTE, best_by_bound

        width, vector = self.width, vector[: self.width]
        length = float(np.abs(vector).sum(dtype=np.float64))
        finest = min(np.iinfo(np.int16).max, LARGEST_SUM // (LARGEST_BYTE * width))
        unit = float(np.abs(vector).max()) / finest or 1.0
        whole = np.zeros(self.numbers.shape[1], dtype=np.int16)
        whole[:width] = np.rint(vector.astype(np.float64) / unit)
        slack = (0.5 + width * 2.0**-16) * length + LARGEST_BYTE * unit * width / 2 + width * 2.0**-23
        best_by_bound(
            vector, whole, unit, slack, self.numbers, self.scales, self.rows, self.factors, hidden, scores, items
        )
