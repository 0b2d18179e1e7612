"""Amounts added to the scores of few items of each query, beside the product of vectors.

Items that come again get one (``bags.py``), and so do the items that a base of sessions scores, ``a g(base)``:

    level(q, d) = log(1 + 9 z_d / max_j z_j) / log 10 ,    z the base's scores > 0 of its best items for q
    g(level)    = s_0 + s_1 + ... + s_k + (K level - k) s_{k+1} ,    k the whole part of K level ;   0 for other items

A level is from 0 to 1: bases have units of their own, and those of neighbors grow with the number of items of a query.
``a g`` is a line through K + 1 knots whose steps s >= 0 never turn the base's order round. They are fitted first, on
out-of-fold scores of the base: under them the items that came are most likely,

    maximize  sum over queries of  g(item that came) - log( sum over the base's items of exp g + number of all others )

and then stay. (Trained with all else, under WARP, they would be flat at the top: pairs that are almost right weigh
little there, and the others want the top down.)

In training the levels of half of the queries are hidden, others in each epoch: a sum of items that always has the base
beside it learns only what the base lacks, and is poor alone; one that has learned to rank alone too mixes better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.optimize import fmin_l_bfgs_b

from slatewise.core.arrays import Floats, Ints, Shorts, Singles
from slatewise.core.groups import concatenate_ranges
from slatewise.factors.tables import Entries

Adder: TypeAlias = "Callable[[Singles, int], object]"
"""Adds to a tile of scores, a row per query, that begins at some item; tiles come in the order of the items."""


class ItemOffsets(NamedTuple):
    """Items that get something, each once, and what: row r has ascending ``items[offsets[r] : offsets[r + 1]]``."""

    offsets: Ints
    items: Ints
    amounts: Singles


class ScoreOffsets(Protocol):
    """Amounts for few items of each query, the parameters they are made of, and how these learn."""

    def of_pairs(self, queries: Ints, items: Ints) -> Singles:
        """Return what an item gets with each query, one of each."""
        ...

    def of_queries(self, queries: Ints) -> ItemOffsets:
        """Return all items with an amount for these queries."""
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

    first: ScoreOffsets
    second: ScoreOffsets
    n_first: int
    """How many parameters the first has."""
    n_items: int

    def of_pairs(self, queries: Ints, items: Ints) -> Singles:
        """Add what each gives."""
        return self.first.of_pairs(queries, items) + self.second.of_pairs(queries, items)

    def of_queries(self, queries: Ints) -> ItemOffsets:
        """Put the items of both together."""
        parts = [part.of_queries(queries) for part in (self.first, self.second)]
        rows = [np.repeat(np.arange(len(queries)), np.diff(part.offsets)) for part in parts]
        places = np.concatenate(rows) * self.n_items + np.concatenate([part.items for part in parts])
        keys, own = np.unique(places, return_inverse=True)
        offsets = np.searchsorted(keys, np.arange(len(queries) + 1) * self.n_items)
        amounts = np.bincount(own, np.concatenate([part.amounts for part in parts]), len(keys))
        return ItemOffsets(offsets, keys % self.n_items, amounts.astype(np.float32))

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


N_KNOTS = 9
"""K + 1."""

HIDDEN = 0.5
"""Share of the queries that a base says nothing of in an epoch of training."""

MOST_QUERIES = 50_000
"""This number determines the steps well enough."""

START = 5.0
"""What the best item gets where there is nothing to learn from."""


class Levels(NamedTuple):
    """Row q: ascending ``items[starts[q] : ends[q]]``, and the level of each."""

    starts: Ints
    ends: Ints
    items: Shorts
    levels: Singles

    @classmethod
    def none(cls, n_queries: int) -> Levels:
        """Return rows without items."""
        nowhere = np.zeros(n_queries, dtype=np.int64)
        return cls(nowhere, nowhere, np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32))

    def hidden(self, rng: np.random.Generator) -> Levels:
        """Return levels in which some of the rows, chosen at random, are without items."""
        return self._replace(ends=np.where(rng.random(len(self.starts)) < HIDDEN, self.starts, self.ends))


def likely_steps(levels: Levels, queries: Ints, items: Ints, n_items: int) -> Singles:
    """Return the steps s under which these items are most likely to come after these queries, one of each."""
    from slatewise.factors.kernels.base_levels import places_among, surprise

    if len(queries) > MOST_QUERIES:
        chosen = np.linspace(0, len(queries) - 1, MOST_QUERIES).astype(np.int64)
        queries, items = queries[chosen], items[chosen]
    targets, start = np.empty(len(queries), dtype=np.int64), np.full(N_KNOTS, START / N_KNOTS)
    places_among(items, queries, levels.starts, levels.ends, levels.items, targets)

    def loss(steps: Floats) -> tuple[float, Floats]:
        of_knots = np.zeros(N_KNOTS)
        total = surprise(
            queries, targets, levels.starts, levels.ends, levels.levels, n_items, np.cumsum(steps), of_knots
        )
        away = steps - start  # a prior, for few queries
        # A step lifts all knots after it.
        return total + 0.5 * float(away @ away), np.cumsum(of_knots[::-1])[::-1] + away

    found, *_ = fmin_l_bfgs_b(loss, start, bounds=[(0.0, None)] * N_KNOTS)
    return np.asarray(found, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class LevelOffsets:
    """What an item gets by its level."""

    levels: Levels
    steps: Singles

    def of_pairs(self, queries: Ints, items: Ints) -> Singles:
        """Return what an item gets with each query, one of each."""
        from slatewise.factors.kernels.base_levels import amounts_of

        out = np.zeros(len(items), dtype=np.float32)
        amounts_of(items, queries, *self.levels, self._knots(), out)
        return out

    def of_queries(self, queries: Ints) -> ItemOffsets:
        """Return all items with an amount for these queries."""
        from slatewise.factors.kernels.base_levels import amounts_at

        starts, ends, items, levels = self.levels
        places, inside = concatenate_ranges(starts[queries], ends[queries] - starts[queries])
        amounts = np.empty(len(places), dtype=np.float32)
        amounts_at(levels[places], self._knots(), amounts)
        return ItemOffsets(inside, items[places].astype(np.int64), amounts)

    def adders(self, queries: Ints) -> tuple[Adder, ...]:
        """Return what adds to the tiles of these queries, and remembers how far it is."""
        from slatewise.factors.kernels.base_levels import add_amounts

        starts, ends, items, levels = self.levels
        knots, places = self._knots(), starts[queries]
        return (partial(add_amounts, ends=ends[queries], items=items, levels=levels, knots=knots, places=places),)

    def gradient(self, queries: Ints, entries: Entries) -> Floats:
        """Ask for nothing: s stays."""
        return np.empty(0)

    def step(self, gradient: Floats) -> None:
        """Leave s as it is."""

    def _knots(self) -> Singles:
        return np.cumsum(self.steps, dtype=np.float32)
