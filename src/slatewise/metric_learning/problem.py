"""What a distance is learned from, and what is minimized: checked points, relevance and features as one hinge.

A metric learner sees points by features:

    linear    x itself, centered in every column that is stored in full: distances do not change
    basis     phi(x) with phi phi' = K, by pivoted Cholesky: K = k(x, x') of a kernel, or x.x' where features are more
              than points. A metric that regularizes the trace never leaves the span of the points, so nothing is lost

A learned map L of phi becomes a map of x, or of the kernel values with the basis rows: ``L phi(x) = A k(basis, x)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, vstack

from slatewise.core.arrays import Floats
from slatewise.core.numerics.row_kernels import RowKernel, kernel_basis
from slatewise.core.running.executor import Executor
from slatewise.data.row_source import Shifted, StoredRows
from slatewise.kernels import Chi2, Intersection, Precomputed, Rbf
from slatewise.losses.training import KNN, MRR, NDCG, Precision, TrainingLoss, cutoff_of
from slatewise.metric_learning.cone import Cone, Orthant, Psd
from slatewise.metric_learning.distance import Rows, dense, is_sparse, squares
from slatewise.metric_learning.hinge import MetricHinge
from slatewise.metric_learning.oracle import Oracle, require_few_states
from slatewise.metric_learning.relevance import (
    ItemLabels,
    Relevance,
    by_blocks,
    lowest_counts,
    nearest_targets,
)
from slatewise.metric_learning.solver import MetricProblem, Regularizer
from slatewise.persistence.file import ModelCard
from slatewise.persistence.saving import card_for

REGULARIZERS: dict[str, tuple[Cone, Regularizer]] = {
    "trace": (Psd(), Regularizer(1.0, 0.0)),
    "frobenius": (Psd(), Regularizer(0.0, 1.0)),
    "diagonal": (Orthant(), Regularizer(1.0, 0.0)),
}
MRR_TARGETS = 3
"""Targets of a query for the reciprocal rank, which has no k."""


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Checked points, and what is relevant to which query."""

    items: Rows
    queries: Rows
    """The same object as ``items`` where every item is a query."""
    relevance: Relevance
    """Of the items to all queries."""
    labels: ItemLabels | None
    """Of the items; None where relevance was given as lists."""
    weight: Floats
    """(n_queries,)"""
    used: NDArray[np.int64]
    """Queries of weight > 0 that have relevant and irrelevant items."""
    card: ModelCard

    @classmethod
    def of(
        cls,
        items: Rows,
        queries: Rows,
        relevance: Relevance,
        labels: ItemLabels | None,
        informative: NDArray[np.bool_],
        query_weight: ArrayLike | None,
    ) -> TrainingData:
        """Find the queries to learn from, and describe the data; ``informative`` are those with unlike items."""
        n_items, n_queries = int(items.shape[0]), len(informative)
        weight = np.ones(n_queries) if query_weight is None else np.asarray(query_weight, dtype=np.float64)
        if weight.shape != (n_queries,) or not np.isfinite(weight).all() or (weight < 0).any():
            raise ValueError(
                f"query_weight: expected {n_queries} finite numbers >= 0, one per query, found {query_weight!r}"
            )
        used = np.flatnonzero((weight > 0) & informative)
        if not len(used):
            raise ValueError(
                f"{'relevance' if labels is None else 'y'}: expected a query with relevant and irrelevant items, "
                f"found none among {n_queries} queries (n_samples={n_items})"
            )
        known = _arrays(relevance.queries) if labels is None else (labels.labels,)
        card = card_for(n_queries, *_arrays(items), *_arrays(queries), *known, weight, used)
        return cls(items, queries, relevance, labels, weight, used, replace(card, n_rows=n_items))

    @property
    def n_skipped(self) -> int:
        """The number of queries that nothing is learned from."""
        return len(self.weight) - len(self.used)


