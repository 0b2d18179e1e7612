"""What a MetricRanker is given, at the door: parameters, labels or lists, and the arrays of a file."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from slatewise.core.checks import relevance_rows
from slatewise.core.label_sets import check_labels
from slatewise.core.results import NothingLearnedWarning
from slatewise.core.row_kernels import check_basis
from slatewise.core.sparse import sparse_rows
from slatewise.estimators.transformer import check_classes
from slatewise.metric_learning.cone import Cone, Orthant, Psd
from slatewise.metric_learning.cuts import Regularizer
from slatewise.metric_learning.interleave import Oracle, require_few_states
from slatewise.metric_learning.mahalanobis import is_sparse, row_blocks
from slatewise.metric_learning.relevant_items import LEFT_OUT, MOST_GRADES, Listed, Relevance, SameClass, SharedLabel

if TYPE_CHECKING:
    from slatewise.metric_learning.ranker import MetricRanker
    from slatewise.metric_learning.task import Task

Ints: TypeAlias = NDArray[np.int64]
Labels: TypeAlias = NDArray[Any]

REGULARIZERS: dict[str, tuple[Cone, Regularizer]] = {
    "trace": (Psd(), Regularizer(1.0, 0.0)),
    "frobenius": (Psd(), Regularizer(0.0, 1.0)),
    "diagonal": (Orthant(), Regularizer(1.0, 0.0)),
}
NEXT_TO_NOTHING = 0.97
"""A lower bound above this share of the objective of W = 0 is a warning."""
ROUNDED = 1e-6
"""A mean loss above Euclid's by no more than this may be rounding."""
NO_LABELS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Labeling:
    """What the items are known by, for scoring later: class numbers, 0/1 labels, or nothing."""

    labels: Labels
    classes: Labels
    told: tuple[NDArray[Any], ...]
    """All arrays that say what is relevant, for the hash of the data."""


def top_ranks(ranker: MetricRanker) -> int | None:
    """Return how many irrelevant items on the first ranks lose what there is to lose there; None: it takes them all."""
    k = int(ranker.k)
    return {"precision": k, "ndcg": k, "knn": (k + 1) // 2, "mrr": 1}.get(ranker.loss)


def n_targets(ranker: MetricRanker, oracle: Oracle, *, of_classes: bool) -> int | None:
    """Return how many relevant items of a query are to come first; None: all."""
    if ranker.targets == "all" or (ranker.targets == "auto" and (top_ranks(ranker) is None or not of_classes)):
        return None
    if oracle.name == "graded_ndcg":
        raise ValueError(f"targets: expected 'auto' or 'all' with grades of relevance, found {ranker.targets!r}")
    return int(ranker.k if ranker.targets == "auto" else ranker.targets)


def query_weights(weight: ArrayLike | None, n_queries: int) -> NDArray[np.float64]:
    """Return one weight >= 0 per query; ones by default."""
    if weight is None:
        return np.ones(n_queries)
    values = np.asarray(weight, dtype=np.float64)
    if values.shape != (n_queries,) or not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"query_weight: expected {n_queries} finite numbers >= 0, one per query, found {weight!r}")
    return values


def relevance_of(
    ranker: MetricRanker, y: Any, relevance: Any, n_items: int, n_queries: int | None
) -> tuple[Relevance, Labeling]:
    """Say what is relevant in a fit; ``n_queries`` is None where the rows of X are the queries."""
    if (y is None) == (relevance is None):
        if y is None:
            raise ValueError("y: this ranker requires y to be passed, but the target y is None (or pass relevance=)")
        raise ValueError("relevance: expected None where y is given, found both")
    if relevance is None:
        if n_queries is not None:
            raise ValueError("relevance: expected the relevance of every item for the queries given, found None")
        return same_labels(y, n_items)
    shape = (n_items if n_queries is None else n_queries, n_items)
    own = np.arange(n_items) if n_queries is None else np.full(n_queries, -1)
    lists = listed(ranker, relevance, shape, own)
    told = (lists.lists.data, lists.lists.indices, lists.lists.indptr)
    return lists, Labeling(NO_LABELS, NO_LABELS, told)


