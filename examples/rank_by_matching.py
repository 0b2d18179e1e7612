"""RankMatch: learn a distribution over rankings from small slates, or from whole queries; DORM on the same slates."""

# ---
from slatewise import MatchingRanker, data, datasets, metrics
from slatewise.matching import Slates

queries = datasets.make_queries(n_queries=40, random_state=1)
X = data.minmax_per_query(queries.X, queries.qid)  # only differences inside a query count
train = queries.qid < 28
test = ~train

rankers = {
    "RankMatch, 3 documents a slate": MatchingRanker(Slates(size=3), l2="auto", random_state=0),
    "RankMatch, whole queries": MatchingRanker("whole", l2=0.001),
    "DORM, 3 documents a slate": MatchingRanker(Slates(size=3), surrogate="max-margin", random_state=0),
}
for name, ranker in rankers.items():
    ranker.fit(X[train], queries.y[train], qid=queries.qid[train])
    ndcg = metrics.NDCG(10)(queries.y[test], ranker.predict(X[test]), queries.qid[test])
    gap = (ranker.objective_ - ranker.lower_bound_) / ranker.objective_
    print(f"{name}: NDCG@10 {ndcg:.3f}, l2 {ranker.l2_:.3g}, certified gap {gap:.1e}")
