"""How often items stand near each other in sessions, and scores that are sums of these counts.

    F[i, j] = sum over places p of i and q of j of one session, 0 < q - p <= window, of  1 / (q - p)

    score(q, d) = sum over the last items of the query of  decay^age R[x, d],     R = (F + b F') / row sums ^ a

``1 / distance`` is rounded to 20 binary places, so that sums of it are exact: in any order they have the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

from slatewise.core.arrays import Floats, Ints, Shorts
from slatewise.core.running.kernel import kernel
from slatewise.recommend.kernels.neighbors import QueryItems


class Events(NamedTuple):
    """Items of all sessions, and where each of them is: item i at ``places[starts[i]:starts[i + 1]]``."""

    items: Ints
    offsets: Ints
    owners: Ints
    """The session of each place."""
    places: Ints
    starts: Ints


class CountBench(NamedTuple):
    """Memory that a block of items works in, zeros in between."""

    forward: Floats
    backward: Floats
    found: Ints


class CountRows(NamedTuple):
    """The pairs of a block of items, row after row, columns ascending."""

    sizes: Ints
    items: Shorts
    forward: Floats
    backward: Floats


class RateRows(NamedTuple):
    """Row i of R has ``items[offsets[i]:offsets[i + 1]]`` with ``rates``."""

    offsets: Ints
    items: Shorts
    rates: Floats


@kernel
def count_pairs(events: Events, weights: Floats, first: int, bench: CountBench, out: CountRows) -> int:
    """Count what stands near each item from ``first`` on; ``weights[g - 1]`` is that of distance g. Return the size."""
    items, offsets, forward, backward, found = events.items, events.offsets, bench.forward, bench.backward, bench.found
    end = 0
    for row in range(len(out.sizes)):
        n_found, i = 0, first + row
        for at in range(events.starts[i], events.starts[i + 1]):
            place = events.places[at]
            start, stop = offsets[events.owners[place]], offsets[events.owners[place] + 1]
            for g in range(1, len(weights) + 1):
                if place + g < stop:
                    j = items[place + g]
                    if forward[j] == 0.0 and backward[j] == 0.0:
                        found[n_found] = j
                        n_found += 1
                    forward[j] += weights[g - 1]
                if place - g >= start:
                    j = items[place - g]
                    if forward[j] == 0.0 and backward[j] == 0.0:
                        found[n_found] = j
                        n_found += 1
                    backward[j] += weights[g - 1]
        found[:n_found].sort()
        for at in range(n_found):
            j = found[at]
            out.items[end], out.forward[end], out.backward[end] = j, forward[j], backward[j]
            forward[j], backward[j] = 0.0, 0.0
            end += 1
        out.sizes[row] = n_found
    return end


@kernel
def most_rates(queries: QueryItems, rows: RateRows, most: int, offsets: Ints) -> None:
    """Fill in where the scores of each query can begin, if no item were in two rows of its items."""
    for q in range(len(queries.starts)):
        total = 0
        for age in range(min(len(queries.powers), queries.ends[q] - queries.starts[q])):
            i = queries.items[queries.ends[q] - 1 - age]
            total += rows.offsets[i + 1] - rows.offsets[i]
        offsets[q + 1] = offsets[q] + min(total, most)


@kernel
def add_rates(
    queries: QueryItems, rows: RateRows, values: Floats, offsets: Ints, ends: Ints, items: Ints, scores: Floats
) -> None:
    """Write each query's items and scores from ``offsets[q]`` to ``ends[q]``; ``values`` are zeros."""
    for q in range(len(queries.starts)):
        end = offsets[q]
        for age in range(min(len(queries.powers), queries.ends[q] - queries.starts[q])):
            i = queries.items[queries.ends[q] - 1 - age]
            for at in range(rows.offsets[i], rows.offsets[i + 1]):
                j = rows.items[at]
                if values[j] == 0.0:
                    items[end] = j
                    end += 1
                values[j] += queries.powers[age] * rows.rates[at]
        for at in range(offsets[q], end):
            scores[at] = values[items[at]]
            values[items[at]] = 0.0
        ends[q] = end
