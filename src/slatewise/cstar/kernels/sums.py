"""Sums over all lists of k items of a c-star model: log Z, and how likely items and pairs are.

    Z = sum over core settings a of  exp(const(a)) e_r( exp(v + sum_c a_c G_c) ) ,      r = k - |a|

e_r is the elementary symmetric polynomial, the sum over all sets of r other items, filled item by item:

    E_i+1[j] = E_i[j] + x_i E_i[j-1] ,      x_i d e_r / d x_i  by the same recursion backwards

Only positive numbers are added and multiplied, so nothing cancels. All settings go through the recursion side by side,
those with few items first, so that the innermost loops are plain sums of arrays; a setting that fills all but r places
needs no sums over more than r others. What a setting multiplies the items by is the same for all lists.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Bytes
from slatewise.core.running.kernel import kernel, kernel_fastmath
from slatewise.cstar.kernels.instance import Floats, Ints, Pair, nth_largest
from slatewise.cstar.kernels.layout import CoreSettings


@kernel
def count_settings(n_in: Ints, left: int, first: Ints) -> None:
    """Fill where the settings that leave j or more places to other items stand: ``first[j]`` to ``first[j + 1]``."""
    first[0] = 0
    for j in range(left + 1):
        first[j + 1] = first[j] + np.searchsorted(n_in, left - j, side="right")


@kernel
def grow(table: Floats, factor: Floats, base: Floats, first: Ints, left: int) -> None:
    """Add one item after the other: ``E_i+1[j] = E_i[j] + base factor E_i[j-1]``, for settings with j places."""
    for i in range(len(base)):
        old, new = table[i], table[i + 1]
        new[: first[1]] = 1.0
        for j in range(1, left + 1):
            less, same, grown = old[first[j - 1] :], old[first[j] :], new[first[j] : first[j + 1]]
            for s in range(len(grown)):
                grown[s] = same[s] + base[i] * factor[i, s] * less[s]


@kernel
def shrink(
    table: Floats,
    factor: Floats,
    base: Floats,
    first: Ints,
    left: int,
    back: Floats,
    weight: float,
    share: Floats,
    together: Floats,
    chance: Floats,
) -> None:
    """Take them away again; fill how likely each item is, and add to ``together`` how likely with each setting."""
    for i in range(len(base) - 1, -1, -1):
        share[:] = 0.0
        for j in range(left):
            others, less, more = table[i, first[j] :], back[first[j] :], back[first[j + 1] : first[j + 2]]
            for s in range(len(more)):
                part = base[i] * factor[i, s] * more[s]
                share[s] += others[s] * part
                less[s] += part
        for s in range(len(share)):
            together[i, s] += weight * share[s]
        chance[i] = total(share)


@kernel_fastmath
def total(values: Floats) -> float:
    """Return the sum."""
    found = 0.0
    for s in range(len(values)):
        found += values[s]
    return found


@kernel_fastmath
def dot(one: Floats, two: Floats) -> float:
    """Return the sum of products."""
    total = 0.0
    for s in range(len(one)):
        total += one[s] * two[s]
    return total


@kernel
def split_rest(s: Floats, known: Bytes, pair: Pair, k: int, base: Floats, top: Floats) -> tuple[int, float]:
    """Fill exp(score - level) of the other items, 0 where one is forced; return how many are forced in, and level.

    The level is the mean of as many of the largest as there are places: the leading product is then near 1.
    """
    n_in, n_free = 0, 0
    for i in range(len(pair.rest)):
        state = known[pair.rest[i]] if len(known) else -1
        n_in += state == 1
        if state == -1:
            top[n_free] = s[pair.rest[i]]
            n_free += 1
    n_places = min(max(k - n_in, 0), n_free)
    level = 0.0
    if n_places:
        nth_largest(top, n_free, n_places)
        for i in range(n_places):
            level += top[i] / n_places
    for i in range(len(pair.rest)):
        is_open = len(known) == 0 or known[pair.rest[i]] == -1
        base[i] = np.exp(s[pair.rest[i]] - level) if is_open else 0.0
    return n_in, level


@kernel
def weigh(
    s: Floats,
    known: Bytes,
    pair: Pair,
    core: CoreSettings,
    left: int,
    level: float,
    sums: Floats,
    first: Ints,
    log_weight: Floats,
) -> float:
    """Fill the log of each setting's part of Z, ``sums`` holding e_j from ``first[j]`` on; return log Z."""
    best = -np.inf
    for a in range(len(log_weight)):
        r = left - core.n_in[a]
        value = np.log(sums[first[r] + a]) if sums[first[r] + a] > 0.0 else -np.inf
        value += r * (level + core.shift[a]) + core.inner[a]
        for c in range(len(pair.core)):
            value += core.bits[c, a] * s[pair.core[c]]
            if len(known) and known[pair.core[c]] == 1.0 - core.bits[c, a]:
                value = -np.inf
        if len(known):
            for i in range(len(pair.rest)):
                if known[pair.rest[i]] == 1:
                    value += s[pair.rest[i]] + np.log(core.factor[i, a]) + core.shift[a]
        log_weight[a] = value
        best = max(best, value)
    total = 0.0
    for a in range(len(log_weight)):
        total += np.exp(log_weight[a] - best)
    return best + np.log(total)


