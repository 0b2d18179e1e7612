"""How a list moves an item: p_q . (S d) with p_q a weighted sum over the list dbar of query q.

gram        sum_{j <= k} w_j (S d).(S dbar_j)        S'S can only say that items belong together
bilinear    sum_{j <= k} w_j (S d).(T dbar_j)        S'T can also say that they do not
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from slatewise.latent.tables import Ints, Segment, Singles


class PairTerm(Protocol):
    """How an item's row and the rows of a list make a score."""

    @property
    def S(self) -> Segment:
        """The columns of the item that is moved."""
        ...

    @property
    def listed(self) -> Segment:
        """The columns of a listed item that meet those of S."""
        ...

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The columns of the items' table."""
        ...


@dataclass(frozen=True)
class Gram:
    """S'S."""

    S: Segment

    @property
    def listed(self) -> Segment:
        """S again."""
        return self.S

    @property
    def segments(self) -> tuple[Segment, ...]:
        """S alone."""
        return (self.S,)


@dataclass(frozen=True)
class Bilinear:
    """S'T, columns of T after those of S."""

    S: Segment

    @property
    def listed(self) -> Segment:
        """T."""
        return replace(self.S, start=self.S.stop, stop=2 * self.S.stop - self.S.start)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """S and T, alike in step and norm."""
        return self.S, self.listed


PAIR_TERMS: Mapping[str, Callable[[Segment], PairTerm]] = {"gram": Gram, "bilinear": Bilinear}


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
    """Write p_q, from the items' rows and a list per vector, into the columns of S."""
    from slatewise.latent.kernels.lists import list_vectors

    list_vectors(items, lists, weights, pair.listed.start, pair.listed.stop, pair.S.start, vectors)
