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
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slatewise.data.records import Prefixes, Sessions
from slatewise.latent.cooccurrence_ranker import CooccurrenceRanker
from slatewise.latent.ranker import LatentRanker
from slatewise.latent.session_neighbors import SessionNeighbors

Ints: TypeAlias = NDArray[np.int64]
Settings: TypeAlias = Mapping[str, Any]
Rank: TypeAlias = Callable[[Prefixes], Ints]

DEPTH = 50
"""Places that figures look at."""
LISTED = DEPTH + 1
"""One more, because one may be taken out."""
TRIALS = 8
"""Settings tried, of every method that has any."""


class Method(NamedTuple):
    """How to fit, and what to try: TRIALS settings, or the one there is."""

    fit: Callable[..., Rank]
    grid: tuple[Settings, ...] = ({},)


def _grid(**settings: tuple[Any, ...]) -> tuple[Settings, ...]:
    return tuple(dict(zip(settings, values, strict=True)) for values in product(*settings.values()))


def popularity(log: Sessions, n_items: int) -> Rank:
    """Return the same list for everybody."""
    counts = np.bincount(log.items[log.offsets[0] : log.offsets[-1]], minlength=n_items)
    best = np.argsort(-counts, kind="stable")[:LISTED]
    return lambda asked: np.broadcast_to(best, (len(asked), len(best)))


def markov(log: Sessions, n_items: int) -> Rank:
    """Rank what followed the last item, by how often it did, then the most popular items."""
    pairs = log.pairs()
    follows = csr_array((np.ones(len(pairs.items)), (pairs.queries, pairs.items)), shape=(n_items, n_items))
    counts = np.bincount(log.items[log.offsets[0] : log.offsets[-1]], minlength=n_items)
    popular = counts / (counts.sum() + 1.0)  # below the count of any pair

    def rank(asked: Prefixes) -> Ints:
        lists = np.empty((len(asked), min(LISTED, n_items)), dtype=np.int64)
        for row, last in enumerate(asked.items[asked.ends - 1]):
            scores = popular.copy()
            of_last = slice(follows.indptr[last], follows.indptr[last + 1])
            scores[follows.indices[of_last]] += follows.data[of_last]
            best = np.argpartition(-scores, lists.shape[1] - 1)[: lists.shape[1]]
            lists[row] = best[np.lexsort((best, -scores[best]))]
        return lists

    return rank


def neighbours(log: Sessions, n_items: int, **settings: Any) -> Rank:
    """Fit SessionNeighbors."""
    return _lists_of(SessionNeighbors(**settings).fit(log))


def plain_neighbours(log: Sessions, n_items: int, **settings: Any) -> Rank:
    """Fit V-SKNN as it is published, with none of what SessionNeighbors adds."""
    return _lists_of(SessionNeighbors(**settings, last_weight=1.0, repeat_weight=1.0, reach=None).fit(log))


def cooccurrence(log: Sessions, n_items: int, **settings: Any) -> Rank:
    """Fit CooccurrenceRanker."""
    return _lists_of(CooccurrenceRanker(**settings).fit(log))


def latent(log: Sessions, n_items: int, **settings: Any) -> Rank:
    """Fit LatentRanker."""
    return _lists_of(LatentRanker(**settings).fit(log))


def _lists_of(ranker: SessionNeighbors | CooccurrenceRanker | LatentRanker) -> Rank:
    return lambda asked: ranker.rank(asked, min(LISTED, len(ranker.item_ids_))).ids


METHODS: dict[str, Method] = {
    "popularity": Method(popularity),
    "Markov": Method(markov),
    "CooccurrenceRanker() as it comes": Method(cooccurrence),
    "CooccurrenceRanker, tuned": Method(cooccurrence, _grid(window=(1, 2, 3, 5, 8, 10, 15, 20))),
    "V-SKNN, tuned": Method(plain_neighbours, _grid(k=(100, 500), decay=(0.6, 0.8, 0.9, 1.0))),
    "SessionNeighbors() as it comes": Method(neighbours),
    "SessionNeighbors, tuned": Method(neighbours, _grid(k=(25, 50, 70, 100, 150, 200, 500, 1000))),
    "LatentRanker(base=None), the sum of items alone": Method(partial(latent, base=None)),
    "LatentRanker() as it comes": Method(latent),
    "LatentRanker, tuned": Method(
        partial(latent, learning_rate=0.3), _grid(max_norm=(1.0, 1.5), dropout=(0.3, 0.5), n_components=(64, 128))
    ),
}
