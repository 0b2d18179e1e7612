"""What a MetricRanker's fit works on: checked points, relevance and features as one hinge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from slatewise.core import rules
from slatewise.core.devices import gpu_of
from slatewise.core.executor import Executor, refuse_on_cluster
from slatewise.core.row_kernels import KERNELS
from slatewise.data.row_source import RowSource, StoredRows
from slatewise.estimators.transformer import check_points
from slatewise.metric_learning.interleave import Oracle
from slatewise.metric_learning.mahalanobis import is_sparse
from slatewise.metric_learning.metric_hinge import MetricHinge
from slatewise.metric_learning.point_features import PointFeatures, kernel_features, plain_features, span_features
from slatewise.metric_learning.relevant_items import Relevance, askable, lowest_counts, nearest_targets
from slatewise.metric_learning.settings import (
    REGULARIZERS,
    Labeling,
    n_targets,
    oracle_for,
    query_weights,
    relevance_of,
    top_ranks,
)
from slatewise.persistence.file import ModelCard
from slatewise.persistence.saving import card_for

if TYPE_CHECKING:
    from slatewise.metric_learning.ranker import MetricRanker


@dataclass(frozen=True, eq=False)
class Task:
    """What a fit works on, whatever C is."""

    items: Any
    hinge: MetricHinge
    whole: MetricHinge
    """The same, but of all that is relevant where the hinge has targets only: what its rankings lose is the loss."""
    features: PointFeatures
    gamma: float
    labeling: Labeling
    n_skipped: int
    card: ModelCard

    @property
    def judge(self) -> Oracle:
        """The loss that rankings are compared by: that of the fit, and for "auc" average precision, as in ``score``.

        A better AUC can be many worse first ranks for a few better ones in the middle.
        """
        oracle = self.hinge.oracle
        return Oracle("map") if oracle.name == "auc" else oracle

    def ranking_loss(self, factor: NDArray[np.float64]) -> float:
        """Return what the queries lose by the W of a factor."""
        return self.whole.ranking_loss(factor, self.judge)

    @cached_property
    def euclidean_loss(self) -> float:
        """What they lose by the unscaled distance."""
        shape = self.hinge.shape
        return self.ranking_loss(shape.start(shape.identity(self.hinge.n_features)))


def make_task(
    ranker: MetricRanker, X: Any, y: Any, relevance: Any, queries: Any, query_weight: ArrayLike | None
) -> Task:
    """Check everything, and leave out the queries that say nothing."""
    rules.check(ranker)
    if ranker.device not in (None, "cpu"):
        refuse_on_cluster(f"device={ranker.device!r}", "device=None, whose sums the workers add up")
    gpu, executor = gpu_of("X", X, ranker.device), Executor.of(ranker.n_jobs)
    if isinstance(X, RowSource):
        X, y = _read(X, y, relevance, executor)
    sparse = ranker.kernel == "linear"
    items = as_float64(check_points(ranker, X, reset=True, sparse=sparse))
    if isinstance(queries, RowSource):
        asked = _in_files(ranker, queries, items)
    else:
        asked = (
            items
            if queries is None
            else as_float64(check_points(ranker, queries, reset=False, sparse=sparse, name="queries"))
        )
    if ranker.kernel == "precomputed" and queries is not None:
        raise ValueError("queries: expected None for kernel='precomputed', found points")
    n_items, n_queries = int(items.shape[0]), int(asked.shape[0])
    wanted, labeling = relevance_of(ranker, y, relevance, n_items, None if queries is None else n_queries)
    weight = query_weights(query_weight, n_queries)
    used = np.flatnonzero((weight > 0) & askable(wanted))
    if not len(used):
        raise ValueError(
            f"{'y' if relevance is None else 'relevance'}: expected a query with relevant and irrelevant items, "
            f"found none among {n_queries} queries (n_samples={n_items})"
        )
    if ranker.kernel == "linear" and ranker.n_components is not None and ranker.n_components > items.shape[1]:
        raise ValueError(
            f"n_components: expected at most {items.shape[1]}, the features of X, found {ranker.n_components}"
        )
    features, gamma = _features(ranker, asked, items)
    weight = weight[used]
    oracle = oracle_for(ranker.loss, int(ranker.k), wanted)
    everyone = len(used) == n_queries
    points = features.queries if everyone else features.queries[used]
    wanted = wanted if everyone else wanted.some(used)
    count = n_targets(ranker, oracle, of_classes=relevance is None)
    if count is not None and isinstance(points, StoredRows):
        raise ValueError(f"targets: expected 'auto' or 'all' with queries in files, found {ranker.targets!r}")
    relevant = wanted
    wanted = wanted if count is None else nearest_targets(wanted, points, features.items, count)
    hinge = MetricHinge(
        points,
        features.items,
        wanted,
        weight / weight.sum(),
        oracle,
        REGULARIZERS[ranker.regularizer][0],
        executor,
        _scale(ranker, wanted),
    )
    whole = None if count is None else replace(hinge, relevance=relevant, scale=None)
    if gpu is not None:
        from slatewise.metric_learning.gpu.hinge import on_gpu

        hinge = on_gpu(hinge, gpu)
    whole = hinge if whole is None else whole
    card = card_for(n_queries, *_arrays(items), *_arrays(asked), *labeling.told, weight, used)
    return Task(items, hinge, whole, features, gamma, labeling, n_queries - len(used), replace(card, n_rows=n_items))


def _scale(ranker: MetricRanker, wanted: Relevance) -> NDArray[np.float64] | None:
    """Return what makes psi the mean over the pairs that losing the top turns: N / min(b, N)."""
    fewest = top_ranks(ranker)
    if fewest is None or ranker.pairs == "all":
        return None
    others = lowest_counts(wanted)
    return others / np.minimum(fewest, others)


def _features(ranker: MetricRanker, queries: Any, items: Any) -> tuple[PointFeatures, float]:
    if ranker.kernel != "linear":
        kernel = KERNELS[ranker.kernel].of(items, ranker.gamma)
        return kernel_features(kernel, queries, items, ranker.n_components), float(kernel.gamma)
    points = items.shape[0] + (0 if queries is items else queries.shape[0])
    # A diagonal W weighs the features themselves, so they must stay what they are.
    if items.shape[1] > points and ranker.regularizer != "diagonal":
        return span_features(queries, items), 1.0
    return plain_features(queries, items), 1.0


def _read(source: RowSource, y: Any, relevance: Any, executor: Executor) -> tuple[Any, Any]:
    """Read items, which every worker holds as well, and their labels."""
    if y is not None:
        raise ValueError("y: expected None with a source, which names its columns, found a value")
    return source.features.read(executor), source.labels(executor) if relevance is None else None


def _in_files(ranker: MetricRanker, queries: RowSource, items: Any) -> StoredRows:
    """Leave queries in their files, where nothing asks for all of them at once."""
    n_features = int(items.shape[1])
    if ranker.kernel != "linear" or is_sparse(items) or ranker.device not in (None, "cpu"):
        found = "a device" if ranker.kernel == "linear" and not is_sparse(items) else "sparse X"
        found = found if ranker.kernel == "linear" else f"kernel={ranker.kernel!r}"
        raise ValueError(f"queries: expected arrays, or a source with dense X and kernel='linear', found {found}")
    if queries.n_features != n_features:
        raise ValueError(f"queries: expected {n_features} features, as X has, found {queries.n_features}")
    if n_features > len(items) + queries.n_rows and ranker.regularizer != "diagonal":
        raise ValueError(f"queries: expected arrays where features ({n_features}) are more than points, found a source")
    return queries.features


def as_float64(rows: Any) -> Any:
    """Return dense or CSR rows in double precision."""
    return csr_array(rows).astype(np.float64) if is_sparse(rows) else rows.astype(np.float64)


def _arrays(rows: Any) -> tuple[NDArray[Any], ...]:
    if isinstance(rows, StoredRows):
        return (np.frombuffer(rows.source.sha256().encode(), dtype=np.uint8),)
    return (rows.data, rows.indices, rows.indptr) if is_sparse(rows) else (rows,)
