"""Rankers of documents with default settings, against the same fits by hand."""

import numpy as np
import pytest

from slatewise import MatchingRanker, datasets, metrics
from slatewise.datasets.records import RankingSet
from slatewise_papers.defaults import documents as defaults_documents


@pytest.mark.filterwarnings("ignore:.*lists are left out")
def test_the_rows_are_the_figures_of_plain_fits(monkeypatch):
    made = datasets.make_queries(n_queries=12, random_state=0)
    y = np.minimum(made.y, 2)
    y[(made.qid < 4) & (y == 1)] = 0  # lists that lack a rating
    train, test = np.flatnonzero(made.qid < 8), np.flatnonzero(made.qid >= 8)
    fold = datasets.Split(train, train[:0], test)
    monkeypatch.setattr(datasets, "load", lambda *_: RankingSet("made", made.X, y, made.qid, None, (fold,)))
    found = {row.name.removeprefix("mq2007-85pct: "): row.measured for row in defaults_documents.rows(True, 3)}
    assert found["MatchingRanker()"]["lists used"] > found["MatchingRanker(Slates(missing='skip'))"]["lists used"]
    ranker = MatchingRanker(random_state=3).fit(made.X[train], y[train], made.qid[train])
    by_hand = metrics.preset("letor").NDCG(10)(y[test], ranker.predict(made.X[test]), made.qid[test])
    assert found["MatchingRanker()"]["NDCG@10"] == pytest.approx(by_hand)
    assert {"logistic regression of the rows", "BestFeatureRanker()", "MarginRanker()"} <= found.keys()
