"""Rankers of documents with default settings: mq2007-85pct, its official folds, NDCG@10 of LETOR 3.0 on the test lists.

Features are as the source gives them, which scales them per query. No setting was searched for: the plain models are
scikit-learn's logistic regression of "relevant at all" and ridge regression of the grade, row by row, with their
defaults; LightGBM's ranker stands beside them if it is installed. ``lists used`` are training lists that the ranker
learned from, a mean over folds.

*Short lists.* What LETOR 4.0's rule for short lists does to NDCG@10: ``preset("letor")`` beside ``preset("letor4")``.

LETOR 4.0's tool gives NDCG@k = 0 to a list of fewer than k documents. On mq2007-85pct two lists are shorter than 10, so
there it hardly shows; on collections where most lists are short it more than halves the figure. The rankers
have default settings; they are the same for both presets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise import datasets, metrics
from slatewise.core.arrays import Floats
from slatewise.core.running.progress import track
from slatewise.data import minmax_per_query
from slatewise.datasets.records import RankingSet
from slatewise.estimators.best_feature import BestFeatureRanker
from slatewise.estimators.query_ranker import QueryRanker
from slatewise.matching.slates.ranker import MatchingRanker
from slatewise.matching.slates.slates import Slates
from slatewise.metric_learning.margin_ranker import MarginRanker
from slatewise_papers.framework.reproduction import Row
from slatewise_papers.framework.running import expected_warnings, installed
from slatewise_papers.rankmatch.data import Rows

Scores: TypeAlias = "tuple[Floats, int | None]"
"""Of the test rows, and how many training lists were left out, where that is known."""
NAME = "mq2007-85pct"
DEPTH = 10


def rows(quick: bool, seed: int) -> list[Row]:
    """Return every ranker's NDCG@10, a mean over folds, and what short lists do to it; ``quick``: the first fold."""
    loaded = datasets.load(NAME, RankingSet)
    whole, measure = Rows(loaded.X, loaded.y, loaded.qid), metrics.preset("letor").NDCG(DEPTH)
    folds = loaded.folds[: 1 if quick else None]
    found: list[Row] = []
    for name, system in track(_systems(seed).items(), "ranker"):
        values: list[float] = []
        used: list[int] = []
        for split in folds:
            train, test = whole.of(split.train), whole.of(split.test)
            scores, left_out = system(train, test)
            values.append(measure(test.y, scores, test.qid))
            used += [] if left_out is None else [len(np.unique(train.qid)) - left_out]
        figures = {"NDCG@10": float(np.mean(values))} | ({"lists used": float(np.mean(used))} if used else {})
        found.append(Row(f"{NAME}: {name}", figures, None))
    return found + short_list_rows(quick, seed)


def _systems(seed: int) -> Mapping[str, Callable[[Rows, Rows], Scores]]:
    systems = {
        "logistic regression of the rows": _logistic,
        "ridge regression of the rows": _ridge,
        "BestFeatureRanker()": _ranker(BestFeatureRanker()),
        "MarginRanker()": _ranker(MarginRanker(random_state=seed)),
        "MatchingRanker()": _ranker(MatchingRanker(random_state=seed)),
        "MatchingRanker(Slates(missing='skip'))": _ranker(MatchingRanker(Slates(missing="skip"), random_state=seed)),
        "MatchingRanker(l2='auto')": _ranker(MatchingRanker(random_state=seed, l2="auto")),
        "MatchingRanker(Slates(missing='skip'), l2='auto')": _ranker(
            MatchingRanker(Slates(missing="skip"), random_state=seed, l2="auto")
        ),
    }
    return systems | ({"LightGBM's LGBMRanker()": _lightgbm(seed)} if installed("lightgbm") else {})


def _ranker(ranker: QueryRanker) -> Callable[[Rows, Rows], Scores]:
    def scores(train: Rows, test: Rows) -> Scores:
        with expected_warnings():  # lists that are left out are counted in the table
            ranker.fit(train.X, train.y, qid=train.qid)
        return ranker.predict(test.X), getattr(ranker, "n_skipped_", None)

    return scores


def _logistic(train: Rows, test: Rows) -> Scores:
    model: Any = import_module("sklearn.linear_model").LogisticRegression(max_iter=1000)
    return model.fit(train.X, train.y > 0).decision_function(test.X), None


def _ridge(train: Rows, test: Rows) -> Scores:
    model: Any = import_module("sklearn.linear_model").Ridge()
    return model.fit(train.X, train.y).predict(test.X), None


def _lightgbm(seed: int) -> Callable[[Rows, Rows], Scores]:
    def scores(train: Rows, test: Rows) -> Scores:
        model: Any = import_module("lightgbm").LGBMRanker(random_state=seed, n_jobs=1, verbose=-1)
        order = np.argsort(train.qid, kind="stable")
        sizes = np.unique(train.qid[order], return_counts=True)[1]
        return np.asarray(model.fit(train.X[order], train.y[order], group=sizes).predict(test.X)), None

    return scores


def short_list_rows(quick: bool, seed: int) -> list[Row]:
    """Measure the official folds with a short list (``quick``: one of two), and generated lists, most of them short."""
    rankers: list[QueryRanker] = [BestFeatureRanker()] if quick else [BestFeatureRanker(), MarginRanker()]
    rows: list[Row] = []
    if datasets.describe(NAME).present:
        loaded = datasets.load(NAME, RankingSet)
        whole = Rows(minmax_per_query(loaded.X, loaded.qid), loaded.y, loaded.qid)
        short = [number for number, fold in enumerate(loaded.folds, 1) if _lengths(loaded.qid[fold.test]).min() < DEPTH]
        for number in short[: 1 if quick else None]:
            fold = loaded.folds[number - 1]
            rows += _compared(f"{NAME}, fold {number}", rankers, whole.of(fold.train), whole.of(fold.test))
    made = datasets.make_queries(200 if quick else 1000, shortest=2, longest=14, noise=0.3, random_state=seed)
    whole = Rows(made.X, made.y.astype(np.float64), made.qid)
    train = made.qid < (int(made.qid[-1]) + 1) // 2
    return rows + _compared("generated lists of 2 to 14", rankers, whole.of(train), whole.of(~train))


def _compared(name: str, rankers: Sequence[QueryRanker], train: Rows, test: Rows) -> list[Row]:
    _, y, qid = test
    lengths = _lengths(qid)
    rows: list[Row] = []
    for ranker in rankers:
        ranker.fit(train.X, train.y, qid=train.qid)
        scores = ranker.predict(test.X)
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
