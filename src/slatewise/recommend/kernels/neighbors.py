"""Sessions that share items with a query (V-SKNN), and what they say of items.

    similarity(q, s) = sum over items i of both of  w_i log(1 + N / n_i)  /  sqrt(|s|),     w_i = sum of decay^age

    score(q, d) = sum over the k most similar sessions s that have d of  similarity(q, s) exp(-distance(d, i) / reach)

N is how many sessions there are, n_i how many have item i, |s| how many items s has, each counted once; distances are
places in s, from the latest item i of the query that s has.

The search is exact and reads few of the lists. Sessions are kept by length: those of length L reach at most the sum of
the L largest weights over sqrt(L), so lengths are searched by falling bound, until k sessions are ahead of it: the best
found, or the k shortest of an item, which hold its weight. Of a length, the sessions of the weightiest items are looked
up, until a session with none of them cannot be among the k best; what the lighter items add is read from the sessions
found (the idea of Turtle and Flood's MaxScore, 1995). Weights are added from the largest to the smallest whichever way
they come, so that sums have the same bits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints, Shorts
from slatewise.core.running.kernel import kernel
from slatewise.recommend.kernels.best_few import best_first, offer

ROUNDING = 1.0 + 1e-9
"""Bounds are sums in another order."""
READS = 16
"""The number of sessions of a list that are read while one of the sessions found is."""
FAINTEST = 1e-100
"""What a weight never falls below: a score of 0 would pass for none."""


class QueryItems(NamedTuple):
    """Query q has seen ``items[starts[q]:ends[q]]``, oldest first; ``powers[age]`` weighs the last of them."""

    items: Ints
    starts: Ints
    ends: Ints
    powers: Floats


class SessionIndex(NamedTuple):
    """Sessions by length: session s has ``items[offsets[s]:offsets[s + 1]]``.

    Item i is in ``sessions[starts[i]:starts[i + 1]]``, ascending. Sessions of length ``lengths[c]`` are those from
    ``firsts[c]`` to ``firsts[c + 1]``, the latest first.
    """

    items: Shorts
    offsets: Ints
    lengths: Ints
    firsts: Ints
    sessions: Shorts
    starts: Ints
    rarity: Floats
    """log(1 + N / n_i)."""


class Bench(NamedTuple):
    """Memory that a block of queries works in, zeros in between."""

    similarity: Floats
    """Per session of a length."""
    found: Ints
    """Sessions that share something."""
    weight: Floats
    """Per item."""
    rank: Ints
    """Per item: 1 for the weightiest of the query, 2 for the next; 0 for others."""
    seen: Ints
    """Items of the query, from the weightiest to the lightest."""
    sums: Floats
    """``sums[i]`` is that of the weights of the first i of them."""
    hits: NDArray[np.bool_]
    bounds: Floats
    """Per length."""


class Neighbors(NamedTuple):
    """The most similar sessions of each query, best first: ``sizes`` of them."""

    similarity: Floats
    sessions: Ints
    sizes: Ints


@kernel
def last_places(items: Ints, offsets: Ints, kept: Shorts, kept_offsets: Ints, marks: Ints) -> int:
    """Keep every item of a session once, where it is there for the last time; return how many are kept in all."""
    n = 0
    for s in range(len(offsets) - 1):
        first = n
        for place in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
            if marks[items[place]] != s + 1:
                marks[items[place]] = s + 1
                kept[n] = items[place]
                n += 1
        for step in range((n - first) // 2):
            kept[first + step], kept[n - 1 - step] = kept[n - 1 - step], kept[first + step]
        kept_offsets[s + 1] = n
    return n


@kernel
def in_order(items: Shorts, offsets: Ints, numbers: Ints, out: Shorts, out_offsets: Ints) -> None:
    """Copy sessions in another order."""
    at = 0
    for place in range(len(numbers)):
        for source in range(offsets[numbers[place]], offsets[numbers[place] + 1]):
            out[at] = items[source]
            at += 1
        out_offsets[place + 1] = at


@kernel
def invert(items: Shorts, offsets: Ints, starts: Ints, sessions: Shorts) -> None:
    """List the sessions of each item, ascending; ``starts`` has how many there are, and then where they begin."""
    total = 0
    for i in range(len(starts)):
        total += starts[i]
        starts[i] = total
    for s in range(len(offsets) - 2, -1, -1):
        for place in range(offsets[s], offsets[s + 1]):
            i = items[place]
            starts[i] -= 1
            sessions[starts[i]] = s


@kernel
def find_neighbors(queries: QueryItems, index: SessionIndex, bench: Bench, out: Neighbors) -> None:
    """Fill in the most similar sessions of each query; of equals the shorter, then the later."""
    for q in range(len(queries.starts)):
        heap, names = out.similarity[q], out.sessions[q]
        n_seen = _weigh(queries, q, index.rarity, bench)
        for c in range(len(index.lengths)):
            length = index.lengths[c]
            bench.bounds[c] = -bench.sums[min(length, n_seen)] / math.sqrt(length)
        size, least = 0, _at_least(index, bench, n_seen, len(heap))
        for c in np.argsort(bench.bounds):
            least = max(least, heap[0]) if size == len(heap) else least
            if -bench.bounds[c] * ROUNDING < least:
                break
            size = _search(index, c, bench, n_seen, least, heap, names, size)
        best_first(heap, names, size)
        out.sizes[q] = size
        for place in range(n_seen):
            bench.weight[bench.seen[place]], bench.rank[bench.seen[place]] = 0.0, 0


@kernel
def _weigh(queries: QueryItems, q: int, rarity: Floats, bench: Bench) -> int:
    """Write the weights of the query's items, and the items from the weightiest to the lightest; return how many."""
    weight, seen, sums = bench.weight, bench.seen, bench.sums
    n_seen, last = 0, queries.ends[q] - 1
    for age in range(min(len(queries.powers), queries.ends[q] - queries.starts[q])):
        i = queries.items[last - age]
        if weight[i] == 0.0:
            seen[n_seen] = i
            n_seen += 1
        weight[i] += queries.powers[age] * rarity[i]
    for place in range(1, n_seen):
        i, at = seen[place], place
        while at > 0 and weight[seen[at - 1]] < weight[i]:
            seen[at] = seen[at - 1]
            at -= 1
        seen[at] = i
    for place in range(n_seen):
        bench.rank[seen[place]] = place + 1
        sums[place + 1] = sums[place] + weight[seen[place]]
    return n_seen


