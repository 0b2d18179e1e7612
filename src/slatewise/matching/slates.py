"""Slates: few documents of one query, best first, and what each position weighs (Petterson et al. 2009, section 5.1).

A query of D documents gives many slates of M, each with every rating present: one document of each, the rest at random,
in random order inside a rating. Where there are more ratings than M, a slate shows M different ones. A query that lacks
a rating shows as many as it has; the paper left it out. One with fewer than M documents has no slate.

    c_j = M - 1 - j  ("linear"),   the rating of the document at j  ("rating"),   or given, never growing
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.checks import Features, cut_points, row_range
from slatewise.core.features import take_rows

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Draw: TypeAlias = "Callable[[Floats, int, np.random.Generator], Ints]"
"""From the ratings of a query, rising, and M: documents of each slate, (slates, M), by their place in the query."""

MOST_SLATES = 20_000_000
_ROWS_OF_RUN = 1024


@dataclass(frozen=True, eq=False)
class RatedLists:
    """Documents list by list: list l owns the rows ``offsets[l]:offsets[l + 1]``, by rising rating."""

    X: Features
    ratings: Floats
    offsets: Ints
    weight: Floats | None = None
    """How much each list counts; None: all alike."""

    @classmethod
    def of(cls, X: Features, ratings: Floats, offsets: Ints, weight: Floats | None = None) -> RatedLists:
        """Sort the rows of each list by rating."""
        lists = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        order = np.lexsort((ratings, lists))
        return cls(take_rows(X, order), ratings[order], offsets, weight)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def weights(self) -> Floats:
        """How much each list counts."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def row_weights(self) -> Floats:
        """How much the list of each row counts."""
        return np.repeat(self.weights, np.diff(self.offsets))

    def part(self, chosen: Ints) -> RatedLists:
        """Return some of the lists, given by rising number."""
        sizes = np.diff(self.offsets)[chosen]
        rows = np.flatnonzero(np.repeat(np.isin(np.arange(len(self)), chosen), np.diff(self.offsets)))
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return RatedLists(take_rows(self.X, rows), self.ratings[rows], offsets, self.weights[chosen])

    def runs(self) -> list[tuple[int, int]]:
        """Cut the lists into runs of about so many rows that a run is soon done."""
        return cut_points(self.offsets, _ROWS_OF_RUN)

    def run(self, first: int, last: int) -> RatedLists:
        """Return neighbouring lists, without copying their rows."""
        offsets = self.offsets[first : last + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        weight = self.weights[first:last]
        return RatedLists(row_range(self.X, rows), self.ratings[rows], offsets - offsets[0], weight)

    def n_ratings(self) -> Ints:
        """Return how many different ratings each list has."""
        new = np.append(True, np.diff(self.ratings) != 0)
        new[self.offsets[:-1]] = True
        return np.add.reduceat(new.astype(np.int64), self.offsets[:-1])

    def useful(self, size: int, n_ratings: int) -> RatedLists:
        """Return the lists that have so many rows and so many different ratings, two at least."""
        sizes, there = np.diff(self.offsets), self.n_ratings()
        if (there < 2).all():
            raise ValueError("y: expected a list with two different ratings, found one class of rows in every list")
        if (there < n_ratings).all():
            raise ValueError(f"y: expected a list with {n_ratings} different ratings, found at most {there.max()}")
        kept = there >= max(2, n_ratings)
        if (sizes[kept] < size).all():
            raise ValueError(f"M: expected at most the {sizes[kept].max()} rows of the longest list, found {size}")
        kept &= sizes >= size
        return self if kept.all() else self.part(np.flatnonzero(kept))


@dataclass(frozen=True, eq=False)
class Slates:
    """Rows of the lists, best first, one slate per row; equal slates stand once and count ``share``."""

    rows: Ints
    """(B, M)"""
    ratings: Floats
    """(B, M) falling along each slate."""
    weights: Floats
    """(B, M) c, never growing along a slate."""
    share: Floats
    """(B,) adding up to 1."""


class SlateBlock(NamedTuple):
    """Neighbouring slates, and the rows among which theirs are."""

    X: Features
    slates: Slates


def cut_slates(X: Features, slates: Slates, n: int) -> list[tuple[slice, SlateBlock]]:
    """Cut slates, which stand in the order of their lists, into blocks of at most n; a single block has all rows."""
    cuts = [slice(first, min(first + n, len(slates.rows))) for first in range(0, len(slates.rows), n)]
    return [(cut, _block(X, slates, cut)) for cut in cuts] if len(cuts) > 1 else [(cuts[0], SlateBlock(X, slates))]


def _block(X: Features, slates: Slates, cut: slice) -> SlateBlock:
    rows = slates.rows[cut]
    first, last = int(rows.min()), int(rows.max()) + 1
    some = Slates(rows - first, slates.ratings[cut], slates.weights[cut], slates.share[cut])
    return SlateBlock(row_range(X, slice(first, last)), some)


def make_slates(lists: RatedLists, size: int, c: Floats | None, draw: Draw, rng: np.random.Generator) -> Slates:
    """Make the slates of all lists; ``c``: the weight of each position, None: its rating."""
    found: list[Ints] = []
    times: list[Floats] = []
    places = zip(lists.offsets[:-1].tolist(), lists.offsets[1:].tolist(), lists.weights.tolist(), strict=True)
    for start, end, weight in places:
        chosen = draw(lists.ratings[start:end], size, rng) + start
        shuffled: Floats = rng.random((len(chosen), size))
        order = np.lexsort((shuffled, -lists.ratings[chosen]))
        rows, counts = np.unique(np.take_along_axis(chosen, order, axis=1), axis=0, return_counts=True)
        found.append(rows)
        times.append(counts * weight)
    rows, counts = np.concatenate(found), np.concatenate(times)
    ratings = lists.ratings[rows]
    weights = ratings if c is None else np.tile(c, (len(rows), 1))
    return Slates(rows, ratings, weights, counts / counts.sum())


def fraction_of_slates(fraction: float) -> Draw:
    """Draw ``fraction * D * M`` slates of a query, at least one."""

    def draw(ratings: Floats, size: int, rng: np.random.Generator) -> Ints:
        n = max(1, round(fraction * len(ratings) * size))
        starts = np.flatnonzero(np.diff(ratings, prepend=-np.inf))
        ends = np.append(starts[1:], len(ratings))
        shown = np.tile(np.arange(len(starts)), (n, 1))
        if len(starts) > size:
            shown = np.argpartition(rng.random(shown.shape), size - 1, axis=1)[:, :size]
        one_of_each = rng.integers(starts[shown], ends[shown])
        if len(starts) >= size:
            return one_of_each
        keys = rng.random((n, len(ratings)))
        np.put_along_axis(keys, one_of_each, np.inf, axis=1)
        rest = size - len(starts)
        return np.hstack([one_of_each, np.argpartition(keys, rest - 1, axis=1)[:, :rest]])

    return draw


def all_slates(ratings: Floats, size: int, rng: np.random.Generator) -> Ints:
    """Return every slate of a query that shows as many ratings as it can."""
    del rng  # nothing is drawn
    starts = np.flatnonzero(np.diff(ratings, prepend=-np.inf))
    of_rating = np.split(np.arange(len(ratings)), starts[1:])
    numbers = [len(rows) for rows in of_rating]
    mixes = list(_mixes(numbers, size, min(size, len(numbers))))
    count = sum(math.prod(map(math.comb, numbers, mix)) for mix in mixes)
    if count > MOST_SLATES:
        raise ValueError(f"subsets: expected at most {MOST_SLATES} slates of a list for 'all', found {count}")
    return np.concatenate([_slates_of(of_rating, mix) for mix in mixes])


def _slates_of(of_rating: list[Ints], mix: tuple[int, ...]) -> Ints:
    """Every choice of ``mix[r]`` documents of each rating r."""
    choices = [np.array(list(combinations(rows, m))) for rows, m in zip(of_rating, mix, strict=True) if m > 0]
    places = np.meshgrid(*(np.arange(len(choice)) for choice in choices), indexing="ij")
    return np.hstack([choice[place.ravel()] for choice, place in zip(choices, places, strict=True)])


def _mixes(numbers: list[int], size: int, shown: int) -> Iterator[tuple[int, ...]]:
    """How many documents of each rating: ``size`` in all, of exactly ``shown`` ratings."""
    if not 0 <= shown <= min(len(numbers), size):
        return
    if not numbers:
        if size == 0:
            yield ()
        return
    for m in range(min(numbers[0], size) + 1):
        for rest in _mixes(numbers[1:], size - m, shown - (m > 0)):
            yield (m, *rest)
