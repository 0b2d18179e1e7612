"""Sums over all lists of k items of a c-star model: log Z, and how likely items and pairs are.

    Z = sum over core settings a of  exp(const(a)) e_r( exp(v + sum_c a_c G_c) ) ,      r = k - |a|

e_r is the elementary symmetric polynomial, the sum over all sets of r other items, filled item by item:

    E_i+1[j] = E_i[j] + x_i E_i[j-1] ,      x_i d e_r / d x_i  by the same recursion backwards

Only positive numbers are added and multiplied, so nothing cancels. All settings go through the recursion side by side,
so that the innermost loops are plain sums of arrays; what a setting multiplies the items by is the same for all lists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.kernels._kernel import kernel, loose_sums
from slatewise.kernels.star_instance import Bytes, Floats, Ints, Pair, nth_largest


class CoreSettings(NamedTuple):
    """All settings of the core, those with few items first."""

    bits: Floats
    """(C, S) 1 where a core item is in."""
    n_in: Ints
    """(S,) how many are."""
    inner: Floats
    """(S,) their pair terms among each other."""
    factor: Floats
    """(R, S) exp of the pair terms of each other item with them, divided by exp(shift)."""
    shift: Floats
    """(S,)."""


@loose_sums
def grow(old: Floats, new: Floats, factor: Floats, base: float, size: int) -> None:
    """Add an item to the sums of one setting a column: ``new[j] = old[j] + base factor old[j-1]``."""
    for s in range(size):
        new[0, s] = 1.0
    for j in range(1, len(new)):
        for s in range(size):
            new[j, s] = old[j, s] + base * factor[s] * old[j - 1, s]


@loose_sums
def shrink(old: Floats, back: Floats, factor: Floats, base: float, size: int, share: Floats) -> None:
    """Take an item away again; ``share`` gets how likely it is together with each setting."""
    for s in range(size):
        share[s] = 0.0
    for j in range(len(old) - 1):
        for s in range(size):
            share[s] += old[j, s] * back[j + 1, s]
            back[j, s] += base * factor[s] * back[j + 1, s]
    for s in range(size):
        share[s] *= base * factor[s]


@loose_sums
def dot(one: Floats, two: Floats, size: int) -> float:
    """Return the sum of products."""
    total = 0.0
    for s in range(size):
        total += one[s] * two[s]
    return total


@kernel
def split_rest(s: Floats, known: Bytes, pair: Pair, k: int, base: Floats, top: Floats) -> tuple[int, float]:
    """Fill exp(score - level) of the other items, 0 where one is forced; return how many are forced in, and level.

    The level is the mean of as many of the largest as there is room for: the leading product is then near 1.
    """
    n_in, n_free = 0, 0
    for i in range(len(pair.rest)):
        answer = known[pair.rest[i]] if len(known) else -1
        n_in += answer == 1
        if answer == -1:
            top[n_free] = s[pair.rest[i]]
            n_free += 1
    room = min(max(k - n_in, 0), n_free)
    level = 0.0
    if room:
        nth_largest(top, n_free, room)
        for i in range(room):
            level += top[i] / room
    for i in range(len(pair.rest)):
        is_open = len(known) == 0 or known[pair.rest[i]] == -1
        base[i] = np.exp(s[pair.rest[i]] - level) if is_open else 0.0
    return n_in, level


@kernel
def weigh(
    s: Floats, known: Bytes, pair: Pair, core: CoreSettings, left: int, level: float, sums: Floats, log_weight: Floats
) -> float:
    """Fill the log of each setting's part of Z, ``sums`` holding e_j for all j; return log Z."""
    best = -np.inf
    for a in range(len(log_weight)):
        r = left - core.n_in[a]
        value = np.log(sums[r, a]) if sums[r, a] > 0.0 else -np.inf
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
    n_settings = len(core.n_in)
    most = 0
    for number in range(len(k)):
        most = max(most, k[number])
    table, back = np.zeros((n_rest + 1, most + 1, n_settings)), np.empty((most + 1, n_settings))
    for a in range(n_settings):
        table[0, 0, a] = 1.0
    base, top, chance, share = np.empty(n_rest), np.empty(n_rest), np.empty(n_settings), np.empty(n_settings)
    nothing = np.empty(0, np.int8)
    for number in range(len(s)):
        forced = known[number] if len(known) else nothing
        n_in, level = split_rest(s[number], forced, pair, k[number], base, top)
        left = k[number] - n_in
        size = 0
        while size < n_settings and core.n_in[size] <= left:
            size += 1
        for i in range(n_rest):
            grow(table[i, : left + 1], table[i + 1, : left + 1], core.factor[i], base[i], size)
        log_z[number] = weigh(s[number], forced, pair, core, left, level, table[n_rest], chance[:size])
        for a in range(size):
            chance[a] = np.exp(chance[a] - log_z[number])
            for j in range(left + 1):
                back[j, a] = 0.0
            r = left - core.n_in[a]
            back[r, a] = chance[a] / table[n_rest, r, a] if chance[a] > 0.0 else 0.0
        for c in range(n_core):
            item[number, pair.core[c]] = dot(core.bits[c], chance, size)
            for d in range(c + 1, n_core):
                for a in range(size):
                    joint[c, pair.core[d]] += weight[number] * core.bits[c, a] * core.bits[d, a] * chance[a]
        for i in range(n_rest - 1, -1, -1):
            shrink(table[i, : left + 1], back, core.factor[i], base[i], size, share)
            total = 0.0
            for a in range(size):
                total += share[a]
            if len(forced) and forced[pair.rest[i]] == 1:
                total = 1.0
                for a in range(size):
                    share[a] = chance[a]
            item[number, pair.rest[i]] = total
            for c in range(n_core):
                joint[c, pair.rest[i]] += weight[number] * dot(core.bits[c], share, size)