def same_labels(y: Any, n_rows: int) -> tuple[Relevance, Labeling]:
    """Read classes or 0/1 labels: rows are relevant to each other that share one."""
    own = np.arange(n_rows)
    rows = sparse_rows("y", y)
    told = np.asarray(y) if rows is None else rows.toarray()
    if told.ndim < 2 or told.shape[1] == 1:
        classes, numbers = np.unique(check_classes(told, n_rows), return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y: expected at least two classes, found 1 class ({classes[0]!r})")
        numbers = numbers.astype(np.int64)
        return SameClass(numbers, numbers, own), Labeling(numbers, classes, (numbers,))
    labels = check_labels(told, n_rows)[0].astype(np.int8)
    matrix = csr_array(labels.astype(np.int32))
    return SharedLabel(matrix, matrix, own), Labeling(labels, NO_LABELS, (labels,))


def listed(ranker: MetricRanker, relevance: Any, shape: tuple[int, int], own: Ints) -> Listed:
    """Read a matrix of queries by items."""
    if ranker.unlisted == "ignored" and not is_sparse(relevance):
        raise ValueError(
            "relevance: expected a SciPy sparse matrix for unlisted='ignored' (what it does not store is unlisted), "
            f"found {type(relevance).__name__}"
        )
    matrix = relevance_rows(relevance if is_sparse(relevance) else csr_array(np.atleast_2d(np.asarray(relevance))))
    if matrix.shape != shape:
        raise ValueError(f"relevance: expected shape {shape} (queries, items), found {matrix.shape}")
    values = matrix.data
    if ranker.threshold is not None:
        grades = values >= ranker.threshold
    elif ranker.loss == "ndcg":
        grades = np.maximum(values, 0)
        wrong = np.flatnonzero((grades != np.floor(grades)) | (grades > MOST_GRADES))
        if len(wrong):
            raise ValueError(
                f"relevance: expected whole grades up to {MOST_GRADES} for loss='ndcg' without a threshold, "
                f"found {values[wrong[0]]}"
            )
    else:
        grades = values > 0
    grades = grades.astype(np.int8)
    absent = 0 if ranker.unlisted == "irrelevant" else LEFT_OUT
    return Listed(csr_array((grades, matrix.indices, matrix.indptr), shape=shape), absent, own.astype(np.int64))


def oracle_for(loss: str, k: int, wanted: Relevance) -> Oracle:
    """Return the loss's exact oracle; with grades, the one that tells them apart."""
    oracle = Oracle(loss, k)
    if loss != "ndcg":
        return oracle
    graded = False
    for block in row_blocks(wanted.n_queries, wanted.n_items):
        values = np.empty((block.stop - block.start, wanted.n_items), dtype=np.int8)
        wanted.fill(block, values)
        if values.max(initial=0) > 1:
            graded = True
            offsets = np.arange(len(values) + 1, dtype=np.int64) * wanted.n_items
            require_few_states(values.ravel(), offsets, k)
    return Oracle("graded_ndcg", k) if graded else oracle


def warn_if_nothing_learnt(ranker: MetricRanker, task: Task, W: NDArray[np.float64]) -> None:
    """Say so where the certificate proves that no W is much better than W = 0, or where W ranks worse than Euclid."""
    at_zero, setting = float(ranker.C) * task.hinge.at_zero, f"(C={ranker.C:g}, loss={ranker.loss!r})"
    if ranker.lower_bound_ > NEXT_TO_NOTHING * at_zero:
        all_pairs = top_ranks(ranker) is not None and (ranker.targets == "all" or not len(ranker.catalogue_labels_))
        warnings.warn(
            f"nothing or next to nothing was learned: the objective of W = 0 is {at_zero:.6g}, and no W is below "
            f"{ranker.lower_bound_:.6g}, {ranker.lower_bound_ / at_zero:.4f} of it {setting}: "
            f"raise C{', or set targets=k' if all_pairs else ''}, or look at the features",
            NothingLearnedWarning,
            stacklevel=4,
        )
        return
    loss = task.ranking_loss(task.hinge.shape.start(W))
    if loss > task.euclidean_loss + ROUNDED:
        more = "C" if ranker.n_components is None else "C, or n_components"
        warnings.warn(
            "worse than nothing was learned: the learned distance ranks the training queries worse than the Euclidean "
            f"one, 1 - {task.judge.name} is {loss:.4g} instead of {task.euclidean_loss:.4g} {setting}: "
            f"raise {more}, look at the features, or keep to the Euclidean distance",
            NothingLearnedWarning,
            stacklevel=4,
        )


def labels_like(ranker: MetricRanker, y: Any, n_rows: int) -> Relevance:
    """Read the labels of new rows by what fit saw: relevant are the catalogue's rows that share one."""
    own = np.full(n_rows, -1, dtype=np.int64)
    known = ranker.catalogue_labels_
    if known.ndim == 1 and len(known):
        values = check_classes(y, n_rows)
        numbers = np.minimum(np.searchsorted(ranker.classes_, values), len(ranker.classes_) - 1)
        return SameClass(np.where(ranker.classes_[numbers] == values, numbers, -1).astype(np.int64), known, own)
    if known.ndim == 2:
        labels = check_labels(y, n_rows)[0]
        if labels.shape[1] != known.shape[1]:
            raise ValueError(f"y: expected {known.shape[1]} labels, as in fit, found {labels.shape[1]}")
        return SharedLabel(csr_array(labels.astype(np.int32)), csr_array(known.astype(np.int32)), own)
    raise ValueError("relevance: expected the relevance of the catalogue's items, as fit had it, found None")


def check_learned(ranker: MetricRanker) -> None:
    """Raise ValueError unless the arrays of a file fit each other and the parameters."""
    check_basis(ranker.kernel, ranker.basis_, ranker.n_features_in_)
    rank, items = len(ranker.components_), len(ranker.catalogue_)
    width = ranker.n_features_in_ if ranker.kernel == "linear" else len(ranker.basis_)
    if not items:
        raise ValueError("catalogue_: expected at least one row, found none")
    for name, shape in (("components_", (rank, width)), ("catalogue_", (items, rank))):
        if getattr(ranker, name).shape != shape:
            raise ValueError(f"{name}: expected shape {shape}, found {getattr(ranker, name).shape}")
    labels, n_classes = ranker.catalogue_labels_, len(ranker.classes_)
    if len(labels) not in (0, items):
        raise ValueError(f"catalogue_labels_: expected {items} rows or none, found {len(labels)}")
    one_class = labels.ndim == 1 and len(labels) > 0
    if one_class != (n_classes > 0):
        raise ValueError(f"classes_: expected some where catalogue_labels_ names one per row, found {n_classes}")
    most = n_classes - 1 if one_class else 1
    if labels.max(initial=0) > most or (labels.ndim == 2 and not labels.size):
        raise ValueError(f"catalogue_labels_: expected numbers from 0 to {most}, found {labels.max(initial=0)}")
