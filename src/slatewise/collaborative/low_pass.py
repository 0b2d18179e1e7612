"""A low-pass graph filter on users and items, which needs no training (GF-CF, Shen et al. 2021).

With X (users, items), row sums D_u, column sums D_i, N = D_u^-1/2 X D_i^-1/2, and V its first right singular vectors,

    scores = history N' N + alpha * history D_i^-1/2 V V' D_i^1/2

The first term stays sparse, the second is a product of two narrow matrices.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, diags_array

from slatewise.core.arrays import Singles
from slatewise.core.running.blas import one_blas_thread

OVERSAMPLED, ROUNDS = 32, 4


def normalized(histories: csr_array) -> tuple[csr_array, Singles]:
    """Return N, and the square root of the column sums."""
    by_user = np.maximum(histories.sum(axis=1), 1.0) ** -0.5
    by_item = np.maximum(histories.sum(axis=0), 1.0) ** 0.5
    scaled = diags_array(by_user) @ histories @ diags_array(1.0 / by_item)
    return csr_array(scaled).astype(np.float32), by_item.astype(np.float32)


def right_singular_vectors(matrix: csr_array, n: int, rng: np.random.Generator) -> Singles:
    """Return the first right singular vectors of a sparse matrix, (columns, n), by randomized subspace iteration."""
    width = min(n + OVERSAMPLED, *matrix.shape)
    transposed = matrix.T.tocsr()
    with one_blas_thread():
        basis = rng.standard_normal((matrix.shape[1], width), dtype=np.float32)
        for _ in range(ROUNDS):
            basis, _ = np.linalg.qr(transposed @ (matrix @ basis))
        _, _, rotation = np.linalg.svd(matrix @ basis, full_matrices=False)
        return np.ascontiguousarray((basis @ rotation.T)[:, :n], dtype=np.float32)
