"""Slates: few documents of one query, best first, and the weights of positions (Petterson et al. 2009, section 5.1).

A query of D documents gives many slates of M, each with every rating present: one document of each, the rest at random,
in random order inside a rating. If there are more ratings than M, a slate shows M different ones. A query that lacks a
rating shows as many as it has; the paper left it out. A query with fewer than M documents has no slate.

    c_j = M - 1 - j  ("linear"),   the rating of the document at j  ("rating"),   or given, never growing

:class:`Slates`, :class:`AllSlates` and :class:`WholeQueries` are the settings of :class:`slatewise.MatchingRanker`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from slatewise.core import rules
from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import Features, cut_points, row_range
from slatewise.core.declarations import Settings, param
from slatewise.core.groups import blocks, take_rows
from slatewise.core.running.block_sums import BlockObjective, BlockSum, ValueAndSlope
from slatewise.core.running.executor import Executor

Part = TypeVar("Part")

Draw: TypeAlias = "Callable[[Floats, int, np.random.Generator], Ints]"
"""From the ratings of a query, rising, and M: documents of each slate, (slates, M), by their number in the query."""
Weights: TypeAlias = "Literal['linear', 'rating'] | Sequence[float] | NDArray[np.floating]"
"""Weights of positions or of ratings, as settings have them."""

MOST_DOCUMENTS = 20
"""Of a slate: the exact sum doubles with every further one."""
MOST_SLATES = 20_000_000
_ROWS_OF_RUN = 1024


# --- settings ---------------------------------------------------------------------------------------------------------

_SIZE = rules.count(2, MOST_DOCUMENTS) | rules.NONE
_SIZE_TEXT = """Documents of a slate, 2 to 20. None: the number of different ratings, at most 6. Every slate shows all
ratings of its query if they fit, otherwise ``size`` different ones."""
_WEIGHTS = rules.one_of("linear", "rating") | rules.vector("finite numbers")
_WEIGHTS_TEXT = """Weights of positions: ``size - 1, .., 1, 0``; the rating of the document there; or ``size`` numbers
that never grow."""
_TIES = rules.one_of("random", "marginal")
_TIES_TEXT = """Documents of equal rating come in random order, or the likelihood sums over all their orders. That sum
is convex only if the weights are equal inside a rating; otherwise fit warns, and ``lower_bound_`` is 0. It is an
error with ``surrogate="max-margin"``."""
_MISSING = rules.one_of("use", "skip")
_MISSING_TEXT = """What to do with a query that lacks one of the ratings (that has fewer than ``size`` of them, if there
are more): fill its slates up with other documents, or leave the query out, as the paper did."""


class Slates(Settings, shorthand="sampled"):
    """Random slates: a few documents of a query, drawn ``repeats`` times."""

    size: int | None = param(_SIZE, _SIZE_TEXT, default=None)
    share: float = param(
        rules.number("a number > 0 and at most 1000", math.ulp(0.0), 1000.0),
        "The number of slates of a query of D documents, as a multiple of ``D * size``.",
        default=0.4,
    )
    repeats: int = param(
        rules.count(1, rules.MOST_LISTED),
        "How many times slates are drawn; the learned weights are the mean of these fits.",
        default=5,
    )
    position_weights: Weights = param(_WEIGHTS, _WEIGHTS_TEXT, default="linear")
    ties: Literal["random", "marginal"] = param(_TIES, _TIES_TEXT, default="random")
    missing: Literal["use", "skip"] = param(_MISSING, _MISSING_TEXT, default="use")


class AllSlates(Settings, shorthand="all"):
    """Every slate of ``size`` documents that a query has."""

    size: int | None = param(_SIZE, _SIZE_TEXT, default=None)
    position_weights: Weights = param(_WEIGHTS, _WEIGHTS_TEXT, default="linear")
    ties: Literal["random", "marginal"] = param(_TIES, _TIES_TEXT, default="random")
    missing: Literal["use", "skip"] = param(_MISSING, _MISSING_TEXT, default="use")


class WholeQueries(Settings, shorthand="whole"):
    """No slates: all documents of a query at once. A weight belongs to a rating instead of a position."""

    rating_weights: Weights = param(
        _WEIGHTS,
        """Weights of ratings: their number, from 0 for the smallest; the rating itself; or one number per rating, the
        best rating first, never growing.""",
        default="linear",
    )


def falling_weights(name: str, given: Weights, size: int) -> Floats | None:
    """Return one weight per position, or per rating of whole queries, best first; None stands for the ratings."""
    if isinstance(given, str):
        return None if given == "rating" else np.arange(size - 1, -1, -1, dtype=np.float64)
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (size,):
        raise ValueError(f"{name}: expected {size} finite numbers, found {given!r}")
    if (np.diff(weights) > 0).any() or weights[0] == weights[-1]:
        raise ValueError(f"{name}: expected numbers that fall and never grow, found {weights.tolist()}")
    return weights


# --- lists ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RatedLists:
    """Documents list by list: list l owns the rows ``offsets[l]:offsets[l + 1]``, by rising rating."""

    X: Features
    ratings: Floats
    offsets: Ints
    weight: Floats | None = None
    """The weight of each list; None: ones."""

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
        """The weight of each list."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def row_weights(self) -> Floats:
        """The weight of the list of each row."""
        return np.repeat(self.weights, np.diff(self.offsets))

    def part(self, chosen: Ints) -> RatedLists:
        """Return some of the lists, given by rising number."""
        sizes = np.diff(self.offsets)[chosen]
        rows = np.flatnonzero(np.repeat(np.isin(np.arange(len(self)), chosen), np.diff(self.offsets)))
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return RatedLists(take_rows(self.X, rows), self.ratings[rows], offsets, self.weights[chosen])

    def runs(self) -> list[tuple[int, int]]:
        """Cut the lists into runs of about 1,024 rows."""
        return cut_points(self.offsets, _ROWS_OF_RUN)

    def run(self, first: int, last: int) -> RatedLists:
        """Return neighboring lists, without copying their rows."""
        offsets = self.offsets[first : last + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        weight = self.weights[first:last]
        return RatedLists(row_range(self.X, rows), self.ratings[rows], offsets - offsets[0], weight)

    def useful(self, size: int, n_ratings: int) -> RatedLists:
        """Return the lists of at least ``size`` rows and ``n_ratings`` different ratings, and warn of the others."""
        sizes, new = np.diff(self.offsets), np.append(True, np.diff(self.ratings) != 0)
        new[self.offsets[:-1]] = True
        there = np.add.reduceat(new.astype(np.int64), self.offsets[:-1])  # different ratings of each list
        if (there < 2).all():
            raise ValueError("y: expected a list with two different ratings, found one class of rows in every list")
        if (there < n_ratings).all():
            raise ValueError(f"y: expected a list with {n_ratings} different ratings, found at most {there.max()}")
        single, lacking = there < 2, (there >= 2) & (there < n_ratings)
        rated = ~single & ~lacking
        if (sizes[rated] < size).all():
            raise ValueError(
                f"slates: expected a size of at most the {sizes[rated].max()} rows of the longest list, found {size}"
            )
        kept = rated & (sizes >= size)
        if kept.all():
            return self
        reasons = {
            "of a single rating": single,
            f"without {n_ratings} different ratings (missing='skip')": lacking,
            f"of fewer than {size} rows": rated & ~kept,
        }
        counts = {why: int(np.count_nonzero(which)) for why, which in reasons.items()}
        why = ", ".join(f"{count} {reason}" for reason, count in counts.items() if count)
        message = f"{np.count_nonzero(~kept)} of {len(kept)} lists are left out: {why}"
        warnings.warn(message, UserWarning, stacklevel=4)
        return self.part(np.flatnonzero(kept))


class At(NamedTuple):
    """The executor inside a block, and the parameters at which a risk is summed."""

    executor: Executor
    params: Floats


class ListBlock(NamedTuple, Generic[Part]):
    """A block of whole lists, c of their rows, and what is known of each list."""

    lists: RatedLists
    weights: Floats
    each: tuple[Part, ...]


def whole_lists(
    lists: RatedLists,
    weights: Floats,
    what: BlockSum[Executor, Floats, Any, ListBlock[Part], ValueAndSlope],
    describe: Callable[[RatedLists, Floats], Iterable[Part]],
    executor: Executor,
) -> BlockObjective:
    """Return the mean over whole lists of ``what``; ``describe`` yields what it needs to know of each list."""
    parts: list[ListBlock[Part]] = []
    for first, last in lists.runs():
        some, of_rows = lists.run(first, last), weights[lists.offsets[first] : lists.offsets[last]]
        parts.append(ListBlock(some, of_rows, tuple(describe(some, of_rows))))
    held = executor.place_blocks(parts, executor.inside(len(parts)))
    return BlockObjective(held, what, int(lists.X.shape[1]), float(lists.weights.sum()))


# --- slates -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SlateTable:
    """Rows of the lists, best first, one slate per row; equal slates are there once and count ``share``."""

    rows: Ints
    """(B, M)"""
    ratings: Floats
    """(B, M) falling along each slate."""
    weights: Floats
    """(B, M) c, never growing along a slate."""
    share: Floats
    """(B,) adding up to 1."""


class SlateBlock(NamedTuple):
    """Neighboring slates, and the rows among which theirs are."""

    X: Features
    slates: SlateTable


def cut_slates(X: Features, slates: SlateTable, n: int) -> list[tuple[slice, SlateBlock]]:
    """Cut slates, which are in the order of their lists, into blocks of at most n; a single block has all rows."""
    n_slates = len(slates.rows)
    if n_slates <= n:
        return [(slice(0, n_slates), SlateBlock(X, slates))]
    found: list[tuple[slice, SlateBlock]] = []
    for cut in blocks(n_slates, n):
        rows = slates.rows[cut]
        first, last = int(rows.min()), int(rows.max()) + 1
        some = SlateTable(rows - first, slates.ratings[cut], slates.weights[cut], slates.share[cut])
        found.append((cut, SlateBlock(row_range(X, slice(first, last)), some)))
    return found


def make_slates(lists: RatedLists, size: int, c: Floats | None, draw: Draw, rng: np.random.Generator) -> SlateTable:
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
    return SlateTable(rows, ratings, weights, counts / counts.sum())


def drawn_slates(share: float, ratings: Floats, size: int, rng: np.random.Generator) -> Ints:
    """Draw ``share * D * M`` slates of a query, at least one."""
    n = max(1, round(share * len(ratings) * size))
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


def all_slates(ratings: Floats, size: int, rng: np.random.Generator) -> Ints:
    """Return every slate of a query with the maximum number of different ratings."""
    del rng  # nothing is drawn
    starts = np.flatnonzero(np.diff(ratings, prepend=-np.inf))
    of_rating = np.split(np.arange(len(ratings)), starts[1:])
    numbers = [len(rows) for rows in of_rating]
    mixes = list(_mixes(numbers, size, min(size, len(numbers))))
    count = sum(math.prod(map(math.comb, numbers, mix)) for mix in mixes)
    if count > MOST_SLATES:
        raise ValueError(f"slates: expected at most {MOST_SLATES} slates of a list for 'all', found {count}")
    found: list[Ints] = []
    for mix in mixes:  # every choice of mix[r] documents of each rating r
        choices = [np.array(list(combinations(rows, m))) for rows, m in zip(of_rating, mix, strict=True) if m > 0]
        chosen = np.meshgrid(*(np.arange(len(choice)) for choice in choices), indexing="ij")
        found.append(np.hstack([choice[at.ravel()] for choice, at in zip(choices, chosen, strict=True)]))
    return np.concatenate(found)


def _mixes(numbers: list[int], size: int, shown: int) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of documents of each rating: ``size`` in all, of exactly ``shown`` ratings."""
    if not 0 <= shown <= min(len(numbers), size):
        return
    if not numbers:
        if size == 0:
            yield ()
        return
    for m in range(min(numbers[0], size) + 1):
        for rest in _mixes(numbers[1:], size - m, shown - (m > 0)):
            yield (m, *rest)
