"""All 2N max-marginals of a c-star model in one walk over the core settings.

Inside a setting let T be the sum of the r largest values x, and x_(r), x_(r+1) the last in and the first out. Then

    best with item i in  = T - max(x_(r) - x_i, 0)      (it takes the place of the last)
    best with item i out = T - max(x_i - x_(r+1), 0)    (the first out takes its place)

and a core item is in or out as the setting says. The maximum over all settings is the max-marginal.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Bytes
from slatewise.core.running.kernel import kernel
from slatewise.cstar.kernels.enumerate import flip_row, start
from slatewise.cstar.kernels.instance import Floats, Instance, Ints, Pair, copy, new_instance, nth_largest, reduce_list


@kernel
def raise_to(target: Floats, size: int, level: float, values: Floats, theta: float, sign: float) -> None:
    """Raise target_i to level - max(sign (values_i - theta), 0)."""
    for i in range(size):
        loss = sign * (values[i] - theta)
        value = level - (loss if loss > 0.0 else 0.0)
        target[i] = value if value > target[i] else target[i]


@kernel
def split_sum(values: Floats, size: int, r: int, theta: float, top: Floats) -> tuple[float, float, float]:
    """Return the sum of the r largest values, the r-th and the one after it (0 < r < size)."""
    count = 0
    for i in range(size):
        top[count] = values[i]
        count += values[i] >= theta  # at most size, reached after the last one only
    if count <= r:
        count = size
        copy(values, size, top)
    after = nth_largest(top, count, r + 1)
    total, last = 0.0, np.inf
    for i in range(r):
        total += top[i]
        last = min(last, top[i])
    return total, last, after


@kernel
def walk_all(
    work: Instance, n_core: int, n_rest: int, r: int, theta: Floats, buffer: Floats, inside: Floats, outside: Floats
) -> float:
    """Fill both for the reduced list, core items first; return the best score."""
    h, outer, inner = work.h, work.outer, work.inner
    values, top = buffer[:n_rest], buffer[n_rest:]
    setting = np.zeros(n_core, np.int8)
    for i in range(n_core + n_rest):
        inside[i], outside[i] = -np.inf, -np.inf
    rest_inside, rest_outside = inside[n_core:], outside[n_core:]
    const, count = start(work, n_core, n_rest, setting, values)
    for need in range(r + 1):
        theta[need] = np.nan
    best = -np.inf
    for step in range(1 << n_core):
        if step:
            c = 0
            while (step >> c) & 1 == 0:
                c += 1
            sign = 1 - 2 * setting[c]
            setting[c] = 1 - setting[c]
            gain = h[c]
            for d in range(n_core):
                gain += inner[c, d] * setting[d]
            const += sign * gain
            count += sign
            flip_row(values, outer[c], n_rest, sign, 0.0)
        need, score = r - count, const
        if need < 0 or need > n_rest:
            continue
        if need == 0:
            for i in range(n_rest):
                rest_outside[i] = max(rest_outside[i], score)
        elif need == n_rest:
            for i in range(n_rest):
                score += values[i]
            for i in range(n_rest):
                rest_inside[i] = max(rest_inside[i], score)
        else:
            total, last, after = split_sum(values, n_rest, need, theta[need], top)
            theta[need] = after
            score += total
            raise_to(rest_inside, n_rest, score, values, last, -1.0)
            raise_to(rest_outside, n_rest, score, values, after, 1.0)
        best = max(best, score)
        for c in range(n_core):
            side = inside if setting[c] else outside
            side[c] = max(side[c], score)
    return best


@kernel
def max_marginals(s: Floats, known: Bytes, pair: Pair, k: Ints, inside: Floats, outside: Floats) -> None:
    """Fill the best score of each list with each item in, and with it out; -inf where there is no such list."""
    n_core, n_rest = pair.outer.shape
    n_items = n_core + n_rest
    work, buffer, theta = new_instance(pair), np.empty(2 * n_items), np.empty(n_items + 1)
    with_it, without = np.empty(n_items), np.empty(n_items)
    nothing = np.empty(0, np.int8)
    for number in range(len(s)):
        forced = known[number] if len(known) else nothing
        free_core, free_rest, n_in, const = reduce_list(s[number], forced, pair, work)
        best = walk_all(work, free_core, free_rest, k[number] - n_in, theta, buffer, with_it, without)
        for item in range(len(forced)):
            inside[number, item] = const + best if forced[item] == 1 else -np.inf
            outside[number, item] = const + best if forced[item] == 0 else -np.inf
        for c in range(free_core):
            item = pair.core[work.core[c]]
            inside[number, item], outside[number, item] = const + with_it[c], const + without[c]
        for i in range(free_rest):
            item = pair.rest[work.rest[i]]
            inside[number, item] = const + with_it[free_core + i]
            outside[number, item] = const + without[free_core + i]
