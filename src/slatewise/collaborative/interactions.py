"""Users and their items in the forms that people have them, as one sparse matrix.

==============================================  =========================================================
given                                           a user is
==============================================  =========================================================
``users, items``                                an id, with one item per entry
a sparse matrix (users, items)                  a row; ids are row and column numbers
a frame with the columns user and item          an id; a column weight counts
a list of lists of ids                          a list, such as a basket; its id is its number
==============================================  =========================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from slatewise.core.arrays import Floats
from slatewise.core.checks import sparse_rows
from slatewise.core.errors import DataError
from slatewise.core.ids import Ids, check_ids
from slatewise.core.rules import MOST_FACTOR
from slatewise.data.sessions import flat_lists, is_frame

MOST_WEIGHT = MOST_FACTOR
"""Of an interaction: single precision still holds its square beside the penalties."""


@dataclass(frozen=True, eq=False)
class Interactions:
    """Pairs of a user and an item, each once."""

    user_ids: Ids
    """Ascending; one per row."""
    item_ids: Ids
    """Ascending; one per column."""
    matrix: csr_array
    """(users, items) of float32 weights; canonical."""

    @classmethod
    def of(cls, users: Any, items: Any = None, sample_weight: ArrayLike | None = None) -> Interactions:
        """Tell the forms apart; weights of a pair that occurs twice add up, and without weights it counts once."""
        if items is not None:
            pairs = check_ids("users", users), check_ids("items", items)
            if len(pairs[0]) != len(pairs[1]):
                raise ValueError(f"items: expected one per user, {len(pairs[0])}, found {len(pairs[1])}")
            return cls._of_pairs(*pairs, _weights(sample_weight, len(pairs[0])))
        if (matrix := sparse_rows("users", users)) is not None:
            if sample_weight is not None:
                raise ValueError("sample_weight: expected None beside a matrix, whose entries are the weights")
            matrix = check_histories("users", matrix)
            if not matrix.nnz:
                raise ValueError("users: expected at least one interaction, found none")
            return cls(np.arange(matrix.shape[0]), np.arange(matrix.shape[1]), matrix)
        if is_frame(users):
            return cls._of_frame(users, sample_weight)
        refuse_dense("users", users)
        together, sizes = flat_lists("users", users)
        every = np.arange(len(sizes))
        return cls._of_pairs(np.repeat(every, sizes), together, _weights(sample_weight, len(together)), every)

    @classmethod
    def _of_frame(cls, frame: Any, sample_weight: ArrayLike | None) -> Interactions:
        from slatewise.data.frames import ids_of, numbers_of, table_of

        table = table_of(frame, "users")
        for name in ("user", "item"):
            if name not in table.columns:
                found = f"the columns {', '.join(map(repr, table.columns))}"
                raise DataError("users", 0, 0, f"a column called {name!r}", found)
        users, items = (ids_of(table[name], "users", 0) for name in ("user", "item"))
        weights = numbers_of(table["weight"], "users", 0) if "weight" in table.columns else None
        if weights is not None and sample_weight is not None:
            raise ValueError("sample_weight: expected None beside a frame with a column weight")
        return cls._of_pairs(users, items, _weights(sample_weight if weights is None else weights, len(users)))

    @classmethod
    def _of_pairs(
        cls, users: Ids, items: Ids, weights: Floats | None, user_ids: Ids | None = None, item_ids: Ids | None = None
    ) -> Interactions:
        if not len(items):
            raise ValueError("users: expected at least one interaction, found none")
        if user_ids is None:
            user_ids, users = np.unique(users, return_inverse=True)
        if item_ids is None:
            item_ids, items = np.unique(items, return_inverse=True)
        values = np.ones(len(users), dtype=np.float32) if weights is None else weights.astype(np.float32)
        matrix = csr_array((values, (users, items)), shape=(len(user_ids), len(item_ids)))
        matrix.sum_duplicates()
        if weights is None:
            matrix.data[:] = 1.0
        else:
            _require_bounded("sample_weight", matrix)
            matrix.eliminate_zeros()
        if not matrix.nnz:
            raise ValueError("sample_weight: expected a weight > 0, found zeros only")
        return cls(user_ids, item_ids, matrix)


def _weights(sample_weight: Any, n: int) -> Floats | None:
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight)
    except ValueError:
        raise ValueError(f"sample_weight: expected {n} numbers, found lists of several lengths") from None
    if weights.shape != (n,) or weights.dtype.kind not in "biuf":
        raise ValueError(f"sample_weight: expected {n} numbers, found {weights.dtype} of shape {weights.shape}")
    weights = weights.astype(np.float64)
    _require_weights("sample_weight", weights)
    return weights


def check_histories(name: str, given: csr_array) -> csr_array:
    """Return a sparse matrix as float32 weights > 0, each pair once; the matrix that was given stays as it is."""
    _require_weights(name, given.data)
    matrix = csr_array(given.astype(np.float32))
    matrix.sum_duplicates()
    _require_bounded(name, matrix)
    matrix.eliminate_zeros()
    return matrix


def refuse_dense(name: str, values: Any, n_items: int = -1) -> None:
    """Refuse a dense matrix of zeros and ones, or of floats, whose entries would pass for ids of items."""
    array = cast("NDArray[Any] | None", values if isinstance(values, np.ndarray) else None)
    if array is None or array.ndim != 2 or array.dtype.kind not in "biuf":
        return
    if array.dtype.kind in "bf" or array.shape[1] == n_items or (array.shape[1] > 2 and np.isin(array, (0, 1)).all()):
        raise ValueError(f"{name}: expected lists of ids or a sparse matrix (users, items), found a dense matrix")


def _require_weights(name: str, weights: NDArray[Any]) -> None:
    wrong = np.flatnonzero(~((weights >= 0) & (weights <= MOST_WEIGHT)))
    if len(wrong):
        first = int(wrong[0])
        raise ValueError(
            f"{name}: weights must be numbers from 0 to {MOST_WEIGHT:g}, got {weights[first]} at interaction {first}"
        )


def _require_bounded(name: str, matrix: csr_array) -> None:
    """Raise ValueError where weights of a pair add up to too much."""
    most = matrix.data.max(initial=0.0)
    if most > MOST_WEIGHT:
        raise ValueError(f"{name}: the weights of a pair must add up to at most {MOST_WEIGHT:g}, got {most:g}")
