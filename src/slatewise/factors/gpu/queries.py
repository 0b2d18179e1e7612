"""Queries whose tables are on a device: the same vectors, gradients and steps as those of ``factors/queries.py``.

Every bag, list or row of features is as wide as the longest, filled up with places that weigh nothing: shapes that stay
the same from step to step can be recorded once and replayed.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeAlias

from slatewise.core.arrays import Singles
from slatewise.factors.bags import AGE_WEIGHTS, ITEM_STEP, REPEAT_STEP, REPEAT_WEIGHTS, SPLINE_STEPS, Bags
from slatewise.factors.gpu.tables import DeviceTable, Sent, by_row, to_device
from slatewise.factors.offsets import Levels
from slatewise.factors.pair_terms import PairTerm
from slatewise.factors.tables import Table

torch: Any = import_module("torch")
Tensor: TypeAlias = Any

NUMBERS_AT_ONCE = 1 << 27
"""Of rows that are gathered: half a gigabyte."""


class DeviceOffsets(NamedTuple):
    """Items that get something beside their product with a query, (queries, places)."""

    items: Tensor
    amounts: Tensor
    own: Tensor
    """Whether the place is the only one, or the first, of its item."""
    there: Tensor
    """Whether there is an item at all."""
    n_repeats: int
    """The number of places, the first ones, of the query's own items, by age."""


class DeviceBackward(NamedTuple):
    """What a gradient of the vectors asks of rows of items: entries, and the vectors that they are multiples of."""

    rows: Tensor
    coefficients: Tensor
    vectors: Tensor


class DeviceQueries(Protocol):
    """Vectors of queries that are called by number; those that depend on no item and add nothing leave methods out."""

    def score_offsets(self, queries: Tensor) -> DeviceOffsets | None:
        """Return the items that get something beside products."""
        return None

    def backward(self, queries: Tensor, gradient: Tensor) -> DeviceBackward | None:
        """Return the entries for the items' rows that the gradient makes; rows that are none are -1."""
        return None

    def learn(self, queries: Tensor, coefficients: Tensor) -> None:
        """Move the amounts of repeated items, by the gradient of each place."""

    @abstractmethod
    def vectors(self, queries: Tensor) -> Tensor:
        """Return a fresh row per query, (queries, width)."""

    @abstractmethod
    def step(self, queries: Tensor, gradient: Tensor) -> None:
        """Move the parameters along the gradients of these queries' vectors."""


