"""Pairs of a query and an item by number: checked, held out, folded, and grouped into runs and blocks for training.

A run is a few pairs of one query that share one row of scores. Pairs are held out to decide when a stage ends; lists
are cross-fitted by folds of queries.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Bools, Ints, Singles
from slatewise.core.checks import feature_rows, sparse_rows
from slatewise.core.ids import Ids, check_ids
from slatewise.estimators.sklearn import BaseEstimator, check_rows, check_weights
from slatewise.factors.queries import Features

if TYPE_CHECKING:
    from scipy.sparse import csr_array


PAIRS_PER_RUN = 16
"""Most pairs of a run: more share a row of scores, but all of them see the same, older parameters."""


@dataclass(frozen=True, eq=False)
class TrainingPairs:
    """Pairs (query, item) with weights, sorted by query; run r holds pairs ``offsets[r]`` to ``offsets[r + 1]``."""

    queries: Ints
    items: Ints
    weights: Singles
    offsets: Ints

    @classmethod
    def of(cls, queries: Ints, items: Ints, weights: Singles, most: int = PAIRS_PER_RUN) -> TrainingPairs:
        """Sort by query, in the order given inside a query, and cut each query's pairs into runs of nearly equal size.

        Examples
        --------
        >>> pairs = TrainingPairs.of(np.array([1, 0, 1, 1]), np.arange(4), np.ones(4, dtype=np.float32), most=2)
        >>> pairs.queries.tolist(), pairs.items.tolist(), pairs.offsets.tolist()
        ([0, 1, 1, 1], [1, 0, 2, 3], [0, 1, 3, 4])
        """
        order = np.argsort(queries, kind="stable")
        ordered = queries[order]
        first = np.flatnonzero(np.diff(ordered, prepend=-1))
        sizes = np.diff(first, append=len(ordered))
        n_runs: Ints = -(-sizes // most)
        within: Ints = np.arange(int(n_runs.sum())) - np.repeat(np.cumsum(n_runs) - n_runs, n_runs)
        sizes, n_runs, first = np.repeat(sizes, n_runs), np.repeat(n_runs, n_runs), np.repeat(first, n_runs)
        offsets = np.full(len(within) + 1, len(ordered), dtype=np.int64)
        offsets[:-1] = first + -(-within * sizes // n_runs)
        return cls(ordered, items[order], weights[order], offsets)

    def __len__(self) -> int:
        return len(self.queries)

    def without(self, left_out: NDArray[np.bool_]) -> TrainingPairs:
        """Return the pairs of all queries but those marked."""
        kept = ~left_out[self.queries]
        return TrainingPairs.of(self.queries[kept], self.items[kept], self.weights[kept])


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs (query, item) by number, with a weight each."""

    queries: Ints
    items: Ints
    weights: NDArray[np.float64]
    item_ids: Ids
    """In ascending order."""
    n_queries: int

    def for_training(self) -> TrainingPairs:
        """Sort the pairs, with weights of mean 1."""
        weights = self.weights / self.weights.max()  # of which no sum is infinite
        return TrainingPairs.of(self.queries, self.items, (weights / weights.mean()).astype(np.float32))


AnyPairs = TypeVar("AnyPairs", bound=Pairs)


def some_pairs(pairs: AnyPairs, chosen: NDArray[np.bool_]) -> AnyPairs:
    """Return the pairs marked."""
    return replace(pairs, queries=pairs.queries[chosen], items=pairs.items[chosen], weights=pairs.weights[chosen])


def check_enough(pairs: AnyPairs, further: bool = False) -> AnyPairs:
    """Leave pairs of weight 0 out; raise ValueError unless there is one left, and two items to rank.

    ``further`` pairs may be all of one item.
    """
    used = pairs.weights > 0
    if not used.any():
        raise ValueError(
            "sample_weight: expected at least one pair of weight > 0, found none: all are zero, or no pairs"
        )
    if not further and len(pairs.item_ids) < 2:
        raise ValueError(f"items: expected at least two to rank, found {len(pairs.item_ids)}: one class is no ranking")
    return pairs if used.all() else some_pairs(pairs, used)


