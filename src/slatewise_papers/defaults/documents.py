"""Rankers of documents with default settings: mq2007-85pct, its official folds, NDCG@10 of LETOR 3.0 on the test lists.

Features are as the source gives them, which scales them per query. No setting was searched for: the plain models are
scikit-learn's logistic regression of "relevant at all" and ridge regression of the grade, row by row, with their
defaults; LightGBM's ranker stands beside them if it is installed. ``lists used`` are training lists that the ranker
learned from, a mean over folds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from slatewise import datasets, metrics
from slatewise.core.arrays import Floats
from slatewise.core.running.progress import track
from slatewise.datasets.records import RankingSet
from slatewise.estimators.best_feature import BestFeatureRanker
from slatewise.estimators.query_ranker import QueryRanker
from slatewise.matching.slates.ranker import MatchingRanker
from slatewise.matching.slates.slates import Slates
from slatewise.metric_learning.margin_ranker import MarginRanker
from slatewise_papers.defaults.short_lists import short_list_rows
from slatewise_papers.framework.reproduction import Row
from slatewise_papers.framework.running import expected_warnings, installed
from slatewise_papers.rankmatch.data import Rows

Scores: TypeAlias = "tuple[Floats, int | None]"
"""Of the test rows, and how many training lists were left out, where that is known."""
NAME = "mq2007-85pct"
QUICK_FOLDS = 1


def rows(quick: bool, seed: int) -> list[Row]:
    """Return every ranker's NDCG@10, a mean over folds, and what short lists do to it; ``quick``: the first fold."""
    loaded = datasets.load(NAME, RankingSet)
    whole, measure = Rows(loaded.X, loaded.y, loaded.qid), metrics.preset("letor").NDCG(10)
    folds = loaded.folds[:QUICK_FOLDS] if quick else loaded.folds
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
