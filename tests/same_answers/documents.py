"""Rankers of graded documents."""

from tests.same_answers.case import Case, learned, ranked


def ask(ranker):
    from slatewise import datasets

    queries = datasets.make_queries(n_queries=40, random_state=5)
    ranker.fit(queries.X, queries.y, qid=queries.qid)
    yield from learned(ranker)
    yield "predict", ranker.predict(queries.X)
    yield from ranked(ranker.rank(queries.X, queries.qid))
    yield "score", ranker.score(queries.X, queries.y, queries.qid)


def same(name, spelling):
    return Case(name, spelling, spelling, ask)


CASES = [
    same("feature", "BestFeatureRanker()"),
    same("margin", "MarginRanker()"),
    Case("margin auc, auto", 'MarginRanker(loss="auc", C="auto")', 'MarginRanker("auc", C="auto")', ask),
    Case(
        "margin ndcg, threshold",
        'MarginRanker("ndcg", k=5, threshold=2.0, C=10.0)',
        "MarginRanker(losses.NDCG(k=5, threshold=2.0), C=10.0)",
        ask,
    ),
    Case("margin precision", 'MarginRanker("precision", k=3)', "MarginRanker(losses.Precision(3))", ask),
    same("margin mrr", 'MarginRanker("mrr", C=3.0)'),
    same("matching", "MatchingRanker()"),
    same("matching whole", 'MatchingRanker(subsets="whole")'),
    same("matching max-margin", 'MatchingRanker(M=3, surrogate="max-margin", repeats=2)'),
    same("matching marginal ties", 'MatchingRanker(M=3, ties="marginal", repeats=1)'),
]