class Block(NamedTuple):
    """Runs that are scored together: row r is query ``queries[r]``; its pairs end at ``ends[r]``."""

    queries: Ints
    ends: Ints
    positives: Ints
    weights: Singles
    starts: Ints
    """A random number >= 0 for each pair."""

    def rows(self, rows: slice) -> Block:
        """Return some neighbouring rows with their pairs."""
        begin, ends = int(self.ends[rows.start - 1]) if rows.start else 0, self.ends[rows]
        pairs = slice(begin, int(ends[-1]))
        return Block(self.queries[rows], ends - begin, self.positives[pairs], self.weights[pairs], self.starts[pairs])


def shuffled_blocks(pairs: TrainingPairs, block_pairs: int, rng: np.random.Generator) -> list[Block]:
    """Put the runs in random order and cut them into blocks of about ``block_pairs`` pairs."""
    order = rng.permutation(len(pairs.offsets) - 1)
    starts = rng.integers(0, 1 << 30, size=len(pairs))
    begins, sizes = pairs.offsets[order], np.diff(pairs.offsets)[order]
    before = np.cumsum(sizes) - sizes
    which = np.repeat(begins - before, sizes) + np.arange(len(pairs))
    queries, items, weights = pairs.queries[begins], pairs.items[which], pairs.weights[which]
    cuts = np.flatnonzero(np.diff(before // block_pairs, prepend=-1)).tolist()
    blocks: list[Block] = []
    for first, last in zip(cuts, [*cuts[1:], len(order)], strict=True):
        begin, end = before[first], before[last - 1] + sizes[last - 1]
        ends = before[first:last] + sizes[first:last] - begin
        inside = slice(begin, end)
        blocks.append(Block(queries[first:last], ends, items[inside], weights[inside], starts[inside]))
    return blocks


@dataclass(frozen=True, eq=False)
class Validation:
    """Pairs held out, and the depth of the recall that is watched."""

    queries: Ints
    items: Ints
    k: int


MOST_PAIRS = 20_000

FOLDS = 3

_STREAM = 1 << 32
"""Keeps these choices apart from the random numbers of the stages."""


def hold_out_pairs(pairs: AnyPairs, fraction: float, depth: int, seed: int) -> tuple[AnyPairs, Validation | None]:
    """Hold out a share of the pairs; None where too few are left to choose from.

    One pair of every query and one of every item stay: nothing else is known about them.
    """
    rng = np.random.default_rng((seed, _STREAM))
    often = np.bincount(pairs.queries)[pairs.queries] > 1
    often &= np.bincount(pairs.items)[pairs.items] > 1
    order = np.concatenate([rng.permutation(np.flatnonzero(often)), np.flatnonzero(~often)])
    spare = np.ones(len(order), dtype=bool)  # all but the last of each query and item
    for numbers in (pairs.queries[order], pairs.items[order]):
        last = np.full(int(numbers.max(initial=0)) + 1, -1)
        last[numbers] = np.arange(len(numbers))  # of an index that repeats itself, the last value stays
        spare[last[last >= 0]] = False
    held = np.zeros(len(order), dtype=bool)
    held[order[spare][: min(int(fraction * len(order)), MOST_PAIRS)]] = True
    return _split(pairs, held, depth)


def hold_out_queries(pairs: AnyPairs, fraction: float, depth: int, seed: int) -> tuple[AnyPairs, Validation | None]:
    """Hold out all pairs of some queries, chosen at random: of queries that are known by their features."""
    order = np.random.default_rng((seed, _STREAM)).permutation(pairs.n_queries)
    return hold_out_owners(pairs, pairs.queries, order, fraction, depth)


def hold_out_owners(
    pairs: AnyPairs, owners: Ints, order: Ints, fraction: float, depth: int
) -> tuple[AnyPairs, Validation | None]:
    """Hold out all pairs of some owners, the first ones in ``order``; ``owners`` has that of each pair."""
    n_owners = len(order)
    size = np.bincount(owners, minlength=n_owners)[order]
    fair = 2 * size <= len(owners)  # an owner of most pairs is for training
    order, size = order[fair], size[fair]
    chosen = np.zeros(n_owners, dtype=bool)
    chosen[order[np.cumsum(size) - size < min(int(fraction * len(owners)), MOST_PAIRS)]] = True
    return _split(pairs, chosen[owners], depth)


def cross_folds(pairs: Pairs, seed: int) -> Ints | None:
    """Return a fold for every query, -1 for those without pairs; None where these are few."""
    taught = np.unique(pairs.queries)
    if len(taught) < 2 * FOLDS:
        return None
    folds = np.full(pairs.n_queries, -1, dtype=np.int64)
    folds[taught] = np.random.default_rng((seed, _STREAM + 1)).permutation(len(taught)) % FOLDS
    return folds


def _split(pairs: AnyPairs, held: Bools, depth: int) -> tuple[AnyPairs, Validation | None]:
    """Separate held-out pairs, whose recall is watched at most at a quarter of the catalog."""
    if not held.any() or held.all():
        return pairs, None
    depth = min(depth, max(1, len(pairs.item_ids) // 4))
    return some_pairs(pairs, ~held), Validation(pairs.queries[held], pairs.items[held], depth)


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


def id_pairs(queries: Any, items: Any, sample_weight: ArrayLike | None, further: bool = False) -> IdPairs:
    """Check and number pairs of ids, or a matrix of interactions; pairs of weight 0 are left out."""
    if items is None:
        return check_enough(_interactions(queries, sample_weight), further)
    if sparse_rows("queries", queries) is not None or getattr(queries, "ndim", 1) == 2:
        raise ValueError("queries: expected ids, found a matrix: LatentFeatureRanker learns from rows of features")
    given, offered = check_ids("queries", queries), check_ids("items", items)
    if len(given) != len(offered):
        raise ValueError(f"items: expected one per query, {len(given)}, found {len(offered)}: inconsistent lengths")
    query_ids, numbers = np.unique(given, return_inverse=True)
    item_ids, item_numbers = np.unique(offered, return_inverse=True)
    weights = check_weights(sample_weight, len(given))
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
            "items: CollaborativeRanker().fit(queries, items) ranks such data better",
            UserWarning,
            stacklevel=3,
        )


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


def as_singles(name: str, values: NDArray[Any], place_of: Callable[[int], str]) -> Singles:
    """Return finite numbers as float32; what is too large for it is an error that names the place."""
    with np.errstate(over="ignore"):
        singles = values.astype(np.float32)
    if not np.isfinite(singles).all():
        first = int(np.flatnonzero(~np.isfinite(singles))[0])
        found = values.reshape(-1)[first]
        raise ValueError(f"{name}: expected finite float32 numbers, found {found} at {place_of(first)}")
    return singles


def single_rows(name: str, rows: csr_array) -> csr_array:
    """Return rows of finite float32 numbers that share nothing with those given."""
    from scipy.sparse import csr_array

    columns = cast("Ints", rows.indices)

    def place_of(entry: int) -> str:
        return f"row {int(np.searchsorted(rows.indptr, entry, side='right')) - 1}, column {columns[entry]}"

    singles = as_singles(name, rows.data, place_of)
    return csr_array((singles, columns.copy(), rows.indptr.copy()), shape=rows.shape)


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


def feature_pairs(
    estimator: BaseEstimator, X: Any, items: Any, sample_weight: ArrayLike | None, *, reset: bool
) -> FeaturePairs:
    """Check and number pairs of rows of features and items; with ``reset`` the estimator has not been fitted."""
    features = check_features(estimator, X, reset=reset)
    if items is None:
        raise ValueError("y: expected one item per row, found None; this ranker requires y to be passed")
    n_rows = int(features.shape[0])
    weights = check_weights(sample_weight, n_rows)
    rows, numbers, item_ids = rows_and_items("y", items, n_rows)
    return check_enough(FeaturePairs(rows, numbers, weights[rows], item_ids, n_rows, features), further=not reset)


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
