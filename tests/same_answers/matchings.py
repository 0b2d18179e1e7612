"""Matchings of points."""

from tests.same_answers.case import Case, learned


def ask(matcher):
    from slatewise import datasets

    pairs = datasets.make_silhouettes(n_pairs=14, n_points=8, random_state=2)
    edges = [datasets.edge_features(a, b) for a, b in zip(pairs.source, pairs.target, strict=True)]
    matcher.fit(edges[:10], list(pairs.matches[:10]))
    yield from learned(matcher)
    yield "predict", matcher.predict(edges[10:])
    yield "marginals", matcher.marginals(edges[10:])


def same(name, spelling):
    return Case(name, spelling, spelling, ask)


CASES = [
    same("graph", "GraphMatcher()"),
    same("graph max-margin", 'GraphMatcher(surrogate="max-margin")'),
    same("graph bethe", 'GraphMatcher(expectation="bethe")'),
]
