"""The best list of a c-star model by walking all 2^C core settings.

    best over a of  const(a) + top_r(v + sum_c a_c G_c),    top_r(x) <= r theta + sum_i max(x_i - theta, 0), any theta

The walk starts at a good setting and flips one core item per step, in Gray-code order: a row of G is added or taken
away.
The right-hand side, a few instructions for eight items, comes with that addition and skips nearly every selection:
theta is the last threshold met for the same r.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Bytes
from slatewise.core.running.kernel import kernel, kernel_fastmath
from slatewise.cstar.kernels.instance import (
    Floats,
    Instance,
    Ints,
    Pair,
    choose,
    copy,
    drop_hopeless,
    new_instance,
    nth_largest,
    reduce_list,
    top_sum,
    write_list,
)


@kernel_fastmath
def flip_row(values: Floats, row: Floats, size: int, sign: float, theta: float) -> float:
    """Add sign * row to the values; return sum_i max(values_i - theta, 0)."""
    total = 0.0
    for i in range(size):
        value = values[i] + sign * row[i]
        values[i] = value
        above = value - theta
        total += above if above > 0.0 else 0.0
    return total


@kernel
def first_setting(work: Instance, n_core: int, n_rest: int, r: int, setting: Bytes, buffer: Floats) -> None:
    """Guess a good setting: core items that beat the r-th best score, given the r best items by score alone."""
    h, v, outer, inner = work.h, work.v, work.outer, work.inner
    size = n_core + n_rest
    for c in range(n_core):
        setting[c] = 0
    if r <= 0 or size == 0:
        return
    copy(h, n_core, buffer)
    copy(v, n_rest, buffer[n_core:])
    threshold = nth_largest(buffer, size, min(r, size))
    for c in range(n_core):
        buffer[c] = h[c]
        for d in range(n_core):
            if h[d] >= threshold:
                buffer[c] += inner[c, d]
    for i in range(n_rest):
        if v[i] >= threshold:
            for c in range(n_core):
                buffer[c] += outer[c, i]
    for c in range(n_core):
        setting[c] = buffer[c] >= threshold


@kernel
def start(work: Instance, n_core: int, n_rest: int, setting: Bytes, values: Floats) -> tuple[float, int]:
    """Fill the values that the other items have under a core setting; return its own score and its count."""
    h, outer, inner = work.h, work.outer, work.inner
    copy(work.v, n_rest, values)
    const, count = 0.0, 0
    for c in range(n_core):
        if setting[c]:
            count += 1
            const += h[c]
            for d in range(c):
                if setting[d]:
                    const += inner[c, d]
            row = outer[c]
            for i in range(n_rest):
                values[i] += row[i]
    return const, count


@kernel
def walk(
    work: Instance, n_core: int, n_rest: int, r: int, setting: Bytes, best_setting: Bytes, theta: Floats, buffer: Floats
) -> float:
    """Start at ``setting``; return the best list's threshold, ``best_setting`` gets its core items."""
    h, outer, inner = work.h, work.outer, work.inner
    values, top = buffer[:n_rest], buffer[n_rest:]
    const, count = start(work, n_core, n_rest, setting, values)
    for need in range(r + 1):
        theta[need] = np.nan
    best, threshold = -np.inf, np.nan
    for step in range(1 << n_core):
        limit = np.inf
        if step:
            c = 0
            while (step >> c) & 1 == 0:
                c += 1
            sign = 1 - 2 * setting[c]
            setting[c] = 1 - setting[c]
            gain = h[c]
            for d in range(n_core):
                gain += inner[c, d] * setting[d]  # the diagonal is 0
            const += sign * gain
            count += sign
            need = r - count
            guess = float(theta[need]) if need > 0 else 0.0
            limit = const + need * guess + flip_row(values, outer[c], n_rest, sign, guess)
        need = r - count
        if need < 0 or need > n_rest or limit <= best:  # false while the guess is NaN
            continue
        score, last = const, np.nan
        if need > 0:
            total, last = top_sum(values, n_rest, need, theta[need], top)
            score += total
            if np.isnan(theta[need]):  # a first guess for the others too
                for other in range(1, r + 1):
                    if np.isnan(theta[other]):
                        theta[other] = last
            theta[need] = last
        if score > best:
            best, threshold = score, last
            for c in range(n_core):
                best_setting[c] = setting[c]
    return threshold


@kernel
def best_lists(s: Floats, known: Bytes, warm: Ints, pair: Pair, k: Ints, selected: Ints, score: Floats) -> None:
    """Fill ``selected`` (ascending items, -1 after the last) and ``score`` for each list."""
    n_core, n_rest = pair.outer.shape
    work, taken = new_instance(pair), np.zeros(n_core + n_rest, np.int8)
    setting, best = np.zeros(n_core, np.int8), np.zeros(n_core, np.int8)
    buffer, theta = np.empty(2 * (n_core + n_rest)), np.empty(n_core + n_rest + 1)
    nothing = np.empty(0, np.int8)
    for number in range(len(s)):
        forced = known[number] if len(known) else nothing
        free_core, free_rest, n_in, _ = reduce_list(s[number], forced, pair, work)
        r = k[number] - n_in
        if free_rest > 16 * (r + free_core):  # dropping costs a selection, and pays where few of many are taken
            free_rest = drop_hopeless(work, free_core, free_rest, r, buffer)
        if len(warm):
            for c in range(free_core):
                setting[c] = 0
                for item in warm[number]:
                    setting[c] |= item == pair.core[work.core[c]]
        else:
            first_setting(work, free_core, free_rest, r, setting, buffer)
        for c in range(free_core):  # a list of the right length at any rate: NaN is never the larger
            best[c] = c < r - free_rest
        threshold = walk(work, free_core, free_rest, r, setting, best, theta, buffer)
        # The walk's values carry the rounding of its additions: guess a little lower.
        guess = threshold - 1e-9 * (1.0 + abs(threshold))
        choose(work, free_core, free_rest, r, best, guess, forced, pair, taken, buffer)
        score[number] = write_list(s[number], pair, taken, selected[number])
