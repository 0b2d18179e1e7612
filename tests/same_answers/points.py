"""Learned distances."""

from tests.same_answers.case import Case, learned, ranked


def ask(ranker):
    from sklearn.datasets import load_wine

    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ranker.fit(X[::2], y[::2])
    yield from learned(ranker)
    yield "transform", ranker.transform(X[1::2])
    yield from ranked(ranker.rank(X[1::2], k=9))
    yield "score", ranker.score(X[1::2], y[1::2])


def same(name, spelling):
    return Case(name, spelling, spelling, ask)


CASES = [
    same("metric auc", 'MetricRanker(loss="auc")'),
    same("metric map", 'MetricRanker(loss="map", C=10.0)'),
    same("metric mrr, diagonal", 'MetricRanker(loss="mrr", regularizer="diagonal")'),
    same("metric ndcg, rbf", 'MetricRanker(loss="ndcg", kernel="rbf")'),
    same("metric precision", 'MetricRanker(loss="precision", C=10.0)'),
]
