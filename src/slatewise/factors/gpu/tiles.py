"""How much of a step a program of the GPU takes at once, from the largest to the smallest that may be tried."""

from __future__ import annotations

from typing import NamedTuple


class Tiles(NamedTuple):
    """Sizes of the tiles of the two passes of a step, and warps per program."""

    pairs: int
    items: int
    """Pairs whose violators a program sums, and items that it compares them with at once."""
    shares: int
    """Parts of the catalogue that programs take apart; their sums are added in order."""
    warps: int
    step_pairs: int
    step_items: int
    """Items that a program steps, and pairs that it compares them with at once."""
    step_warps: int
    stages: int = 3
    """Tiles in flight."""

    def smaller(self) -> Tiles | None:
        """Return what takes about half of the memory; None where nothing smaller is left."""
        if self.shares > 1 and self.pairs <= SMALLEST:
            return self._replace(shares=self.shares // 2)
        if self.pairs <= SMALLEST:
            return None
        return self._replace(
            pairs=self.pairs // 2,
            items=max(self.items // 2, SMALLEST),
            step_pairs=max(self.step_pairs // 2, SMALLEST),
            step_items=max(self.step_items // 2, SMALLEST),
            shares=max(self.shares // 2, 1),
            stages=2,
        )


SMALLEST, LARGEST = 16, 128
"""Products of matrices take tiles of 16 at least; tables are padded to whole tiles of the largest."""


def tiles_for(width: int) -> Tiles:
    """Return the tiles to begin with, for rows of this width."""
    if width <= 64:
        return Tiles(128, 64, 32, 4, 64, 128, 4)
    if width <= 128:
        return Tiles(128, 64, 32, 8, 64, 128, 8)
    if width <= 256:
        return Tiles(64, 32, 32, 8, 32, 64, 8, stages=2)
    return Tiles(16, 16, 16, 8, 16, 16, 8, stages=2)
