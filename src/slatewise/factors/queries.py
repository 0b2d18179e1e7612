"""The left factor of a score: a query's vector, and what happens to it when a gradient arrives.

by id         [ U q | 1 | 0 ]                  U a table with a row per query
by features   [ U' x_q | 1 | 0 ]               U a table with a row per feature, x_q dense or sparse
by items      [ sum_j w_j U x_j | 1 | 0 ]      U a table with a row per item, x_j those of a session: ``bags.py``
in context    [ ... + U' x_s | 1 | 0 ]         U with a row per feature of whoever asks too, x_s sparse
with lists    [ ... | 1 | p_q ]                p_q = sum_j w_j S dbar_j, dbar the list of the stage before
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np

from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.executor import Executor
from slatewise.factors.added import Added, Both
from slatewise.factors.bags import AGE_WEIGHTS, SPLINE_STEPS, Bags, Repeats, step_ages
from slatewise.factors.base_levels import Levels, OnLevels
from slatewise.factors.pair_terms import PairTerm, add_lists
from slatewise.factors.tables import Entries, Table, aligned_zeros, step_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from slatewise.factors.gpu.queries import DeviceQueries
    from slatewise.factors.gpu.tables import Sent

Features: TypeAlias = "Singles | csr_array"
FEATURES_PER_TILE, ROWS_PER_TILE = 512, 256
"""What one thread adds up; tiles are put together in their order."""


@dataclass(frozen=True, eq=False)
class Backward:
    """Entries for the items' table, and the vectors that they are multiples of."""

    entries: Entries
    vectors: Singles


class Queries(Protocol):
    """Vectors of queries that are called by number."""

    @property
    def added(self) -> Added | None:
        """What is added to scores beside the product of vectors; None: nothing."""
        ...

    def vectors(self, queries: Ints) -> Singles:
        """Return a fresh row per query, of the items' width."""
        ...

    def for_epoch(self, rng: np.random.Generator) -> Queries:
        """Return the queries as an epoch of training sees them."""
        ...

    def backward(self, queries: Ints, gradient: Singles) -> Backward | None:
        """Return what the gradient of the vectors asks of the *items'* rows, None where vectors depend on no item."""
        ...

    def step(self, queries: Ints, gradient: Singles, executor: Executor) -> None:
        """Move the parameters by one step along the gradients of these queries' vectors."""
        ...

    def on(self, sent: Sent) -> DeviceQueries:
        """Return the same queries with what they need on a device."""
        ...


@dataclass(frozen=True, eq=False)
class IdQueries:
    """A row per query; the column of the bias holds 1 and is in no segment, so it stays."""

    table: Table

    @property
    def added(self) -> None:
        """Hold no items."""

    def vectors(self, queries: Ints) -> Singles:
        """Return the rows themselves."""
        return self.table.values[queries]

    def for_epoch(self, rng: np.random.Generator) -> IdQueries:
        """Return them as they are."""
        return self

    def backward(self, queries: Ints, gradient: Singles) -> Backward | None:
        """Depend on no item."""
        return None

    def step(self, queries: Ints, gradient: Singles, executor: Executor) -> None:
        """Step the rows; one that occurs twice gets the sum."""
        ones, own = np.ones(len(queries), dtype=np.float32), np.arange(len(queries))
        step_rows(self.table, Entries(queries, ones, own), gradient, executor)

    def on(self, sent: Sent) -> DeviceQueries:
        """Send the rows."""
        from slatewise.factors.gpu.queries import DeviceIds

        return DeviceIds.of(sent, self.table)


@dataclass(frozen=True, eq=False)
class DenseQueries:
    """Vectors linear in dense features: row f of the table belongs to feature f."""

    features: Singles
    table: Table
    bias: int
    """The column that holds 1."""

    @property
    def added(self) -> None:
        """Hold no items."""

    def vectors(self, queries: Ints) -> Singles:
        """Return the products."""
        out = aligned_zeros(len(queries), self.table.values.shape[1])
        np.matmul(self.features[queries], self.table.values, out=out)
        out[:, self.bias] = 1.0
        return out

    def for_epoch(self, rng: np.random.Generator) -> DenseQueries:
        """Return them as they are."""
        return self

    def backward(self, queries: Ints, gradient: Singles) -> Backward | None:
        """Depend on no item."""
        return None

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
class SparseQueries:
    """Vectors linear in sparse features."""

    features: csr_array
    table: Table
    bias: int

    @property
    def added(self) -> None:
        """Hold no items."""

    def vectors(self, queries: Ints) -> Singles:
        """Return the products."""
        out = aligned_zeros(len(queries), self.table.values.shape[1])
        out[:] = self.features[queries] @ self.table.values
        out[:, self.bias] = 1.0
        return out

    def for_epoch(self, rng: np.random.Generator) -> SparseQueries:
        """Return them as they are."""
        return self

    def backward(self, queries: Ints, gradient: Singles) -> Backward | None:
        """Depend on no item."""
        return None

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


