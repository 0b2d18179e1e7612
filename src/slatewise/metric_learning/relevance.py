"""Which items are relevant to which query: the same class, a shared label, or a list; of these all, or the nearest.

``fill`` writes a block of queries against all items, 1 relevant, 0 irrelevant, -1 left out (with grades: 0, 1, 2, ..),
so that nothing is ever as large as queries x items. A query that is an item itself does not rank itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slatewise.core.arrays import Bytes, Ints
from slatewise.core.checks import relevance_rows, sparse_range, sparse_rows
from slatewise.core.running.blas import one_blas_thread
from slatewise.data.labels import check_labels
from slatewise.estimators.transformer import check_classes
from slatewise.losses.training import NDCG, TrainingLoss
from slatewise.metric_learning.distance import Rows, catalogue_scores, is_sparse, row_blocks, smallest, squares

LEFT_OUT = -1
MOST_GRADES = 127


class Relevance(Protocol):
    """Queries against items."""

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        ...

    @property
    def n_items(self) -> int:
        """The number of items that each of them ranks."""
        ...

    def fill(self, block: slice, out: Bytes) -> None:
        """Write the relevance of all items for the queries of a block."""
        ...

    def some(self, chosen: Ints) -> Self:
        """Keep some of the queries."""
        ...

    def part(self, block: slice) -> Self:
        """Keep neighboring queries, without copying what is large."""
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
        """The number of queries."""
        return len(self.query_class)

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self.item_class)

    def fill(self, block: slice, out: Bytes) -> None:
        """Compare classes."""
        np.equal(self.query_class[block, None], self.item_class, out=out, casting="unsafe")
        _leave_out(self.own[block], out)

    def some(self, chosen: Ints) -> SameClass:
        """Keep some of the queries."""
        return replace(self, query_class=self.query_class[chosen], own=self.own[chosen])

    def part(self, block: slice) -> SameClass:
        """Keep neighboring queries."""
        return replace(self, query_class=self.query_class[block], own=self.own[block])


@dataclass(frozen=True, eq=False)
class SharedLabel:
    """Relevant: has a label in common with the query."""

    query_labels: csr_array
    item_labels: csr_array
    own: Ints

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self.own)

    @property
    def n_items(self) -> int:
        """The number of items."""
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
        """Keep neighboring queries."""
        return replace(self, query_labels=sparse_range(self.query_labels, block), own=self.own[block])


@dataclass(frozen=True, eq=False)
class Listed:
    """Relevant: as a sparse matrix says; ``absent`` is the relevance of items that a query does not list."""

    lists: csr_array
    """(n_queries, n_items) of int8."""
    absent: int
    own: Ints

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self.own)

    @property
    def n_items(self) -> int:
        """The number of items."""
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
        """Keep neighboring queries."""
        return replace(self, lists=sparse_range(self.lists, block), own=self.own[block])


@dataclass(frozen=True, eq=False)
class Nearest:
    """Relevant: of what is relevant the nearest, each query's targets; the others are left out."""

    relevance: Relevance
    targets: Ints
    """(n_queries, t) items, -1 where a query has fewer."""

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return self.relevance.n_queries

    @property
    def n_items(self) -> int:
        """The number of items."""
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
        """Keep neighboring queries."""
        return Nearest(self.relevance.part(block), self.targets[block])


