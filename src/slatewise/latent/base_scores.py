"""A StructuredReranker's base, in all its forms, as rows of scores b(q, d).

=========================================== ==========================================================
base                                        b(q, d)
=========================================== ==========================================================
matrix (queries, items)                     its entry; ids are row and column numbers
sparse matrix (queries, items)              its entry, 0 where none is stored
two matrices (queries, n) and (items, n)    inner product of row q of the first and row d of the second
object                                      what ``scores(queries, items)`` returns for ids
=========================================== ==========================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Ints, Singles
from slatewise.core.checks import sparse_rows
from slatewise.core.ids import Ids, check_ids
from slatewise.factors.pairs import IdPairs, as_singles, id_pairs
from slatewise.factors.scoring import BaseScores, pieces
from slatewise.recommend.ids import Unknown

if TYPE_CHECKING:
    from scipy.sparse import csr_array


MOST_KEPT = 1 << 27
"""Scores (half a gigabyte) of a scorer that are kept; a larger table is computed again, block by block."""


FEWEST_STEPS = 64
"""Between the lowest and the highest score of a row that float32 must have numbers for: an order, and not rounding."""


Scorer: TypeAlias = Callable[[Ids, Ids], Any]
"""Returns the score of every query with every item, (queries, items)."""


class Numbered(Protocol):
    """A base whose ids are row and column numbers."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many queries and items it has."""
        ...

    def of(self, queries: Ints) -> BaseScores:
        """Return the scores of these rows, called by their places from now on."""
        ...

    def mean(self) -> Singles:
        """Return the mean of all rows: what the base says of items without knowing who asks."""
        ...


def numbered(base: Any) -> Numbered | None:
    """Tell the forms apart; None for a scorer, and an error for anything else."""
    if _scorer(base) is not None:
        return None
    sparse = sparse_rows("base", base)
    if sparse is not None:
        return _Sparse(sparse)
    vectors = _pair(base)
    if vectors is not None:
        return vectors
    table = _array(base)
    if not _is_table(table):
        raise ValueError(
            "base: expected a matrix of scores (queries, items), a pair of matrices (queries, n) and (items, n), or an "
            f"object with scores(queries, items), found {type(base).__name__} with {table.ndim} dimensions"
        )
    return _Dense(table)


def _scorer(base: Any) -> Scorer | None:
    """Return the method of an object that scores ids; None where it has none."""
    scores = getattr(base, "scores", None)
    return scores if callable(scores) else None


def pairs_for(base: Any, queries: Any, items: Any, sample_weight: ArrayLike | None) -> IdPairs:
    """Number pairs of ids; a base whose ids are numbers brings its whole catalogue with it."""
    query_ids, item_ids, table = check_ids("queries", queries), check_ids("items", items), numbered(base)
    if table is None:
        return id_pairs(query_ids, item_ids, sample_weight)
    n_queries, n_items = table.shape
    check_numbers("queries", "row", query_ids, n_queries)
    check_numbers("items", "column", item_ids, n_items)
    pairs = id_pairs(query_ids, item_ids, sample_weight)
    return replace(pairs, items=pairs.item_ids[pairs.items], item_ids=np.arange(n_items))


def rows_of(base: Any, query_ids: Ids, item_ids: Ids, unknown: Unknown = "error") -> BaseScores:
    """Return the base's scores for these queries, called by their places, with these items.

    Queries that are no rows of the base are an error or, with "ignore", have the mean of all rows. A scorer decides by
    itself what it does with ids that it does not know.
    """
    table = numbered(base)
    if table is not None:
        n_queries, n_items = table.shape
        if len(item_ids) != n_items or item_ids.dtype.kind != "i" or item_ids[-1] != n_items - 1:
            raise ValueError(f"base: expected scores of the {len(item_ids)} items of fit, found {n_items} columns")
        if unknown == "error" or query_ids.dtype.kind != "i":
            check_numbers("queries", "row", query_ids, n_queries)
            return table.of(query_ids)
        return _or_mean(table, query_ids)
    scorer = _OfScorer(cast("Scorer", _scorer(base)), query_ids, item_ids, Lock())
    if len(query_ids) * len(item_ids) > MOST_KEPT:
        return scorer
    scores, places = np.empty((len(query_ids), len(item_ids)), dtype=np.float32), np.arange(len(query_ids))
    for part in pieces(len(query_ids), len(item_ids)):
        scores[part] = scorer.rows(places[part])
    return Kept(scores)


