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


def ask_with_loss(ranker):
    yield from ask(ranker)
    from slatewise import datasets

    queries = datasets.make_queries(n_queries=12, random_state=6)
    yield "loss", ranker.loss(queries.X, queries.y, qid=queries.qid)


def matching(name, before, now):
    return Case(name, f"MatchingRanker({before})", f"MatchingRanker({now})", ask_with_loss, {"slate_size_": "M_"})


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
    matching("matching", "", ""),
    matching("matching, size", "M=3", "matching.Slates(3)"),
    matching("matching, share", "subsets=0.1, repeats=2", "matching.Slates(share=0.1, repeats=2)"),
    matching("matching, seed", "random_state=7, repeats=1", "matching.Slates(repeats=1), random_state=7"),
    matching("matching, l2 auto", 'M=3, repeats=1, l2="auto"', 'matching.Slates(3, repeats=1), l2="auto"'),
    matching("matching, tol", "M=3, tol=1e-7, max_iter=50", "matching.Slates(3), tol=1e-7, max_iter=50"),
    matching("matching, rating", 'M=4, c="rating"', 'matching.Slates(4, position_weights="rating")'),
    matching("matching, weights", "M=3, c=[1.0, 0.5, 0.0]", "matching.Slates(3, position_weights=[1.0, 0.5, 0.0])"),
    matching("matching, skip", 'M=4, absent="skip"', 'matching.Slates(4, missing="skip")'),
    matching(
        "matching, marginal ties",
        'M=3, ties="marginal", repeats=1',
        'matching.Slates(3, ties="marginal", repeats=1)',
    ),
    matching(
        "matching, marginal ties, rating",
        'M=6, subsets=0.1, ties="marginal", c="rating", repeats=2',
        'matching.Slates(6, 0.1, ties="marginal", position_weights="rating", repeats=2)',
    ),
    matching("matching all", 'M=2, subsets="all"', "matching.AllSlates(2)"),
    matching(
        "matching all, rating, marginal ties",
        'M=2, subsets="all", c="rating", ties="marginal"',
        'matching.AllSlates(2, "rating", "marginal")',
    ),
    matching("matching all, skip", 'M=3, subsets="all", absent="skip"', 'matching.AllSlates(3, missing="skip")'),
    matching(
        "matching all, max-margin",
        'M=2, subsets="all", surrogate="max-margin", l2=0.1',
        'matching.AllSlates(2), surrogate="max-margin", l2=0.1',
    ),
    matching(
        "matching max-margin",
        'M=3, surrogate="max-margin", repeats=2',
        'matching.Slates(3, repeats=2), surrogate="max-margin"',
    ),
    matching(
        "matching max-margin, rating, l2 auto",
        'M=3, surrogate="max-margin", repeats=1, c="rating", l2="auto", tol=0.1',
        'matching.Slates(3, repeats=1, position_weights="rating"), surrogate="max-margin", l2="auto", tol=0.1',
    ),
    matching("matching whole", 'subsets="whole"', '"whole"'),
    matching("matching whole, rating", 'subsets="whole", c="rating"', 'matching.WholeQueries("rating")'),
    matching(
        "matching whole, weights",
        'subsets="whole", c=[9.0, 5.0, 2.0, 1.0, 1.0]',
        "matching.WholeQueries([9.0, 5.0, 2.0, 1.0, 1.0])",
    ),
    matching("matching whole, l2 auto", 'subsets="whole", l2="auto"', '"whole", l2="auto"'),
    matching(
        "matching whole, max-margin",
        'subsets="whole", surrogate="max-margin", l2=0.1',
        '"whole", surrogate="max-margin", l2=0.1',
    ),
    matching(
        "matching whole, max-margin, rating",
        'subsets="whole", surrogate="max-margin", l2=0.1, c="rating"',
        'matching.WholeQueries("rating"), surrogate="max-margin", l2=0.1',
    ),
]
