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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import sparse_rows
from slatewise.core.errors import DataError
from slatewise.core.ids import Ids, check_ids
from slatewise.data.sessions import flat_lists, is_frame


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
            rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
            kept = matrix.data != 0
            _require_positive(matrix.data[kept])
            if sample_weight is not None:
                raise ValueError("sample_weight: expected None beside a matrix, whose entries are the weights")
            return cls._of_pairs(
                rows[kept],
                matrix.indices[kept].astype(np.int64),
                matrix.data[kept].astype(np.float64),
                np.arange(matrix.shape[0]),
                np.arange(matrix.shape[1]),
            )
        if is_frame(users):
            return cls._of_frame(users, sample_weight)
        together, sizes = flat_lists("users", users)
        every = np.arange(len(sizes))
        return cls._of_pairs(np.repeat(every, sizes), together, _weights(sample_weight, len(together)), every)

    @classmethod
    def _of_frame(cls, frame: Any, sample_weight: ArrayLike | None) -> Interactions:
        from slatewise.data.frames import ids_of, table_of

        table = table_of(frame, "users")
        for name in ("user", "item"):
            if name not in table.columns:
                found = f"the columns {', '.join(map(repr, table.columns))}"
                raise DataError("users", 0, 0, f"a column called {name!r}", found)
        users, items = (ids_of(table[name], "users", 0) for name in ("user", "item"))
        weights = table["weight"].to_numpy() if "weight" in table.columns else None
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
            matrix.eliminate_zeros()
        if not matrix.nnz:
            raise ValueError("sample_weight: expected a weight > 0, found zeros only")
        return cls(user_ids, item_ids, matrix)


def _weights(sample_weight: Any, n: int) -> Floats | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.shape != (n,) or weights.dtype.kind not in "biuf":
        raise ValueError(f"sample_weight: expected {n} numbers, found {weights.dtype} of shape {weights.shape}")
    weights = weights.astype(np.float64)
    _require_positive(weights)
    return weights


def _require_positive(weights: Floats) -> None:
    wrong = np.flatnonzero(~((weights >= 0) & (weights <= np.finfo(np.float32).max)))
    if len(wrong):
        first = int(wrong[0])
        raise ValueError(
            f"sample_weight: weights must be finite numbers >= 0, got {weights[first]} at interaction {first}"
        )


def lengths(matrix: csr_array) -> Ints:
    """Return the number of items of each row."""
    return np.diff(matrix.indptr).astype(np.int64)
