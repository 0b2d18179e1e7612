"""MarginRanker on LETOR's OHSUMED, its five folds, against the ranking SVM that comes with the collection.

C is chosen by MAP on each fold's validation part among rankers of its training part; features are scaled inside each
query. Measures are LETOR's: MAP of grades >= 1, NDCG with gain 2^r - 1. ``_p`` is the p value (randomization over
queries) of the difference to the official ranking SVM, whose figures stand beside.
"""

from __future__ import annotations

import numpy as np

from slatewise import metrics
from slatewise.core.arrays import Floats
from slatewise.metric_learning.margin_ranker import MarginRanker
from slatewise_papers.framework.reproduction import Row
from slatewise_papers.framework.running import expected_warnings
from slatewise_papers.framework.statistics import compared
from slatewise_papers.rankmatch.data import Fold, Rows, load_ranking

DOCUMENTS = ("ohsumed25",)
OFFICIAL = "RankSVM"
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
LOSSES = ("map", "auc", "mrr")
LETOR = metrics.preset("letor")
MEASURES = {"MAP": LETOR.AP(), "NDCG@10": LETOR.NDCG(10)}


def document_rows(name: str, quick: bool) -> list[Row]:
    """Return the measured official run, and one row a loss."""
    problem = load_ranking(name)
    folds = problem.folds[: 1 if quick else None]
    official = [run for run in problem.runs if run.name.startswith(OFFICIAL)][: len(folds)]
    theirs = [_per_query(Rows(np.empty((0, 0)), run.relevance, run.qid), run.scores) for run in official]
    published = {title: float(np.mean([run.figures[title] for run in official])) for title in MEASURES}
    rows = [Row(f"{name}: {OFFICIAL}, official run", _means(theirs), published)]
    for loss in LOSSES:
        ours: list[dict[str, Floats]] = []
        for fold in folds:
            ranker = _chosen(fold, loss, STRENGTHS[::3] if quick else STRENGTHS)
            ours.append(_per_query(fold.test, ranker.predict(fold.test.X)))
        one, other = ([np.concatenate([part[title] for part in of]) for title in MEASURES] for of in (ours, theirs))
        measured = compared(MEASURES, one, other) | _means(ours)
        rows.append(Row(f"{name}: MarginRanker-{loss.upper()}", measured, published))
    return rows


def _chosen(fold: Fold, loss: str, strengths: tuple[float, ...]) -> MarginRanker:
    train, held_out = fold.train, fold.validation
    with expected_warnings():  # of every C the same lists are left out
        rankers = [MarginRanker(loss, C=C).fit(train.X, train.y, qid=train.qid) for C in strengths]
    return max(rankers, key=lambda one: MEASURES["MAP"](held_out.y, one.predict(held_out.X), held_out.qid))


def _per_query(rows: Rows, scores: Floats) -> dict[str, Floats]:
    return {title: measure.per_list(rows.y, scores, rows.qid) for title, measure in MEASURES.items()}


def _means(parts: list[dict[str, Floats]]) -> dict[str, float]:
    """Mean over folds of the mean over queries, as LETOR averages."""
    return {title: float(np.mean([part[title].mean() for part in parts])) for title in MEASURES}
