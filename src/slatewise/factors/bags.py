"""Queries that are items themselves: a session so far, or a basket.

    q = sum_j w_j U x_{t-j} ,    f(q, d) = q . V d + b_d + sum_j r_j [x_{t-j} = d] ,        j = 0 .. window - 1

The last item has age j = 0. Both weights of an age are learnt: w_j >= 0, where w_0 = 1 (else w could undo the largest
norm of rows of U), and r_j, of any sign, for an item that comes again. A basket has no order: one weight of each kind,
and, because baskets are of all sizes, q is divided by the root of the number of items.

Where features F of whoever asks are given, row s of session s, ``sum_f F_sf U_f`` is added to q, undivided.

The table of U holds all of that, so that whatever keeps, averages and saves tables does so here::

    rows    U of every item | U of every feature | w_j of every age | r_j of every age | s_k of a base

Weights are in column 0, zeros behind them. Steps s_k are there where a base scores too (``base_levels.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints, Singles
from slatewise.core.groups import concatenate_ranges
from slatewise.data.records import Sessions
from slatewise.factors.added import Adder, Held
from slatewise.factors.tables import Entries, Table

MOST_OTHERS = 64
"""Items of a basket that its query is made of in training, where one more is to be found: a large one would cost its
square."""
ITEM_STEP, REPEAT_STEP = 0.1, 1.0
"""AdaGrad's steps of w and r, shares of that of U: w is the same for all items, and soon known."""


class Bags(NamedTuple):
    """Query i has the items ``items[starts[i] : ends[i]]``, the last one of age 0."""

    items: Ints
    starts: Ints
    ends: Ints

    @property
    def n_queries(self) -> int:
        """How many there are."""
        return len(self.starts)

    def some(self, queries: Ints) -> Bags:
        """Return those called by number."""
        return Bags(self.items, self.starts[queries], self.ends[queries])


class Continued(NamedTuple):
    """Bags, and for each the item that came next."""

    bags: Bags
    following: Ints
    owners: Ints
    """The session that each is of."""


def asked_of(items: Ints, starts: Ints, ends: Ints, window: int | None) -> Bags:
    """Return the last ``window`` items of sessions that ask, or, with None, baskets: each item once."""
    if window is not None:
        return Bags(items, np.maximum(starts, ends - window), ends)
    rows, sizes = np.arange(len(starts)), ends - starts
    owners, distinct = _distinct(np.repeat(rows, sizes), items[concatenate_ranges(starts, sizes)[0]])
    offsets = np.searchsorted(owners, np.arange(len(starts) + 1))
    return Bags(distinct, offsets[:-1], offsets[1:])


def learned_from(items: Ints, offsets: Ints, window: int | None) -> Continued:
    """Return what came after what: in sessions the next item, in a basket, with None, each item after all others."""
    if window is None:
        return all_but_one(items, offsets)
    found = Sessions(items, offsets).prefixes(window)
    return Continued(Bags(items, found.starts, found.ends), found.next_items, found.sessions)


def all_but_one(items: Ints, offsets: Ints, most: int = MOST_OTHERS) -> Continued:
    """Return every item of a basket of two or more, and the others, at most so many: a basket is put in a random ring.

    Examples
    --------
    >>> found = all_but_one(np.array([4, 8, 4, 15]), np.array([0, 0, 4]))
    >>> others = [sorted(found.bags.items[s:e].tolist()) for s, e in zip(found.bags.starts, found.bags.ends)]
    >>> sorted(zip(found.following.tolist(), others))
    [(4, [8, 15]), (8, [4, 15]), (15, [4, 8])]
    """
    owners, found = _distinct(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), items[offsets[0] : offsets[-1]])
    order = np.random.default_rng(0).permutation(len(owners))
    order = order[np.argsort(owners[order], kind="stable")]
    found, sizes = found[order], np.bincount(owners, minlength=len(offsets) - 1)
    # Every basket twice, one behind the other: then a part of the ring is a slice.
    first = np.arange(len(owners)) + np.repeat(np.cumsum(sizes) - sizes, sizes)
    twice = np.empty(2 * len(owners), dtype=np.int64)
    twice[first] = twice[first + sizes[owners]] = found
    several = sizes[owners] > 1
    starts, owners = first[several] + 1, owners[several]
    return Continued(Bags(twice, starts, starts + np.minimum(sizes[owners] - 1, most)), found[several], owners)


