"""The hinge of matchings, for the share of rows matched wrongly (Caetano et al. 2009; Petterson et al., section 5.2).

    R(theta) = sum_b omega_b  max over y of [ Delta(y, y_b) + w_b(y) - w_b(y_b) ] ,    Delta = |{i: y(i) != y_b(i)}| / M

Delta adds 1/M to every edge but the true ones, and to leaving a row out that has a match, so the argmax is an
assignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from slatewise.core.arrays import Floats
from slatewise.core.running.block_sums import BlockSum, PlacedBlocks, ValueAndSlope, add_value_and_slope
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.matching.best_matching import best_matchings
from slatewise.matching.graph_edges import EdgeScores, GraphBlock


@dataclass(frozen=True, eq=False)
class GraphHinge:
    """Graphs with known matchings."""

    blocks: tuple[GraphBlock, ...]
    scores: EdgeScores

    executor: Executor = ONE_THREAD

    def cut(self, w: Floats) -> tuple[float, Floats]:
        """Return (offset, gradient) of the plane that touches R at w."""
        return self._held.sum(_CUT, w)

    @cached_property
    def _held(self) -> PlacedBlocks[EdgeScores, GraphBlock]:
        return self.executor.place_blocks([part for block in self.blocks for part in block.cut()], self.scores)


class _Point(NamedTuple):
    """Where the cut is made."""

    scores: EdgeScores
    w: Floats


def _cut_of(at: _Point, block: GraphBlock) -> ValueAndSlope:
    share, true = 1.0 / block.X.shape[1], block.indicator(block.target)
    # Only the difference to being unmatched counts in a row: the true edge gains 1/M less, or, where the row has no
    # match, every edge 1/M more.
    alone = (block.target < 0)[:, :, None]
    augmented = at.scores.edges(at.w, block) + share * (alone - true)
    columns = best_matchings(augmented, at.scores.unmatched_score(at.w))
    change = block.weight[:, None, None] * (block.indicator(columns) - true)
    return float(block.weight @ (columns != block.target).mean(axis=1)), at.scores.accumulate(block, change)


_CUT: BlockSum[EdgeScores, Floats, _Point, GraphBlock, ValueAndSlope] = BlockSum(_Point, _cut_of, add_value_and_slope)