@kernel
def _at_least(index: SessionIndex, bench: Bench, n_seen: int, k: int) -> float:
    """Return what the k best have at least: an item's k shortest sessions have its weight."""
    least = 0.0
    for place in range(n_seen):
        i = bench.seen[place]
        if index.starts[i + 1] - index.starts[i] >= k:
            s = index.sessions[index.starts[i] + k - 1]
            length = index.lengths[np.searchsorted(index.firsts, s, side="right") - 1]
            least = max(least, float(bench.weight[i] / math.sqrt(length)))
    return least


@kernel
def _search(
    index: SessionIndex, c: int, bench: Bench, n_seen: int, least: float, heap: Floats, names: Ints, size: int
) -> int:
    """Offer the sessions of one length that have at least so much; return how many are kept now."""
    length, first, last = index.lengths[c], index.firsts[c], index.firsts[c + 1]
    norm, sums, k = 1.0 / math.sqrt(length), bench.sums, len(heap)
    bar = least / (norm * ROUNDING)
    n_found, looked_up = 0, 0
    while looked_up < n_seen and sums[min(looked_up + length, n_seen)] - sums[looked_up] >= bar:
        n_found = _look_up(index, bench, looked_up, first, last, n_found)
        looked_up += 1
    while looked_up < n_seen:
        n_found = _still_possible(bench, first, n_found, bar - sums[min(looked_up + length, n_seen)] + sums[looked_up])
        if not _add_to_found(index, bench, looked_up, first, last, n_found):
            break
        looked_up += 1
    # Calls with many arrays would cost more than what is done here.
    similarity, found, weight, seen, hits = bench.similarity, bench.found, bench.weight, bench.seen, bench.hits
    items, offsets, ranks = index.items, index.offsets, bench.rank
    for at in range(n_found):
        s = found[at]
        total = similarity[s - first]
        similarity[s - first] = 0.0
        if looked_up < n_seen:
            for place in range(offsets[s], offsets[s + 1]):
                rank = ranks[items[place]]
                if rank > looked_up:
                    hits[rank - 1] = True
            for rank in range(looked_up, n_seen):
                if hits[rank]:
                    total += weight[seen[rank]]
                    hits[rank] = False
        value = float(total * norm)
        if size < k or value >= heap[0]:
            size = offer(heap, names, size, value, s)
    return size


