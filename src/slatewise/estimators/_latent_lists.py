"""What is asked of a LatentRanker's lists: how deep, and without which items."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from slatewise.estimators._latent_input import Ids, number_ids
from slatewise.lists.checks import sparse_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def check_k(k: int, n_items: int, hidden: csr_array | None) -> None:
    """Raise ValueError unless every query has k items to show."""
    most = n_items - (0 if hidden is None or not len(hidden.indptr[1:]) else int(np.diff(hidden.indptr).max()))
    if not isinstance(cast("object", k), Integral) or not 1 <= k <= most:
        raise ValueError(f"k: expected a whole number from 1 to the {most} items left to show, found {k!r}")


def check_depths(ks: Sequence[int]) -> tuple[int, ...]:
    """Return the depths of recall."""
    depths = tuple(ks)
    if not depths or any(not isinstance(cast("object", k), Integral) or k < 1 for k in depths):
        raise ValueError(f"ks: expected whole numbers >= 1, found {ks!r}")
    return depths


def check_exclude(exclude: Any, n_queries: int, item_ids: Ids) -> csr_array | None:
    """Return what is hidden from each query as CSR (queries, items), each item once."""
    from scipy.sparse import csr_array

    if exclude is None:
        return None
    shape = (n_queries, len(item_ids))
    matrix = sparse_rows(exclude)
    if matrix is None:
        rows = [np.asarray(row).reshape(-1) for row in exclude]
        if len(rows) != n_queries:
            raise ValueError(f"exclude: expected a sequence of ids for each of {n_queries} queries, found {len(rows)}")
        named = [row for row in rows if len(row)]
        numbers = number_ids("exclude", np.concatenate(named), item_ids) if named else np.empty(0, dtype=np.int64)
        owners = np.repeat(np.arange(n_queries), [len(row) for row in rows])
        matrix = csr_array((np.ones(len(numbers)), (owners, numbers)), shape=shape)
    if matrix.shape != shape:
        raise ValueError(f"exclude: expected shape {shape} (queries, items), found {matrix.shape}")
    matrix = matrix.copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
