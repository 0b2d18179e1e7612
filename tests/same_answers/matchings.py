"""Matchings of points."""

import numpy as np

from tests.same_answers.case import Case, learned


def silhouettes(n_pairs, n_points):
    from slatewise import datasets

    pairs = datasets.make_silhouettes(n_pairs=n_pairs, n_points=n_points, random_state=2)
    edges = [datasets.edge_features(a, b) for a, b in zip(pairs.source, pairs.target, strict=True)]
    return edges, list(pairs.matches)


def answers(matcher, edges, matches, new, **inference):
    matcher.fit(edges, matches)
    yield from learned(matcher)
    yield "predict", matcher.predict(new)
    yield "marginals", matcher.marginals(new, **inference)
    yield "sample", matcher.sample(new, 5, random_state=0)


def ask(matcher):
    edges, matches = silhouettes(14, 8)
    yield from answers(matcher, edges[:10], matches[:10], edges[10:])
    yield "log_likelihood", matcher.log_likelihood(edges[10:], matches[10:])
    yield "score", matcher.score(edges[10:], matches[10:])


def ask_by_bethe(matcher):
    """After training by another surrogate."""
    edges, matches = silhouettes(14, 8)
    now = {} if hasattr(matcher, "expectation") else {"inference": "bethe"}
    yield from answers(matcher, edges[:10], matches[:10], edges[10:], **now)
    yield "log_likelihood", matcher.log_likelihood(edges[10:], matches[10:], **now)


def ask_with_unmatched(matcher):
    """Two columns are those of another graph, and their rows have no match."""
    edges, matches = silhouettes(14, 8)
    edges = [np.hstack([graph[:, 2:], other[:, :2]]) for graph, other in zip(edges, edges[::-1], strict=True)]
    matches = [np.where(match >= 2, match - 2, -1) for match in matches]
    yield from answers(matcher, edges[:10], matches[:10], edges[10:])
    yield "log_likelihood", matcher.log_likelihood(edges[10:], matches[10:])


def ask_large(matcher):
    """More points than exact sums take at once."""
    edges, matches = silhouettes(4, 26)
    matcher.fit(edges[:3], matches[:3])
    yield from learned(matcher)
    yield "predict", matcher.predict(edges[3:])


def graph(name, before, now, ask=ask):
    return Case(name, f"GraphMatcher({before})", f"GraphMatcher({now})", ask)


CASES = [
    graph("graph", "", ""),
    graph("graph, l2", "0.1, tol=1e-5, max_iter=40", "l2=0.1, tol=1e-5, max_iter=40"),
    graph("graph, l2 auto", 'l2="auto"', 'l2="auto"'),
    graph("graph, parts", "points=3", "matching.Likelihood(part_size=3)"),
    graph("graph, parts, l2 auto", 'points=4, l2="auto"', 'matching.Likelihood(part_size=4), l2="auto"'),
    graph("graph, parts by themselves", "", "", ask_large),
    graph("graph bethe", 'expectation="bethe"', 'matching.Likelihood("bethe")'),
    graph("graph bethe, parts", 'expectation="bethe", points=4', 'matching.Likelihood("bethe", 4)'),
    graph("graph sample", 'expectation="sample"', 'matching.Likelihood("sample")'),
    graph(
        "graph sample, number, seed",
        'expectation="sample", n_samples=30, max_iter=10, random_state=3',
        "matching.Likelihood(matching.Sample(30)), max_iter=10, random_state=3",
    ),
    graph(
        "graph sample, parts",
        'expectation="sample", n_samples=20, points=4, max_iter=10',
        "matching.Likelihood(matching.Sample(20), 4), max_iter=10",
    ),
    graph("graph max-margin", 'surrogate="max-margin"', '"max-margin"'),
    graph("graph max-margin, l2 auto", 'surrogate="max-margin", l2="auto"', '"max-margin", l2="auto"'),
    graph("graph max-margin, marginals", 'surrogate="max-margin", expectation="bethe"', '"max-margin"', ask_by_bethe),
    graph("graph unmatched", "", "", ask_with_unmatched),
    graph("graph unmatched, given", "unmatched=-0.5", "unmatched=-0.5", ask_with_unmatched),
    graph("graph unmatched, parts", "points=3", "matching.Likelihood(part_size=3)", ask_with_unmatched),
    graph("graph unmatched, bethe", 'expectation="bethe"', 'matching.Likelihood("bethe")', ask_with_unmatched),
    graph(
        "graph unmatched, sample",
        'expectation="sample", n_samples=20, max_iter=10',
        "matching.Likelihood(matching.Sample(20)), max_iter=10",
        ask_with_unmatched,
    ),
    graph("graph unmatched, max-margin", 'surrogate="max-margin"', '"max-margin"', ask_with_unmatched),
]
