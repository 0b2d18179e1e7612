"""Queries that are items themselves: a session so far, or a basket.

    q = sum_j w_j U x_{t-j} ,    f(q, d) = q . V d + b_d + sum_j r_j [x_{t-j} = d] ,        j = 0 .. window - 1

The last item has age j = 0. Both weights of an age are learned: w_j >= 0, where w_0 = 1 (else w could undo the largest
norm of rows of U), and r_j, of any sign, for an item that comes again. A basket has no order: one weight of each kind,
and, because baskets are of all sizes, q is divided by the root of the number of items.

Where features F of the sessions are given, row s of session s, ``sum_f F_sf U_f`` is added to q, undivided.

The table of U has a row per item and then one per feature. Its weights are w, r and, if a base scores too, the steps s
of its spline (``offsets.py``), each an array of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints, Singles
from slatewise.core.groups import concatenate_ranges
from slatewise.core.running.executor import Executor
from slatewise.data.records import Sessions
from slatewise.factors.offsets import Adder, Both, ItemOffsets, LevelOffsets, Levels, ScoreOffsets
from slatewise.factors.queries import Queries, SparseQueries
from slatewise.factors.tables import Entries, Table, Weights, aligned_zeros, step_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from slatewise.factors.gpu.queries import DeviceQueries
    from slatewise.factors.gpu.tables import Sent


AGE_WEIGHTS, REPEAT_WEIGHTS, SPLINE_STEPS = "age_weights", "repeat_weights", "spline_steps"
"""Names of the weights w, r and s of a table."""

MOST_OTHERS = 64
"""Items of a basket that its query is made of in training, where one more is to be found: a large one would cost its
square."""

ROWS_PER_TILE = 256
"""What one thread adds up; tiles are added in their order."""

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


def query_bags(items: Ints, starts: Ints, ends: Ints, window: int | None) -> Bags:
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
    """Return every item of a basket of two or more, and the others, at most ``most`` of them.

    A basket is put in a random ring, in which the others are those that follow.

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


def start_weights(weights: dict[str, Weights], spline_steps: Singles | None) -> None:
    """Let items weigh less the older they are, and repeats nothing; the steps of a base are given."""
    ages = weights[AGE_WEIGHTS].values
    ages[:] = 1.0 / np.sqrt(np.arange(1, len(ages) + 1))
    if spline_steps is not None:
        weights[SPLINE_STEPS].values[:] = spline_steps


def step_ages(table: Table, gradient: Floats) -> None:
    """Step w; the first stays 1."""
    ages = table.weights[AGE_WEIGHTS]
    ages.step(gradient, ITEM_STEP * table.segments[0].step)
    np.maximum(ages.values, 0.0, out=ages.values)
    ages.values[:1] = 1.0


@dataclass(frozen=True, eq=False)
class Repeats:
    """What an item gets for being in the bag already."""

    bags: Bags
    table: Table
    """Has the weights r; a row per item, and more."""

    def of_pairs(self, queries: Ints, items: Ints) -> Singles:
        """Return what an item gets with each query, one of each."""
        from slatewise.factors.kernels.bags import repeats_of

        out = np.zeros(len(items), dtype=np.float32)
        repeats_of(items, queries, self.bags, self._weights, out)
        return out

    def of_queries(self, queries: Ints) -> ItemOffsets:
        """Return all items that get something with these queries."""
        bags, repeats, n_rows = self.bags.some(queries), self._weights, len(self.table.values)
        sizes = bags.ends - bags.starts
        rows, places = np.repeat(np.arange(len(queries)), sizes), concatenate_ranges(bags.starts, sizes)[0]
        keys, own = np.unique(rows * n_rows + bags.items[places], return_inverse=True)
        by_age = repeats[np.minimum(bags.ends[rows] - 1 - places, len(repeats) - 1)]
        rows, items = np.divmod(keys, n_rows)
        offsets = np.searchsorted(rows, np.arange(len(queries) + 1))
        return ItemOffsets(offsets, items, np.bincount(own, by_age, len(keys)).astype(np.float32))

    def adders(self, queries: Ints) -> tuple[Adder, ...]:
        """Return what adds to the tiles of these queries."""
        from slatewise.factors.kernels.bags import add_repeats

        return (partial(add_repeats, bags=self.bags.some(queries), repeats=self._weights),)

    def gradient(self, queries: Ints, entries: Entries) -> Floats:
        """Return what entries for items, whose sources are places in ``queries``, ask of r."""
        from slatewise.factors.kernels.bags import repeat_gradient

        by_age = np.zeros(len(self._weights))
        repeat_gradient(entries, self.bags.some(queries), by_age)
        return by_age

    def step(self, gradient: Floats) -> None:
        """Step r."""
        self.table.weights[REPEAT_WEIGHTS].step(gradient, REPEAT_STEP * self.table.segments[0].step)

    @property
    def _weights(self) -> Singles:
        return self.table.weights[REPEAT_WEIGHTS].values


