"""What a LatentRanker is given, in all its forms, as numbers: queries, items and weights of pairs.

========================= ============================== =====================================================
queries                   items                          a pair is
========================= ============================== =====================================================
ids (n,)                  ids (n,)                       row i of both
sessions                  None                           the items of a session so far and the next one:
                                                         ``session_pairs.py``
matrix (queries, items)   None                           a stored entry > 0, which is its weight; ids are numbers
features (n, d)           ids (n,)                       row i and its item
features (n, d)           0/1 matrix (n, items)          row i and each of its items; ids are column numbers
========================= ============================== =====================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.checks import feature_rows
from slatewise.core.ids import Ids, check_ids
from slatewise.core.sparse import sparse_rows
from slatewise.estimators.sklearn import BaseEstimator, check_rows, check_weights
from slatewise.factors.bags import AgeWeights, Bags
from slatewise.factors.base_levels import N_KNOTS, Levels
from slatewise.factors.pair_terms import OwnItems
from slatewise.factors.queries import BagQueries, ContextQueries, DenseQueries, IdQueries, Queries, SparseQueries
from slatewise.factors.tables import Ints, Singles, Table
from slatewise.recommend.ids import find_ids

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Features: TypeAlias = "Singles | csr_array"


@dataclass(frozen=True, eq=False)
class SessionsSoFar:
    """Queries that hold items: what was there before each item that came."""

    bags: Bags
    owners: Ints
    """The session of each."""
    window: int | None
    """Most items of a query, by whose age they weigh; None: baskets, in no order."""
    firsts: Ints
    """Where in the items of the bags each query begins, whatever the window: a base has its own."""
    items: Ints
    offsets: Ints
    """Of the sessions themselves: session s is ``items[offsets[s]:offsets[s + 1]]``."""
    levels: Levels | None = None
    """What a base says of each query; None: there is none."""
    context: csr_array | None = None
    """Features of whoever asks, a row per session; None: there are none."""

    @property
    def n_context(self) -> int:
        """How many features whoever asks has."""
        return 0 if self.context is None else int(self.context.shape[1])

    @property
    def n_ages(self) -> int:
        """How many ages have weights."""
        return self.window or 1


@dataclass(frozen=True, eq=False)
class LatentPairs:
    """Pairs by number; ``query_ids``, ``features`` or ``sessions`` say what a query's number means."""

    queries: Ints
    items: Ints
    weights: NDArray[np.float64]
    item_ids: Ids
    query_ids: Ids | None = None
    features: Features | None = None
    sessions: SessionsSoFar | None = None

    @property
    def by_id(self) -> bool:
        """Whether a query is known by its id alone."""
        return self.features is None and self.sessions is None

    @property
    def owners(self) -> Ints:
        """For each query what it belongs to, and is held out with: a session, or itself."""
        return np.arange(self.n_queries) if self.sessions is None else self.sessions.owners

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        if self.sessions is not None:
            return self.sessions.bags.n_queries
        known = self.query_ids if self.features is None else self.features
        return 0 if known is None else int(known.shape[0])

    def arrays(self) -> list[NDArray[Any]]:
        """Return all that a fit learns from, for its hash."""
        known: list[NDArray[Any]] = [] if self.query_ids is None else [self.query_ids]
        if isinstance(self.features, np.ndarray):
            known = [self.features]
        elif self.features is not None:
            known = _parts(self.features)
        elif self.sessions is not None:
            known = [*self.sessions.bags, self.sessions.owners]
            known += [] if self.sessions.context is None else _parts(self.sessions.context)
        return [self.queries, self.items, self.weights, self.item_ids, *known]


def check_pairs(
    queries: Any,
    items: Any,
    sample_weight: ArrayLike | None,
    features_of: Callable[[Any], Features],
    further: bool = False,
) -> LatentPairs:
    """Tell the forms apart, check, and number; pairs of weight 0 are left out.

    ``features_of`` checks rows of features, dense or CSR. ``further`` pairs may be all of one item.
    """
    matrix = sparse_rows("queries", queries)
    if items is None:
        pairs = _interactions(queries if matrix is None else matrix, sample_weight)
    elif matrix is not None or np.asarray(queries).ndim == 2:
        pairs = _featured(features_of(queries if matrix is None else matrix), items, sample_weight)
    else:
        asked, offered = check_ids("queries", queries), check_ids("items", items)
        if len(asked) != len(offered):
            raise ValueError(f"items: expected one per query, {len(asked)}, found {len(offered)}: inconsistent lengths")
        query_ids, numbers = np.unique(asked, return_inverse=True)
        item_ids, item_numbers = np.unique(offered, return_inverse=True)
        weights = check_weights(sample_weight, len(asked))
        pairs = LatentPairs(numbers.astype(np.int64), item_numbers.astype(np.int64), weights, item_ids, query_ids)
    return check_enough(pairs, further)


