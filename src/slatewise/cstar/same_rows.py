"""Equal rows are one row of their common weight, dense or sparse."""

from __future__ import annotations

import hashlib
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.checks import Features
from slatewise.core.label_sets import merge_rows
from slatewise.cstar.checks import Known

Floats: TypeAlias = NDArray[np.float64]


def merge_features(X: Features, Y: Known, weight: Floats) -> tuple[Features, Known, Floats]:
    """Do for sparse rows what :func:`slatewise.core.label_sets.merge_rows` does for dense ones.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[0.0, 2.0], [1.0, 0.0], [0.0, 2.0]])
    >>> rows, Y, weight = merge_features(X, np.array([[1], [0], [1]], dtype=np.int8), np.ones(3))
    >>> sorted(zip(weight.tolist(), rows.toarray().tolist()))
    [(1.0, [1.0, 0.0]), (2.0, [0.0, 2.0])]
    """
    if isinstance(X, np.ndarray):
        return merge_rows(X.astype(np.float64), Y, weight)
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    # A row is known by four numbers made of its entries, and found again by the first place that has them.
    digests = [_digest(X.indices[a:b], X.data[a:b]) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    places = {digest: row for row, digest in reversed(list(enumerate(digests)))}
    keys = np.frombuffer(b"".join(digests), dtype=np.uint32).reshape(len(digests), -1).astype(np.float64)
    keys, Y, weight = merge_rows(keys, Y, weight)
    chosen = [places[row.astype(np.uint32).tobytes()] for row in keys]
    return cast("Features", X[chosen]), Y, weight


def _digest(indices: NDArray[np.integer], data: NDArray[np.floating]) -> bytes:
    entries = indices.astype(np.int64).tobytes() + (data.astype(np.float64) + 0.0).tobytes()
    return hashlib.blake2b(entries, digest_size=16).digest()
