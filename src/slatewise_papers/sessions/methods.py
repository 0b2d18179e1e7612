"""Rankers of next items, each one function from sessions and settings to lists, and the settings that are tried.

A function takes the sessions to learn from, how many items there are (which are numbers below that) and settings by
name. What it returns ranks: for a block of prefixes the LISTED best items of each, best first, (prefixes, at most
LISTED), any number below 0 where there are no more. Items of the session may be among them; where the protocol wants
the last one out, it takes it out. METHODS is all that a new method needs to be in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from slatewise.core.arrays import Ints
from slatewise.data.records import Prefixes, Sessions
from slatewise.factors.settings import Factors
from slatewise.sessions.cooccurrence import SessionCooccurrence
from slatewise.sessions.estimator import SessionModel
from slatewise.sessions.neighbors import SessionNeighbors
from slatewise.sessions.ranker import SessionRanker
from slatewise_papers.sessions.data import LISTED, Rank
from slatewise_papers.sessions.networks import gru4rec, sasrec
from slatewise_papers.sessions.peers import (
    ease,
    gpu,
    implicit_als,
    implicit_bpr,
    inverse,
    item_knn,
    library,
    lightfm_warp,
)

Settings: TypeAlias = Mapping[str, Any]

TRIALS = 8
"""Settings tried, of every method that has any."""


class Method(NamedTuple):
    """How to fit, and what to try: TRIALS settings, or the one there is."""

    fit: Callable[..., Rank]
    grid: tuple[Settings, ...] = ({},)
    missing: Callable[[int], str | None] = lambda n_items: None
    """Says why it cannot be run here on this number of items; None: it can."""
    on_gpu: bool = False
    """Whether it uses a GPU where there is one."""
    shared: int = 1
    """How many settings, one after the other, share a fit."""
    cost: float = 1.0
    """How long a trial takes, about, beside others on the same sessions."""


def _grid(**settings: tuple[Any, ...]) -> tuple[Settings, ...]:
    return tuple(dict(zip(settings, values, strict=True)) for values in product(*settings.values()))


def popularity(log: Sessions, n_items: int) -> Rank:
    """Return the same list for everybody."""
    counts = np.bincount(log.items[log.offsets[0] : log.offsets[-1]], minlength=n_items)
    best = np.argsort(-counts, kind="stable")[:LISTED]
    return lambda questions: np.broadcast_to(best, (len(questions), len(best)))


def markov(log: Sessions, n_items: int) -> Rank:
    """Rank what followed the last item, by how often it did, then the most popular items."""
    pairs = log.pairs()
    follows = csr_array((np.ones(len(pairs.items)), (pairs.queries, pairs.items)), shape=(n_items, n_items))
    counts = np.bincount(log.items[log.offsets[0] : log.offsets[-1]], minlength=n_items)
    popular = counts / (counts.sum() + 1.0)  # below the count of any pair

    def rank(questions: Prefixes) -> Ints:
        lists = np.empty((len(questions), min(LISTED, n_items)), dtype=np.int64)
        for row, last in enumerate(questions.items[questions.ends - 1]):
            scores = popular.copy()
            of_last = slice(follows.indptr[last], follows.indptr[last + 1])
            scores[follows.indices[of_last]] += follows.data[of_last]
            best = np.argpartition(-scores, lists.shape[1] - 1)[: lists.shape[1]]
            lists[row] = best[np.lexsort((best, -scores[best]))]
        return lists

    return rank


def neighbors(log: Sessions, n_items: int, **settings: Any) -> Rank:
    """Fit SessionNeighbors."""
    return _lists_of(SessionNeighbors(**settings).fit(log))


def plain_neighbors(log: Sessions, n_items: int, **settings: Any) -> Rank:
    """Fit V-SKNN as it is published, with none of what SessionNeighbors adds."""
    return _lists_of(SessionNeighbors(**settings, last_weight=1.0, repeat_weight=1.0, reach=None).fit(log))


def cooccurrence(log: Sessions, n_items: int, **settings: Any) -> Rank:
    """Fit SessionCooccurrence."""
    return _lists_of(SessionCooccurrence(**settings).fit(log))


def blend(log: Sessions, n_items: int, **settings: Any) -> Rank:
    """Fit the base of a SessionRanker alone."""
    return _lists_of(SessionRanker(None, **settings).fit(log))


def latent(log: Sessions, n_items: int, base: str | None = "blend", **settings: Any) -> Rank:
    """Fit a SessionRanker, on a GPU where there is one."""
    engine = "gpu" if gpu() is not None else "blocked"
    return _lists_of(SessionRanker(Factors(engine=engine, **settings), base=base).fit(log))


def _lists_of(ranker: SessionModel | SessionRanker) -> Rank:
    return lambda questions: ranker.rank(questions, min(LISTED, len(ranker.item_ids_))).ids


METHODS: dict[str, Method] = {
    "popularity": Method(popularity),
    "Markov": Method(markov),
    "ItemKNN, tuned": Method(item_knn, _grid(shrink=(0.0, 20.0), decay=(0.5, 0.7, 0.9, 1.0)), shared=4),
    "EASE, tuned": Method(
        ease, _grid(l2=(10.0, 50.0, 250.0, 1000.0), decay=(0.6, 0.9)), inverse, on_gpu=True, shared=2, cost=2.0
    ),
    "implicit ALS, tuned": Method(
        implicit_als,
        _grid(alpha=(1.0, 10.0), regularization=(0.01, 0.1), decay=(0.7, 1.0)),
        library("implicit"),
        shared=2,
        cost=4.0,
    ),
    "implicit BPR, tuned": Method(
        implicit_bpr,
        _grid(learning_rate=(0.05, 0.1), regularization=(0.001, 0.01), decay=(0.7, 0.9)),
        library("implicit"),
        shared=2,
        cost=4.0,
    ),
    "lightfm-next WARP, tuned": Method(
        lightfm_warp, _grid(learning_rate=(0.02, 0.05), epochs=(8, 16), decay=(0.5, 0.8)), library("lightfm"), cost=4.0
    ),
    "GRU4Rec, tuned": Method(
        gru4rec,
        _grid(width=(128, 256), dropout=(0.2, 0.5), learning_rate=(1e-3, 3e-3)),
        library("torch"),
        on_gpu=True,
        cost=4.0,
    ),
    "SASRec, tuned": Method(
        sasrec, _grid(width=(64, 128), dropout=(0.2, 0.5), layers=(1, 2)), library("torch"), on_gpu=True, cost=3.0
    ),
    "SessionCooccurrence() out of the box": Method(cooccurrence),
    "SessionCooccurrence, tuned": Method(cooccurrence, _grid(window=(1, 2, 3, 5, 8, 10, 15, 20))),
    "V-SKNN, tuned": Method(plain_neighbors, _grid(k=(100, 500), decay=(0.6, 0.8, 0.9, 1.0))),
    "SessionNeighbors() out of the box": Method(neighbors),
    "SessionNeighbors, tuned": Method(neighbors, _grid(k=(25, 50, 70, 100, 150, 200, 500, 1000))),
    "SessionRanker(factors=None) out of the box": Method(blend),
    "SessionRanker(base=None), the sum of items alone": Method(partial(latent, base=None), cost=20.0),
    "SessionRanker(base=None), tuned": Method(
        partial(latent, base=None, learning_rate=0.6),
        _grid(max_norm=(1.5, 2.5), dropout=(0.3, 0.5), n_components=(128, 256)),
        cost=20.0,
    ),
    "SessionRanker() out of the box": Method(latent, cost=20.0),
    "SessionRanker, tuned": Method(
        partial(latent, learning_rate=0.3),
        _grid(max_norm=(1.0, 1.5), dropout=(0.3, 0.5), n_components=(64, 128)),
        cost=20.0,
    ),
}
