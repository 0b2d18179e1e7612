"""Equal rows are one row of their common weight: dense, sparse, or in files."""

from __future__ import annotations

import hashlib
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.checks import Features
from slatewise.core.executor import Executor
from slatewise.core.label_sets import first_of_equal, merge_rows, row_keys
from slatewise.cstar.checks import Known
from slatewise.data.row_files import RowFormat, RowGroup
from slatewise.data.row_source import RowSource, StoredRows

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


class RowsInFiles(NamedTuple):
    """Rows of a source that differ from each other, in the order that the same rows in memory have."""

    features: StoredRows
    places: NDArray[np.int64]
    """Which rows of the source these are."""
    weight: Floats
    low: float
    """The smallest number in them."""
    high: float
    digest: bytes


def rows_in_files(source: RowSource, told: Known, used: NDArray[np.bool_], executor: Executor) -> RowsInFiles:
    """Do for rows in files what :func:`slatewise.core.label_sets.merge_rows` does for dense ones: all are read once."""
    cuts = source.starts.tolist()
    pieces = [_Piece(group, told[cuts[at] : cuts[at + 1]]) for at, group in enumerate(source.groups)]
    seen = executor.gather(_seen, source.format, pieces)
    keys = np.concatenate([piece.keys for piece in seen])
    rows = np.flatnonzero(used)
    first, weight = first_of_equal(keys[rows], np.ones(len(rows)))
    low, high = min(piece.low for piece in seen), max(piece.high for piece in seen)
    return RowsInFiles(source.features.at(rows[first]), rows[first], weight, low, high, keys.tobytes())


class _Piece(NamedTuple):
    group: RowGroup
    told: Known


class _Seen(NamedTuple):
    keys: NDArray[np.bytes_]
    low: float
    high: float


def _seen(rows: RowFormat, piece: _Piece) -> _Seen:
    X = rows.features(piece.group)
    return _Seen(row_keys(X, piece.told), float(X.min(initial=np.inf)), float(X.max(initial=-np.inf)))