@kernel
def star_sums(
    s: Floats,
    known: Bytes,
    pair: Pair,
    core: CoreSettings,
    k: Ints,
    weight: Floats,
    log_z: Floats,
    item: Floats,
    joint: Floats,
) -> None:
    """Fill log Z of each list and how likely each item is; add to ``joint`` (C, N) how likely pairs are, by weight.

    A pair of core items is added once, in the row of the one that comes first in the core.
    """
    n_core, n_rest = pair.outer.shape
    n_settings, most = len(core.n_in), 0
    for number in range(len(k)):
        most = max(most, k[number])
    first = np.empty(most + 2, np.int64)
    count_settings(core.n_in, most, first)
    table, back = np.empty((n_rest + 1, first[most + 1])), np.empty(first[most + 1])
    base, top, chance, share = np.empty(n_rest), np.empty(n_rest), np.empty(n_settings), np.empty(n_settings)
    together = np.zeros((n_core + n_rest, n_settings))
    nothing = np.empty(0, np.int8)
    for number in range(len(s)):
        forced = known[number] if len(known) else nothing
        n_in, level = split_rest(s[number], forced, pair, k[number], base, top)
        left = k[number] - n_in
        count_settings(core.n_in, left, first)
        size, n_open = first[1], first[2] - first[1] if left else 0
        table[0], table[0, :size], back[:] = 0.0, 1.0, 0.0
        grow(table, core.factor, base, first, left)
        log_z[number] = weigh(s[number], forced, pair, core, left, level, table[n_rest], first, chance[:size])
        for a in range(size):
            chance[a] = np.exp(chance[a] - log_z[number])
            place = first[left - core.n_in[a]] + a
            back[place] = chance[a] / table[n_rest, place] if chance[a] > 0.0 else 0.0
        for c in range(n_core):
            item[number, pair.core[c]] = dot(core.bits[c, :size], chance)
            for a in range(size):
                together[c, a] += weight[number] * core.bits[c, a] * chance[a]
        shrink(table, core.factor, base, first, left, back, weight[number], share[:n_open], together[n_core:], top)
        for i in range(n_rest):
            item[number, pair.rest[i]] = top[i]
            if len(forced) and forced[pair.rest[i]] == 1:
                item[number, pair.rest[i]] = 1.0
                for a in range(size):
                    together[n_core + i, a] += weight[number] * chance[a]
    # Which core items a setting holds is the same in all lists: read once, for the sum over lists.
    for c in range(n_core):
        for d in range(c + 1, n_core):
            joint[c, pair.core[d]] += dot(core.bits[c], together[d])
        for i in range(n_rest):
            joint[c, pair.rest[i]] += dot(core.bits[c], together[n_core + i])
