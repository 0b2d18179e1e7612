"""What LETOR 4.0's rule for short lists does to NDCG@10: ``preset("letor")`` beside ``preset("letor4")``.

LETOR 4.0's tool gives NDCG@k = 0 to a list of fewer than k documents. On mq2007-85pct two lists are shorter than 10, so
there it hardly shows; on collections where most lists are short it more than halves the figure. The rankers are as they
come; they are the same for both presets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise import datasets, metrics
from slatewise.core.arrays import Floats
from slatewise.data import minmax_per_query
from slatewise.datasets.records import RankingSet
from slatewise.estimators.best_feature import BestFeatureRanker
from slatewise.metric_learning.margin_ranker import MarginRanker
from slatewise_papers.framework.reproduction import Row

Ranker: TypeAlias = BestFeatureRanker | MarginRanker

DEPTH = 10
DATA = "mq2007-85pct"


def short_list_rows(quick: bool, seed: int) -> list[Row]:
    """Measure the official folds with a short list (``quick``: one of two), and generated lists, most of them short."""
    rankers: list[Ranker] = [BestFeatureRanker()] if quick else [BestFeatureRanker(), MarginRanker()]
    rows: list[Row] = []
    if datasets.describe(DATA).present:
        loaded = datasets.load(DATA, RankingSet)
        X = minmax_per_query(loaded.X, loaded.qid)
        short = [number for number, fold in enumerate(loaded.folds, 1) if _lengths(loaded.qid[fold.test]).min() < DEPTH]
        for number in short[: 1 if quick else None]:
            fold = loaded.folds[number - 1]
            parts = [(X[part], loaded.y[part], loaded.qid[part]) for part in (fold.train, fold.test)]
            rows += _compared(f"{DATA}, fold {number}", rankers, *parts)
    made = datasets.make_queries(200 if quick else 1000, shortest=2, longest=14, noise=0.3, random_state=seed)
    train = made.qid < (int(made.qid[-1]) + 1) // 2
    parts = [(made.X[part], made.y[part].astype(np.float64), made.qid[part]) for part in (train, ~train)]
    return rows + _compared("generated lists of 2 to 14", rankers, *parts)


def _compared(
    name: str,
    rankers: Sequence[Ranker],
    train: tuple[Floats, Floats, NDArray[Any]],
    test: tuple[Floats, Floats, NDArray[Any]],
) -> list[Row]:
    X, y, qid = test
    lengths = _lengths(qid)
    rows: list[Row] = []
    for ranker in rankers:
        scores = ranker.fit(train[0], train[1], qid=train[2]).predict(X)
        figures = {
            f"letor NDCG@{DEPTH}": metrics.preset("letor").NDCG(DEPTH)(y, scores, qid),
            f"letor4 NDCG@{DEPTH}": metrics.preset("letor4").NDCG(DEPTH)(y, scores, qid),
            "letor4 MeanNDCG": metrics.preset("letor4").MeanNDCG()(y, scores, qid),
            "lists": float(len(lengths)),
            f"of these shorter than {DEPTH}": float(np.sum(lengths < DEPTH)),
        }
        rows.append(Row(f"{name}, {type(ranker).__name__}()", figures, None))
    return rows


def _lengths(qid: NDArray[Any]) -> NDArray[np.int64]:
    return np.unique(qid, return_counts=True)[1]
