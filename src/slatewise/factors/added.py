"""What queries add to the scores of few items, beside the product of vectors: for items that come again, by a base."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from slatewise.core.arrays import Floats, Ints, Singles
from slatewise.factors.tables import Entries

Adder: TypeAlias = "Callable[[Singles, int], object]"
"""Adds to a tile of scores, a row per query, that begins at some item; tiles come in the order of the items."""


class Held(NamedTuple):
    """Items that get something, each once, and what: row r has ascending ``items[offsets[r] : offsets[r + 1]]``."""

    offsets: Ints
    items: Ints
    amounts: Singles


class Added(Protocol):
    """Amounts for few items of each query, the parameters they are made of, and how these learn."""

    def of_pairs(self, queries: Ints, items: Ints) -> Singles:
        """Return what an item gets with each query, one of each."""
        ...

    def held(self, queries: Ints) -> Held:
        """Return all items that get something with these queries."""
        ...

    def adders(self, queries: Ints) -> tuple[Adder, ...]:
        """Return what adds to the tiles of these queries, one after the other."""
        ...

    def gradient(self, queries: Ints, entries: Entries) -> Floats:
        """Return what entries for items, whose sources are places in ``queries``, ask of the parameters."""
        ...

    def step(self, gradient: Floats) -> None:
        """Step the parameters."""
        ...


@dataclass(frozen=True, eq=False)
class Both:
    """The sum of two; the gradients of their parameters are one after the other."""

    first: Added
    second: Added
    n_first: int
    """How many parameters the first has."""
    n_items: int

    def of_pairs(self, queries: Ints, items: Ints) -> Singles:
        """Add what each gives."""
        return self.first.of_pairs(queries, items) + self.second.of_pairs(queries, items)

    def held(self, queries: Ints) -> Held:
        """Put the items of both together."""
        parts = [part.held(queries) for part in (self.first, self.second)]
        rows = [np.repeat(np.arange(len(queries)), np.diff(part.offsets)) for part in parts]
        places = np.concatenate(rows) * self.n_items + np.concatenate([part.items for part in parts])
        keys, own = np.unique(places, return_inverse=True)
        offsets = np.searchsorted(keys, np.arange(len(queries) + 1) * self.n_items)
        amounts = np.bincount(own, np.concatenate([part.amounts for part in parts]), len(keys))
        return Held(offsets, keys % self.n_items, amounts.astype(np.float32))

    def adders(self, queries: Ints) -> tuple[Adder, ...]:
        """Add one after the other."""
        return (*self.first.adders(queries), *self.second.adders(queries))

    def gradient(self, queries: Ints, entries: Entries) -> Floats:
        """Return those of both."""
        return np.concatenate((self.first.gradient(queries, entries), self.second.gradient(queries, entries)))

    def step(self, gradient: Floats) -> None:
        """Step both."""
        self.first.step(gradient[: self.n_first])
        self.second.step(gradient[self.n_first :])
