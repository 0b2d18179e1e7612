"""The hinge of matchings, for the share of rows matched wrongly (Caetano et al. 2009; Petterson et al., section 5.2).

    R(theta) = sum_b omega_b  max over y of [ Delta(y, y_b) + w_b(y) - w_b(y_b) ] ,    Delta = |{i: y(i) != y_b(i)}| / M

Delta adds 1/M to every edge but the true ones, and to leaving a row out that has a match, so the argmax is an
assignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from slatewise.matching.best_matching import best_matchings
from slatewise.matching.graph_edges import EdgeScores, Floats, GraphBlock


@dataclass(frozen=True, eq=False)
class GraphHinge:
    """Graphs with known matchings."""

    blocks: tuple[GraphBlock, ...]
    scores: EdgeScores

    def cut(self, w: Floats) -> tuple[float, Floats]:
        """Return (offset, gradient) of the plane that touches R at w."""
        offset, gradient = 0.0, np.zeros(self.scores.n_params)
        unmatched = self.scores.unmatched_score(w)
        for block, true in zip(self.blocks, self._indicators, strict=True):
            share = 1.0 / block.X.shape[1]
            # Only the difference to being unmatched counts in a row: the true edge gains 1/M less, or, where the row
            # has no match, every edge 1/M more.
            alone = (block.target < 0)[:, :, None]
            augmented = self.scores.edges(w, block) + share * (alone - true)
            columns = best_matchings(augmented, unmatched)
            offset += float(block.weight @ (columns != block.target).mean(axis=1))
            change = block.weight[:, None, None] * (block.indicator(columns) - true)
            gradient += self.scores.accumulate(block, change)
        return offset, gradient

    @cached_property
    def _indicators(self) -> tuple[Floats, ...]:
        return tuple(block.indicator(block.target) for block in self.blocks)