@dataclass(frozen=True, eq=False)
class Task:
    """What a fit works on."""

    data: TrainingData
    features: PointFeatures
    problem: MetricProblem
    """What is minimized."""
    whole: MetricHinge
    """The hinge of all that is relevant, where that of the problem has targets only: its ranking loss is the loss."""

    @classmethod
    def of(
        cls,
        data: TrainingData,
        *,
        loss: TrainingLoss,
        C: float,
        regularizer: str,
        kernel: object,
        targets: int | str,
        pairs: str,
        executor: Executor,
        gpu: Any,
    ) -> Task:
        """Pose the problem; parameters as in :class:`slatewise.MetricRanker`, with settings objects for shorthands."""
        cone, penalty = REGULARIZERS[regularizer]
        top = top_ranks(loss)
        oracle = _oracle(loss, data.relevance)
        if targets == "auto":
            n_targets = None if top is None or data.labels is None else cutoff_of(loss) or MRR_TARGETS
        else:
            n_targets = None if targets == "all" else int(targets)
        if n_targets is not None and oracle.name == "graded_ndcg":
            raise ValueError(f"targets: expected 'auto' or 'all' with grades of relevance, found {targets!r}")
        features = point_features(kernel, data.queries, data.items, keep_columns=regularizer == "diagonal")
        points, relevance, weight = features.queries, data.relevance, data.weight[data.used]
        if len(data.used) < len(data.weight):
            points, relevance = points[data.used], relevance.some(data.used)
        wanted = relevance
        if n_targets is not None:
            if isinstance(points, StoredRows):
                raise ValueError(f"targets: expected 'auto' or 'all' with queries in files, found {targets!r}")
            wanted = nearest_targets(relevance, points, features.items, n_targets)
        scale = None
        if top is not None and pairs == "top":  # psi is the mean over the pairs that losing the top turns
            others = lowest_counts(wanted)
            scale = others / np.minimum(top, others)
        hinge = MetricHinge(points, features.items, wanted, weight / weight.sum(), oracle, cone, executor, scale)
        whole = None if n_targets is None else replace(hinge, relevance=relevance, scale=None)
        if gpu is not None:
            from slatewise.metric_learning.gpu.hinge import on_gpu

            hinge = on_gpu(hinge, gpu)
        return cls(data, features, MetricProblem(hinge, cone, penalty, C), hinge if whole is None else whole)

    @property
    def compared_by(self) -> Oracle:
        """The loss that rankings are compared by: that of the fit, and for "auc" average precision, as in ``score``.

        A better AUC can be many worse first ranks for a few better ones in the middle.
        """
        oracle = self.problem.hinge.oracle
        return Oracle("map") if oracle.name == "auc" else oracle

    def ranking_loss(self, W: Floats) -> float:
        """Return what the queries lose by W."""
        return self.whole.ranking_loss(self.problem.cone.start(W), self.compared_by)

    @cached_property
    def euclidean_loss(self) -> float:
        """What they lose by the unscaled distance."""
        return self.ranking_loss(self.problem.cone.identity(self.problem.hinge.n_features))


def top_ranks(loss: TrainingLoss) -> int | None:
    """Return the number of irrelevant items on the first ranks that lose what there is to lose; None: all of them."""
    match loss:
        case Precision() | NDCG():
            return int(loss.k)
        case KNN():
            return (int(loss.k) + 1) // 2
        case MRR():
            return 1
        case _:
            return None


def _oracle(loss: TrainingLoss, relevance: Relevance) -> Oracle:
    """Return the exact oracle of a loss: for grades, the one that tells them apart."""
    k, graded = cutoff_of(loss), False
    if isinstance(loss, NDCG):
        for _, values in by_blocks(relevance):
            if values.max(initial=0) > 1:
                graded = True
                offsets = np.arange(len(values) + 1, dtype=np.int64) * relevance.n_items
                require_few_states(values.ravel(), offsets, k)
    return Oracle("graded_ndcg" if graded else str(loss.shorthand), k)


def _arrays(rows: Rows) -> tuple[NDArray[Any], ...]:
    if isinstance(rows, StoredRows):
        return (np.frombuffer(rows.source.sha256().encode(), dtype=np.uint8),)
    return (rows.data, rows.indices, rows.indptr) if is_sparse(rows) else (rows,)


# --- features ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PointFeatures:
    """Features of the queries and items of a fit."""

    queries: Rows
    items: Rows
    components: Callable[[Floats], Floats] = lambda L: L
    """Turns the learner's L (rank, features) into one of x, or of the kernel values."""
    basis: NDArray[Any] | None = None
    """What kernel values are taken with; None without a kernel."""
    gamma: float | None = None
    """Of the kernel, if it has one."""


