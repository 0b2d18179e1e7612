"""Next-item sessions over up to millions of items, with the exact probability of every next item.

Item i is the i-th most popular; it belongs to cluster ``i mod C`` and is the ``i div C``-th most popular there. After
item i comes

    its partner (its neighbor in popularity in the cluster)    with probability ``follow``,
    an item of its cluster, by popularity there                 with probability ``stay``,
    any item, by popularity                                     otherwise.

Popularity is Zipf's law in a form that needs no table: the r-th of N items has probability
((r + 1)^(1 - a) - (r + 2)^(1 - a)) / (1 - (N + 1)^(1 - a)), the share of a power law between r + 1 and r + 2. So
memory grows with the events drawn, not with the items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Floats, Ints
from slatewise.data.records import Sessions
from slatewise.datasets.splits import RandomState


@dataclass(frozen=True)
class Zipf:
    """Ranks 0 to n - 1 whose probability falls like ``rank ** -exponent``; any of the numbers may be an array."""

    exponent: float

    def probability(self, rank: Ints, n: Ints | int) -> Floats:
        """Return the probability of each rank."""
        power = 1 - self.exponent
        return ((rank + 1.0) ** power - (rank + 2.0) ** power) / (1 - (np.asarray(n) + 1.0) ** power)

    def draw(self, uniform: Floats, n: Ints | int) -> Ints:
        """Turn numbers in [0, 1) into ranks."""
        power = 1 - self.exponent
        position = (1 - uniform * (1 - (np.asarray(n) + 1.0) ** power)) ** (1 / power)
        # Rounding may step over the last rank.
        return np.minimum(position.astype(np.int64) - 1, np.asarray(n) - 1)


@dataclass(frozen=True, eq=False)
class MadeSessions:
    """Sessions and the law they were drawn from; items are numbered by popularity, from 0."""

    sessions: Sessions
    n_items: int
    n_clusters: int
    follow: float
    stay: float
    popularity: Zipf

    def probability(self, item: ArrayLike, following: ArrayLike) -> Floats:
        """Return p(following comes next | item)."""
        now, then = np.asarray(item, dtype=np.int64), np.asarray(following, dtype=np.int64)
        same = now % self.n_clusters == then % self.n_clusters
        in_cluster = self.popularity.probability(then // self.n_clusters, self.cluster_size(now % self.n_clusters))
        anywhere = self.popularity.probability(then, self.n_items)
        return (
            self.follow * (then == self.partner(now))
            + self.stay * same * in_cluster
            + (1 - self.follow - self.stay) * anywhere
        )

    def best_next(self, items: ArrayLike, k: int) -> Ints:
        """Return the k likeliest next items after each item, (items, k), best first; ties go to the more popular."""
        now = np.asarray(items, dtype=np.int64)
        if not 1 <= k <= self.n_items:
            raise ValueError(f"k: expected a number from 1 to {self.n_items}, found {k}")
        # Every other item has k candidates of its own cluster, or k of the catalog, ahead of it.
        top = np.broadcast_to(np.arange(k), (len(now), k))
        home = (now % self.n_clusters)[:, None] + self.n_clusters * np.arange(k)
        candidates = np.hstack([self.partner(now)[:, None], home, top])
        candidates = np.sort(np.where(candidates < self.n_items, candidates, 0), axis=1)
        chances = self.probability(now[:, None], candidates)
        chances[:, 1:][candidates[:, 1:] == candidates[:, :-1]] = -1
        order = np.argsort(-chances, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(candidates, order, axis=1)

    def partner(self, item: Ints) -> Ints:
        """Return the item that ``follow`` leads to: pairs of neighbors in a cluster, a last odd one to itself."""
        other = ((item // self.n_clusters) ^ 1) * self.n_clusters + item % self.n_clusters
        return np.where(other < self.n_items, other, item)

    def cluster_size(self, cluster: Ints) -> Ints:
        """Return how many items each cluster has."""
        return (self.n_items - cluster - 1) // self.n_clusters + 1


def make_sessions(
    n_sessions: int = 1000,
    n_items: int = 200,
    *,
    n_clusters: int = 10,
    mean_length: float = 6.0,
    longest: int = 50,
    follow: float = 0.3,
    stay: float = 0.4,
    exponent: float = 1.1,
    random_state: RandomState = None,
) -> MadeSessions:
    """Draw sessions of at least two items, with geometric lengths up to ``longest``.

    Examples
    --------
    >>> made = make_sessions(n_sessions=3, random_state=0)
    >>> len(made.sessions), made.sessions.offsets.dtype
    (3, dtype('int64'))
    >>> made.best_next([25], k=3).tolist()
    [[35, 5, 15]]
    """
    if not 1 <= n_clusters <= n_items:
        raise ValueError(f"n_clusters: expected a number from 1 to n_items = {n_items}, found {n_clusters}")
    if not (follow >= 0 and stay >= 0 and follow + stay <= 1):
        raise ValueError(f"follow, stay: expected numbers >= 0 that add up to at most 1, found {follow}, {stay}")
    if not 2 <= mean_length <= longest:
        raise ValueError(f"mean_length: expected a number from 2 to longest = {longest}, found {mean_length}")
    if not exponent > 1:
        raise ValueError(f"exponent: expected a number > 1, found {exponent}")
    rng = np.random.default_rng(random_state)
    lengths = np.minimum(1 + rng.geometric(1 / (mean_length - 1), size=n_sessions), longest)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    items = np.empty(offsets[-1], dtype=np.int64)
    made = MadeSessions(Sessions(items, offsets), n_items, n_clusters, follow, stay, Zipf(exponent))
    # Longest first, so that the sessions still running at a position are always the first few.
    order = np.argsort(-lengths, kind="stable")
    starts = offsets[order]
    running = [int(np.sum(lengths > position)) for position in range(int(lengths.max(initial=0)))]
    current = np.zeros(0, dtype=np.int64)
    for position, n in enumerate(running):
        anywhere = made.popularity.draw(rng.random(n), n_items)
        current = anywhere if position == 0 else _step(made, current[:n], anywhere, rng)
        items[starts[:n] + position] = current
    return made


def _step(made: MadeSessions, current: Ints, anywhere: Ints, rng: np.random.Generator) -> Ints:
    cluster = current % made.n_clusters
    home = made.popularity.draw(rng.random(len(current)), made.cluster_size(cluster)) * made.n_clusters + cluster
    choice = rng.random(len(current))
    return np.where(
        choice < made.follow, made.partner(current), np.where(choice < made.follow + made.stay, home, anywhere)
    )