def check_numbers(name: str, line: str, ids: Ids, n_lines: int) -> None:
    """Raise ValueError unless ids are numbers of the base's rows, or columns."""
    expected = f"{name}: expected {line} numbers below {n_lines}, the base's {line}s"
    if ids.dtype.kind != "i":
        raise ValueError(f"{expected}, found dtype {ids.dtype}")
    wrong = np.flatnonzero((ids < 0) | (ids >= n_lines))
    if len(wrong):
        raise ValueError(f"{expected}, found {ids[wrong[0]]}")


def _or_mean(table: Numbered, query_ids: Ids) -> BaseScores:
    known = (query_ids >= 0) & (query_ids < table.shape[0])
    if known.all():
        return table.of(query_ids)
    warnings.warn(
        f"queries: {int((~known).sum())} of {len(query_ids)} ids are no rows of the base and get the mean of its rows; "
        f"the first: {query_ids[~known][0]}",
        stacklevel=2,
    )
    return _OrMean(table.of(query_ids[known]), np.where(known, np.cumsum(known) - 1, -1), table.mean())


@dataclass(frozen=True, eq=False)
class Kept:
    """Scores in memory."""

    scores: Singles

    def rows(self, queries: Ints) -> Singles:
        """Copy them."""
        return self.scores[queries]


@dataclass(frozen=True, eq=False)
class _OrMean:
    """Rows of a base, and one for everybody else."""

    known: BaseScores
    places: Ints
    """Where each query is among the known ones; -1: nowhere."""
    mean: Singles

    def rows(self, queries: Ints) -> Singles:
        places = self.places[queries]
        scores = np.tile(self.mean, (len(queries), 1))
        scores[places >= 0] = self.known.rows(places[places >= 0])
        return scores


@dataclass(frozen=True, eq=False)
class Scaled:
    """Another base's scores in another unit."""

    base: BaseScores
    unit: float

    def rows(self, queries: Ints) -> Singles:
        """Divide; a quotient that float32 has not would have no place in a list."""
        scores = self.base.rows(queries)
        with np.errstate(over="ignore"):
            scores /= np.float32(self.unit)
        if not np.isfinite((scores.min(initial=0.0), scores.max(initial=0.0))).all():
            raise ValueError(f"base: expected scores that float32 holds in units of {self.unit:g}, found larger ones")
        return scores


@dataclass(frozen=True, eq=False)
class _OfScorer:
    scorer: Scorer
    query_ids: Ids
    item_ids: Ids
    lock: Lock
    """Other people's scorers need not stand several threads."""

    def rows(self, queries: Ints) -> Singles:
        with self.lock:
            scores = self.scorer(self.query_ids[queries], self.item_ids)
        table, shape = np.asarray(scores), (len(queries), len(self.item_ids))
        if table.shape != shape:
            raise ValueError(f"base: expected scores of shape {shape} (queries, items), found {table.shape}")
        return _scores(table, self.query_ids[queries])


