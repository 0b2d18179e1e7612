"""Implicit alternating least squares with a regularization scaled by counts (iALS; Rendle et al. 2022).

    sum over (u, i) seen of w_ui (1 - u.v)^2 + a0 sum over all u, i of (u.v)^2
        + lambda sum_u (n_u + a0 n_items) |u|^2 + lambda sum_i (n_i + a0 n_users) |v|^2

The vector of a user is a function of its history and V alone: known and new users have the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from slatewise.core.arrays import Ints, Shorts, Singles
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import Executor

WIDTH = 32
"""Coordinates that are solved at once."""
ROWS = 1024


@dataclass(frozen=True, eq=False)
class Rows:
    """The entries of one side of the matrix."""

    offsets: Ints
    places: Shorts
    weights: Singles

    @classmethod
    def of(cls, matrix: csr_array) -> Rows:
        """Take the rows of a sparse matrix."""
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.float32))

    def improve(
        self,
        rows: Singles,
        others: Singles,
        gram: Singles,
        a0: float,
        regularization: float,
        width: int,
        executor: Executor,
    ) -> None:
        """Move every row towards its minimum given the other side, ``width`` coordinates at a time."""
        from slatewise.collaborative.kernels.als import solve_rows

        ridge = (regularization * (np.diff(self.offsets) + a0 * len(others))).astype(np.float32)

        def fill(begin: int) -> None:
            end = min(len(rows), begin + ROWS)
            solve_rows(begin, end, self.offsets, self.places, self.weights, others, gram, ridge, width, rows)

        executor.fill_blocks(fill, range(0, len(rows), ROWS))


def fit_items(
    histories: csr_array,
    n_components: int,
    regularization: float,
    a0: float,
    epochs: int,
    rng: np.random.Generator,
    executor: Executor,
) -> Singles:
    """Return V, (items, n_components)."""
    n_users, n_items = histories.shape
    by_user, by_item = Rows.of(histories), Rows.of(histories.T.tocsr())
    scale = np.float32(0.1 / np.sqrt(n_components))
    users = rng.standard_normal((n_users, n_components), dtype=np.float32) * scale
    items = rng.standard_normal((n_items, n_components), dtype=np.float32) * scale
    with one_blas_thread():
        for _ in range(epochs):
            by_user.improve(users, items, gram_of(items, a0), a0, regularization, WIDTH, executor)
            by_item.improve(items, users, gram_of(users, a0), a0, regularization, WIDTH, executor)
    return items


def gram_of(rows: Singles, a0: float) -> Singles:
    """Return ``a0 rows' rows``, what all pairs add to the equations of the other side."""
    with one_blas_thread():
        return np.float32(a0) * (rows.T @ rows)


def user_vectors(
    histories: csr_array, items: Singles, gram: Singles, regularization: float, a0: float, executor: Executor
) -> Singles:
    """Return the vector of each history, (histories, n_components), exactly."""
    rows = np.zeros((histories.shape[0], items.shape[1]), dtype=np.float32)
    with one_blas_thread():
        Rows.of(histories).improve(rows, items, gram, a0, regularization, items.shape[1], executor)
    return rows
