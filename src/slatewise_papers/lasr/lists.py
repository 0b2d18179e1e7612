"""Lists of artists, and what they are worth: recall at k of next artists, all artists ranked, known ones included.

A system is a function from query numbers and a length to lists of artist numbers, best first. A list is made once per
distinct query. Recall is a share of test pairs; "no self" leaves the query itself out of its list, and pairs of an
artist with itself out of the count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints
from slatewise.core.running.executor import Executor
from slatewise.factors.queries import IdQueries
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.tables import Table, aligned_zeros, padded
from slatewise_papers.framework.statistics import compared, sums_of_groups
from slatewise_papers.lasr.data import ArtistPairs

Lists: TypeAlias = Callable[[Ints, int], Ints]

DEPTHS = (5, 10, 30, 50)
FREQUENCIES = ((1, 10), (11, 50), (51, 200), (201, None))
"""Training pairs of a query: bins of Table 1's gain."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """Places of the test pairs' artists, from 0; beyond every depth where they are not in the list."""

    pairs: ArtistPairs
    rank: Ints
    without_self: Ints
    """The same in lists without the query; -1 for pairs of an artist with itself."""

    def recall(self) -> dict[str, float]:
        """Return recall in percent at every depth, with and without the query itself."""
        others = self.without_self >= 0
        shares = {f"R@{k}": 100.0 * float(np.mean(self.rank < k)) for k in DEPTHS}
        if others.any():
            shares |= {f"R@{k} no self": 100.0 * float(np.mean(self.without_self[others] < k)) for k in DEPTHS}
        return shares

    def quality(self) -> float:
        """Return what validation chooses by: the geometric mean of the recalls, in which a percent of each is alike."""
        return float(np.exp(np.mean([np.log(max(np.mean(self.rank < k), 1e-9)) for k in DEPTHS])))


def ranks_of(system: Lists, pairs: ArtistPairs, n_artists: int) -> Ranks:
    """Find the test pairs' artists in the lists of their queries."""
    length = min(DEPTHS[-1] + 1, n_artists)
    distinct, own = np.unique(pairs.queries, return_inverse=True)
    lists = system(distinct, length)
    rank, self_rank = np.empty(len(pairs), dtype=np.int64), _places(lists, distinct)
    for first in range(0, len(pairs), 8192):
        rows = slice(first, first + 8192)
        rank[rows] = _places(lists[own[rows]], pairs.items[rows])
    without = np.where(pairs.queries == pairs.items, -1, rank - (self_rank[own] < rank))
    return Ranks(pairs, rank, without)


def difference(one: Ranks, other: Ranks) -> dict[str, float]:
    """Return gains in points of recall and their p values: signs of whole queries are flipped, not of single pairs."""
    measured: dict[str, float] = {}
    for k in DEPTHS:
        after, before = ((ranks.rank < k).astype(np.float64) for ranks in (one, other))
        gains = [[sums_of_groups(hits, one.pairs.queries, 100.0)] for hits in (after, before)]
        measured |= compared([f"R@{k}"], *gains, n_flips=1000)
        measured[f"R@{k}_relative"] = (
            100.0 * (float(after.mean()) / float(before.mean()) - 1.0) if before.any() else 0.0
        )
    return measured


def by_frequency(one: Ranks, other: Ranks, train: ArtistPairs, n_artists: int) -> dict[str, dict[str, float]]:
    """Return the gains of pairs by the number of training pairs of their query."""
    seen = np.bincount(train.queries, minlength=n_artists)[one.pairs.queries]
    gains: dict[str, dict[str, float]] = {}
    for low, high in FREQUENCIES:
        chosen = (seen >= low) & (seen <= (high or np.inf))
        if chosen.any():
            parts = [Ranks(of.pairs.of(chosen), of.rank[chosen], of.without_self[chosen]) for of in (one, other)]
            gains[f"{low} times or more" if high is None else f"{low} to {high} times"] = difference(parts[0], parts[1])
    return gains


@dataclass(frozen=True, eq=False)
class Factored:
    """A system that ranks by inner products: a row per query, a row per artist."""

    query_rows: NDArray[np.floating]
    item_rows: NDArray[np.floating]

    def lists(self, numbers: Ints, k: int) -> Ints:
        """Rank all artists."""
        queries, items = (Table.fixed(_padded(rows)) for rows in (self.query_rows[numbers], self.item_rows))
        cascade = Cascade((Factors(IdQueries(queries), items),))
        return cascade.top(np.arange(len(numbers)), min(k, cascade.n_items), executor=Executor.of(None)).items

    def scores(self, queries: Ints, items: Ints) -> NDArray[np.floating]:
        """Return the score of every query with every item."""
        return self.query_rows[queries] @ self.item_rows[items].T


def _padded(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    values = aligned_zeros(len(rows), padded(int(rows.shape[1])))
    values[:, : rows.shape[1]] = rows
    return values


def _places(lists: Ints, artists: Ints) -> Ints:
    hit: NDArray[np.bool_] = lists == artists[:, None]
    places: Ints = hit.argmax(axis=1)
    places[~hit.any(axis=1)] = max(DEPTHS[-1] + 1, lists.shape[1])
    return places
