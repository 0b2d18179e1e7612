"""The inverse of a large symmetric positive definite matrix, in place and with the same bits at any number of threads.

A sweep takes one block k of rows and columns after the other,

    A[i, j] <- A[i, j] - A[i, k] A[k, k]^-1 A[k, j],     A[i, k] <- A[i, k] A[k, k]^-1,     A[k, k] <- -A[k, k]^-1,

and leaves -A^-1 when all are taken: n^3 operations in products of tiles, of which only the lower triangle is kept.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Singles
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import Executor

TILE = 512
"""Rows of a block. It sets the order of sums, and so the bits."""


def invert_in_place(matrix: Singles, executor: Executor, tile: int = TILE) -> None:
    """Replace a symmetric positive definite matrix by its inverse; only the lower triangle is read."""
    n = len(matrix)
    edges = [(start, min(n, start + tile)) for start in range(0, n, tile)]
    with one_blas_thread():
        for begin, end in edges:
            column = np.concatenate([matrix[begin:end, :begin].T, matrix[begin:, begin:end]])
            pivot = np.tril(column[begin:end]).astype(np.float64)
            pivot += np.tril(pivot, -1).T
            column[begin:end] = pivot
            inverse = np.linalg.inv(pivot).astype(matrix.dtype)
            scaled = column @ inverse

            def update(rows: tuple[int, int], column: Singles = column, scaled: Singles = scaled) -> None:
                first, last = rows
                matrix[first:last, :last] -= scaled[first:last] @ column[:last].T

            executor.fill_blocks(update, edges)
            matrix[begin:end, :begin] = scaled[:begin].T
            matrix[end:, begin:end] = scaled[end:]
            matrix[begin:end, begin:end] = -inverse
    for first, last in edges:
        rows = matrix[first:last, :last]
        np.negative(rows, out=rows)
        diagonal = np.tril(matrix[first:last, first:last])
        matrix[first:last, first:last] = diagonal + np.tril(diagonal, -1).T
        matrix[:first, first:last] = matrix[first:last, :first].T
