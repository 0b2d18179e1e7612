"""c-star inference: against the plain Gray-code kernel in the same run, fresh scores each time, one thread.

Scores are N(0, 1), pair terms N(0, 0.5^2). The rows with 30 core items use pair terms as a model learns them: shrunk
log-odds of two labels occurring together, from generated labels with a hidden theme.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from slatewise.bench._table import Row, Table, best_seconds
from slatewise.inference.star import Floats, Ints, StarPair, argmax_block
from slatewise.kernels.star_marginals import max_marginals
from slatewise.kernels.star_plain import plain_scores


def run(quick: bool = False) -> Table:
    """Time the kernels; ``quick`` takes fewer lists."""
    rows: list[Row] = []
    for n_items, n_core, k, n_lists, bar in ((93, 5, 12, 6400, 2), (10_000, 10, 12, 5, 8)):
        rng = np.random.default_rng(0)
        n_lists = max(2, n_lists // 10) if quick else n_lists
        pair, counts = _random_pair(rng, n_items, n_core), np.full(n_lists, k)
        fresh = [rng.normal(size=(n_lists, n_items)) for _ in range(2 if quick else 4)]
        score, inside, outside = np.empty(n_lists), np.empty((n_lists, n_items)), np.empty((n_lists, n_items))
        nothing_known = np.empty((0, n_items), dtype=np.int8)

        def ours(s: Floats, pair: StarPair = pair, counts: Ints = counts) -> None:
            argmax_block(s, pair, counts)

        def plain(s: Floats, pair: StarPair = pair, counts: Ints = counts, score: Floats = score) -> None:
            plain_scores(s, pair.arrays, counts, score)

        def marginals(
            s: Floats,
            pair: StarPair = pair,
            counts: Ints = counts,
            known: np.ndarray[tuple[int, int], np.dtype[np.int8]] = nothing_known,
            inside: Floats = inside,
            outside: Floats = outside,
        ) -> None:
            max_marginals(s, known, pair.arrays, counts, inside, outside)

        for warm_up in (ours, plain, marginals):
            warm_up(fresh[0][:1])
        theirs = best_seconds(plain, fresh)
        size = f"{n_lists} lists, N={n_items}, C={n_core}, k={k}"
        rows.append(
            Row(f"best list, {size}", best_seconds(ours, fresh), "plain Gray code", theirs, bar=f"ratio >= {bar}")
        )
        rows.append(
            Row(
                f"all max-marginals, {size}",
                best_seconds(marginals, fresh),
                "plain Gray code, best list only",
                theirs,
                bar="ratio >= 0.67",
            )
        )
    rows += _large_core(20 if quick else 100)
    return Table("star", rows, remarks=["proven: share of lists whose best is proven within the node limit"])


def _random_pair(rng: np.random.Generator, n_items: int, n_core: int) -> StarPair:
    rows, core = rng.normal(0, 0.5, (n_core, n_items)), np.arange(n_core)
    rows[:, :n_core] = np.triu(rows[:, :n_core], 1) + np.triu(rows[:, :n_core], 1).T
    return StarPair.of(rows, core)


def _large_core(n_lists: int) -> list[Row]:
    """Branch and bound at C=30 on pair terms as they are learned, list by list."""
    rng = np.random.default_rng(0)
    n_items, n_core, n_samples = 174, 30, 500
    theme = rng.normal(size=(n_samples, 6)) @ rng.normal(size=(6, n_items))
    labels = theme + 2.0 * rng.normal(size=theme.shape) - rng.normal(2.8, 0.7, n_items) > 0
    rate = (labels.sum(axis=0) + 1.0) / (n_samples + 2.0)
    core = np.argsort(-rate, kind="stable")[:n_core]
    both = (labels[:, core].T.astype(float) @ labels + 1.0) / (n_samples + 2.0)
    pair = 0.3 * np.log(both / np.outer(rate[core], rate))
    pair[np.arange(n_core), core] = 0.0
    pair[:, core] = (pair[:, core] + pair[:, core].T) / 2
    shared = StarPair.of(pair, core)
    s = np.log(rate / (1 - rate)) + 0.3 * theme[:n_lists] + 0.3 * rng.normal(size=(n_lists, n_items))
    counts = np.maximum(labels[:n_lists].sum(axis=1), 1)
    argmax_block(s[:1], shared, counts[:1])
    seconds, proven = np.empty(n_lists), np.empty(n_lists)
    for row in range(n_lists):
        start = perf_counter()
        found = argmax_block(s[row : row + 1], shared, counts[row : row + 1])
        seconds[row] = perf_counter() - start
        proven[row] = found.upper_bound[0] == found.score[0]
    what = f"N={n_items}, C={n_core}, log-odds pair terms"
    return [
        Row(f"best list, {what}: median", 1e3 * float(np.median(seconds)), unit="ms", bar="<= 10 ms"),
        Row(f"best list, {what}: 95th of 100", 1e3 * float(np.quantile(seconds, 0.95)), unit="ms"),
        Row(f"best list, {what}: proven", 100 * float(proven.mean()), unit="%", bar=">= 95%"),
    ]
