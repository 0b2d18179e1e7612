"""Which items are relevant to which query: the same class, a shared label, or a list; of these all, or the nearest.

``fill`` writes a block of queries against all items, 1 relevant, 0 irrelevant, -1 left out (with grades: 0, 1, 2, ..),
so that nothing is ever as large as queries x items. A query that is an item itself does not rank itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slatewise.core.arrays import Bytes, Ints
from slatewise.core.checks import relevance_rows, sparse_range, sparse_rows
from slatewise.core.running.blas import one_blas_thread
from slatewise.data.labels import check_labels
from slatewise.estimators.sklearn import check_classes
from slatewise.losses.training import NDCG, TrainingLoss
from slatewise.metric_learning.distance import Rows, catalogue_scores, is_sparse, row_blocks, smallest, squares

LEFT_OUT = -1
MOST_GRADES = 127


Compare: TypeAlias = Callable[[Any, Any, Bytes], None]
"""Writes the relevance of items to some queries, from what each of both has."""


@dataclass(frozen=True, eq=False)
class Relevance:
    """Queries against items; made by :func:`same_class`, :func:`shared_label` or :func:`listed`."""

    compare: Compare
    queries: NDArray[Any] | csr_array
    """What each query has: its class, its labels, or its list."""
    items: Any
    """What the items have: their classes, their labels, or the relevance of those that a query does not list."""
    n_items: int
    """The number of items that each query ranks."""
    own: Ints
    """(n_queries,) the item that a query is, -1 if it is none."""
    targets: Ints | None = None
    """(n_queries, t) the only relevant items that count, -1 if a query has fewer; the others are left out."""

    def fill(self, block: slice, out: Bytes) -> None:
        """Write the relevance of all items for the queries of a block."""
        self.compare(_rows(self.queries, block), self.items, out)
        own = self.own[block]
        inside = np.flatnonzero(own >= 0)
        out[inside, own[inside]] = LEFT_OUT
        if self.targets is not None:
            out[out == 1] = LEFT_OUT
            targets = self.targets[block]
            rows, columns = np.nonzero(targets >= 0)
            out[rows, targets[rows, columns]] = 1

    def some(self, chosen: Ints | slice) -> Relevance:
        """Keep some of the queries; neighboring ones, given as a slice, without copying what is large."""
        targets = None if self.targets is None else self.targets[chosen]
        return replace(self, queries=_rows(self.queries, chosen), own=self.own[chosen], targets=targets)


def _rows(values: NDArray[Any] | csr_array, chosen: Ints | slice) -> Any:
    if isinstance(values, csr_array) and isinstance(chosen, slice):
        return sparse_range(values, chosen)
    return cast("Any", values)[chosen]


def same_class(of_queries: Ints, of_items: Ints, own: Ints) -> Relevance:
    """Return the relevance of items to queries of the same class."""
    return Relevance(_same_class, of_queries, of_items, len(of_items), own)


def _same_class(of_queries: Ints, of_items: Ints, out: Bytes) -> None:
    np.equal(of_queries[:, None], of_items, out=out, casting="unsafe")


def shared_label(of_queries: csr_array, of_items: csr_array, own: Ints) -> Relevance:
    """Return the relevance of items to queries that share a label."""
    return Relevance(_shared_label, of_queries, of_items, of_items.shape[0], own)


def _shared_label(of_queries: csr_array, of_items: csr_array, out: Bytes) -> None:
    common = cast("Any", of_queries @ of_items.T)
    np.greater(common.toarray(), 0, out=out, casting="unsafe")


def listed(lists: csr_array, missing: int, own: Ints) -> Relevance:
    """Return the relevance in ``lists`` (n_queries, n_items), int8; ``missing`` is that of items it does not store."""
    return Relevance(_listed, lists, missing, lists.shape[1], own)


def _listed(lists: csr_array, missing: int, out: Bytes) -> None:
    out[:] = missing
    out[np.repeat(np.arange(len(out)), np.diff(lists.indptr)), lists.indices] = lists.data


@dataclass(frozen=True, eq=False)
class ItemLabels:
    """The labels of items: a class each, or 0/1 labels. Rows that share one are relevant to each other."""

    labels: NDArray[Any]
    """(n_items,) numbers of classes, or (n_items, n_labels) int8."""
    classes: NDArray[Any] | None
    """The class of each number; None with 0/1 labels."""

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

    def of_items(self) -> Relevance:
        """Return the relevance of the items to each other."""
        own = np.arange(len(self.labels))
        if self.classes is not None:
            return same_class(self.labels, self.labels, own)
        matrix = csr_array(self.labels.astype(np.int32))
        return shared_label(matrix, matrix, own)

    def of_rows(self, y: Any, n_rows: int) -> Relevance:
        """Return the relevance of the items to other rows with labels ``y``; no item is of an unknown class."""
        own = np.full(n_rows, -1, dtype=np.int64)
        if self.classes is not None:
            values = check_classes(y, n_rows)
            numbers = np.minimum(np.searchsorted(self.classes, values), len(self.classes) - 1)
            known = self.classes[numbers] == values
            return same_class(np.where(known, numbers, -1).astype(np.int64), self.labels, own)
        labels, n_labels = check_labels(y, n_rows)[0], self.labels.shape[1]
        if labels.shape[1] != n_labels:
            raise ValueError(f"y: expected {n_labels} labels, as in fit, found {labels.shape[1]}")
        return shared_label(csr_array(labels.astype(np.int32)), csr_array(self.labels.astype(np.int32)), own)


def read_lists(
    relevance: Any, shape: tuple[int, int], loss: TrainingLoss, unlisted: str, *, queries_are_items: bool
) -> Relevance:
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
    return listed(
        csr_array((grades.astype(np.int8), matrix.indices, matrix.indptr), shape=shape),
        0 if unlisted == "irrelevant" else LEFT_OUT,
        own.astype(np.int64),
    )


def by_blocks(relevance: Relevance) -> Iterator[tuple[slice, Bytes]]:
    """Yield blocks of queries, each with its relevance (queries, items)."""
    for block in row_blocks(len(relevance.own), relevance.n_items):
        values = np.empty((block.stop - block.start, relevance.n_items), dtype=np.int8)
        relevance.fill(block, values)
        yield block, values


def nearest_targets(relevance: Relevance, queries: Rows, items: Rows, count: int) -> Relevance:
    """Keep of the relevant items (1) of each query the ``count`` nearest, the first of equal ones first."""
    width, item_squares = min(count, relevance.n_items), squares(items)
    targets = np.full((len(relevance.own), width), -1, dtype=np.int64)
    with one_blas_thread():
        for block, values in by_blocks(relevance):
            distances = -catalogue_scores(queries[block], items, item_squares)
            distances[values != 1] = np.inf
            found = smallest(distances, width)
            wanted = np.take_along_axis(values, found, axis=1) == 1
            targets[block] = np.where(wanted, found, -1)
    return replace(relevance, targets=targets)


def lowest_counts(relevance: Relevance) -> Ints:
    """Return the number of items of the lowest grade that each query ranks: N where relevance is 0 or 1."""
    counts = np.zeros(len(relevance.own), dtype=np.int64)
    for block, values in by_blocks(relevance):
        least = np.where(values == LEFT_OUT, np.int8(MOST_GRADES), values).min(axis=1, initial=MOST_GRADES)
        counts[block] = (values == least[:, None]).sum(axis=1)
    return counts


def informative(relevance: Relevance) -> NDArray[np.bool_]:
    """Return which queries can be learned from: those whose items are not all equally relevant."""
    answer = np.zeros(len(relevance.own), dtype=np.bool_)
    for block, values in by_blocks(relevance):
        least = values.view(np.uint8).min(axis=1, initial=255)  # as a byte, what is left out is the largest
        answer[block] = least < values.max(axis=1, initial=LEFT_OUT).astype(np.int16)
    return answer
