"""A small fitted model of each estimator, several settings each; made once per process."""

from __future__ import annotations

import warnings
from functools import cache, partial
from typing import Any

import numpy as np

from slatewise import (
    BestFeatureRanker,
    CStarRanker,
    GraphMatcher,
    LatentRanker,
    MarginRanker,
    MatchingRanker,
    MetricRanker,
    SessionBlend,
    SessionCooccurrence,
    SessionNeighbors,
    StructuredReranker,
    datasets,
)
from tests.fuzz.models.asked import Base


@cache
def fitted() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few rounds are enough here
        return {**_queries(), **_labels(), **_metrics(), **_catalogues(), **_sessions(), **_graphs()}


def _queries() -> dict[str, Any]:
    made = datasets.make_queries(n_queries=8, random_state=0)
    X, y, qid = made.X[:, :4], made.y, made.qid
    rankers = {
        "best": BestFeatureRanker(),
        "margin": MarginRanker(),
        "matching": MatchingRanker(M=3, repeats=1),
        "matching-whole": MatchingRanker(subsets="whole"),
        "matching-weights": MatchingRanker(c=[3.0, 1.0, 0.5], M=3, repeats=1, ties="marginal"),
        "matching-hinge": MatchingRanker(surrogate="max-margin", repeats=1),
    }
    return {name: ranker.fit(X, y, qid=qid) for name, ranker in rankers.items()}


def _labels() -> dict[str, Any]:
    scenes, rng = datasets.make_label_scenes(60, random_state=0), np.random.default_rng(0)
    X, Y = scenes.X[:, :5], scenes.Y[:, :4]
    given = 2.0 * Y - 1.0 + rng.normal(size=Y.shape)
    classes = np.array(["a", "b", "c"])[Y[:, :3].argmax(axis=1)]
    hinge = partial(CStarRanker, C=1.0, surrogate="max-margin")
    return {
        "cstar": hinge(core=2, scores="linear").fit(X, Y),
        "cstar-fixed": hinge(core=[1], scores="linear", k=2, max_iter=20).fit(X, Y),
        "cstar-rbf": hinge(core=1, scores="rbf", n_components=6).fit(X, Y),
        "cstar-chi2": hinge(core=1, scores="chi2", n_components=6).fit(np.abs(X), Y),
        "cstar-intersection": hinge(core=1, scores="intersection", n_components=6).fit(np.abs(X), Y),
        "cstar-precomputed": hinge(core=1, scores="precomputed", n_components=6).fit(X @ X.T, Y),
        "cstar-likelihood-k": CStarRanker(core=2, scores="pretrained", C=1.0, surrogate="likelihood-k").fit(given, Y),
        "cstar-base": CStarRanker(core=2, C=1.0).fit(X, Y),
        "cstar-base-named": CStarRanker(core=1, C=1.0).fit(X, Y, label_names=[f"label {place}" for place in range(4)]),
        "cstar-base-svc": CStarRanker(core=1, C=1.0, base="svc").fit(X, Y),
        "cstar-base-hinge": hinge(core=1).fit(X, Y),
        "cstar-base-classes": CStarRanker(core=1, C=1.0).fit(X, classes),
        "cstar-classes": hinge(core=1, scores="linear").fit(X, classes),
    }


def _metrics() -> dict[str, Any]:
    scenes = datasets.make_label_scenes(30, random_state=0)
    X, Y = scenes.X[:, :5], scenes.Y[:, :4]
    classes = np.array(["a", "b", "c"])[Y[:, :3].argmax(axis=1)]
    return {
        "metric": MetricRanker().fit(X, classes),
        "metric-rbf": MetricRanker(kernel="rbf", n_components=6).fit(X, classes),
        "metric-precomputed": MetricRanker(kernel="precomputed", n_components=6).fit(X @ X.T, classes),
        "metric-labels": MetricRanker(regularizer="diagonal").fit(X, Y),
        "metric-lists": MetricRanker().fit(X, relevance=np.eye(len(X))[:, ::-1]),
    }


def _catalogues() -> dict[str, Any]:
    sessions = datasets.make_sessions(60, 20, random_state=0).sessions
    pairs = sessions.pairs()
    ids, names = (pairs.queries, pairs.items), (pairs.queries.astype(str), pairs.items.astype(str))
    scenes = datasets.make_label_scenes(60, random_state=0)
    small: Any = {"n_components": 3, "epochs": 2, "k": 4, "validation_fraction": 0}
    return {
        "latent": LatentRanker(**small, max_norm=2.5).fit(*ids),
        "latent-stages": LatentRanker(**small, max_norm=2.5, stages=2, pair="bilinear", own_weight=0.5).fit(*ids),
        "latent-sampled": LatentRanker(**small, max_norm=2.5, engine="sampled", n_jobs=1, loss="auc").fit(*ids),
        "latent-strings": LatentRanker(**small, max_norm=2.5).fit(*names),
        "latent-sessions": LatentRanker(**small, max_norm=2.5, window=3).fit(sessions),
        "latent-baskets": LatentRanker(**small, max_norm=2.5, window=None).fit(sessions),
        "latent-features": LatentRanker(**small, max_norm=2.5).fit(scenes.X[:, :5], scenes.Y[:, :4]),
        "reranker": StructuredReranker(Base(), **small, stages=2).fit(*ids),
        "reranker-strings": StructuredReranker(Base(), **small, pair="bilinear").fit(*names),
    }


def _sessions() -> dict[str, Any]:
    sessions = datasets.make_sessions(60, 20, random_state=0).sessions
    names = [items.astype(str) for items in sessions]
    return {
        "blend": SessionBlend().fit(sessions),
        "blend-strings": SessionBlend(5, window=3).fit(names),
        "neighbors": SessionNeighbors().fit(sessions),
        "neighbors-strings": SessionNeighbors(k=5, reach=2.0, last_weight=0.0).fit(names),
        "cooccurrence": SessionCooccurrence().fit(sessions),
        "cooccurrence-strings": SessionCooccurrence(3, backward=0.0, row_power=0.5).fit(names),
    }


def _graphs() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    graphs, matches = [rng.normal(size=(4, 4, 3)) for _ in range(4)], [rng.permutation(4) for _ in range(4)]
    left_out = [np.where(np.arange(4) == 2, -1, one) for one in matches]
    return {
        "graph": GraphMatcher(l2=0.1).fit(graphs, matches),
        "graph-bethe": GraphMatcher(l2=0.1, expectation="bethe", unmatched=0.0).fit(graphs, matches),
        "graph-sample": GraphMatcher(l2=0.1, expectation="sample", n_samples=20, max_iter=20).fit(graphs, matches),
        "graph-margin": GraphMatcher(l2=0.1, surrogate="max-margin").fit(graphs, left_out),
    }
