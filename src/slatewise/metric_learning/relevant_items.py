"""Which items are relevant to which query: the same class, a shared label, or a list; of these all, or the nearest.

``fill`` writes a block of queries against all items, 1 relevant, 0 irrelevant, -1 left out (with grades: 0, 1, 2, ..),
so that nothing is ever as large as queries x items. A query that is an item itself does not rank itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slatewise.core.checks import sparse_range
from slatewise.core.executor import one_blas_thread
from slatewise.metric_learning.mahalanobis import Rows, catalogue_scores, row_blocks, smallest, squares

Bytes: TypeAlias = NDArray[np.int8]
Ints: TypeAlias = NDArray[np.int64]

LEFT_OUT = -1
MOST_GRADES = 127


class Relevance(Protocol):
    """Queries against items."""

    @property
    def n_queries(self) -> int:
        """How many queries."""
        ...

    @property
    def n_items(self) -> int:
        """How many items each of them ranks."""
        ...

    def fill(self, block: slice, out: Bytes) -> None:
        """Write the relevance of all items for the queries of a block."""
        ...

    def some(self, chosen: Ints) -> Self:
        """Keep some of the queries."""
        ...

    def part(self, block: slice) -> Self:
        """Keep neighbouring queries, without copying what is large."""
        ...


@dataclass(frozen=True, eq=False)
class SameClass:
    """Relevant: of the query's class."""

    query_class: Ints
    item_class: Ints
    own: Ints
    """(n_queries,) the item that a query is, -1 where it is none."""

    @property
    def n_queries(self) -> int:
        """How many queries."""
        return len(self.query_class)

    @property
    def n_items(self) -> int:
        """How many items."""
        return len(self.item_class)

    def fill(self, block: slice, out: Bytes) -> None:
        """Compare classes."""
        np.equal(self.query_class[block, None], self.item_class, out=out, casting="unsafe")
        _leave_out(self.own[block], out)

    def some(self, chosen: Ints) -> SameClass:
        """Keep some of the queries."""
        return replace(self, query_class=self.query_class[chosen], own=self.own[chosen])

    def part(self, block: slice) -> SameClass:
        """Keep neighbouring queries."""
        return replace(self, query_class=self.query_class[block], own=self.own[block])


@dataclass(frozen=True, eq=False)
class SharedLabel:
    """Relevant: has a label in common with the query."""

    query_labels: csr_array
    item_labels: csr_array
    own: Ints

    @property
    def n_queries(self) -> int:
        """How many queries."""
        return len(self.own)

    @property
    def n_items(self) -> int:
        """How many items."""
        return self.item_labels.shape[0]

    def fill(self, block: slice, out: Bytes) -> None:
        """Count common labels."""
        common = cast("Any", self.query_labels[block] @ self.item_labels.T)
        np.greater(common.toarray(), 0, out=out, casting="unsafe")
        _leave_out(self.own[block], out)

    def some(self, chosen: Ints) -> SharedLabel:
        """Keep some of the queries."""
        return replace(self, query_labels=csr_array(self.query_labels[chosen]), own=self.own[chosen])

    def part(self, block: slice) -> SharedLabel:
        """Keep neighbouring queries."""
        return replace(self, query_labels=sparse_range(self.query_labels, block), own=self.own[block])


@dataclass(frozen=True, eq=False)
class Listed:
    """Relevant: as a sparse matrix says; ``absent`` is what items count that a query does not list."""

    lists: csr_array
    """(n_queries, n_items) of int8."""
    absent: int
    own: Ints

    @property
    def n_queries(self) -> int:
        """How many queries."""
        return len(self.own)

    @property
    def n_items(self) -> int:
        """How many items."""
        return self.lists.shape[1]

    def fill(self, block: slice, out: Bytes) -> None:
        """Write the lists."""
        out[:] = self.absent
        indptr = self.lists.indptr[block.start : block.stop + 1]
        listed = slice(int(indptr[0]), int(indptr[-1]))
        rows = np.repeat(np.arange(len(out)), np.diff(indptr))
        out[rows, self.lists.indices[listed]] = self.lists.data[listed]
        _leave_out(self.own[block], out)

    def some(self, chosen: Ints) -> Listed:
        """Keep some of the queries."""
        return replace(self, lists=csr_array(self.lists[chosen]), own=self.own[chosen])

    def part(self, block: slice) -> Listed:
        """Keep neighbouring queries."""
        return replace(self, lists=sparse_range(self.lists, block), own=self.own[block])