@dataclass(frozen=True, eq=False)
class BagQueries:
    """Vectors that are weighted sums of the rows of items."""

    bags: Bags
    table: Table
    """With the weights by age, and the steps of a base."""
    bias: int
    """The column that holds 1, behind those of U."""
    levels: Levels | None = None
    """What a base says of the same queries."""

    @property
    def added(self) -> Added:
        """The items of a bag get something by their age, and others by their level."""
        repeats, weights = Repeats(self.bags, self.table), self.table.weights
        if self.levels is None:
            return repeats
        on_levels = OnLevels(self.levels, weights[SPLINE_STEPS].values)
        return Both(repeats, on_levels, len(weights[AGE_WEIGHTS].values), len(self.table.values))

    def vectors(self, queries: Ints) -> Singles:
        """Return the sums."""
        from slatewise.factors.kernels.bags import bag_vectors

        table, ages = self.table.values, self.table.weights[AGE_WEIGHTS].values
        out = aligned_zeros(len(queries), int(table.shape[1]))
        bag_vectors(table, self.bags.some(queries), ages, self.bias, out)
        out[:, self.bias] = 1.0
        return out

    def for_epoch(self, rng: np.random.Generator) -> BagQueries:
        """Hide some of what a base says, so that the sums learn to rank alone too: such sums mix better with it."""
        return self if self.levels is None else replace(self, levels=self.levels.hidden(rng))

    def backward(self, queries: Ints, gradient: Singles) -> Backward | None:
        """Depend on no row of the items' table."""
        return None

    def step(self, queries: Ints, gradient: Singles, executor: Executor) -> None:
        """Step the rows of the items that occur, and w."""
        from slatewise.factors.kernels.bags import bag_entries, weight_gradient

        table, bags, ages = self.table, self.bags.some(queries), self.table.weights[AGE_WEIGHTS].values
        if not table.segments[0].step:
            return
        by_age = np.zeros((-(-len(queries) // ROWS_PER_TILE), len(ages)))

        def add_up(tile: int) -> None:
            rows = np.arange(len(queries))[tile * ROWS_PER_TILE : (tile + 1) * ROWS_PER_TILE]
            weight_gradient(table.values, bags.some(rows), gradient[rows], self.bias, by_age[tile])

        executor.fill_blocks(add_up, range(len(by_age)))
        entries = Entries.empty(int((bags.ends - bags.starts).sum()))
        bag_entries(bags, ages, entries)
        step_rows(table, entries, gradient, executor)
        step_ages(table, np.add.reduce(by_age, axis=0))

    def on(self, sent: Sent) -> DeviceQueries:
        """Send the bags, and what a base says."""
        from slatewise.factors.gpu.queries import DeviceBags

        return DeviceBags.of(sent, self.bags, self.table, self.bias, self.levels)


@dataclass(frozen=True, eq=False)
class ContextQueries:
    """The vectors of bags, and those of the features of whoever asks added to them; both are of one table."""

    bags: BagQueries
    features: SparseQueries
    owners: Ints
    """Which row of the features each query has."""

    @property
    def added(self) -> Added:
        """That of the bags."""
        return self.bags.added

    def vectors(self, queries: Ints) -> Singles:
        """Return the sums."""
        out, bias = self.bags.vectors(queries), self.bags.bias
        out += self.features.vectors(self.owners[queries])
        out[:, bias] = 1.0
        return out

    def for_epoch(self, rng: np.random.Generator) -> ContextQueries:
        """Hide some of what a base says."""
        return replace(self, bags=self.bags.for_epoch(rng))

    def backward(self, queries: Ints, gradient: Singles) -> Backward | None:
        """Depend on no row of the items' table."""
        return None

    def step(self, queries: Ints, gradient: Singles, executor: Executor) -> None:
        """Step the rows of items and w, then those of features, which are others."""
        self.bags.step(queries, gradient, executor)
        self.features.step(self.owners[queries], gradient, executor)

    def on(self, sent: Sent) -> DeviceQueries:
        """Send both; of features that are all 0 there is nothing to send."""
        from slatewise.factors.gpu.features import DeviceContext

        if not self.features.features.nnz:
            return self.bags.on(sent)
        return DeviceContext(self.bags.on(sent), self.features.on(sent), self.bags.bias, sent.array(self.owners))


@dataclass(frozen=True)
class ZeroQueries:
    """Queries without vectors of their own: something else scores them first."""

    width: int

    @property
    def added(self) -> None:
        """Hold no items."""

    def vectors(self, queries: Ints) -> Singles:
        """Return zeros."""
        return aligned_zeros(len(queries), self.width)

    def for_epoch(self, rng: np.random.Generator) -> ZeroQueries:
        """Return them as they are."""
        return self

    def backward(self, queries: Ints, gradient: Singles) -> Backward | None:
        """Depend on no item."""
        return None

    def step(self, queries: Ints, gradient: Singles, executor: Executor) -> None:
        """Learn nothing."""

    def on(self, sent: Sent) -> DeviceQueries:
        """Have nothing to send."""
        raise NotImplementedError("engine: expected 'blocked' where a base scores first, found 'gpu'")


def zero_queries(table: Table) -> ZeroQueries:
    """Return queries that take nothing of a table but its width."""
    return ZeroQueries(int(table.values.shape[1]))


@dataclass(frozen=True, eq=False)
class ListedQueries:
    """The vectors of other queries, with p_q, a weighted sum over the rows of their lists, in the columns moved."""

    inner: Queries
    items: Table
    pair: PairTerm
    lists: Ints
    """(queries, k) items, best first; -1 after the last."""
    weights: Singles
    """w_j of the k positions."""

    @property
    def added(self) -> Added | None:
        """That of the inner queries."""
        return self.inner.added

    def vectors(self, queries: Ints) -> Singles:
        """Return the inner vectors with p_q in the columns that are moved."""
        out = self.inner.vectors(queries)
        add_lists(self.pair, self.items.values, self.lists[queries], self.weights, out)
        return out

    def for_epoch(self, rng: np.random.Generator) -> ListedQueries:
        """Return them as they are: lists are made of whole scores."""
        return self

    def backward(self, queries: Ints, gradient: Singles) -> Backward | None:
        """p_q is linear in the rows of its list: each gets w_j times the gradient of p_q."""
        lists = self.lists[queries]
        there = lists >= 0
        weights = np.broadcast_to(self.weights, lists.shape)[there]
        own = np.zeros(gradient.shape, dtype=np.float32)
        for moved, listed in self.pair.joins:
            own[:, listed.start : listed.stop] = gradient[:, moved.start : moved.stop]
        return Backward(Entries(lists[there], weights, np.repeat(np.arange(len(lists)), there.sum(axis=1))), own)

    def step(self, queries: Ints, gradient: Singles, executor: Executor) -> None:
        """Step what is inside; S is a part of the items' table."""
        self.inner.step(queries, gradient, executor)

    def on(self, sent: Sent) -> DeviceQueries:
        """Send what is inside, and the lists."""
        from slatewise.factors.gpu.queries import DeviceListed

        return DeviceListed.of(sent, self.inner.on(sent), self.items, self.pair, self.lists, self.weights)


class AskedBags(NamedTuple):
    """What vectors of queries that hold items are made of, but for the table."""

    bags: Bags
    owners: Ints
    """Which row of the context each has."""
    levels: Levels | None
    context: csr_array | None


def bag_queries(asked: AskedBags, n_items: int, bias: int) -> Callable[[Table], Queries]:
    """Return what makes queries that hold items from a table of U."""
    context = asked.context

    def bags_of(table: Table) -> BagQueries:
        return BagQueries(asked.bags, table, bias, asked.levels)

    if context is None:
        return bags_of
    from scipy.sparse import csr_array

    # Rows of features are behind those of items.
    parts = context.data, context.indices + n_items, context.indptr
    shifted = csr_array(parts, shape=(context.shape[0], n_items + context.shape[1]))
    return lambda table: ContextQueries(bags_of(table), SparseQueries(shifted, table, bias), asked.owners)


def featured_queries(features: Features, bias: int) -> Callable[[Table], Queries]:
    """Return what makes queries from a table of U with a row per feature."""
    if isinstance(features, np.ndarray):
        return lambda table: DenseQueries(features, table, bias)
    return lambda table: SparseQueries(features, table, bias)
