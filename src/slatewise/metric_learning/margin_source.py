"""The hinge of a linear ranker over rows that stay in their files: blocks say which rows, and whoever holds them reads.

Lists, blocks and sums are those of the same rows in arrays (:mod:`slatewise.metric_learning.margin_hinge`), to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from slatewise.core.executor import Executor
from slatewise.core.groups import spans
from slatewise.data.row_source import ListTable, RowReader, RowSource
from slatewise.metric_learning.margin_hinge import HeldHinge, ListBlock, ListOracle, list_cuts

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Levels:
    """Relevance as whole numbers from 0: whether a row counts as relevant, or every grade apart."""

    grades: Floats | None
    """Rising; None: two levels."""
    least: float
    """The smallest relevance that counts."""
    dtype: str
    """As the oracle reads them."""

    def of(self, y: Floats) -> NDArray[Any]:
        """Return the level of each row."""
        return (y >= self.least if self.grades is None else np.searchsorted(self.grades, y)).astype(self.dtype)


@dataclass(frozen=True, eq=False)
class SourceBlocks(Sequence[ListBlock]):
    """Blocks of lists that are read when they are asked for."""

    source: RowSource
    levels: Levels
    starts: Ints
    """(L,) the first row of each list that is used, among all rows."""
    ends: Ints
    cuts: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.cuts)

    @overload
    def __getitem__(self, place: int) -> ListBlock: ...
    @overload
    def __getitem__(self, place: slice) -> SourceBlocks: ...
    def __getitem__(self, place: int | slice) -> ListBlock | SourceBlocks:
        """Read a block, or return some blocks that nobody has read."""
        if isinstance(place, slice):
            return replace(self, cuts=self.cuts[place])
        first, last = self.cuts[place]
        starts, sizes = self.starts[first:last], (self.ends - self.starts)[first:last]
        begin, end = int(starts[0]), int(self.ends[last - 1])
        rows = self._reader.read(begin, end)
        where, offsets = spans(starts - begin, sizes)
        X, y = (rows.X, rows.y) if len(where) == end - begin else (rows.X[where], rows.y[where])
        return ListBlock(X, self.levels.of(y), offsets, np.ones(last - first))

    @cached_property
    def _reader(self) -> RowReader:
        return RowReader(self.source)


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
    starts, ends = lists.offsets[:-1][used], lists.offsets[1:][used]
    n_features = len(source.features)
    cuts = list_cuts(np.concatenate(([0], np.cumsum(ends - starts))).astype(np.int64) * 8 * n_features)
    blocks = SourceBlocks(source, levels, starts, ends, tuple(cuts))
    return HeldHinge(executor.hold(blocks, oracle), n_features, float(len(starts)))
