"""What is asked of a LatentRanker's lists: how deep, without which items, for whom."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.rules import is_whole
from slatewise.core.sparse import sparse_rows
from slatewise.data.session_forms import flat_lists
from slatewise.latent.input import Ids, Unknown, number_ids

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def check_k(k: int, most: int) -> None:
    """Raise ValueError unless there are k items to show; a query that excludes too many gets a shorter list."""
    if not is_whole(k) or not 1 <= k <= most:
        raise ValueError(f"k: expected a whole number from 1 to the {most} items there are, found {k!r}")


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
