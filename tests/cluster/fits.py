"""Small fits of every learner that a cluster takes part in, cut into many blocks, and what they learned as a hash."""

from hashlib import sha256

import numpy as np

from slatewise import CStarMarginRanker, CStarRanker, GraphMatcher, MarginRanker, MatchingRanker, MetricRanker, datasets
from slatewise.matching import Likelihood, Sample, Slates

BLOCKS = {
    "slatewise.metric_learning.margin_hinge.BLOCK_BYTES": 1 << 11,
    "slatewise.metric_learning.distance.BLOCK_BYTES": 1 << 13,
    "slatewise.cstar.margin.problem.BLOCK_BYTES": 1 << 11,
    "slatewise.cstar.likelihood.objective._TERMS": 1,
    "slatewise.cstar.likelihood.objective._ROWS": 16,
    "slatewise.matching.slates.slates._ROWS_OF_RUN": 40,
    "slatewise.matching.slates.likelihood._BLOCK_NUMBERS": 1 << 10,
    "slatewise.matching.slates.hinge._BLOCK_SLATES": 64,
    "slatewise.matching.graphs.edges._BLOCK_EDGES": 36,
}
"""What cuts data into blocks, so small that little data has many."""


def documents(kind, **settings):
    def fit(n_jobs=None, **run):
        queries = datasets.make_queries(n_queries=30, random_state=5)
        return kind(**settings, n_jobs=n_jobs).fit(queries.X, queries.y, qid=queries.qid, **run)

    return fit


def tags(**settings):
    def fit(callbacks=None, checkpoint=None, **more):
        scenes = datasets.make_label_scenes(n_rows=150, random_state=3)
        is_given = settings.get("base") == "precomputed"
        X = np.asarray(scenes.marginals(scenes.X)) if is_given else scenes.X
        if is_given:
            X = np.log(np.clip(X, 0.01, 0.99) / (1.0 - np.clip(X, 0.01, 0.99)))
        kind = CStarMarginRanker if "solver" in settings else CStarRanker
        ranker = kind(core=[0, 1], C=1.0, **settings, **more)
        return ranker.fit(X, scenes.Y, callbacks=callbacks, checkpoint=checkpoint)

    return fit


def classes(**settings):
    def fit(callbacks=None, checkpoint=None, **more):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 3, 90)
        X = rng.normal(size=(90, 4)) + y[:, None] * np.array([1.0, 0.5, 0.0, 0.0])
        return MetricRanker(**settings, **more).fit(X, y, callbacks=callbacks, checkpoint=checkpoint)

    return fit


def outlines(**settings):
    def fit(n_jobs=None, **run):
        pairs = datasets.make_silhouettes(n_pairs=10, n_points=6, random_state=2)
        edges = [datasets.edge_features(a, b) for a, b in zip(pairs.source, pairs.target, strict=True)]
        return GraphMatcher(l2=0.1, **settings, n_jobs=n_jobs).fit(edges, list(pairs.matches), **run)

    return fit


FITS = {
    "margin map": documents(MarginRanker, tol=1e-2),
    "margin auc": documents(MarginRanker, loss="auc", tol=1e-2),
    "cstar": tags(base="precomputed"),
    "cstar margin, bundle": tags(solver="bundle", tol=0.1),
    "cstar with a base": tags(),
    "metric map": classes(loss="map", C=10.0, tol=1e-2),
    "metric auc, diagonal": classes(loss="auc", regularizer="diagonal", tol=1e-2),
    "matching slates": documents(MatchingRanker, slates=Slates(repeats=2), l2=0.01),
    "matching, tied": documents(
        MatchingRanker, slates=Slates(3, repeats=1, ties="marginal", position_weights="rating"), l2=0.01
    ),
    "matching whole": documents(MatchingRanker, slates="whole", l2=0.01),
    "matching whole, max-margin": documents(MatchingRanker, slates="whole", surrogate="max-margin", l2=0.1, tol=0.05),
    "matching max-margin": documents(
        MatchingRanker, slates=Slates(3, repeats=1), surrogate="max-margin", l2=0.1, tol=0.05
    ),
    "graph exact": outlines(),
    "graph max-margin": outlines(surrogate="max-margin", tol=0.05),
    "graph bethe": outlines(surrogate=Likelihood("bethe")),
    "graph drawn": outlines(surrogate=Likelihood(Sample(5)), max_iter=3),
}


def learned(estimator):
    """Return a hash of all that was learned."""
    found = sha256()
    for name, value in sorted(vars(estimator).items()):
        if name.endswith("_") and isinstance(value, np.ndarray | int | float):
            found.update(name.encode() + np.asarray(value).tobytes())
    return found.hexdigest()
