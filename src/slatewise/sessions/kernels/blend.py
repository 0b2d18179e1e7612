"""Items that several scorers of sessions name, put together, and how likely each of them is to come next."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints, Shorts, Singles
from slatewise.core.running.kernel import kernel
from slatewise.recommend.kernels.neighbors import QueryItems


class Named(NamedTuple):
    """Part p names ``items[starts[p, q] : ends[p, q]]`` to query q, each once, with a level from 0 to 1."""

    starts: Ints
    ends: Ints
    items: Shorts
    levels: Singles


class Candidates(NamedTuple):
    """What any part names to query q, or q has itself, each once: ``items[starts[q] : ends[q]]``."""

    starts: Ints
    ends: Ints
    items: Shorts
    levels: Singles
    """(parts, candidates): -1 where a part does not name an item."""
    ages: Shorts
    """How long ago q had the item, its last one being of age 0; -1: it did not."""


class Heights(NamedTuple):
    """What a candidate gets by its level in each part, and by its age."""

    knots: Floats
    """(2, parts, knots): heights of lines at equally spaced levels from 0 to 1, of new items and of those q has."""
    ages: Floats


@kernel
def gather(named: Named, queries: QueryItems, places: Ints, out: Candidates) -> int:
    """Put together what parts name; ``places``, per item, are zeros. Return how many candidates there are."""
    n = 0
    for q in range(len(queries.starts)):
        first = n
        for part in range(len(named.starts)):
            for at in range(named.starts[part, q], named.ends[part, q]):
                n = _candidate(named.items[at], places, out, n)
                out.levels[part, places[named.items[at]] - 1] = named.levels[at]
        for age in range(min(len(queries.powers), queries.ends[q] - queries.starts[q])):
            i = queries.items[queries.ends[q] - 1 - age]
            n = _candidate(i, places, out, n)
            if out.ages[places[i] - 1] < 0:
                out.ages[places[i] - 1] = age
        for at in range(first, n):
            places[out.items[at]] = 0
        out.starts[q], out.ends[q] = first, n
    return n


@kernel
def _candidate(item: Any, places: Ints, out: Candidates, n: int) -> int:
    """Give an item a place, if it has none; return how many have."""
    if places[item]:
        return n
    out.items[n], out.levels[:, n], out.ages[n] = item, -1.0, -1
    places[item] = n + 1
    return n + 1


@kernel
def _height(found: Candidates, at: int, heights: Heights) -> float:
    again = int(found.ages[at] >= 0)
    total, last = 0.0, heights.knots.shape[2] - 2
    for part in range(len(found.levels)):
        if found.levels[part, at] >= 0.0:
            level = found.levels[part, at] * (last + 1.0)
            knot = min(int(level), last)
            low, high = heights.knots[again, part, knot], heights.knots[again, part, knot + 1]
            total += low + (level - knot) * (high - low)
    if again:
        total += heights.ages[found.ages[at]]
    return float(min(total, 500.0))


@kernel
def probabilities(found: Candidates, n_items: int, heights: Heights, out: Floats) -> None:
    """Fill in how likely each candidate is to come next: ``exp(height)``, which is 1 for all other items, over all."""
    for q in range(len(found.starts)):
        mass = float(n_items - (found.ends[q] - found.starts[q]))
        for at in range(found.starts[q], found.ends[q]):
            out[at] = np.exp(_height(found, at, heights))
            mass += out[at]
        for at in range(found.starts[q], found.ends[q]):
            out[at] /= mass


@kernel
def surprise(found: Candidates, targets: Ints, n_items: int, heights: Heights, chances: Floats, slope: Heights) -> Any:
    """Return minus the log-likelihood of one item per query, and add its slope; ``chances`` is memory to work in."""
    probabilities(found, n_items, heights, chances)
    total, last = 0.0, heights.knots.shape[2] - 2
    for q in range(len(found.starts)):
        rest, came = 1.0, False
        for at in range(found.starts[q], found.ends[q]):
            pull, again = chances[at], int(found.ages[at] >= 0)
            rest -= pull
            if found.items[at] == targets[q]:
                total -= np.log(chances[at])
                pull -= 1.0
                came = True
            for part in range(len(found.levels)):
                if found.levels[part, at] >= 0.0:
                    level = found.levels[part, at] * (last + 1.0)
                    knot = min(int(level), last)
                    slope.knots[again, part, knot] += pull * (1.0 - (level - knot))
                    slope.knots[again, part, knot + 1] += pull * (level - knot)
            if again:
                slope.ages[found.ages[at]] += pull
        if not came:  # one of the others, which share what is left
            total -= np.log(max(rest, 1e-300) / (n_items - (found.ends[q] - found.starts[q])))
    return total
