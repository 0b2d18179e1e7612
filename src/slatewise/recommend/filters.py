"""Filters of every ``rank``: ``exclude``, ``exclude_seen`` and ``candidates``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints
from slatewise.core.checks import sparse_rows
from slatewise.core.groups import concatenate_ranges
from slatewise.core.ids import Ids
from slatewise.core.rules import is_whole
from slatewise.data.sessions import flat_lists
from slatewise.recommend.ids import Unknown, number_ids

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from slatewise.recommend.histories import SessionQueries

Seen: TypeAlias = bool | Literal["last"]
"""Hide nothing of a session, all of its items, or the last one only."""
DEFAULT_K = 10


class RankOptions(NamedTuple):
    """The keyword arguments of ``rank`` as they were given: the filters, and those that some recommenders have."""

    exclude: Any = None
    exclude_seen: Seen = False
    candidates: Any = None
    unknown: Unknown = "error"
    query_features: Any = None
    stage: int | None = None
    device: str | None = None
    n_jobs: int | None = None


@dataclass(frozen=True, eq=False)
class ItemFilter:
    """The items that queries may be shown: all, or the candidates, without the hidden ones."""

    hidden: csr_array | None = None
    """(queries, items): a stored entry is hidden from the query."""
    common: Ints | None = None
    """The candidates of all queries, ascending; None: every item."""
    own: csr_array | None = None
    """(queries, items): a stored entry is a candidate of the query; None: ``common`` says it."""

    @property
    def may_be_short(self) -> bool:
        """Whether a list may have fewer than k items."""
        return self.hidden is not None or self.common is not None or self.own is not None


def check_filters(queries: SessionQueries, item_ids: Ids, options: RankOptions) -> ItemFilter:
    """Check the filters of ``rank``.

    ``exclude`` and ``candidates`` are sequences of ids, one sequence per query, or a sparse matrix (queries, items);
    ``candidates`` may also be one sequence of ids for all queries.
    """
    exclude_seen: Any = options.exclude_seen
    unknown = options.unknown
    if not isinstance(exclude_seen, bool | np.bool_) and not (isinstance(exclude_seen, str) and exclude_seen == "last"):
        raise ValueError(f"exclude_seen: expected True, False or 'last', found {exclude_seen!r}")
    hidden = check_exclude(options.exclude, len(queries), item_ids, unknown)
    if exclude_seen:
        seen = seen_items(queries, len(item_ids), only_last=exclude_seen == "last")
        hidden = seen if hidden is None else hidden + seen
    common, own = check_candidates(options.candidates, len(queries), item_ids, unknown)
    return ItemFilter(hidden, common, own)


def check_candidates(
    candidates: Any, n_queries: int, item_ids: Ids, unknown: Unknown = "error"
) -> tuple[Ints | None, csr_array | None]:
    """Return the candidates of all queries, ascending, or those of each query, (queries, items); None: not given."""
    if candidates is None:
        return None, None
    if isinstance(candidates, Iterator):
        candidates = list(cast("Iterator[Any]", candidates))  # it is looked at twice
    ids = None if sparse_rows("candidates", candidates) is not None else _flat(candidates)
    if ids is not None:
        numbers = number_ids("candidates", ids, item_ids, unknown=unknown)
        common = np.unique(numbers[numbers >= 0])
        if not len(common):
            raise ValueError("candidates: expected items that fit saw, found none")
        return common, None
    own = check_sets("candidates", candidates, item_ids, unknown)
    if own.shape[0] != n_queries:
        raise ValueError(f"candidates: expected items for each of {n_queries} queries, found {own.shape[0]}")
    return None, own


def seen_items(queries: SessionQueries, n_items: int, only_last: bool = False) -> csr_array:
    """Return the items of each session, or its last one, (queries, items)."""
    from scipy.sparse import csr_array

    starts = np.maximum(queries.starts, queries.ends - 1) if only_last else queries.starts
    places, offsets = concatenate_ranges(starts, queries.ends - starts)
    seen = csr_array((np.ones(len(places)), queries.items[places], offsets), shape=(len(queries), n_items))
    seen.sum_duplicates()
    return seen


def _flat(candidates: Any) -> NDArray[Any] | list[Any] | None:
    """Return one sequence, or set, of ids; None for a sequence of them per query, and for what is neither."""
    if isinstance(candidates, np.ndarray) and cast("NDArray[Any]", candidates).dtype.kind != "O":
        return cast("NDArray[Any]", candidates) if candidates.ndim == 1 else None
    if isinstance(candidates, str | bytes | Mapping) or not isinstance(candidates, Iterable):
        return None
    ids = list(cast("Iterable[Any]", candidates))
    return ids if all(isinstance(one, str | Number) for one in ids) else None


def check_k(k: int, most: int, default: int | None = DEFAULT_K) -> int:
    """Return the number of items to show; the default is capped by the number there are, others must not be larger."""
    k = min(k, most) if k == default else k
    if not is_whole(k) or not 1 <= k <= most:
        raise ValueError(f"k: expected a whole number from 1 to the {most} items there are, found {k!r}")
    return int(k)


def check_depths(ks: Any) -> tuple[int, ...]:
    """Return the depths of recall."""
    depths = tuple(cast("Iterable[int]", ks)) if isinstance(ks, Iterable) else ()
    if not depths or any(not is_whole(k) or k < 1 for k in depths):
        raise ValueError(f"ks: expected whole numbers >= 1, found {ks!r}")
    return depths


def check_lengths(queries: NDArray[Any], items: NDArray[Any]) -> None:
    """Raise ValueError unless there is an item for each query, and a pair at all."""
    if not len(queries) and not len(items):
        raise ValueError("queries: expected at least one with an item to find, or a session of two items, found none")
    if len(queries) != len(items):
        raise ValueError(f"items: expected one per query, {len(queries)}, found {len(items)}")


def check_exclude(exclude: Any, n_queries: int, item_ids: Ids, unknown: Unknown = "error") -> csr_array | None:
    """Return what is hidden from each query as CSR (queries, items), each item once."""
    if exclude is None:
        return None
    matrix = check_sets("exclude", exclude, item_ids, unknown)
    if matrix.shape[0] != n_queries:
        raise ValueError(f"exclude: expected items for each of {n_queries} queries, found {matrix.shape[0]}")
    matrix.data[:] = 1.0  # what is hidden twice is never shown: -1 and 1 would add up to nothing
    return matrix


def check_sets(name: str, sets: Any, item_ids: Ids, unknown: Unknown = "error") -> csr_array:
    """Return sets of items, sequences of ids or rows of a sparse matrix, as CSR (sets, items) with counts."""
    from scipy.sparse import csr_array

    matrix = sparse_rows(name, sets)
    if matrix is None:
        # Zeros and ones would pass for ids. An array of names, or of another width, can be nothing else.
        given = cast("NDArray[Any]", sets)
        if (
            isinstance(sets, np.ndarray)
            and given.ndim == 2
            and given.dtype.kind in "biuf"
            and given.shape[1] == len(item_ids)
        ):
            raise ValueError(
                f"{name}: expected a sequence of ids for each query or a sparse matrix, found a dense matrix"
            )
        together, sizes = flat_lists(name, sets)
        owners = np.repeat(np.arange(len(sizes)), sizes)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        numbers = number_ids(name, together, item_ids, lambda i: f"place {within[i]} of query {owners[i]}", unknown)
        known = numbers >= 0
        entries = np.ones(int(known.sum())), (owners[known], numbers[known])
        matrix = csr_array(entries, shape=(len(sizes), len(item_ids)))
    if matrix.shape[1] != len(item_ids):
        raise ValueError(f"{name}: expected shape (queries, {len(item_ids)}), a column per item, found {matrix.shape}")
    matrix = matrix.astype(np.float64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
