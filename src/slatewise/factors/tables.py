"""Tables of float32 rows, cut into segments that learn at their own pace, and their mean over an epoch.

    item row    [ V d : n | bias : 1 | S d : n | zeros ]        query vector    [ U q : n | 1 | p_q : n | zeros ]

Rows are padded to a multiple of 16 numbers and start at a multiple of 64 bytes, the size of a cache line. A segment has
its own step, largest norm and, in every row, its own AdaGrad accumulator: a bias that shares one with its row learns
too slowly.

    wbar = (1/m) sum over m moments of w,    taken at equal distances between the steps of an epoch

Long steps find more than short ones but end anywhere around what they found; their mean lies in the middle (Polyak and
Ruppert). An engine counts every step it has taken for the mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints, Singles
from slatewise.core.running.executor import Executor

LINE = 16
"""Numbers in a cache line."""

ROWS_PER_TASK = 512
"""Touched rows that one thread steps at a time."""


@dataclass(frozen=True)
class Segment:
    """Columns ``start`` to ``stop`` of every row, their step (0: frozen) and the largest norm they may have."""

    start: int
    stop: int
    step: float
    max_norm: float = float("inf")


@dataclass(frozen=True, eq=False)
class Weights:
    """Numbers that are learned beside the rows of a table, and the AdaGrad accumulator of each."""

    values: Singles
    accumulators: Singles

    @classmethod
    def zeros(cls, n_weights: int) -> Weights:
        """Return this number of zeros."""
        return cls(np.zeros(n_weights, dtype=np.float32), np.zeros(n_weights, dtype=np.float32))

    def copy(self) -> Weights:
        """Return weights that share no memory with these."""
        return Weights(self.values.copy(), self.accumulators.copy())

    def step(self, gradient: Floats, rate: float) -> None:
        """Move by one AdaGrad step; a weight that never had a gradient stays."""
        values, accumulators = self.values, self.accumulators
        accumulators += gradient.astype(np.float32) ** 2
        moved = accumulators > 0
        values[moved] += (rate * gradient[moved] / np.sqrt(accumulators[moved])).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows, an accumulator per row and segment, and weights beside the rows, by name."""

    values: Singles
    accumulators: Singles
    segments: tuple[Segment, ...]
    weights: dict[str, Weights] = field(default_factory=dict[str, Weights])

    @classmethod
    def zeros(cls, n_rows: int, width: int, segments: tuple[Segment, ...]) -> Table:
        """Make a table of zeros; ``width`` is a multiple of 16."""
        return cls(aligned_zeros(n_rows, width), np.zeros((n_rows, len(segments)), dtype=np.float32), segments)

    @classmethod
    def fixed(cls, values: Singles, weights: dict[str, Weights] | None = None) -> Table:
        """Take rows as they are; none of them moves."""
        return cls(values, np.empty((len(values), 0), dtype=np.float32), (), weights or {})

    def copy(self) -> Table:
        """Return a table that shares no memory with this one."""
        values = aligned_zeros(*self.values.shape)
        values[:] = self.values
        weights = {name: part.copy() for name, part in self.weights.items()}
        return Table(values, self.accumulators.copy(), self.segments, weights)

    def arrays(self) -> list[Singles]:
        """Return the arrays that training moves: the rows, and then the weights."""
        return [self.values, *(part.values for part in self.weights.values())]


class Entries(NamedTuple):
    """A sparse sum: row ``rows[e]`` gets ``coefficients[e]`` times vector ``sources[e]``."""

    rows: Ints
    coefficients: Singles
    sources: Ints

    @classmethod
    def empty(cls, n_entries: int) -> Entries:
        """Return room for this number of entries."""
        return cls(
            np.empty(n_entries, dtype=np.int64),
            np.empty(n_entries, dtype=np.float32),
            np.empty(n_entries, dtype=np.int64),
        )

    @classmethod
    def join(cls, parts: list[Entries]) -> Entries:
        """Put entries one after the other."""
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.coefficients for part in parts]),
            np.concatenate([part.sources for part in parts]),
        )