@kernel
def _look_up(index: SessionIndex, bench: Bench, rank: int, first: int, last: int, n_found: int) -> int:
    """Add the weight of an item to all of its sessions between two; return how many were found so far."""
    similarity, found, sessions = bench.similarity, bench.found, index.sessions
    i = bench.seen[rank]
    weight, start, end = bench.weight[i], index.starts[i], index.starts[i + 1]
    start += np.searchsorted(sessions[start:end], first)
    for at in range(start, end):
        s = sessions[at]
        if s >= last:
            break
        if similarity[s - first] == 0.0:
            found[n_found] = s
            n_found += 1
        similarity[s - first] += weight
    return n_found


@kernel
def _still_possible(bench: Bench, first: int, n_found: int, least: float) -> int:
    """Forget the sessions found whose weights so far are below what they need; return how many are left."""
    similarity, found = bench.similarity, bench.found
    kept = 0
    for at in range(n_found):
        s = found[at]
        if similarity[s - first] >= least:
            found[kept] = s
            kept += 1
        else:
            similarity[s - first] = 0.0
    return kept


@kernel
def _add_to_found(index: SessionIndex, bench: Bench, rank: int, first: int, last: int, n_found: int) -> bool:
    """Add the weight of an item to the sessions found; False, and nothing added: these are sooner read themselves."""
    similarity, sessions = bench.similarity, index.sessions
    i = bench.seen[rank]
    weight, start, end = bench.weight[i], index.starts[i], index.starts[i + 1]
    end = start + np.searchsorted(sessions[start:end], last)
    start += np.searchsorted(sessions[start:end], first)
    if end - start > READS * n_found:
        return False
    for at in range(start, end):
        s = sessions[at]
        if similarity[s - first] > 0.0:
            similarity[s - first] += weight
    return True


@kernel
def most_scores(index: SessionIndex, neighbors: Neighbors, most: int, offsets: Ints) -> None:
    """Fill in where the scores of each query can begin, if no item were in two of its sessions."""
    for q in range(len(neighbors.sizes)):
        total = 0
        for place in range(neighbors.sizes[q]):
            s = neighbors.sessions[q, place]
            total += index.offsets[s + 1] - index.offsets[s]
        offsets[q + 1] = offsets[q] + min(total, most)


@kernel
def score_items(
    queries: QueryItems,
    index: SessionIndex,
    neighbors: Neighbors,
    reach: float,
    ages: Ints,
    values: Floats,
    offsets: Ints,
    ends: Ints,
    items: Ints,
    scores: Floats,
) -> None:
    """Write each query's items and scores from ``offsets[q]`` to ``ends[q]``; ``ages`` and ``values`` are zeros."""
    of_session, bounds = index.items, index.offsets
    for q in range(len(neighbors.sizes)):
        length = min(len(queries.powers), queries.ends[q] - queries.starts[q])
        for age in range(length - 1, -1, -1):
            ages[queries.items[queries.ends[q] - 1 - age]] = length - age  # the later, the larger
        end = offsets[q]
        for near in range(neighbors.sizes[q]):
            s, similarity = neighbors.sessions[q, near], neighbors.similarity[q, near]
            shared = bounds[s]
            if reach < math.inf:
                for place in range(bounds[s], bounds[s + 1]):
                    if ages[of_session[place]] > ages[of_session[shared]]:
                        shared = place
            for place in range(bounds[s], bounds[s + 1]):
                i, value = of_session[place], similarity
                if reach < math.inf:
                    value *= max(math.exp(-abs(place - shared) / reach), FAINTEST)
                if values[i] == 0.0:
                    items[end] = i
                    end += 1
                values[i] += value
        for at in range(offsets[q], end):
            scores[at] = values[items[at]]
            values[items[at]] = 0.0
        ends[q] = end
        for age in range(length):
            ages[queries.items[queries.ends[q] - 1 - age]] = 0
