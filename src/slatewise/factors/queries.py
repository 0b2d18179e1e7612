"""The left factor of a score: a query's vector, and what happens to it when a gradient arrives.

by id         [ U q | 1 | 0 ]                  U a table with a row per query
by features   [ U' x_q | 1 | 0 ]               U a table with a row per feature, x_q dense or sparse
by items      [ sum_j w_j U x_j | 1 | 0 ]      U a table with a row per item, x_j those of a session: ``bags.py``
in context    [ ... + U' x_s | 1 | 0 ]         U with a row per feature of the session too, x_s sparse
with lists    [ ... | 1 | p_q ]                p_q = sum_j w_j S dbar_j, dbar the list of the stage before
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.executor import Executor
from slatewise.factors.offsets import ScoreOffsets
from slatewise.factors.tables import Entries, Table, aligned_zeros, step_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from slatewise.factors.gpu.queries import DeviceQueries
    from slatewise.factors.gpu.tables import Sent


Features: TypeAlias = "Singles | csr_array"

FEATURES_PER_TILE = 512
"""What one thread adds up."""


@dataclass(frozen=True, eq=False)
class Backward:
    """Entries for the items' table, and the vectors that they are multiples of."""

    entries: Entries
    vectors: Singles


class Queries(Protocol):
    """Vectors of queries that are called by number; those that depend on no item and add nothing leave methods out."""

    @property
    def score_offsets(self) -> ScoreOffsets | None:
        """What is added to scores beside the product of vectors; None: nothing."""
        return None

    def for_epoch(self, rng: np.random.Generator) -> Queries:
        """Return the queries as an epoch of training sees them."""
        return self

    def backward(self, queries: Ints, gradient: Singles) -> Backward | None:
        """Return the entries for the *items'* rows that the gradient of the vectors makes; None where it makes none."""
        return None

    @abstractmethod
    def vectors(self, queries: Ints) -> Singles:
        """Return a fresh row per query, of the items' width."""

    @abstractmethod
    def step(self, queries: Ints, gradient: Singles, executor: Executor) -> None:
        """Move the parameters by one step along the gradients of these queries' vectors."""

    @abstractmethod
    def on(self, sent: Sent) -> DeviceQueries:
        """Return the same queries with what they need on a device."""


@dataclass(frozen=True, eq=False)
class IdQueries(Queries):
    """A row per query; the column of the bias holds 1 and is in no segment, so it stays."""

    table: Table

    def vectors(self, queries: Ints) -> Singles:
        """Return the rows themselves."""
        return self.table.values[queries]

    def step(self, queries: Ints, gradient: Singles, executor: Executor) -> None:
        """Step the rows; one that occurs twice gets the sum."""
        ones, own = np.ones(len(queries), dtype=np.float32), np.arange(len(queries))
        step_rows(self.table, Entries(queries, ones, own), gradient, executor)

    def on(self, sent: Sent) -> DeviceQueries:
        """Send the rows."""
        from slatewise.factors.gpu.queries import DeviceIds

        return DeviceIds.of(sent, self.table)


@dataclass(frozen=True, eq=False)
class DenseQueries(Queries):
    """Vectors linear in dense features: row f of the table belongs to feature f."""

    features: Singles
    table: Table
    bias: int
    """The column that holds 1."""

    def vectors(self, queries: Ints) -> Singles:
        """Return the products."""
        out = aligned_zeros(len(queries), self.table.values.shape[1])
        np.matmul(self.features[queries], self.table.values, out=out)
        out[:, self.bias] = 1.0
        return out

    def step(self, queries: Ints, gradient: Singles, executor: Executor) -> None:
        """Step all rows along ``X' G``, made tile by tile so that its bits do not depend on threads."""
        rows = self.features[queries]
        n_features = len(self.table.values)
        total = np.empty((n_features, gradient.shape[1]), dtype=np.float32)

        def product(first: int) -> None:
            tile = slice(first, first + FEATURES_PER_TILE)
            np.matmul(rows[:, tile].T, gradient, out=total[tile])

        executor.fill_blocks(product, range(0, n_features, FEATURES_PER_TILE))
        every = np.arange(n_features)
        step_rows(self.table, Entries(every, np.ones(n_features, dtype=np.float32), every), total, executor)

    def on(self, sent: Sent) -> DeviceQueries:
        """Send the features."""
        from slatewise.factors.gpu.features import DeviceDense

        return DeviceDense.of(sent, self.features, self.table, self.bias)


@dataclass(frozen=True, eq=False)
class SparseQueries(Queries):
    """Vectors linear in sparse features."""

    features: csr_array
    table: Table
    bias: int

    def vectors(self, queries: Ints) -> Singles:
        """Return the products."""
        out = aligned_zeros(len(queries), self.table.values.shape[1])
        out[:] = self.features[queries] @ self.table.values
        out[:, self.bias] = 1.0
        return out

    def step(self, queries: Ints, gradient: Singles, executor: Executor) -> None:
        """Step the rows of the features that occur."""
        rows = self.features[queries]
        sources = np.repeat(np.arange(len(queries)), np.diff(rows.indptr))
        entries = Entries(rows.indices.astype(np.int64), rows.data.astype(np.float32), sources)
        step_rows(self.table, entries, gradient, executor)

    def on(self, sent: Sent) -> DeviceQueries:
        """Send the features."""
        from slatewise.factors.gpu.features import DeviceSparse

        return DeviceSparse.of(sent, self.features, self.table, self.bias)


@dataclass(frozen=True)
class ZeroQueries(Queries):
    """Queries without vectors of their own: something else scores them first."""

    width: int

    def vectors(self, queries: Ints) -> Singles:
        """Return zeros."""
        return aligned_zeros(len(queries), self.width)

    def step(self, queries: Ints, gradient: Singles, executor: Executor) -> None:
        """Learn nothing."""

    def on(self, sent: Sent) -> DeviceQueries:
        """Have nothing to send."""
        raise NotImplementedError("engine: expected 'blocked' where a base scores first, found 'gpu'")


def zero_queries(table: Table) -> ZeroQueries:
    """Return queries that take nothing of a table but its width."""
    return ZeroQueries(int(table.values.shape[1]))


def featured_queries(features: Features, bias: int, table: Table) -> Queries:
    """Return queries from a table of U with a row per feature."""
    if isinstance(features, np.ndarray):
        return DenseQueries(features, table, bias)
    return SparseQueries(features, table, bias)
