"""How a list moves an item: p_q . (S d) with p_q a weighted sum over the list dbar of query q.

semidefinite  sum_{j <= k} w_j (S d).(S dbar_j)                            S'S can only say that items belong together
bilinear    sum_{j <= k} w_j (S d).(T dbar_j)                            S'T can also say that they do not
both        sum_{j <= k} w_j [(S d).(S dbar_j) + (A d).(B dbar_j)]       S'S, and an A'B of its own
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from slatewise.core.arrays import Ints, Singles
from slatewise.core.ids import Ids
from slatewise.core.running.executor import Executor
from slatewise.factors.offsets import ScoreOffsets
from slatewise.factors.queries import Backward, Queries
from slatewise.factors.tables import Entries, Segment, Table
from slatewise.recommend.ids import find_ids

if TYPE_CHECKING:
    from slatewise.factors.gpu.queries import DeviceQueries
    from slatewise.factors.gpu.tables import Sent


class Join(NamedTuple):
    """Columns that meet: those of the item that is moved, where p_q goes to in a vector, and those of a listed one."""

    moved: Segment
    listed: Segment


@dataclass(frozen=True)
class PairTerm:
    """How an item's row and the rows of a list make a score: a sum of joins."""

    S: Segment
    """The columns that come first; all others follow and are alike in width, step and norm."""
    meeting: tuple[tuple[int, int], ...]
    """Blocks of columns that meet, the moved item's and a listed one's: 0 is S, 1 the block after it, and so on."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The columns of the items' table."""
        width = self.S.stop - self.S.start
        starts = range(self.S.start, self.S.start + width * (1 + max(max(pair) for pair in self.meeting)), width)
        return tuple(replace(self.S, start=start, stop=start + width) for start in starts)

    @property
    def joins(self) -> tuple[Join, ...]:
        """All that is added up, moved columns one after the other."""
        parts = self.segments
        return tuple(Join(parts[moved], parts[listed]) for moved, listed in self.meeting)


Semidefinite = partial(PairTerm, meeting=((0, 0),))
Bilinear = partial(PairTerm, meeting=((0, 1),))
Both = partial(PairTerm, meeting=((0, 0), (1, 2)))
PAIR_TERMS: Mapping[str, Callable[[Segment], PairTerm]] = {
    "semidefinite": Semidefinite,
    "bilinear": Bilinear,
    "both": Both,
}


@dataclass(frozen=True, eq=False)
class OwnItems:
    """Queries that are items themselves, each in its own list."""

    items: Ints
    """The item that each query is; -1 where it is none."""
    weight: float


def places_of(
    lists: Ints, position_weights: Singles, own_items: OwnItems | None, numbers: Ints | slice = slice(None)
) -> tuple[Ints, Singles]:
    """Return the lists of queries called by ``numbers`` with their own items behind them, and weights of all places."""
    weights = position_weights[: lists.shape[1]]
    if own_items is None:
        return lists, weights
    return np.column_stack([lists, own_items.items[numbers]]), np.append(weights, np.float32(own_items.weight))


def add_lists(pair: PairTerm, items: Singles, lists: Ints, weights: Singles, vectors: Singles) -> None:
    """Write p_q, from the items' rows and a list per vector, into the columns that are moved."""
    from slatewise.factors.kernels.lists import list_vectors

    for moved, listed in pair.joins:
        list_vectors(items, lists, weights, listed.start, listed.stop, moved.start, vectors)


def self_items(ids: Ids, item_ids: Ids, weight: float) -> OwnItems | None:
    """Return which item each query is; None where that has no weight."""
    return OwnItems(find_ids(ids, item_ids), weight) if weight else None


@dataclass(frozen=True, eq=False)
class ListedQueries(Queries):
    """The vectors of other queries, with p_q, a weighted sum over the rows of their lists, in the columns moved."""

    inner: Queries
    items: Table
    pair: PairTerm
    lists: Ints
    """(queries, k) items, best first; -1 after the last."""
    weights: Singles
    """w_j of the k positions."""

    @property
    def score_offsets(self) -> ScoreOffsets | None:
        """That of the inner queries."""
        return self.inner.score_offsets

    def vectors(self, queries: Ints) -> Singles:
        """Return the inner vectors with p_q in the columns that are moved."""
        out = self.inner.vectors(queries)
        add_lists(self.pair, self.items.values, self.lists[queries], self.weights, out)
        return out

    def backward(self, queries: Ints, gradient: Singles) -> Backward | None:
        """p_q is linear in the rows of its list: each gets w_j times the gradient of p_q."""
        lists = self.lists[queries]
        there = lists >= 0
        weights = np.broadcast_to(self.weights, lists.shape)[there]
        own = np.zeros(gradient.shape, dtype=np.float32)
        for moved, listed in self.pair.joins:
            own[:, listed.start : listed.stop] = gradient[:, moved.start : moved.stop]
        return Backward(Entries(lists[there], weights, np.repeat(np.arange(len(lists)), there.sum(axis=1))), own)

    def step(self, queries: Ints, gradient: Singles, executor: Executor) -> None:
        """Step what is inside; S is a part of the items' table."""
        self.inner.step(queries, gradient, executor)

    def on(self, sent: Sent) -> DeviceQueries:
        """Send what is inside, and the lists."""
        from slatewise.factors.gpu.queries import DeviceListed

        return DeviceListed.of(sent, self.inner.on(sent), self.items, self.pair, self.lists, self.weights)
