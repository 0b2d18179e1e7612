"""How a list moves an item: p_q . (S d) with p_q a weighted sum over the list dbar of query q.

semidefinite  sum_{j <= k} w_j (S d).(S dbar_j)                            S'S can only say that items belong together
bilinear    sum_{j <= k} w_j (S d).(T dbar_j)                            S'T can also say that they do not
both        sum_{j <= k} w_j [(S d).(S dbar_j) + (A d).(B dbar_j)]       S'S, and an A'B of its own
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from slatewise.core.arrays import Ints, Singles
from slatewise.core.ids import Ids
from slatewise.factors.tables import Segment
from slatewise.recommend.ids import find_ids


class Join(NamedTuple):
    """Columns that meet: those of the item that is moved, where p_q goes to in a vector, and those of a listed one."""

    moved: Segment
    listed: Segment


class PairTerm(Protocol):
    """How an item's row and the rows of a list make a score: a sum of joins."""

    @property
    def S(self) -> Segment:
        """The columns that come first."""
        ...

    @property
    def joins(self) -> tuple[Join, ...]:
        """All that is added up, moved columns one after the other."""
        ...

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The columns of the items' table."""
        ...


@dataclass(frozen=True)
class Semidefinite:
    """S'S."""

    S: Segment

    @property
    def joins(self) -> tuple[Join, ...]:
        """S meets itself."""
        return (Join(self.S, self.S),)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """S alone."""
        return (self.S,)


@dataclass(frozen=True)
class Bilinear:
    """S'T, columns of T after those of S."""

    S: Segment

    @property
    def joins(self) -> tuple[Join, ...]:
        """S meets T."""
        return (Join(*self.segments),)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """S and T, alike in step and norm."""
        return self.S, _after(self.S)


@dataclass(frozen=True)
class Both:
    """S'S + A'B, columns of A and then of B after those of S."""

    S: Segment

    @property
    def joins(self) -> tuple[Join, ...]:
        """S meets itself, A meets B."""
        S, A, B = self.segments
        return Join(S, S), Join(A, B)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """S, A and B, alike in step and norm."""
        A = _after(self.S)
        return self.S, A, _after(A)


def _after(part: Segment) -> Segment:
    """Return as many columns again."""
    return replace(part, start=part.stop, stop=2 * part.stop - part.start)


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
