"""A small fitted model of each estimator, several settings each; made once per process."""

from __future__ import annotations

import warnings
from functools import cache, partial
from typing import Any

import numpy as np

from slatewise import (
    BestFeatureRanker,
    CollaborativeRanker,
    CStarMarginRanker,
    CStarRanker,
    GraphMatcher,
    LatentFeatureRanker,
    LatentRanker,
    MarginRanker,
    MatchingRanker,
    MetricRanker,
    SessionCooccurrence,
    SessionNeighbors,
    SessionRanker,
    StructuredReranker,
    datasets,
    kernels,
)
from slatewise.collaborative import ALS
from slatewise.factors import Factors, Stages
from slatewise.kernels import Chi2, Intersection, Precomputed, Rbf
from slatewise.matching import AllSlates, Likelihood, Sample, Slates
from slatewise.sessions import Blend
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
        "matching": MatchingRanker(Slates(3, repeats=1)),
        "matching-all": MatchingRanker(AllSlates(2)),
        "matching-whole": MatchingRanker("whole"),
        "matching-weights": MatchingRanker(
            Slates(3, repeats=1, position_weights=[3.0, 1.0, 0.5], ties="marginal"),
        ),
        "matching-hinge": MatchingRanker(Slates(repeats=1), surrogate="max-margin"),
    }
    return {name: ranker.fit(X, y, qid=qid) for name, ranker in rankers.items()}


def _labels() -> dict[str, Any]:
    scenes, rng = datasets.make_label_scenes(60, random_state=0), np.random.default_rng(0)
    X, Y = scenes.X[:, :5], scenes.Y[:, :4]
    given = 2.0 * Y - 1.0 + rng.normal(size=Y.shape)
    classes = np.array(["a", "b", "c"])[Y[:, :3].argmax(axis=1)]
    hinge = partial(CStarMarginRanker, C=1.0)
    return {
        "cstar-margin": hinge(core=2).fit(X, Y),
        "cstar-margin-fixed": hinge(core=[1], k=2, max_iter=20).fit(X, Y),
        "cstar-margin-rbf": hinge(Rbf(n_basis=6), core=1).fit(X, Y),
        "cstar-margin-chi2": hinge(Chi2(n_basis=6), core=1).fit(np.abs(X), Y),
        "cstar-margin-intersection": hinge(Intersection(n_basis=6), core=1).fit(np.abs(X), Y),
        "cstar-margin-kernel": hinge(Precomputed(n_basis=6), core=1).fit(X @ X.T, Y),
        "cstar-margin-scores": hinge("scores", core=2).fit(given, Y),
        "cstar-precomputed": CStarRanker("precomputed", core=2, C=1.0).fit(given, Y),
        "cstar-base": CStarRanker(core=2, C=1.0).fit(X, Y),
        "cstar-base-named": CStarRanker(core=1, C=1.0).fit(X, Y, label_names=[f"label {place}" for place in range(4)]),
        "cstar-base-svc": CStarRanker(core=1, C=1.0, base="svc").fit(X, Y),
        "cstar-base-classes": CStarRanker(core=1, C=1.0).fit(X, classes),
        "cstar-margin-classes": hinge(core=1).fit(X, classes),
    }


def _metrics() -> dict[str, Any]:
    scenes = datasets.make_label_scenes(30, random_state=0)
    X, Y = scenes.X[:, :5], scenes.Y[:, :4]
    classes = np.array(["a", "b", "c"])[Y[:, :3].argmax(axis=1)]
    return {
        "metric": MetricRanker().fit(X, classes),
        "metric-rbf": MetricRanker(kernel=kernels.Rbf(n_basis=6)).fit(X, classes),
        "metric-precomputed": MetricRanker(kernel=kernels.Precomputed(6)).fit(X @ X.T, classes),
        "metric-labels": MetricRanker(regularizer="diagonal").fit(X, Y),
        "metric-lists": MetricRanker().fit(X, relevance=np.eye(len(X))[:, ::-1]),
    }


def _catalogues() -> dict[str, Any]:
    sessions = datasets.make_sessions(60, 20, random_state=0).sessions
    pairs = sessions.pairs()
    ids, names = (pairs.queries, pairs.items), (pairs.queries.astype(str), pairs.items.astype(str))
    scenes = datasets.make_label_scenes(60, random_state=0)
    small: Any = {"n_components": 3, "epochs": 2, "max_norm": 2.5, "validation_fraction": 0}
    own: Any = {"factors": Factors(3, epochs=2, max_norm=2.5), "validation_fraction": 0}
    stages = Stages(2, k=4, pair="bilinear", self_weight=0.5)
    on_base: Any = {"n_components": 3, "epochs": 2, "validation_fraction": 0}
    return {
        "latent": LatentRanker(**small).fit(*ids),
        "latent-stages": LatentRanker(**small, stages=stages).fit(*ids),
        "latent-sampled": LatentRanker(**small, engine="sampled", n_jobs=1, loss="auc").fit(*ids),
        "latent-strings": LatentRanker(**small).fit(*names),
        "latent-sessions": SessionRanker(**own, window=3).fit(sessions),
        "latent-baskets": SessionRanker(**own, base=None, window=None).fit(sessions),
        "collaborative": CollaborativeRanker(validation_fraction=0).fit(*ids),
        "collaborative-strings": CollaborativeRanker(ALS(3, epochs=2), validation_fraction=0).fit(*names),
        "latent-features": LatentFeatureRanker(**small).fit(scenes.X[:, :5], scenes.Y[:, :4]),
        "reranker": StructuredReranker(Base(), **on_base, stages=Stages(2, k=4)).fit(*ids),
        "reranker-strings": StructuredReranker(Base(), **on_base, stages=Stages(k=4, pair="bilinear")).fit(*names),
    }


def _sessions() -> dict[str, Any]:
    sessions = datasets.make_sessions(60, 20, random_state=0).sessions
    names = [items.astype(str) for items in sessions]
    return {
        "blend": SessionRanker(None).fit(sessions),
        "blend-strings": SessionRanker(None, base=Blend(5), window=3).fit(names),
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
        "graph-bethe": GraphMatcher(Likelihood("bethe"), l2=0.1, unmatched=0.0).fit(graphs, matches),
        "graph-sample": GraphMatcher(Likelihood(Sample(20)), l2=0.1, max_iter=20).fit(graphs, matches),
        "graph-margin": GraphMatcher("max-margin", l2=0.1).fit(graphs, left_out),
    }
