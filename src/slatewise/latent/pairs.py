"""Pairs to learn from, in all their forms, as numbers.

========================= ============================== =====================================================
queries                   items                          a pair is
========================= ============================== =====================================================
ids (n,)                  ids (n,)                       row i of both
matrix (queries, items)   None                           a stored entry > 0, which is its weight; ids are numbers
features (n, d)           ids (n,)                       row i and its item
features (n, d)           0/1 matrix (n, items)          row i and each of its items; ids are column numbers
========================= ============================== =====================================================
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Ints
from slatewise.core.checks import feature_rows, sparse_rows
from slatewise.core.ids import Ids, check_ids
from slatewise.estimators.sklearn import BaseEstimator, check_rows, check_weights
from slatewise.factors.pairs import Pairs, check_enough
from slatewise.factors.queries import Features
from slatewise.factors.tables import as_singles, single_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SEVERAL_ITEMS, FEW_QUERIES_ARE_ITEMS = 5, 0.01
"""Users have at least this number of items in the median, and at most this share of them is an item too."""


@dataclass(frozen=True, eq=False)
class IdPairs(Pairs):
    """Pairs of which a query is known by its id alone."""

    query_ids: Ids
    """In ascending order."""

    def arrays(self) -> list[NDArray[Any]]:
        """Return all that a fit learns from, for its hash."""
        return [self.queries, self.items, self.weights, self.item_ids, self.query_ids]


@dataclass(frozen=True, eq=False)
class FeaturePairs(Pairs):
    """Pairs of which a query is a row of features."""

    features: Features

    def arrays(self) -> list[NDArray[Any]]:
        """Return all that a fit learns from, for its hash."""
        rows = self.features
        known = (
            [rows] if isinstance(rows, np.ndarray) else [np.asarray(x) for x in (rows.data, rows.indices, rows.indptr)]
        )
        return [self.queries, self.items, self.weights, self.item_ids, *known]


def id_pairs(queries: Any, items: Any, sample_weight: ArrayLike | None, further: bool = False) -> IdPairs:
    """Check and number pairs of ids, or a matrix of interactions; pairs of weight 0 are left out."""
    if items is None:
        return check_enough(_interactions(queries, sample_weight), further)
    if sparse_rows("queries", queries) is not None or getattr(queries, "ndim", 1) == 2:
        raise ValueError("queries: expected ids, found a matrix: LatentFeatureRanker learns from rows of features")
    asked, offered = check_ids("queries", queries), check_ids("items", items)
    if len(asked) != len(offered):
        raise ValueError(f"items: expected one per query, {len(asked)}, found {len(offered)}: inconsistent lengths")
    query_ids, numbers = np.unique(asked, return_inverse=True)
    item_ids, item_numbers = np.unique(offered, return_inverse=True)
    weights = check_weights(sample_weight, len(asked))
    pairs = IdPairs(
        numbers.astype(np.int64), item_numbers.astype(np.int64), weights, item_ids, len(query_ids), query_ids
    )
    return check_enough(pairs, further)


def warn_of_users(pairs: IdPairs) -> None:
    """Warn of queries that look like users and their sets of items, which another model ranks better."""
    distinct = np.unique(pairs.queries * len(pairs.item_ids) + pairs.items) // len(pairs.item_ids)
    counts = np.bincount(distinct, minlength=pairs.n_queries)
    median = float(np.median(counts[counts > 0]))
    n_items = int(np.isin(pairs.query_ids, pairs.item_ids).sum())
    if median >= SEVERAL_ITEMS and n_items <= FEW_QUERIES_ARE_ITEMS * pairs.n_queries:
        warnings.warn(
            f"queries: {pairs.n_queries} ids with {median:g} different items in the median look like users and their "
            "items: SessionRanker(window=None, base=None), fitted on the list of items of each, ranks such data better",
            UserWarning,
            stacklevel=3,
        )


def feature_pairs(
    features: Features, items: Any, sample_weight: ArrayLike | None, further: bool = False
) -> FeaturePairs:
    """Check and number pairs of rows of features, which are checked, and items."""
    if items is None:
        raise ValueError("y: expected one item per row, found None; this ranker requires y to be passed")
    n_rows = int(features.shape[0])
    weights = check_weights(sample_weight, n_rows)
    rows, numbers, item_ids = rows_and_items("y", items, n_rows)
    return check_enough(FeaturePairs(rows, numbers, weights[rows], item_ids, n_rows, features), further)


def rows_and_items(name: str, items: Any, n_rows: int) -> tuple[Ints, Ints, Ids]:
    """Return the row and the item of every pair, by number, and the ids of the items."""
    marks = sparse_rows(name, items)
    if marks is None and np.asarray(items).ndim == 2:
        from scipy.sparse import csr_array

        marks = csr_array(np.asarray(items))
    if marks is None:
        offered = check_ids(name, items)
        if len(offered) != n_rows:
            raise ValueError(f"{name}: expected one per row, {n_rows}, found {len(offered)}: inconsistent lengths")
        item_ids, numbers = np.unique(offered, return_inverse=True)
        return np.arange(n_rows), numbers.astype(np.int64), item_ids
    marks = marks.copy()
    marks.sum_duplicates()  # an entry stored twice is a 2
    if marks.shape[0] != n_rows or not np.isin(marks.data, (0, 1)).all():
        raise ValueError(f"{name}: expected zeros and ones of {n_rows} rows, found others, shape {marks.shape}")
    rows, columns = (np.asarray(part, dtype=np.int64) for part in marks.nonzero())
    return rows, columns, np.arange(marks.shape[1])


def check_features(estimator: BaseEstimator, X: Any, *, reset: bool) -> Features:
    """Return finite float32 features, dense or CSR."""
    matrix = sparse_rows("X", X)
    if matrix is None:
        dense = check_rows(estimator, X, reset=reset)
        return as_singles("X", dense, lambda place: "row {}, column {}".format(*divmod(place, dense.shape[1])))
    rows = cast("csr_array", feature_rows("X", matrix))
    if reset:
        estimator.n_features_in_ = int(rows.shape[1])
    elif rows.shape[1] != estimator.n_features_in_:
        raise ValueError(f"X: expected {estimator.n_features_in_} features, found {rows.shape[1]}")
    return single_rows("X", rows)


def _interactions(queries: Any, sample_weight: ArrayLike | None) -> IdPairs:
    matrix = sparse_rows("queries", queries)
    if matrix is None and getattr(queries, "ndim", 0) != 2:
        raise ValueError(
            "items: expected one item per query, or a matrix of interactions as queries, found None; sessions are for "
            "SessionRanker"
        )
    from scipy.sparse import csr_array

    if sample_weight is not None:
        raise ValueError("sample_weight: expected None, the entries of the matrix are the weights, found some")
    given = queries if matrix is None else matrix
    matrix = cast("csr_array", csr_array(cast("Any", feature_rows("queries", given)), copy=True))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not ((matrix.data >= 0) & (matrix.data < np.inf)).all():
        raise ValueError(f"queries: expected finite entries >= 0, found {matrix.data.min()} to {matrix.data.max()}")
    entries = matrix.tocoo()
    return IdPairs(
        np.asarray(entries.row, dtype=np.int64),
        np.asarray(entries.col, dtype=np.int64),
        np.asarray(entries.data, dtype=np.float64),
        np.arange(matrix.shape[1]),
        int(matrix.shape[0]),
        np.arange(matrix.shape[0]),
    )
