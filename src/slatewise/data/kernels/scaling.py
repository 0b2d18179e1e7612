"""Per-query min-max: (v - low) / (high - low) over the rows of each query, a constant feature becomes 0."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.kernel import kernel


@kernel
def unit(value: float, low: float, high: float) -> float:
    """Place a value between low and high."""
    if high == low:
        return 0.0
    if high - low == math.inf:  # only the difference overflows: halves have the same ratio
        return (value / 2 - low / 2) / (high / 2 - low / 2)
    return (value - low) / (high - low)


@kernel
def minmax_dense(X: Floats, offsets: Ints, out: Floats) -> None:
    """Scale the rows of each list of a dense array."""
    for q in range(len(offsets) - 1):
        start, stop = offsets[q], offsets[q + 1]
        low, high = X[start].copy(), X[start].copy()
        for i in range(start + 1, stop):
            for j in range(X.shape[1]):
                low[j] = min(low[j], X[i, j])
                high[j] = max(high[j], X[i, j])
        for i in range(start, stop):
            for j in range(X.shape[1]):
                out[i, j] = unit(X[i, j], low[j], high[j])


class Sparse(NamedTuple):
    """The arrays of a CSR matrix with ascending indices in each row."""

    indptr: Ints
    indices: Ints
    values: Floats


@kernel
def minmax_sparse(X: Sparse, offsets: Ints, n_features: int, out: Sparse, writes: bool) -> int:
    """Scale the rows of each list; return the number of entries, which ``out`` gets if ``writes``.

    Where a feature is negative in some row of a list, its absent entries (zeros) come out positive and get stored.
    """
    low, high = np.empty(n_features), np.empty(n_features)
    count = np.zeros(n_features, dtype=np.int64)  # of the feature's entries in the list
    filled = np.empty(n_features, dtype=np.int64)  # features whose absent entries come out positive
    size = 0
    for q in range(len(offsets) - 1):
        start, stop = offsets[q], offsets[q + 1]
        entries = X.indices[X.indptr[start] : X.indptr[stop]]
        for j, value in zip(entries, X.values[X.indptr[start] : X.indptr[stop]]):  # noqa: B905 (not in numba)
            low[j] = min(low[j], value) if count[j] else value
            high[j] = max(high[j], value) if count[j] else value
            count[j] += 1
        n_filled = 0
        for j in entries:
            if 0 < count[j] < stop - start:
                low[j], high[j] = min(low[j], 0.0), max(high[j], 0.0)
                if low[j] < 0.0:
                    filled[n_filled] = j
                    n_filled += 1
            count[j] = 0
        filled[:n_filled].sort()
        for i in range(start, stop):
            at, end, f = X.indptr[i], X.indptr[i + 1], 0
            while at < end or f < n_filled:
                is_stored = at < end and (f == n_filled or X.indices[at] <= filled[f])
                j = X.indices[at] if is_stored else filled[f]
                value = X.values[at] if is_stored else 0.0
                if writes:
                    out.indices[size], out.values[size] = j, unit(float(value), float(low[j]), float(high[j]))
                at += is_stored
                f += f < n_filled and filled[f] == j
                size += 1
            if writes:
                out.indptr[i + 1] = size
    return size