@dataclass(frozen=True, eq=False)
class _Dense:
    table: NDArray[Any]

    @property
    def shape(self) -> tuple[int, int]:
        return self.table.shape[0], self.table.shape[1]

    def of(self, queries: Ints) -> BaseScores:
        return Kept(_scores(self.table[queries], queries))

    def mean(self) -> Singles:
        return self.table.mean(axis=0, dtype=np.float64).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _Sparse:
    table: csr_array

    @property
    def shape(self) -> tuple[int, int]:
        return self.table.shape[0], self.table.shape[1]

    def of(self, queries: Ints) -> BaseScores:
        rows = self.table[queries].astype(np.float64)
        rows.sum_duplicates()

        def place_of(entry: int) -> str:
            row = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
            return str([int(queries[row]), int(rows.indices[entry])])

        singles = as_singles("base", rows.data, place_of)
        if rows.data.any() and not singles.any():
            raise ValueError(f"base: expected scores that float32 can hold, found none above {np.abs(rows.data).max()}")
        rows.data = singles
        return _SparseRows(rows)

    def mean(self) -> Singles:
        return (np.asarray(self.table.sum(axis=0, dtype=np.float64)).reshape(-1) / self.shape[0]).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _SparseRows:
    scores: csr_array

    def rows(self, queries: Ints) -> Singles:
        return self.scores[queries].toarray()


@dataclass(frozen=True, eq=False)
class _Vectors:
    queries: NDArray[Any]
    items: NDArray[Any]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.queries), len(self.items)

    def of(self, queries: Ints) -> BaseScores:
        found = _Products(_singles(self.queries[queries], queries), _singles(self.items, np.arange(len(self.items))))
        # Then no product is more than float32 has, and no sum on the way to it.
        sizes = [max(-float(part.min(initial=0.0)), float(part.max(initial=0.0))) for part in found.parts]
        if sizes[0] * sizes[1] * self.items.shape[1] > float(np.finfo(np.float32).max):
            raise ValueError(f"base: expected vectors whose products float32 can hold, found numbers up to {sizes}")
        return found

    def mean(self) -> Singles:
        return (self.queries.mean(axis=0, dtype=np.float64) @ self.items.T.astype(np.float64)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _Products:
    queries: Singles
    items: Singles

    @property
    def parts(self) -> tuple[Singles, Singles]:
        return self.queries, self.items

    def rows(self, queries: Ints) -> Singles:
        return self.queries[queries] @ self.items.T


def _pair(base: Any) -> _Vectors | None:
    parts = [_array(part) for part in cast("tuple[Any, ...]", base)] if isinstance(base, tuple) else []
    if len(parts) != 2 or not all(_is_table(part) for part in parts):
        return None
    if parts[0].shape[1] != parts[1].shape[1]:
        shapes = " and ".join(str(part.shape) for part in parts)
        raise ValueError(f"base: expected vectors of one width, (queries, n) and (items, n), found {shapes}")
    return _Vectors(*parts)


def _array(value: Any) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError:  # rows of different lengths
        return np.empty(0)


def _is_table(value: NDArray[Any]) -> bool:
    return value.ndim == 2 and value.dtype.kind in "biuf"


def _scores(rows: NDArray[Any], names: Ids) -> Singles:
    """Return rows of scores as float32; rows whose scores it has too few numbers to tell apart are warned of."""
    singles = _singles(rows, names)
    if rows.size and rows.dtype.itemsize > singles.itemsize:
        spread = rows.max(axis=1).astype(np.float64) - rows.min(axis=1)
        step = np.spacing(np.abs(singles).max(axis=1)).astype(np.float64)
        lost = (spread > 0) & (spread < FEWEST_STEPS * step)
        if lost.any():
            warnings.warn(
                f"base: float32 cannot tell the scores of {int(lost.sum())} of {len(rows)} rows apart, the first is "
                f"{names[int(np.argmax(lost))]}; take a row's mean off its scores, or multiply them",
                UserWarning,
                stacklevel=2,
            )
    return singles


def _singles(rows: NDArray[Any], names: Ids) -> Singles:
    """Return rows, which have names, as finite float32 numbers."""

    def place_of(place: int) -> str:
        row, column = divmod(place, rows.shape[1])
        return str([names[row].item(), column])

    return as_singles("base", rows, place_of)