def padded(n_columns: int) -> int:
    """Return the width of a row that holds ``n_columns`` numbers."""
    return -(-n_columns // LINE) * LINE


def aligned_zeros(n_rows: int, width: int) -> Singles:
    """Return zeros whose rows start at cache lines."""
    buffer = np.zeros(n_rows * width + LINE, dtype=np.float32)
    skip = -(buffer.ctypes.data // buffer.itemsize) % LINE
    return buffer[skip : skip + n_rows * width].reshape(n_rows, width)


def without_padding(vectors: Singles) -> Singles:
    """Cut the columns off after the last in which a vector has something: products need not multiply padding."""
    used = np.flatnonzero(vectors.any(axis=0))
    return vectors[:, : int(used[-1]) + 1 if len(used) else 1]


class Moves(NamedTuple):
    """How the segments of a table move: bounds, steps and largest norms, a number per segment."""

    starts: Ints
    stops: Ints
    steps: NDArray[np.float64]
    norms: NDArray[np.float64]


def step_rows(table: Table, entries: Entries, vectors: Singles, executor: Executor) -> None:
    """Move the rows that have entries by one AdaGrad step along their sums, and project them."""
    from slatewise.factors.kernels.update import order_by_row, update_rows

    if not len(entries.rows) or not any(part.step for part in table.segments):
        return
    ends = np.zeros(len(table.values), dtype=np.int64)
    order, touched = np.empty(len(entries.rows), dtype=np.int64), np.empty(len(table.values), dtype=np.int64)
    touched = touched[: order_by_row(entries.rows, ends, order, touched)]
    values, parts = table.values, table.segments
    moves = Moves(
        np.array([part.start for part in parts]),
        np.array([part.stop for part in parts]),
        np.array([part.step for part in parts]),
        np.array([part.max_norm for part in parts]),
    )

    def step(first: int) -> None:
        rows, gradient = touched[first : first + ROWS_PER_TASK], np.empty(int(values.shape[1]), dtype=np.float32)
        update_rows(values, table.accumulators, moves, rows, ends, order, entries, vectors, gradient)

    executor.fill_blocks(step, range(0, len(touched), ROWS_PER_TASK))


MOMENTS = 24
"""Of an epoch. More are hardly better, and each reads both tables whole."""


def is_moment(seen: int, moments: int, n_runs: int) -> bool:
    """Tell whether a moment has come, after ``seen`` of all runs and ``moments`` taken."""
    return seen * MOMENTS >= (moments + 1) * n_runs


@dataclass(eq=False)
class EpochMean:
    """Tables that an engine is about to move, and their mean so far."""

    queries: Table
    items: Table
    n_runs: int
    """Runs of pairs in an epoch."""
    seen: int = 0
    means: list[Singles] = field(default_factory=list[Singles])
    """Of the arrays of both tables, in order."""
    moments: int = 0

    def count(self, n_runs: int) -> None:
        """Count the runs of pairs of a step."""
        self.seen += n_runs
        if not is_moment(self.seen, self.moments, self.n_runs):
            return
        self.moments += 1
        if self.moments == 1:
            self.means = [*self.queries.copy().arrays(), *self.items.copy().arrays()]
            return
        for mean, values in zip(self.means, (*self.queries.arrays(), *self.items.arrays()), strict=True):
            # What does not move stays as it is, to the bit.
            mean += (values - mean) * np.float32(1.0 / self.moments)

    def take_over(self, n_runs: int, moments: int, means: list[Singles]) -> None:
        """Take over runs that were done, and moments and means that were taken, elsewhere."""
        self.seen, self.moments, self.means = self.seen + n_runs, moments, means

    def tables(self) -> tuple[Table, Table]:
        """Return the means, with the accumulators of now; copies of the tables before the first moment."""
        queries, items = self.queries.copy(), self.items.copy()
        for values, mean in zip((*queries.arrays(), *items.arrays()), self.means, strict=False):
            values[:] = mean
        return queries, items
