"""Fit on graded rows, rank every query, measure with confidence."""

# ---
from slatewise import BestFeatureRanker, datasets, metrics

queries = datasets.make_queries(n_queries=200, random_state=0)
train = queries.qid < 100
test = ~train

ranker = BestFeatureRanker().fit(queries.X[train], queries.y[train], qid=queries.qid[train])
scores = ranker.predict(queries.X[test])
print(metrics.evaluate(["ndcg@10", "map", "p@5"], queries.y[test], scores, queries.qid[test]))

# The same scores as LightGBM would measure them, and a test of two systems on the same lists.
print(metrics.preset("lightgbm").NDCG(10)(queries.y[test], scores, queries.qid[test]))
ours = metrics.NDCG(10).per_list(queries.y[test], scores, queries.qid[test])
best = metrics.NDCG(10).per_list(queries.y[test], queries.scores[test], queries.qid[test])
print(metrics.randomisation_test(best, ours, random_state=0))
