"""The left factor of a score: a query's vector, and what happens to it when a gradient arrives.

by id         [ U q | 1 | 0 ]                  U a table with a row a query
by features   [ U' x_q | 1 | 0 ]               U a table with a row a feature, x_q dense or sparse
with lists    [ ... | 1 | p_q ]                p_q = sum_j w_j S dbar_j, dbar the list of the stage before
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from slatewise.core import executor
from slatewise.latent.tables import Entries, Ints, Segment, Singles, Table, aligned_zeros, step_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FEATURES_A_TILE = 512


@dataclass(frozen=True, eq=False)
class Onward:
    """Entries for the items' table, and the vectors that they are multiples of."""

    entries: Entries
    vectors: Singles


class Queries(Protocol):
    """Vectors of queries that are called by number."""

    def vectors(self, queries: Ints) -> Singles:
        """Return a row a query, of the items' width."""
        ...

    def onward(self, queries: Ints, gradient: Singles) -> Onward | None:
        """Return what the gradient of the vectors asks of the *items'* rows, None where vectors depend on no item."""
        ...

    def step(self, queries: Ints, gradient: Singles, n_threads: int | None = None) -> None:
        """Move the parameters by one step along the gradients of these queries' vectors."""
        ...


@dataclass(frozen=True, eq=False)
class IdQueries:
    """A row a query; the column of the bias holds 1 and is in no segment, so it stays."""

    table: Table

    def vectors(self, queries: Ints) -> Singles:
        """Return the rows themselves."""
        return self.table.values[queries]

    def onward(self, queries: Ints, gradient: Singles) -> Onward | None:
        """Depend on no item."""
        return None

    def step(self, queries: Ints, gradient: Singles, n_threads: int | None = None) -> None:
        """Step the rows; one that occurs twice gets the sum."""
        ones, own = np.ones(len(queries), dtype=np.float32), np.arange(len(queries))
        step_rows(self.table, Entries(queries, ones, own), gradient, n_threads)


@dataclass(frozen=True, eq=False)
class DenseQueries:
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

    def onward(self, queries: Ints, gradient: Singles) -> Onward | None:
        """Depend on no item."""
        return None

    def step(self, queries: Ints, gradient: Singles, n_threads: int | None = None) -> None:
        """Step all rows along ``X' G``, made tile by tile so that its bits do not depend on threads."""
        rows = self.features[queries]
        n_features = len(self.table.values)
        total = np.empty((n_features, gradient.shape[1]), dtype=np.float32)

        def product(first: int) -> None:
            tile = slice(first, first + FEATURES_A_TILE)
            np.matmul(rows[:, tile].T, gradient, out=total[tile])

        for _ in executor.map_blocks(product, range(0, n_features, FEATURES_A_TILE), n_threads):
            pass
        every = np.arange(n_features)
        step_rows(self.table, Entries(every, np.ones(n_features, dtype=np.float32), every), total, n_threads)


@dataclass(frozen=True, eq=False)
class SparseQueries:
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

    def onward(self, queries: Ints, gradient: Singles) -> Onward | None:
        """Depend on no item."""
        return None

    def step(self, queries: Ints, gradient: Singles, n_threads: int | None = None) -> None:
        """Step the rows of the features that occur."""
        rows = self.features[queries]
        sources = np.repeat(np.arange(len(queries)), np.diff(rows.indptr))
        entries = Entries(rows.indices.astype(np.int64), rows.data.astype(np.float32), sources)
        step_rows(self.table, entries, gradient, n_threads)


@dataclass(frozen=True, eq=False)
class ListedQueries:
    """The vectors of other queries, with the weighted sum of their list's rows of S beside them."""

    inner: Queries
    items: Table
    part: Segment
    """The columns of S in the items' table."""
    lists: Ints
    """(queries, k) items, best first; -1 after the last."""
    weights: Singles
    """w_j of the k positions."""

    def vectors(self, queries: Ints) -> Singles:
        """Return the inner vectors with p_q in the columns of S."""
        from slatewise.latent.kernels.lists import list_vectors

        out = self.inner.vectors(queries)
        list_vectors(self.items.values, self.lists[queries], self.weights, self.part.start, self.part.stop, out)
        return out

    def onward(self, queries: Ints, gradient: Singles) -> Onward | None:
        """p_q is linear in the rows of its list: S of each gets w_j times the gradient of p_q."""
        lists = self.lists[queries]
        there = lists >= 0
        weights = np.broadcast_to(self.weights, lists.shape)[there]
        own = np.zeros(gradient.shape, dtype=np.float32)
        own[:, self.part.start : self.part.stop] = gradient[:, self.part.start : self.part.stop]
        return Onward(Entries(lists[there], weights, np.repeat(np.arange(len(lists)), there.sum(axis=1))), own)

    def step(self, queries: Ints, gradient: Singles, n_threads: int | None = None) -> None:
        """Step what is inside; S is a part of the items' table."""
        self.inner.step(queries, gradient, n_threads)