@dataclass(frozen=True, eq=False)
class ItemLabels:
    """What items are known by: a class each, or 0/1 labels. Rows that share one are relevant to each other."""

    labels: NDArray[Any]
    """(n_items,) numbers of classes, or (n_items, n_labels) int8."""
    classes: NDArray[Any] | None
    """What the numbers stand for; None with 0/1 labels."""

    @classmethod
    def of(cls, y: Any, n_items: int) -> ItemLabels:
        """Read the ``y`` of a fit."""
        rows = sparse_rows("y", y)
        values = np.asarray(y) if rows is None else rows.toarray()
        if values.ndim > 1 and values.shape[1] != 1:
            return cls(check_labels(values, n_items)[0].astype(np.int8), None)
        classes, numbers = np.unique(check_classes(values, n_items), return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y: expected at least two classes, found 1 class ({classes[0]!r})")
        return cls(numbers.astype(np.int64), classes)

    def of_items(self) -> SameClass | SharedLabel:
        """Return the relevance of the items to each other."""
        own = np.arange(len(self.labels))
        if self.classes is not None:
            return SameClass(self.labels, self.labels, own)
        matrix = csr_array(self.labels.astype(np.int32))
        return SharedLabel(matrix, matrix, own)

    def of_rows(self, y: Any, n_rows: int) -> SameClass | SharedLabel:
        """Return the relevance of the items to other rows with labels ``y``; no item is of an unknown class."""
        own = np.full(n_rows, -1, dtype=np.int64)
        if self.classes is not None:
            values = check_classes(y, n_rows)
            numbers = np.minimum(np.searchsorted(self.classes, values), len(self.classes) - 1)
            known = self.classes[numbers] == values
            return SameClass(np.where(known, numbers, -1).astype(np.int64), self.labels, own)
        labels, n_labels = check_labels(y, n_rows)[0], self.labels.shape[1]
        if labels.shape[1] != n_labels:
            raise ValueError(f"y: expected {n_labels} labels, as in fit, found {labels.shape[1]}")
        return SharedLabel(csr_array(labels.astype(np.int32)), csr_array(self.labels.astype(np.int32)), own)


def read_lists(
    relevance: Any, shape: tuple[int, int], loss: TrainingLoss, unlisted: str, *, queries_are_items: bool
) -> Listed:
    """Read a matrix of queries by items: 1 from the threshold of the loss on, or above 0; grades for NDCG without one.

    ``unlisted`` is what items count that a sparse matrix does not store: "irrelevant" or "ignored".
    """
    if unlisted == "ignored" and not is_sparse(relevance):
        raise ValueError(
            "relevance: expected a SciPy sparse matrix for unlisted='ignored' (what it does not store is unlisted), "
            f"found {type(relevance).__name__}"
        )
    matrix = relevance_rows(relevance if is_sparse(relevance) else csr_array(np.atleast_2d(np.asarray(relevance))))
    if matrix.shape != shape:
        raise ValueError(f"relevance: expected shape {shape} (queries, items), found {matrix.shape}")
    values = matrix.data
    if loss.threshold is not None:
        grades = values >= loss.threshold
    elif isinstance(loss, NDCG):
        grades = np.maximum(values, 0)
        wrong = np.flatnonzero((grades != np.floor(grades)) | (grades > MOST_GRADES))
        if len(wrong):
            raise ValueError(
                f"relevance: expected whole grades up to {MOST_GRADES} for loss='ndcg' without a threshold, "
                f"found {values[wrong[0]]}"
            )
    else:
        grades = values > 0
    own = np.arange(shape[0]) if queries_are_items else np.full(shape[0], -1)
    return Listed(
        csr_array((grades.astype(np.int8), matrix.indices, matrix.indptr), shape=shape),
        0 if unlisted == "irrelevant" else LEFT_OUT,
        own.astype(np.int64),
    )


def by_blocks(relevance: Relevance) -> Iterator[tuple[slice, Bytes]]:
    """Yield blocks of queries, each with its relevance (queries, items)."""
    for block in row_blocks(relevance.n_queries, relevance.n_items):
        values = np.empty((block.stop - block.start, relevance.n_items), dtype=np.int8)
        relevance.fill(block, values)
        yield block, values


def nearest_targets(relevance: Relevance, queries: Rows, items: Rows, count: int) -> Nearest:
    """Keep of the relevant items (1) of each query the ``count`` nearest, the first of equal ones first."""
    width, item_squares = min(count, relevance.n_items), squares(items)
    targets = np.full((relevance.n_queries, width), -1, dtype=np.int64)
    with one_blas_thread():
        for block, values in by_blocks(relevance):
            distances = -catalogue_scores(queries[block], items, item_squares)
            distances[values != 1] = np.inf
            found = smallest(distances, width)
            wanted = np.take_along_axis(values, found, axis=1) == 1
            targets[block] = np.where(wanted, found, -1)
    return Nearest(relevance, targets)


def lowest_counts(relevance: Relevance) -> Ints:
    """Return the number of items of the lowest grade that each query ranks: N where relevance is 0 or 1."""
    counts = np.zeros(relevance.n_queries, dtype=np.int64)
    for block, values in by_blocks(relevance):
        least = np.where(values == LEFT_OUT, np.int8(MOST_GRADES), values).min(axis=1, initial=MOST_GRADES)
        counts[block] = (values == least[:, None]).sum(axis=1)
    return counts


def informative(relevance: Relevance) -> NDArray[np.bool_]:
    """Return which queries say anything: those whose items are not all equally relevant."""
    answer = np.zeros(relevance.n_queries, dtype=np.bool_)
    for block, values in by_blocks(relevance):
        least = values.view(np.uint8).min(axis=1, initial=255)  # as a byte, what is left out is the largest
        answer[block] = least < values.max(axis=1, initial=LEFT_OUT).astype(np.int16)
    return answer


def _leave_out(own: Ints, out: Bytes) -> None:
    inside = np.flatnonzero(own >= 0)
    out[inside, own[inside]] = LEFT_OUT