@dataclass(frozen=True, eq=False)
class BagQueries(Queries):
    """Vectors that are weighted sums of the rows of items."""

    bags: Bags
    table: Table
    """With the weights by age, and the steps of a base."""
    bias: int
    """The column that holds 1, behind those of U."""
    levels: Levels | None = None
    """What a base says of the same queries."""

    @property
    def score_offsets(self) -> ScoreOffsets:
        """The items of a bag get something by their age, and others by their level."""
        repeats, weights = Repeats(self.bags, self.table), self.table.weights
        if self.levels is None:
            return repeats
        on_levels = LevelOffsets(self.levels, weights[SPLINE_STEPS].values)
        return Both(repeats, on_levels, len(weights[AGE_WEIGHTS].values), len(self.table.values))

    def vectors(self, queries: Ints) -> Singles:
        """Return the sums."""
        from slatewise.factors.kernels.bags import bag_vectors

        table, ages = self.table.values, self.table.weights[AGE_WEIGHTS].values
        out = aligned_zeros(len(queries), int(table.shape[1]))
        bag_vectors(table, self.bags.some(queries), ages, self.bias, out)
        out[:, self.bias] = 1.0
        return out

    def for_epoch(self, rng: np.random.Generator) -> BagQueries:
        """Hide some of what a base says, so that the sums learn to rank alone too: such sums mix better with it."""
        return self if self.levels is None else replace(self, levels=self.levels.hidden(rng))

    def step(self, queries: Ints, gradient: Singles, executor: Executor) -> None:
        """Step the rows of the items that occur, and w."""
        from slatewise.factors.kernels.bags import bag_entries, weight_gradient

        table, bags, ages = self.table, self.bags.some(queries), self.table.weights[AGE_WEIGHTS].values
        if not table.segments[0].step:
            return
        by_age = np.zeros((-(-len(queries) // ROWS_PER_TILE), len(ages)))

        def add_up(tile: int) -> None:
            rows = np.arange(len(queries))[tile * ROWS_PER_TILE : (tile + 1) * ROWS_PER_TILE]
            weight_gradient(table.values, bags.some(rows), gradient[rows], self.bias, by_age[tile])

        executor.fill_blocks(add_up, range(len(by_age)))
        entries = Entries.empty(int((bags.ends - bags.starts).sum()))
        bag_entries(bags, ages, entries)
        step_rows(table, entries, gradient, executor)
        step_ages(table, np.add.reduce(by_age, axis=0))

    def on(self, sent: Sent) -> DeviceQueries:
        """Send the bags, and what a base says."""
        from slatewise.factors.gpu.queries import DeviceBags

        return DeviceBags.of(sent, self.bags, self.table, self.bias, self.levels)


@dataclass(frozen=True, eq=False)
class ContextQueries(Queries):
    """The vectors of bags and those of the features of their sessions, added; both are of one table."""

    bags: BagQueries
    features: SparseQueries
    owners: Ints
    """Which row of the features each query has."""

    @property
    def score_offsets(self) -> ScoreOffsets:
        """That of the bags."""
        return self.bags.score_offsets

    def vectors(self, queries: Ints) -> Singles:
        """Return the sums."""
        out, bias = self.bags.vectors(queries), self.bags.bias
        out += self.features.vectors(self.owners[queries])
        out[:, bias] = 1.0
        return out

    def for_epoch(self, rng: np.random.Generator) -> ContextQueries:
        """Hide some of what a base says."""
        return replace(self, bags=self.bags.for_epoch(rng))

    def step(self, queries: Ints, gradient: Singles, executor: Executor) -> None:
        """Step the rows of items and w, then those of features, which are others."""
        self.bags.step(queries, gradient, executor)
        self.features.step(self.owners[queries], gradient, executor)

    def on(self, sent: Sent) -> DeviceQueries:
        """Send both; of features that are all 0 there is nothing to send."""
        from slatewise.factors.gpu.features import DeviceContext

        if not self.features.features.nnz:
            return self.bags.on(sent)
        return DeviceContext(self.bags.on(sent), self.features.on(sent), self.bags.bias, sent.array(self.owners))


class BagParts(NamedTuple):
    """What the vectors of queries that hold items are made of, without the table."""

    bags: Bags
    owners: Ints
    """Which row of the context each has."""
    levels: Levels | None
    context: csr_array | None


def bag_queries(given: BagParts, n_items: int, bias: int) -> Callable[[Table], Queries]:
    """Return what makes queries that hold items from a table of U."""
    context = given.context

    def bags_of(table: Table) -> BagQueries:
        return BagQueries(given.bags, table, bias, given.levels)

    if context is None:
        return bags_of
    from scipy.sparse import csr_array

    # Rows of features are behind those of items.
    parts = context.data, context.indices + n_items, context.indptr
    shifted = csr_array(parts, shape=(context.shape[0], n_items + context.shape[1]))
    return lambda table: ContextQueries(bags_of(table), SparseQueries(shifted, table, bias), given.owners)
