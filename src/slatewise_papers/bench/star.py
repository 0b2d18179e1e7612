"""c-star inference: against the plain Gray-code kernel in the same run, fresh scores each time, one thread.

Scores are N(0, 1), pair terms N(0, 0.5^2). The rows with 30 core items use models trained here on public data, on rows
that training did not see, with and without the loss added; without the data they are left out.
"""

from __future__ import annotations

import numpy as np

from slatewise import datasets
from slatewise.cstar.inference.best_set import argmax_block
from slatewise.cstar.inference.model import Floats, Ints, StarLists, StarPair
from slatewise.cstar.kernels.marginals import max_marginals
from slatewise.cstar.margin_ranker import CStarMarginRanker
from slatewise.datasets import DatasetNotFound
from slatewise.datasets.records import MultiLabelSet, MultiViewSet
from slatewise_papers.bench.star_plain import plain_scores
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.running import expected_warnings
from slatewise_papers.framework.timing import best_seconds, timed


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
            argmax_block(StarLists(s, pair, counts))

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
    left_out: list[str] = []
    for name in ("mulan_cal500", "corel5k_tagprop"):
        try:
            rows += _large_core(name, 400 if quick else 2000)
        except DatasetNotFound:
            left_out.append(f"{name}, not on this machine")
    return Table("star", rows, left_out, ["proven: share of lists whose best is proven within the node limit"])


def _random_pair(rng: np.random.Generator, n_items: int, n_core: int) -> StarPair:
    rows, core = rng.normal(0, 0.5, (n_core, n_items)), np.arange(n_core)
    rows[:, :n_core] = np.triu(rows[:, :n_core], 1) + np.triu(rows[:, :n_core], 1).T
    return StarPair.of(rows, core)


def _large_core(name: str, n_train: int) -> list[Row]:
    """Branch and bound at C=30 on learned pair terms, list by list."""
    X, Y = _public(name)
    n_train = min(n_train, len(Y) - 100)
    given = _held_out_scores(X, Y)
    train, test = slice(0, n_train), slice(n_train, n_train + 100)
    with expected_warnings():  # the model is there to time inference with
        ranker = CStarMarginRanker("scores", core=30, C=1.0, tol=1e-2, max_iter=30).fit(given[train], Y[train])
    scores = given[test] * ranker.coef_ + ranker.intercept_
    counts = Y[test].sum(axis=1).astype(np.int64)
    augmented = scores + (1 - Y[test]) / counts[:, None]
    pair = StarPair.of(ranker.pair_, ranker.core_)
    lists, sizes = np.vstack([scores, augmented]), np.concatenate([counts, counts])
    argmax_block(StarLists(lists[:1], pair, sizes[:1]))
    seconds, proven, gap = np.empty(len(lists)), np.empty(len(lists)), np.empty(len(lists))
    for row in range(len(lists)):
        one = StarLists(lists[row : row + 1], pair, sizes[row : row + 1])
        found, seconds[row] = timed(lambda one=one: argmax_block(one))
        proven[row] = found.upper_bound[0] == found.score[0]
        gap[row] = found.upper_bound[0] - found.score[0]
    what = f"best list, {name}, N={Y.shape[1]}, C=30 learned"
    return [
        Row(f"{what}: median", 1e3 * float(np.median(seconds)), unit="ms", bar="<= 10 ms"),
        Row(f"{what}: 95th of 100", 1e3 * float(np.quantile(seconds, 0.95)), unit="ms"),
        Row(f"{what}: proven", 100 * float(proven.mean()), unit="%", bar=">= 95%"),
        Row(f"{what}: largest certified gap", float(gap.max()), unit=""),
    ]


def _public(name: str) -> tuple[Floats, Floats]:
    """Rows with at least one label, and labels with at least 20 rows."""
    if name == "corel5k_tagprop":
        views = datasets.load(name, MultiViewSet)
        X = np.sqrt(np.hstack([views.views[view].toarray() for view in ("DenseSift", "DenseHue")]).astype(np.float64))
        Y = views.Y.toarray().astype(np.float64)
    else:
        loaded = datasets.load(name, MultiLabelSet)
        X, Y = np.asarray(loaded.X, dtype=np.float64), loaded.Y.toarray().astype(np.float64)
    Y = Y[:, Y.sum(axis=0) >= 20] if name == "corel5k_tagprop" else Y
    kept = Y.sum(axis=1) > 0
    return X[kept], Y[kept]


def _held_out_scores(X: Floats, Y: Floats, folds: int = 4) -> Floats:
    """Log-odds of ridge regressions that did not see the row."""
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    rate, given = Y.mean(axis=0), np.empty(Y.shape)
    part = np.random.default_rng(0).permutation(len(X)) % folds
    for fold in range(folds):
        inside = part != fold
        gram: Floats = X[inside].T @ X[inside]
        gram[np.diag_indices(len(gram))] += len(X)
        aim: Floats = X[inside].T @ (Y[inside] - rate)
        weights = np.linalg.solve(gram, aim)
        given[~inside] = np.clip(X[~inside] @ weights + rate, 0.003, 0.99)
    return np.log(given / (1 - given))
