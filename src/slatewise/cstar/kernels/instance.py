"""One list of a c-star model, reduced to what is still free.

    f(t) = const + sum_c h_c a_c + sum_{c<d} g_cd a_c a_d + sum_i v_i b_i + sum_ci G_ci a_c b_i,   |a| + |b| = r

a: the free core items, b: the free other items. Items forced in move their scores into ``const`` and their pair terms
into ``h`` and ``v``; items forced out are left out. So no kernel after this one knows about forced items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.running.kernel import kernel
from slatewise.cstar.kernels.layout import Pair


class Instance(NamedTuple):
    """Work space for one list: the first ``n_core`` and ``n_rest`` entries of each array are in use."""

    core: Ints
    rest: Ints
    h: Floats
    v: Floats
    inner: Floats
    outer: Floats


@kernel
def new_instance(pair: Pair) -> Instance:
    """Allocate the work space."""
    n_core, n_rest = pair.outer.shape
    return Instance(
        np.empty(n_core, np.int64),
        np.empty(n_rest, np.int64),
        np.empty(n_core),
        np.empty(n_rest),
        np.empty((n_core, n_core)),
        np.empty((n_core, n_rest)),
    )


@kernel
def copy(source: Floats, size: int, target: Floats) -> None:
    """Copy the first ``size`` values; slices would say the same and take a second longer to compile."""
    for i in range(size):
        target[i] = source[i]


@kernel
def reduce_list(s: Floats, known: Bytes, pair: Pair, out: Instance) -> tuple[int, int, int, float]:
    """Fill ``out``; return (free core items, free other items, items forced in, their score).

    ``known`` is empty where nothing is forced. ``out.core`` and ``out.rest`` get positions in ``pair.core`` and
    ``pair.rest``.
    """
    total_core, total_rest = pair.outer.shape
    h, v = out.h, out.v
    if len(known) == 0:
        for c in range(total_core):
            out.core[c] = c
            h[c] = s[pair.core[c]]
        for i in range(total_rest):
            out.rest[i] = i
            v[i] = s[pair.rest[i]]
        for c in range(total_core):
            copy(pair.inner[c], total_core, out.inner[c])
            copy(pair.outer[c], total_rest, out.outer[c])
        return total_core, total_rest, 0, 0.0
    n_core, n_rest = 0, 0
    for c in range(total_core):
        if known[pair.core[c]] < 0:
            out.core[n_core] = c
            h[n_core] = s[pair.core[c]]
            n_core += 1
    for i in range(total_rest):
        if known[pair.rest[i]] < 0:
            out.rest[n_rest] = i
            v[n_rest] = s[pair.rest[i]]
            n_rest += 1
    for a in range(n_core):
        for b in range(n_core):
            out.inner[a, b] = pair.inner[out.core[a], out.core[b]]
        for i in range(n_rest):
            out.outer[a, i] = pair.outer[out.core[a], out.rest[i]]
    const, n_in = 0.0, 0
    for c in range(total_core):
        if known[pair.core[c]] == 1:
            n_in += 1
            const += s[pair.core[c]]
            for d in range(c):
                if known[pair.core[d]] == 1:
                    const += pair.inner[c, d]
            for a in range(n_core):
                h[a] += pair.inner[c, out.core[a]]
            for i in range(n_rest):
                v[i] += pair.outer[c, out.rest[i]]
    for j in range(total_rest):
        if known[pair.rest[j]] == 1:
            n_in += 1
            const += s[pair.rest[j]]
            for c in range(total_core):
                if known[pair.core[c]] == 1:
                    const += pair.outer[c, j]
            for a in range(n_core):
                h[a] += pair.outer[out.core[a], j]
    return n_core, n_rest, n_in, float(const)


@kernel
def nth_largest(values: Floats, size: int, n: int) -> float:
    """Return the n-th largest (from 1) of the first ``size`` values, which end up with the n largest in front."""
    low, high = 0, size - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if n - 1 <= j:
            high = j
        elif n - 1 >= i:
            low = i
        else:
            break
    return values[n - 1]


@kernel
def drop_hopeless(work: Instance, n_core: int, n_rest: int, r: int, keys: Floats) -> int:
    """Drop other items that no core setting brings into the top r: at best below r items at their worst."""
    if r >= n_rest:
        return n_rest
    if r <= 0:
        return 0
    outer = work.outer
    for i in range(n_rest):
        keys[i] = work.v[i]
    for c in range(n_core):
        for i in range(n_rest):
            keys[i] += min(outer[c, i], 0.0)
    threshold = nth_largest(keys, n_rest, r)
    for i in range(n_rest):
        keys[i] = work.v[i]
    for c in range(n_core):
        for i in range(n_rest):
            keys[i] += max(outer[c, i], 0.0)
    kept = 0
    for i in range(n_rest):
        if not keys[i] < threshold:  # NaN stays: at least r items are kept
            work.rest[kept] = work.rest[i]
            work.v[kept] = work.v[i]
            keys[kept] = i
            kept += 1
    for c in range(n_core):
        for i in range(kept):
            outer[c, i] = outer[c, int(keys[i])]
    return kept


@kernel
def top_sum(values: Floats, size: int, r: int, guess: float, top: Floats) -> tuple[float, float]:
    """Return the sum of the r > 0 largest values and the r-th of them.

    Only values above ``guess`` are selected from, unless they are fewer than r (or it is NaN).
    """
    count = 0
    for i in range(size):
        top[count] = values[i]
        count += values[i] > guess  # reaches size after the last value only
    if count < r:
        count = size
        copy(values, size, top)
    threshold = nth_largest(top, count, r)
    total = 0.0
    for i in range(r):
        total += top[i]
    return total, threshold


@kernel
def choose(
    work: Instance,
    n_core: int,
    n_rest: int,
    r: int,
    setting: Bytes,
    guess: float,
    known: Bytes,
    pair: Pair,
    taken: Bytes,
    buffer: Floats,
) -> None:
    """Mark in ``taken``, by item, the best list whose free core items are ``setting``.

    Ties go to the item with the smaller number. ``guess`` is below the threshold of the list, or NaN; ``buffer`` holds
    two values per item.
    """
    for item in range(len(taken)):
        taken[item] = len(known) > 0 and known[item] == 1
    values = buffer[:n_rest]
    copy(work.v, n_rest, values)
    for c in range(n_core):
        if setting[c]:
            r -= 1
            taken[pair.core[work.core[c]]] = 1
            for i in range(n_rest):
                values[i] += work.outer[c, i]
    if r <= 0:
        return
    _, threshold = top_sum(values, n_rest, r, guess, buffer[n_rest:])
    for i in range(n_rest):
        if r > 0 and values[i] > threshold:
            taken[pair.rest[work.rest[i]]] = 1
            r -= 1
    for i in range(n_rest):
        if r > 0 and values[i] == threshold:
            taken[pair.rest[work.rest[i]]] = 1
            r -= 1
    i = 0
    while r > 0:  # with NaN no threshold divides the values: any items make the list full
        if not taken[pair.rest[work.rest[i]]]:
            taken[pair.rest[work.rest[i]]] = 1
            r -= 1
        i += 1


@kernel
def write_list(s: Floats, pair: Pair, taken: Bytes, selected: Ints) -> float:
    """Write the marked items in ascending order, -1 after the last; return f, added in that order, then by pairs."""
    count, score = 0, 0.0
    for item in range(len(taken)):
        if taken[item]:
            selected[count] = item
            score += s[item]
            count += 1
    for j in range(count, len(selected)):
        selected[j] = -1
    for c in range(len(pair.core)):
        if taken[pair.core[c]]:
            row = pair.full[c]
            for j in range(count):
                score += row[selected[j]]
            for d in range(c):  # the pairs of two core items have now been added from both
                if taken[pair.core[d]]:
                    score -= pair.inner[c, d]
    return score
