"""Sums over permutations: log Z with all marginals, against thewalrus's value alone and batched NumPy enumeration.

One thread, log weights N(0, 1), fresh ones each time; the shortest time counts, and peers run on the same inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats
from slatewise.inference import permanent, sample_matchings, tied_log_sum
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.running import installed
from slatewise_papers.framework.timing import best_seconds


def run(quick: bool = False) -> Table:
    """Time exact sums, tied positions, the bound and the samplers; ``quick`` takes fewer."""
    times = 3 if quick else 9
    rows = [*_one_large(18 if quick else 20, times), *_batches(20_000, times), *_others(times)]
    left_out = [] if installed("thewalrus") else ["thewalrus"]
    return Table("permanent", rows, left_out, ["thewalrus gives the value only; our times include all marginals"])


def _one_large(size: int, times: int) -> list[Row]:
    fresh = _fresh((size, size), times)
    ours = best_seconds(lambda w: permanent(w, n_jobs=1), fresh)
    positive = best_seconds(lambda w: permanent(w, "subsets", n_jobs=1), fresh[1:4])
    what = f"value and all marginals, M={size}"
    if not installed("thewalrus"):
        return [Row(what, ours), Row(f"{what}, subsets", positive)]
    perm: Callable[..., float] = import_module("thewalrus").perm
    theirs = best_seconds(lambda w: perm(np.exp(w), method="bbfg"), fresh)
    return [
        Row(what, ours, "thewalrus bbfg, value", theirs, bar="ratio >= 0.33"),
        Row(f"{what}, subsets", positive, "thewalrus bbfg, value", theirs),
    ]


def _batches(count: int, times: int) -> list[Row]:
    rows: list[Row] = []
    for size, bar in ((3, "ratio >= 2"), (4, ""), (5, "ratio >= 10"), (6, "")):
        n = count if size < 6 else count // 10
        fresh = _fresh((n, size, size), times)
        what, ours = f"{n} matrices at once, M={size}", best_seconds(lambda w: permanent(w, n_jobs=1), fresh)
        plain, by_products = best_seconds(by_enumeration, fresh), best_seconds(by_matrix_products, fresh)
        rows.append(Row(what, ours, "NumPy, all permutations", plain, bar=bar))
        rows.append(Row(what, ours, "the same as two matrix products", by_products))
    return rows


def _others(times: int) -> list[Row]:
    def tied(scores: Floats) -> None:
        tied_log_sum(scores, [334, 333, 333], [2.0, 1.0, 0.0])

    def two_classes(scores: Floats) -> None:
        tied_log_sum(scores, [500, 500], [1.0, 0.0])

    def near_the_diagonal(w: Floats) -> None:
        permanent(np.where(np.abs(np.subtract.outer(np.arange(40), np.arange(40))) <= 3, w, -np.inf), "candidates", 1)

    def seconds(function: Callable[[Floats], object], *shape: int) -> float:
        return best_seconds(function, _fresh(shape, times))

    thousand = 1_000
    return [
        Row("tied positions, 1000 items, 3 classes", seconds(tied, thousand), bar="<= 0.06 s"),
        Row("tied positions, 1000 items, 2 classes", seconds(two_classes, thousand)),
        Row("12 rows, 24 columns", seconds(lambda w: permanent(w, "rows", 1), 12, 24)),
        Row("40 rows, 7 candidates each near the diagonal", seconds(near_the_diagonal, 40, 40)),
        Row("Bethe bound, M=20", seconds(lambda w: permanent(w, "bethe", 1), 20, 20)),
        Row("1000 exact samples, M=20, tables", seconds(lambda w: sample_matchings(w, thousand, 0), 20, 20)),
        Row(
            "1000 exact samples, M=20, Huber-Law",
            seconds(lambda w: sample_matchings(w, thousand, 0, "huber-law", 0), 20, 20),
        ),
        Row("1000 samples of the chain, M=20", seconds(lambda w: sample_matchings(w, thousand, 0, "chain"), 20, 20)),
    ]


def by_enumeration(w: Floats) -> tuple[Floats, Floats]:
    """Return log Z (B,) and marginals (B, M, M) by adding up all M! permutations, with NumPy over the batch."""
    size = w.shape[1]
    orders, edges = _all_orders(size)
    return _normalized(w[:, np.arange(size), orders].sum(axis=2), edges, w.shape)


def by_matrix_products(w: Floats) -> tuple[Floats, Floats]:
    """Return the same; the weights of all permutations are a product of the weights of edges with ones and zeros."""
    edges = _all_orders(w.shape[1])[1]
    return _normalized(w.reshape(len(w), edges.shape[1]) @ edges.T, edges, w.shape)


def _normalized(totals: Floats, edges: Floats, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    largest = totals.max(axis=1, keepdims=True)
    parts = np.exp(totals - largest)
    z = parts.sum(axis=1)
    marginals: Floats = parts @ edges / z[:, None]
    return largest[:, 0] + np.log(z), marginals.reshape(shape)


@cache
def _all_orders(size: int) -> tuple[NDArray[np.int64], Floats]:
    """Return all permutations (M!, M), and their edges as rows of ones and zeros (M!, M * M)."""
    orders = np.array(list(permutations(range(size))), dtype=np.int64)
    return orders, (orders[:, :, None] == np.arange(size)).reshape(len(orders), size * size).astype(np.float64)


def _fresh(shape: tuple[int, ...], times: int) -> list[Floats]:
    """Return inputs, one more than will be the best: the first call compiles, and is never the shortest."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape) for _ in range(times + 1)]
