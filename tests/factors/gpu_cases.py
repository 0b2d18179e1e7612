"""Factors of every kind of query, with numbers that float16 has: what an engine of the GPU is compared on."""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from slatewise.factors.bags import (
    AGE_WEIGHTS,
    REPEAT_WEIGHTS,
    SPLINE_STEPS,
    BagParts,
    BagQueries,
    bag_queries,
    learned_from,
)
from slatewise.factors.offsets import N_KNOTS, Levels
from slatewise.factors.pair_terms import Bilinear, Both, ListedQueries, Semidefinite
from slatewise.factors.pairs import TrainingPairs
from slatewise.factors.queries import DenseQueries, IdQueries, SparseQueries
from slatewise.factors.scoring import Factors
from slatewise.factors.stages import Shape

N = 6
KINDS = (
    "ids",
    "sessions",
    "levels",
    "baskets",
    "dense",
    "sparse",
    "semidefinite",
    "bilinear",
    "listed sessions",
    "both",
    "context",
)
TERMS = {"semidefinite": Semidefinite, "bilinear": Bilinear, "listed sessions": Semidefinite, "both": Both}


def on_grid(rng, shape, parts=64, most=1.0):
    """Multiples of 1 / parts: products and their sums are the same in any order."""
    return (rng.integers(-int(most * parts), int(most * parts) + 1, shape) / parts).astype(np.float32)


def _bags(rng, n_items, window):
    sizes = rng.integers(2, 9, 12)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return learned_from(rng.integers(0, n_items, offsets[-1]), offsets, window)


def _levels(rng, n_queries, n_items):
    rows = [np.sort(rng.choice(n_items, rng.integers(0, 7), replace=False)) for _ in range(n_queries)]
    ends = np.cumsum([len(row) for row in rows])
    items = np.concatenate(rows).astype(np.int32)
    return Levels(
        ends - [len(row) for row in rows], ends, items, rng.integers(0, N_KNOTS, len(items)).astype(np.float32) / 8
    )


def case(kind, n_items=70, n_pairs=50, seed=0):
    """Return factors and pairs of a kind; tables are as after some training."""
    rng = np.random.default_rng(seed)
    term = TERMS.get(kind)
    held = kind in ("sessions", "levels", "baskets", "listed sessions", "context")
    featured = kind in ("dense", "sparse")
    window = None if kind == "baskets" else 5
    n_rows = n_items + 4 * (kind == "context") if held else 11
    shape = Shape(
        N, n_rows, n_items, 0.3, 1.5, 0.2, 0.1, 0.4, by_id=not (held or featured), term=term or Semidefinite,
        n_ages=(window or 1) if held else 0, n_knots=N_KNOTS if kind in ("levels", "context") else 0,
    )  # fmt: skip
    queries, items = shape.tables(1 if term else 0)
    items.values[:, : items.segments[-1].stop] = on_grid(rng, (n_items, items.segments[-1].stop))
    items.accumulators[:] = rng.random(items.accumulators.shape) * 0.1
    queries.values[:n_rows, :N] = on_grid(rng, (n_rows, N))
    queries.accumulators[:] = rng.random(queries.accumulators.shape) * 0.1
    weights = (0.5 + rng.random(n_pairs)).astype(np.float32)
    positives, numbers = rng.integers(0, n_items, n_pairs), rng.integers(0, 11, n_pairs)
    if held:
        found = _bags(rng, n_items, window)
        for weights in queries.weights.values():
            weights.accumulators[:] = rng.random(len(weights.accumulators)) * 0.1
        queries.weights[AGE_WEIGHTS].values[:] = np.array([1, 0.5, 0.25, 0.25, 0.25])[: shape.n_ages]
        queries.weights[REPEAT_WEIGHTS].values[:] = on_grid(rng, shape.n_ages, 8)
        if shape.n_knots:
            queries.weights[SPLINE_STEPS].values[:] = np.abs(on_grid(rng, shape.n_knots, 8))
        levels = _levels(rng, found.bags.n_queries, n_items) if shape.n_knots else None
        made = BagQueries(found.bags, queries, N, levels)
        if kind == "context":
            asked = BagParts(found.bags, found.owners, levels, csr_array(on_grid(rng, (12, 4), 2)))
            made = bag_queries(asked, n_items, N)(queries)
        numbers, positives = np.arange(len(found.following)), found.following
        weights = np.ones(len(numbers), dtype=np.float32)
    elif kind == "dense":
        made = DenseQueries(on_grid(rng, (30, n_rows), 2), queries, N)
        numbers = rng.integers(0, 30, n_pairs)
    elif kind == "sparse":
        made = SparseQueries(csr_array(on_grid(rng, (30, n_rows), 2, most=0.5)), queries, N)
        numbers = rng.integers(0, 30, n_pairs)
    else:
        made = IdQueries(queries)
    factors = Factors(made, items)
    if term is not None:
        lists = rng.integers(0, n_items, (max(int(numbers.max()) + 1, 11), 4))
        lists[np.arange(4) >= rng.integers(0, 6, (len(lists), 1))] = -1
        listed = ListedQueries(made, items, shape.pair_term, lists, np.array([1, 0.5, 0.25, 0.25], dtype=np.float32))
        factors = replace(factors, queries=listed)
    return factors, TrainingPairs.of(numbers, positives, weights, most=4), queries
