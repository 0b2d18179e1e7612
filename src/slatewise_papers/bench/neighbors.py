"""Session neighbors (V-SKNN) among a million generated sessions, against SciPy: a sparse product per 500 queries.

Both find the 100 most similar sessions of each query, and the 20 best items of those, with one thread. Queries come
from sessions of the same law that were drawn apart. One query at a time is timed through ``SessionNeighbors.rank``.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slatewise.core.arrays import Ints
from slatewise.data.records import Sessions
from slatewise.datasets.make_sessions import make_sessions
from slatewise.sessions.neighbors import SessionNeighbors
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.timing import each_seconds, milliseconds, seconds

NEIGHBOURS, TOP, DECAY, WINDOW, BATCH = 100, 20, 0.8, 20, 500


def run(quick: bool = False) -> Table:
    """Time; ``quick``: a tenth of the sessions."""
    n_sessions, n_items = (100_000, 10_000) if quick else (1_000_000, 100_000)
    log = make_sessions(n_sessions, n_items, random_state=0).sessions
    ours = plain_neighbors()
    ours.fit(log[:1000]).rank(log[:2], TOP)  # compiles
    fitted = seconds(lambda: ours.fit(log))
    first = seconds(lambda: ours.rank(log[:1], TOP))
    queries = known_queries(make_sessions(2 * BATCH, n_items, random_state=1).sessions, ours.item_ids_)
    rows = [Row("fit, settings given", fitted), Row("the first query, which lists the sessions of each item", first)]
    theirs = PlainNeighbors.of(log, ours.item_ids_)
    half = queries[:BATCH]
    peer_seconds = seconds(lambda: theirs.rank(half))
    own_seconds = seconds(lambda: ours.rank(half, TOP))
    what = f"{BATCH} queries in one call, one thread"
    rows.append(Row(what, own_seconds, "SciPy, one CSR product", peer_seconds, bar="" if quick else "ratio >= 10"))
    each = each_seconds(lambda at: ours.rank(queries[at : at + 1], TOP), range(len(queries)))
    for name, share, bar in (("median", 0.5, ""), ("99th of 100", 0.99, "<= 5 ms")):
        rows.append(Row(f"one query, {name}", milliseconds(each, share), unit="ms", bar=bar))
    rows += _memory(ours, log, queries)
    return Table("neighbors", rows, remarks=[_law_of(log, n_items)])


def plain_neighbors() -> SessionNeighbors:
    """Return the ranker that SciPy's product can be compared with."""
    return SessionNeighbors(
        NEIGHBOURS, decay=DECAY, last_weight=1.0, repeat_weight=1.0, reach=None, window=WINDOW, n_jobs=1
    )


def known_queries(sessions: Sessions, item_ids: NDArray[Any]) -> Sessions:
    """Leave items out that were never seen, and sessions that have no others."""
    lists = [items[np.isin(items, item_ids)] for items in sessions]
    return Sessions.of([items for items in lists if len(items)])


def _memory(ours: SessionNeighbors, log: Sessions, queries: Sessions) -> list[Row]:
    tracemalloc.start()  # in a run of its own, which it slows down
    again = plain_neighbors().fit(log)
    again.rank(queries[:1], TOP)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    again.rank(queries[:1], TOP)
    one = tracemalloc.get_traced_memory()[1] - kept
    tracemalloc.stop()
    learned = ours.session_items_.nbytes + ours.session_offsets_.nbytes + ours.item_ids_.nbytes
    return [
        Row("memory of a fitted ranker that ranks", kept / 1e6, unit="MB"),
        Row("of which a saved file has", learned / 1e6, unit="MB"),
        Row("peak of a fit", peak / 1e6, unit="MB"),
        Row("one query beyond that", one / 1e6, unit="MB"),
    ]


def _law_of(log: Sessions, n_items: int) -> str:
    lengths = np.diff(log.offsets)
    quantiles = ", ".join(f"{int(np.quantile(lengths, share))}" for share in (0.5, 0.9, 0.99, 1.0))
    counts = np.sort(np.bincount(log.items, minlength=n_items))[::-1] / len(log.items)
    ranks = ", ".join(f"{counts[rank - 1]:.2%} of all events by item {rank}" for rank in (1, 10, 100, 1000))
    return f"{len(log)} sessions, {len(log.items)} events; lengths (median, 90%, 99%, most): {quantiles}; {ranks}"


@dataclass(frozen=True, eq=False)
class PlainNeighbors:
    """The same in SciPy: sessions and items as a matrix of zeros and ones, rows of queries times that matrix."""

    item_ids: NDArray[Any]
    sessions: csr_array
    """(sessions, items)."""
    by_item: csr_array
    """Its transpose, divided by the square roots of the lengths."""
    rarity: NDArray[np.float32]

    @classmethod
    def of(cls, log: Sessions, item_ids: NDArray[Any]) -> PlainNeighbors:
        """Make the matrices."""
        owners = np.repeat(np.arange(len(log)), np.diff(log.offsets))
        shape = len(log), len(item_ids)
        entries = np.ones(len(log.items), dtype=np.float32), (owners, np.searchsorted(item_ids, log.items))
        A = csr_array(entries, shape=shape)
        A.sum_duplicates()
        A.data[:] = 1.0
        lengths, counts = np.diff(A.indptr), np.bincount(A.indices, minlength=shape[1])
        scaled = csr_array((np.repeat(1 / np.sqrt(lengths), lengths).astype(np.float32), A.indices, A.indptr), shape)
        return cls(item_ids, A, csr_array(scaled.T), np.log1p(shape[0] / np.maximum(counts, 1)).astype(np.float32))

    def rank(self, queries: Sessions) -> list[Ints]:
        """Return the best items of each query."""
        lists: list[Ints] = []
        for first in range(0, len(queries), BATCH):
            similar = self._weights(queries[first : first + BATCH]) @ self.by_item
            similar = _best_of_rows(csr_array(similar), NEIGHBOURS)
            scores = csr_array(similar @ self.sessions)
            for q in range(scores.shape[0]):
                row = slice(scores.indptr[q], scores.indptr[q + 1])
                best = np.argsort(-scores.data[row], kind="stable")[:TOP]
                lists.append(self.item_ids[scores.indices[row][best]])
        return lists

    def _weights(self, queries: Sessions) -> csr_array:
        numbers, owners, weights = list[Ints](), list[Ints](), list[NDArray[np.float32]]()
        for q, items in enumerate(queries):
            last = np.searchsorted(self.item_ids, items[-WINDOW:])
            ages = np.arange(len(last))[::-1]
            numbers.append(last)
            owners.append(np.full(len(last), q))
            weights.append((DECAY**ages * self.rarity[last]).astype(np.float32))
        places = np.concatenate(owners), np.concatenate(numbers)
        return csr_array((np.concatenate(weights), places), shape=(len(queries), len(self.item_ids)))


def _best_of_rows(matrix: csr_array, k: int) -> csr_array:
    data, indices, sizes = list[Any](), list[Any](), [0]
    for row in range(matrix.shape[0]):
        part = slice(matrix.indptr[row], matrix.indptr[row + 1])
        values, columns = matrix.data[part], matrix.indices[part]
        if len(values) > k:
            best = np.argpartition(-values, k)[:k]
            values, columns = values[best], columns[best]
        data.append(values)
        indices.append(columns)
        sizes.append(sizes[-1] + len(values))
    return csr_array((np.concatenate(data), np.concatenate(indices), np.array(sizes)), shape=matrix.shape)