@dataclass(frozen=True, eq=False)
class Nearest:
    """Relevant: of what is relevant the nearest, each query's targets; the others are left out."""

    relevance: Relevance
    targets: Ints
    """(n_queries, t) items, -1 where a query has fewer."""

    @property
    def n_queries(self) -> int:
        """How many queries."""
        return self.relevance.n_queries

    @property
    def n_items(self) -> int:
        """How many items."""
        return self.relevance.n_items

    def fill(self, block: slice, out: Bytes) -> None:
        """Leave out what is relevant but no target."""
        self.relevance.fill(block, out)
        out[out == 1] = LEFT_OUT
        targets = self.targets[block]
        rows, columns = np.nonzero(targets >= 0)
        out[rows, targets[rows, columns]] = 1

    def some(self, chosen: Ints) -> Nearest:
        """Keep some of the queries."""
        return Nearest(self.relevance.some(chosen), self.targets[chosen])

    def part(self, block: slice) -> Nearest:
        """Keep neighbouring queries."""
        return Nearest(self.relevance.part(block), self.targets[block])


def nearest_targets(relevance: Relevance, queries: Rows, items: Rows, count: int) -> Nearest:
    """Keep of the relevant items (1) of each query the ``count`` nearest, the first of equal ones first."""
    width, item_squares = min(count, relevance.n_items), squares(items)
    targets = np.full((relevance.n_queries, width), -1, dtype=np.int64)
    with one_blas_thread():
        for block in row_blocks(relevance.n_queries, relevance.n_items):
            distances = -catalogue_scores(queries[block], items, item_squares)
            values = np.empty(distances.shape, dtype=np.int8)
            relevance.fill(block, values)
            distances[values != 1] = np.inf
            found = smallest(distances, width)
            wanted = np.take_along_axis(values, found, axis=1) == 1
            targets[block] = np.where(wanted, found, -1)
    return Nearest(relevance, targets)


def lowest_counts(relevance: Relevance) -> Ints:
    """Return how many items of the lowest grade each query ranks: N where relevance is 0 or 1."""
    counts = np.zeros(relevance.n_queries, dtype=np.int64)
    for block in row_blocks(relevance.n_queries, relevance.n_items):
        values = np.empty((block.stop - block.start, relevance.n_items), dtype=np.int8)
        relevance.fill(block, values)
        least = np.where(values == LEFT_OUT, np.int8(MOST_GRADES), values).min(axis=1, initial=MOST_GRADES)
        counts[block] = (values == least[:, None]).sum(axis=1)
    return counts


def askable(relevance: Relevance) -> NDArray[np.bool_]:
    """Say which queries can teach anything: those whose items are not all equally relevant."""
    answer = np.zeros(relevance.n_queries, dtype=np.bool_)
    for block in row_blocks(relevance.n_queries, relevance.n_items):
        values = np.empty((block.stop - block.start, relevance.n_items), dtype=np.int8)
        relevance.fill(block, values)
        least = values.view(np.uint8).min(axis=1, initial=255)  # as a byte, what is left out is the largest
        answer[block] = least < values.max(axis=1, initial=LEFT_OUT).astype(np.int16)
    return answer


def _leave_out(own: Ints, out: Bytes) -> None:
    inside = np.flatnonzero(own >= 0)
    out[inside, own[inside]] = LEFT_OUT