def check_enough(pairs: LatentPairs, further: bool = False) -> LatentPairs:
    """Leave pairs of weight 0 out; raise ValueError unless there is one left, and two items to rank."""
    used = pairs.weights > 0
    if not used.any():
        raise ValueError(
            "sample_weight: expected at least one pair of weight > 0, found none: all are zero, or no pairs"
        )
    if not further and len(pairs.item_ids) < 2:
        raise ValueError(f"items: expected at least two to rank, found {len(pairs.item_ids)}: one class is no ranking")
    if used.all():
        return pairs
    return replace(pairs, queries=pairs.queries[used], items=pairs.items[used], weights=pairs.weights[used])


def own_items(ids: Ids | None, item_ids: Ids, weight: float) -> OwnItems | None:
    """Return which item each query is, where that is of weight and queries have ids."""
    return OwnItems(find_ids(ids, item_ids), weight) if weight and ids is not None else None


def check_features(estimator: BaseEstimator, queries: Any, *, reset: bool) -> Features:
    """Return finite float32 features, dense or CSR."""
    matrix = sparse_rows("queries", queries)
    if matrix is None:
        dense = check_rows(estimator, queries, reset=reset)
        return as_singles("queries", dense, lambda place: "row {}, column {}".format(*divmod(place, dense.shape[1])))
    rows = cast("csr_array", feature_rows("queries", matrix))
    if reset:
        estimator.n_features_in_ = int(rows.shape[1])
    elif rows.shape[1] != estimator.n_features_in_:
        raise ValueError(f"queries: expected {estimator.n_features_in_} features, found {rows.shape[1]}")
    return _single_rows("queries", rows)


def check_context(features: Any, n_queries: int, n_columns: int | None = None) -> csr_array:
    """Return the features of whoever asks as finite float32 rows, one per query, the same CSR whatever they came as.

    ``n_columns`` are those of fit; None: any number.
    """
    from scipy.sparse import csr_array

    given = csr_array(cast("Any", feature_rows("query_features", features)), copy=True)
    n_rows, width = given.shape
    if n_rows != n_queries:
        raise ValueError(f"query_features: expected {n_queries} rows, one for each query, found {n_rows}")
    if not width or (n_columns is not None and width != n_columns):
        expected = "one column at least" if n_columns is None else f"{n_columns} columns, as in fit"
        raise ValueError(f"query_features: expected {expected}, found {width}")
    given.sum_duplicates()
    given.eliminate_zeros()
    return _single_rows("query_features", given)


def refuse_context(features: Any, where: str = "where queries are no sessions") -> None:
    """Raise ValueError where features of whoever asks are given that mean nothing there."""
    if features is not None:
        raise ValueError(f"query_features: expected None {where}, found some")


def _single_rows(name: str, rows: csr_array) -> csr_array:
    """Return rows of finite float32 numbers that share nothing with those given."""
    from scipy.sparse import csr_array

    columns = cast("Ints", rows.indices)

    def place_of(entry: int) -> str:
        return f"row {int(np.searchsorted(rows.indptr, entry, side='right')) - 1}, column {columns[entry]}"

    singles = as_singles(name, rows.data, place_of)
    return csr_array((singles, columns.copy(), rows.indptr.copy()), shape=rows.shape)


def as_singles(name: str, values: NDArray[Any], place_of: Callable[[int], str]) -> Singles:
    """Return finite numbers as float32; what is too large for it is an error that names the place."""
    with np.errstate(over="ignore"):
        singles = values.astype(np.float32)
    if not np.isfinite(singles).all():
        first = int(np.flatnonzero(~np.isfinite(singles))[0])
        found = values.reshape(-1)[first]
        raise ValueError(f"{name}: expected finite float32 numbers, found {found} at {place_of(first)}")
    return singles