def _distinct(owners: Ints, items: Ints) -> tuple[Ints, Ints]:
    """Return every item of an owner once, ascending, and its owner."""
    size = int(items.max(initial=0)) + 1
    return np.divmod(np.unique(owners * size + items), size)


@dataclass(frozen=True, eq=False)
class AgeWeights:
    """The rows of weights behind the ``n_rows`` rows of U, those of items first."""

    table: Table
    n_rows: int
    n_knots: int = 0
    """How many steps a base's levels have; 0: there is none."""

    @property
    def n_ages(self) -> int:
        """How many ages are told apart."""
        return (len(self.table.values) - self.n_rows - self.n_knots) // 2

    @property
    def items(self) -> slice:
        """Where w is."""
        return slice(self.n_rows, self.n_rows + self.n_ages)

    @property
    def repeats(self) -> slice:
        """Where r is."""
        return slice(self.n_rows + self.n_ages, self.n_rows + 2 * self.n_ages)

    @property
    def knots(self) -> slice:
        """Where s is."""
        return slice(self.n_rows + 2 * self.n_ages, len(self.table.values))

    def of(self, rows: slice) -> Singles:
        """Return weights, a copy."""
        return self.table.values[rows, 0].copy()

    def start(self) -> None:
        """Let items weigh less the older they are; U and r are 0: an item that nothing came after says nothing."""
        self.table.values[:] = 0.0
        self.table.values[self.items, 0] = (1.0 / np.sqrt(np.arange(1, self.n_ages + 1))).astype(np.float32)

    def step_items(self, gradient: Floats) -> None:
        """Step w; the first stays 1."""
        self._step(self.items, gradient, ITEM_STEP)
        weights = self.table.values[self.items, 0]
        np.maximum(weights, 0.0, out=weights)
        weights[:1] = 1.0

    def step_repeats(self, gradient: Floats) -> None:
        """Step r."""
        self._step(self.repeats, gradient, REPEAT_STEP)

    def _step(self, rows: slice, gradient: Floats, share: float) -> None:
        values, accumulators = self.table.values[rows, 0], self.table.accumulators[rows, 0]
        accumulators += gradient.astype(np.float32) ** 2
        moved, step = accumulators > 0, share * self.table.segments[0].step
        values[moved] += (step * gradient[moved] / np.sqrt(accumulators[moved])).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Repeats:
    """What an item gets for being in the bag already."""

    bags: Bags
    ages: AgeWeights

    def of_pairs(self, queries: Ints, items: Ints) -> Singles:
        """Return what an item gets with each query, one of each."""
        from slatewise.factors.kernels.bags import repeats_of

        out = np.zeros(len(items), dtype=np.float32)
        repeats_of(items, queries, self.bags, self.ages.of(self.ages.repeats), out)
        return out

    def held(self, queries: Ints) -> Held:
        """Return all items that get something with these queries."""
        bags, repeats = self.bags.some(queries), self.ages.of(self.ages.repeats)
        sizes = bags.ends - bags.starts
        rows, places = np.repeat(np.arange(len(queries)), sizes), concatenate_ranges(bags.starts, sizes)[0]
        keys, own = np.unique(rows * self.ages.n_rows + bags.items[places], return_inverse=True)
        by_age = repeats[np.minimum(bags.ends[rows] - 1 - places, len(repeats) - 1)]
        rows, items = np.divmod(keys, self.ages.n_rows)
        offsets = np.searchsorted(rows, np.arange(len(queries) + 1))
        return Held(offsets, items, np.bincount(own, by_age, len(keys)).astype(np.float32))

    def adders(self, queries: Ints) -> tuple[Adder, ...]:
        """Return what adds to the tiles of these queries."""
        from slatewise.factors.kernels.bags import add_repeats

        return (partial(add_repeats, bags=self.bags.some(queries), repeats=self.ages.of(self.ages.repeats)),)

    def gradient(self, queries: Ints, entries: Entries) -> Floats:
        """Return what entries for items, whose sources are places in ``queries``, ask of r."""
        from slatewise.factors.kernels.bags import repeat_gradient

        by_age = np.zeros(self.ages.n_ages)
        repeat_gradient(entries, self.bags.some(queries), by_age)
        return by_age

    def step(self, gradient: Floats) -> None:
        """Step r."""
        self.ages.step_repeats(gradient)