def weighted_rows(values: Tensor, rows: Tensor, weights: Tensor, columns: slice) -> Tensor:
    """Return for each query the weighted sum of its rows, (queries, places)."""
    size = max(1, NUMBERS_AT_ONCE // max(1, rows.shape[1] * (columns.stop - columns.start)))
    parts = [
        (values[rows[first : first + size], columns] * weights[first : first + size, :, None]).sum(1)
        for first in range(0, len(rows), size)
    ]
    return torch.cat(parts)


def products(values: Tensor, rows: Tensor, vectors: Tensor, columns: slice) -> Tensor:
    """Return the product of each query's vector with each of its rows, (queries, places), in float32."""
    size = max(1, NUMBERS_AT_ONCE // max(1, rows.shape[1] * (columns.stop - columns.start)))
    parts = [
        (values[rows[first : first + size], columns].float() * vectors[first : first + size, None, columns]).sum(2)
        for first in range(0, len(rows), size)
    ]
    return torch.cat(parts)


def step_places(sent: Sent, table: DeviceTable, rows: Tensor, weights: Tensor, there: Tensor, gradient: Tensor) -> None:
    """Step the rows at places (queries, places), each along its weight times its query's gradient."""
    sources = torch.arange(len(rows), device=rows.device)[:, None].expand(rows.shape)
    nowhere = len(table.values)
    entries = by_row(torch.where(there, rows, nowhere).reshape(-1), weights.reshape(-1), sources.reshape(-1))
    sent.kernels.step_rows(table.values, table.accumulators, table.moves, *entries, gradient, sent.tiles)


@dataclass(frozen=True, eq=False)
class DeviceIds(DeviceQueries):
    """A row per query."""

    sent: Sent
    table: DeviceTable

    @classmethod
    def of(cls, sent: Sent, table: Table) -> DeviceIds:
        """Send the rows."""
        return cls(sent, sent.table(table))

    def vectors(self, queries: Tensor) -> Tensor:
        """Return the rows themselves."""
        return self.table.values[queries]

    def step(self, queries: Tensor, gradient: Tensor) -> None:
        """Step the rows; one that occurs twice gets the sum."""
        if self.table.moving:
            ones = torch.ones((len(queries), 1), dtype=torch.float32, device=queries.device)
            step_places(self.sent, self.table, queries[:, None], ones, ones > 0, gradient)


class Places(NamedTuple):
    """The items of bags by age, the last one first."""

    items: Tensor
    there: Tensor
    ages: Tensor
    scale: Tensor


@dataclass(frozen=True, eq=False)
class DeviceBags(DeviceQueries):
    """Weighted sums of the rows of items."""

    sent: Sent
    table: DeviceTable
    bias: int
    bags: tuple[Tensor, Tensor, Tensor]
    longest: int
    levels: tuple[Tensor, Tensor, Tensor, Tensor] | None
    n_levels: int
    """Most items that a base has levels for."""

    @classmethod
    def of(cls, sent: Sent, bags: Bags, table: Table, bias: int, levels: Levels | None) -> DeviceBags:
        """Send the table of U and the bags; the ends of levels are others in each epoch."""
        items, starts, ends = (sent.array(part) for part in bags)
        longest, n_levels, given = max(1, int((bags.ends - bags.starts).max(initial=1))), 0, None
        if levels is not None and len(levels.items):
            starts_, ends_, items_, levels_ = levels
            given = (sent.array(starts_), to_device(ends_, sent.device), sent.array(items_), sent.array(levels_))
            n_levels = max(1, int((levels.ends - levels.starts).max(initial=1)))
        return cls(sent, sent.table(table), bias, (items, starts, ends), longest, given, n_levels)

    def vectors(self, queries: Tensor) -> Tensor:
        """Return the sums."""
        at = self._places(queries)
        out = torch.zeros((len(queries), self.sent.width), dtype=torch.float32, device=queries.device)
        out[:, : self.bias] = weighted_rows(self.table.values, at.items, self._age_weights(at), slice(0, self.bias))
        out[:, self.bias] = 1.0
        return out

    def score_offsets(self, queries: Tensor) -> DeviceOffsets | None:
        """Return the items of the bags, then those that a base has levels for, each with all that it gets."""
        size = max(1, NUMBERS_AT_ONCE // (4 * self.longest * (self.longest + self.n_levels)))
        parts = [self._held(queries[first : first + size]) for first in range(0, len(queries), size)]
        items, amounts, own, there = (torch.cat([part[i] for part in parts]) for i in range(4))
        return DeviceOffsets(items, amounts, own, there, self.longest)

    def _held(self, queries: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        at, repeats = self._places(queries), self._weights(REPEAT_WEIGHTS)
        same = (at.items[:, :, None] == at.items[:, None, :]) & at.there[:, None, :]
        amounts = (same * repeats[at.ages]).sum(2)
        first = at.there & ~same.tril(-1).any(2)
        if self.levels is None:
            return at.items, amounts, first, at.there
        starts, ends, items, levels = self.levels
        places = starts[queries][:, None] + torch.arange(self.n_levels, device=queries.device)
        there = places < ends[queries][:, None]
        places = torch.where(there, places, 0)
        listed, given = items[places].long(), self._amounts(levels[places])
        both = (listed[:, :, None] == at.items[:, None, :]) & at.there[:, None, :] & there[:, :, None]
        amounts = amounts + (both * given[:, :, None]).sum(1)
        alone = there & ~both.any(2)
        return (
            torch.cat([at.items, listed], 1),
            torch.cat([amounts, given], 1),
            torch.cat([first, alone], 1),
            torch.cat([at.there, alone], 1),
        )

    def _amounts(self, levels: Tensor) -> Tensor:
        knots = self._weights(SPLINE_STEPS).cumsum(0)
        at = levels * (len(knots) - 1)
        knot = at.long().clamp(max=len(knots) - 2)
        return knots[knot] + (at - knot) * (knots[knot + 1] - knots[knot])

    def step(self, queries: Tensor, gradient: Tensor) -> None:
        """Step the rows of the items that occur, and w."""
        if not self.table.moving:
            return
        at = self._places(queries)
        dots = products(self.table.values, at.items, gradient, slice(0, self.bias)) * at.there * at.scale
        step_places(self.sent, self.table, at.items, self._age_weights(at), at.there, gradient)
        self._step_weights(AGE_WEIGHTS, dots, ITEM_STEP)
        weights = self._weights(AGE_WEIGHTS)
        weights.clamp_(min=0.0)
        weights[:1] = 1.0

    def learn(self, queries: Tensor, coefficients: Tensor) -> None:
        """Step r."""
        self._step_weights(REPEAT_WEIGHTS, coefficients * self._places(queries).there, REPEAT_STEP)

    def _step_weights(self, name: str, gradients: Tensor, share: float) -> None:
        """Step weights along the gradients of the places, (queries, places)."""
        total = gradients.double().sum(0)
        values, accumulators = self.table.weights[name]
        n_ages = len(values)
        gradient = total.sum()[None] if n_ages == 1 else torch.nn.functional.pad(total, (0, n_ages - len(total)))
        accumulators += gradient.float() ** 2
        step = share * self.table.source.segments[0].step
        values += torch.where(accumulators > 0, step * gradient / accumulators.sqrt(), 0.0).float()

    def _places(self, queries: Tensor) -> Places:
        items, starts, ends = self.bags
        begin, end, slots = starts[queries], ends[queries], torch.arange(self.longest, device=queries.device)
        places = end[:, None] - 1 - slots
        there = places >= begin[:, None]
        scale = torch.ones((len(queries), 1), dtype=torch.float32, device=queries.device)
        n_ages = len(self._weights(AGE_WEIGHTS))
        if n_ages == 1:
            scale = (end - begin).clamp(min=1).float().rsqrt()[:, None]
        ages = slots.clamp(max=n_ages - 1)
        return Places(items[torch.where(there, places, 0)], there, ages, scale)

    def _weights(self, name: str) -> Tensor:
        return self.table.weights[name][0]

    def _age_weights(self, at: Places) -> Tensor:
        return self._weights(AGE_WEIGHTS)[at.ages] * at.there * at.scale


@dataclass(frozen=True, eq=False)
class DeviceListed(DeviceQueries):
    """The vectors of other queries, with p_q in the columns that are moved."""

    inner: DeviceQueries
    items: DeviceTable
    pair: PairTerm
    lists: Tensor
    weights: Tensor

    @classmethod
    def of(
        cls, sent: Sent, inner: DeviceQueries, items: Table, pair: PairTerm, lists: Any, weights: Singles
    ) -> DeviceListed:
        """Send the lists."""
        return cls(inner, sent.table(items), pair, sent.array(lists), sent.array(weights))

    def vectors(self, queries: Tensor) -> Tensor:
        """Return the inner vectors with p_q in the columns that are moved."""
        out, lists = self.inner.vectors(queries), self.lists[queries]
        places, weights = lists.clamp(min=0), self.weights * (lists >= 0)
        for moved, listed in self.pair.joins:
            columns = slice(listed.start, listed.stop)
            out[:, moved.start : moved.stop] = weighted_rows(self.items.values, places, weights, columns)
        return out

    def score_offsets(self, queries: Tensor) -> DeviceOffsets | None:
        """Return what the inner queries hold."""
        return self.inner.score_offsets(queries)

    def backward(self, queries: Tensor, gradient: Tensor) -> DeviceBackward | None:
        """p_q is linear in the rows of its list: each gets w_j times the gradient of p_q."""
        lists, own = self.lists[queries], torch.zeros_like(gradient)
        for moved, listed in self.pair.joins:
            own[:, listed.start : listed.stop] = gradient[:, moved.start : moved.stop]
        return DeviceBackward(lists, self.weights.expand(lists.shape), own)

    def step(self, queries: Tensor, gradient: Tensor) -> None:
        """Step what is inside."""
        self.inner.step(queries, gradient)

    def learn(self, queries: Tensor, coefficients: Tensor) -> None:
        """Step what is inside."""
        self.inner.learn(queries, coefficients)