def queries_of(pairs: LatentPairs, bias: int) -> Callable[[Table], Queries]:
    """Return what makes queries from a table of U."""
    sessions = pairs.sessions
    if sessions is not None:
        asked = AskedBags(sessions.bags, sessions.owners, sessions.n_ages, sessions.levels, sessions.context)
        return bag_queries(asked, len(pairs.item_ids), bias)
    return IdQueries if pairs.features is None else featured_queries(pairs.features, bias)


class AskedBags(NamedTuple):
    """What vectors of queries that hold items are made of, but for the table."""

    bags: Bags
    owners: Ints
    """Which row of the context each has."""
    n_ages: int
    levels: Levels | None
    context: csr_array | None


def bag_queries(asked: AskedBags, n_items: int, bias: int) -> Callable[[Table], Queries]:
    """Return what makes queries that hold items from a table of U, in the context of whoever asks."""
    n_knots, context = 0 if asked.levels is None else N_KNOTS, asked.context
    n_rows = n_items + (0 if context is None else int(context.shape[1]))

    def bags_of(table: Table) -> BagQueries:
        return BagQueries(asked.bags, AgeWeights(table, n_rows, n_knots), bias, asked.levels)

    if context is None:
        return bags_of
    from scipy.sparse import csr_array

    # Rows of features are behind those of items, and others behind them.
    parts = context.data, context.indices + n_items, context.indptr
    shifted = csr_array(parts, shape=(context.shape[0], n_rows + 2 * asked.n_ages + n_knots))
    return lambda table: ContextQueries(bags_of(table), SparseQueries(shifted, table, bias), asked.owners)


def featured_queries(features: Features, bias: int) -> Callable[[Table], Queries]:
    """Return what makes queries from a table of U with a row per feature."""
    if isinstance(features, np.ndarray):
        return lambda table: DenseQueries(features, table, bias)
    return lambda table: SparseQueries(features, table, bias)


def _parts(rows: csr_array) -> list[NDArray[Any]]:
    return [np.asarray(part) for part in (rows.data, rows.indices, rows.indptr)]


def _interactions(queries: Any, sample_weight: ArrayLike | None) -> LatentPairs:
    if sparse_rows("queries", queries) is None and np.asarray(queries).ndim != 2:
        raise ValueError(
            "items: expected one item per query (y cannot be None), or sessions or a matrix as queries, found None"
        )
    from scipy.sparse import csr_array

    if sample_weight is not None:
        raise ValueError("sample_weight: expected None, the entries of the matrix are the weights, found some")
    matrix = cast("csr_array", csr_array(cast("Any", feature_rows("queries", queries)), copy=True))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not ((matrix.data >= 0) & (matrix.data < np.inf)).all():
        raise ValueError(f"queries: expected finite entries >= 0, found {matrix.data.min()} to {matrix.data.max()}")
    entries = matrix.tocoo()
    return LatentPairs(
        np.asarray(entries.row, dtype=np.int64),
        np.asarray(entries.col, dtype=np.int64),
        np.asarray(entries.data, dtype=np.float64),
        np.arange(matrix.shape[1]),
        np.arange(matrix.shape[0]),
    )


def _featured(features: Features, items: Any, sample_weight: ArrayLike | None) -> LatentPairs:
    n_rows = int(features.shape[0])
    weights = check_weights(sample_weight, n_rows)
    marks = sparse_rows("items", items)
    if marks is None and np.asarray(items).ndim == 2:
        marks = _sparse(np.asarray(items))
    if marks is None:
        offered = check_ids("items", items)
        if len(offered) != n_rows:
            raise ValueError(f"items: expected one per row, {n_rows}, found {len(offered)}: inconsistent lengths")
        item_ids, numbers = np.unique(offered, return_inverse=True)
        return LatentPairs(np.arange(n_rows), numbers.astype(np.int64), weights, item_ids, features=features)
    marks = marks.copy()
    marks.sum_duplicates()  # an entry stored twice is a 2
    if marks.shape[0] != n_rows or not np.isin(marks.data, (0, 1)).all():
        raise ValueError(f"items: expected zeros and ones of {n_rows} rows, found others, shape {marks.shape}")
    rows, columns = (np.asarray(part, dtype=np.int64) for part in marks.nonzero())
    return LatentPairs(rows, columns, weights[rows], np.arange(marks.shape[1]), features=features)


def _sparse(dense: NDArray[Any]) -> csr_array:
    from scipy.sparse import csr_array

    return csr_array(dense)