def point_features(kernel: object, queries: Rows, items: Rows, *, keep_columns: bool) -> PointFeatures:
    """Return features of a kernel of :mod:`slatewise.kernels`, or of the points themselves ("linear").

    ``keep_columns`` is for a learner that weighs the columns of the points: no other coordinates will do.
    """
    if isinstance(kernel, Rbf | Chi2):
        values = kernel.of(items)
        return replace(kernel_features(values, queries, items, kernel.n_basis), gamma=float(values.gamma))
    if isinstance(kernel, Intersection | Precomputed):
        return kernel_features(kernel.of(items), queries, items, kernel.n_basis)
    n_points = items.shape[0] + (0 if queries is items else queries.shape[0])
    if items.shape[1] > n_points and not keep_columns:
        return span_features(queries, items)
    return plain_features(queries, items)


def plain_features(queries: Rows, items: Rows) -> PointFeatures:
    """Take the points as they are, but centered, which keeps small differences exact.

    Sparse points are centered in the columns that all of them store, so they stay as sparse as they were.
    """
    if is_sparse(items) or is_sparse(queries):
        rows = _own_csr(items)
        others = rows if queries is items else _own_csr(queries)
        n_rows, width = rows.shape
        first = dense(rows[[0]]).ravel()
        # The mean of the columns stored in full, which is exact for a constant one.
        mean = first + np.bincount(rows.indices, rows.data - first[rows.indices], width) / n_rows
        center = np.where(_stored_in_full(rows) & _stored_in_full(others), mean, 0.0)
        for table in (rows,) if others is rows else (rows, others):
            table.data -= center[table.indices]
        return PointFeatures(others, rows)
    # Not the mean at once: a constant column becomes exactly 0.
    center = items[0] + (items - items[0]).mean(axis=0)
    centerd = np.ascontiguousarray(items - center)
    if isinstance(queries, StoredRows):
        return PointFeatures(queries.made(Shifted(center)), centerd)
    return PointFeatures(centerd if queries is items else np.ascontiguousarray(queries - center), centerd)


def span_features(queries: Rows, items: Rows) -> PointFeatures:
    """Take coordinates in the span of the points: as many features as points, whatever the number of columns."""
    plain = plain_features(queries, items)
    points = _stacked(plain.queries, plain.items)

    def column(row: int) -> Floats:
        return dense(points @ points[[row]].T).ravel()

    basis = kernel_basis(column, squares(points))
    if not len(basis.pivots):  # all points are the same one
        return plain

    def components(L: Floats) -> Floats:
        weights = basis.dual(L)
        return np.ascontiguousarray((points[basis.pivots].T @ weights).T)

    n_items = int(items.shape[0])
    return PointFeatures(basis.phi if queries is items else basis.phi[n_items:], basis.phi[:n_items], components)


def kernel_features(kernel: RowKernel, queries: Floats, items: Floats, n_basis: int | None) -> PointFeatures:
    """Take features whose products are the kernel, exactly or with at most ``n_basis`` of them."""
    points = _stacked(queries, items)
    basis = kernel_basis(lambda row: kernel.column(points, row), kernel.diagonal(points), n_basis)
    if not len(basis.pivots):
        raise ValueError("X: expected a kernel that is not 0 everywhere, found 0 for every row with itself")
    n_items = len(items)
    return PointFeatures(
        basis.phi if queries is items else basis.phi[n_items:],
        basis.phi[:n_items],
        lambda L: np.ascontiguousarray(basis.dual(L).T),
        kernel.rows(points, basis.pivots),
    )


def _stacked(queries: Rows, items: Rows) -> Rows:
    if queries is items:
        return items
    return csr_array(vstack([items, queries])) if is_sparse(items) else np.vstack([items, queries])


def _own_csr(rows: Rows) -> csr_array:
    """A copy to write to, with every entry stored once."""
    copy = csr_array(rows).astype(np.float64)
    copy.sum_duplicates()
    return copy


def _stored_in_full(rows: csr_array) -> NDArray[np.bool_]:
    n_rows, width = rows.shape
    return np.bincount(rows.indices, minlength=width) == n_rows
