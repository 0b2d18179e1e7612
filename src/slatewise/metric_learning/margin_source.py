"""The hinge of a linear ranker over rows that stay in their files: blocks name rows, read where they are held.

Lists, blocks and sums are those of the same rows in arrays (:mod:`slatewise.metric_learning.margin_hinge`), to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats
from slatewise.core.checks import Features
from slatewise.core.running.executor import Executor
from slatewise.data.row_files import RowFormat, RowGroup
from slatewise.data.row_source import AS_THEY_ARE, ListTable, Make, RowSource, StoredRows
from slatewise.metric_learning.margin_hinge import HeldHinge, ListBlock, ListOracle, list_cuts


@dataclass(frozen=True, eq=False)
class Levels:
    """Relevance as whole numbers from 0: whether a row counts as relevant, or every grade apart."""

    grades: Floats | None
    """Rising; None: two levels."""
    least: float
    """The smallest relevance that counts."""
    dtype: str
    """As the oracle reads them."""

    def shape(self, n_features: int) -> tuple[int, ...]:
        """One number per row."""
        del n_features
        return ()

    def of(self, rows: RowFormat, group: RowGroup) -> NDArray[Any]:
        """Read the relevances of a piece, and return their levels."""
        return self.of_numbers(rows.numbers(group))

    def of_numbers(self, y: Floats) -> NDArray[Any]:
        """Return the level of each relevance."""
        return (y >= self.least if self.grades is None else np.searchsorted(self.grades, y)).astype(self.dtype)


def levels_of(lists: ListTable, threshold: float | None, *, every_grade: bool) -> Levels:
    """Say which rows count as relevant: by a threshold, by every grade, or all above the smallest relevance."""
    dtype = "int64" if every_grade else "int8"
    if threshold is None and every_grade:
        return Levels(lists.grades, -np.inf, dtype)
    above = lists.grades[1] if len(lists.grades) > 1 else np.inf
    return Levels(None, float(above if threshold is None else threshold), dtype)


def source_hinge(
    source: RowSource, lists: ListTable, used: NDArray[np.bool_], levels: Levels, oracle: ListOracle, executor: Executor
) -> HeldHinge:
    """Return the hinge of the lists that are used."""
    starts, sizes = lists.offsets[:-1][used], np.diff(lists.offsets)[used]
    ends = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)

    def stored(first: int, last: int, make: Make) -> StoredRows:
        # Lists that stand side by side are one run.
        begins = np.flatnonzero(np.append(True, starts[first + 1 : last] != (starts + sizes)[first : last - 1]))
        rows = np.add.reduceat(sizes[first:last], begins)
        return StoredRows.of(source, starts[first:last][begins], rows, make)

    blocks = [
        ListBlock(
            cast("Features", stored(first, last, AS_THEY_ARE)),
            cast("Any", stored(first, last, levels)),
            ends[first : last + 1] - ends[first],
            np.ones(last - first),
        )
        for first, last in list_cuts(ends * 8 * source.n_features)
    ]
    return HeldHinge(executor.place_blocks(blocks, oracle), source.n_features, float(len(starts)))
