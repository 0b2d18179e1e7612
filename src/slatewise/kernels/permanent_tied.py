"""Sums over rankings whose positions fall into R classes: a walk over how many items each class has.

    f_0 = [k = 0],    f_{i+1}[k] = sum_r x_ir f_i[k - e_r]           items before i + 1 fill the classes to k
    g_n = [k = m],    g_i[k]     = sum_r x_ir g_{i+1}[k + e_r]
    Z = f_n[m],       P_ir = x_ir sum_k f_i[k] g_{i+1}[k + e_r] / Z

After i items the counts add up to i, so class 0 is not kept. The last class lies along a row of memory, in a window
that leaves out counts from which class 0 would overflow or be negative:

    i - m_0 - q <= b <= i - q,     b the last class's count, q that of the classes between

A zero on each side of the window stands for what it leaves out. With x scaled so that rows sum to 1 and columns to m_r,
f and g are probabilities and Z is not small. The walk up is kept where each stretch of items begins, and done again for
a stretch when the walk down gets there: all of it at once would be far from the processor.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slatewise.kernels._kernel import kernel, loose_sums

Float = NDArray[np.float64]
Int = NDArray[np.int64]


@kernel
def scale_classes(x: Float, sizes: Int, sweeps: int) -> float:
    """Divide rows and columns in turn, towards row sums 1 and column sums m_r; return the logarithm taken off."""
    n, n_classes = x.shape
    taken, sums = 0.0, np.empty(n_classes)
    for _ in range(sweeps):
        sums[:] = 0.0
        for i in range(n):
            total = 0.0
            for r in range(n_classes):
                total += x[i, r]
            taken += np.log(total)
            for r in range(n_classes):
                x[i, r] /= total
                sums[r] += x[i, r]
        for r in range(n_classes):
            factor = sizes[r] / sums[r]
            taken -= sizes[r] * np.log(factor)
            for i in range(n):
                x[i, r] *= factor
    return taken


@kernel
def window(i: int, q: int, sizes: Int) -> tuple[int, int]:
    """Return the lowest and highest count of the last class after i items, q of them in the classes between."""
    return max(0, i - sizes[0] - q), min(sizes[-1], i - q)


@kernel
def add_row(out: Float, weight: float, values: Float) -> None:
    """Add weight * values to out."""
    for b in range(len(out)):
        out[b] += weight * values[b]


@loose_sums
def meet(f: Float, g: Float) -> float:
    """Return the inner product."""
    total = 0.0
    for b in range(len(f)):
        total += f[b] * g[b]
    return total


@kernel
def mix(out: Float, x: float, first: Float, y: float, second: Float, z: float, third: Float) -> None:
    """Fill out with x * first + y * second + z * third."""
    for b in range(len(out)):
        out[b] = x * first[b] + y * second[b] + z * third[b]


@loose_sums
def mix_and_meet(
    out: Float, x: float, first: Float, y: float, second: Float, z: float, third: Float, f: Float
) -> tuple[float, float, float]:
    """Do as ``mix``, and return the inner products of the three with f."""
    with_first, with_second, with_third = 0.0, 0.0, 0.0
    for b in range(len(out)):
        out[b] = x * first[b] + y * second[b] + z * third[b]
        with_first += f[b] * first[b]
        with_second += f[b] * second[b]
        with_third += f[b] * third[b]
    return with_first, with_second, with_third


@kernel
def copy_layer(layer: Float, starts: Int, sizes: Int, out: Float) -> None:
    """Copy as much of a layer as is in use."""
    used = min(len(layer), starts.max() + sizes[-1] + 2)
    for k in range(used):
        out[k] = layer[k]


@kernel
def lay_out(i: int, sizes: Int, counts: Int, starts: Int) -> None:
    """Fill where each row's window begins in layer i, -1 where it has none: windows stand in line, between zeros."""
    place = 0
    for row in range(len(counts)):
        low, high = window(i, counts[row, -1], sizes)
        if high < -1 or low > sizes[-1] + 1:
            starts[row] = -1
        else:
            starts[row] = place + 1
            place += high - low + 3


@kernel
def step_up(
    i: int, x: Float, sizes: Int, counts: Int, strides: Int, here: Int, there: Int, now: Float, then: Float
) -> None:
    """Fill layer i + 1 from layer i; ``counts[row]`` are those of the classes between, and their sum.

    ``here`` and ``there`` are where the windows of the two layers begin.
    """
    for row in range(len(counts)):
        start = there[row]
        if start < 0:
            continue
        q = counts[row, -1]
        low, high = window(i + 1, q, sizes)
        size, same_start = high - low + 1, here[row] + (low > 0)  # a window that has left 0 moves up by one a layer
        if size > 0:
            out, same = then[start : start + size], now[same_start : same_start + size]
            less = now[same_start - 1 : same_start + size - 1]
            # Most often three classes: the first between goes with the others in one pass, with weight 0 at the edge.
            third, weight = same, 0.0
            if len(strides) and counts[row, 0] > 0:
                from_ = here[row - strides[0]]
                third, weight = now[from_ : from_ + size], x[1]
            mix(out, x[0], same, x[-1], less, weight, third)
            for r in range(1, len(strides)):
                if counts[row, r] > 0:
                    from_ = here[row - strides[r]]
                    add_row(out, x[r + 1], now[from_ : from_ + size])
        then[start - 1] = 0.0
        then[start + size] = 0.0


@kernel
def step_down(
    i: int,
    x: Float,
    sizes: Int,
    counts: Int,
    strides: Int,
    here: Int,
    there: Int,
    f: Float,
    then: Float,
    now: Float,
    sums: Float,
) -> None:
    """Fill layer i of g (``now``) from layer i + 1; ``sums[r]`` gets sum_k f_i[k] g_{i+1}[k + e_r]."""
    sums[:] = 0.0
    for row in range(len(counts)):
        start = here[row]
        if start < 0:
            continue
        q = counts[row, -1]
        low, high = window(i, q, sizes)
        size, same_start = high - low + 1, there[row] - (i + 1 - sizes[0] - q > 0)
        if size > 0:
            out, before, same = now[start : start + size], f[start : start + size], then[same_start : same_start + size]
            more, third, weight = then[same_start + 1 : same_start + size + 1], same, 0.0
            if len(strides) and counts[row, 0] < sizes[1]:
                to = there[row + strides[0]]
                third, weight = then[to : to + size], x[1]
            with_first, with_last, with_third = mix_and_meet(out, x[0], same, x[-1], more, weight, third, before)
            sums[0] += with_first
            sums[-1] += with_last
            if weight > 0.0:
                sums[1] += with_third
            for r in range(1, len(strides)):
                if counts[row, r] < sizes[r + 1]:
                    to = there[row + strides[r]]
                    add_row(out, x[r + 1], then[to : to + size])
                    sums[r + 1] += meet(before, then[to : to + size])
        now[start - 1] = 0.0
        now[start + size] = 0.0


@kernel
def sum_classes(
    x: Float, sizes: Int, counts: Int, strides: Int, kept: Float, layers: Float, room: Float, marginals: Float
) -> float:
    """Return Z, and fill ``marginals`` (n, R).

    ``kept`` is room for f where each stretch of items begins, ``layers`` for f in one stretch, ``room`` for two layers.
    """
    n, stretch = len(x), len(layers)
    starts, sums = np.empty((2, len(counts)), np.int64), np.empty(len(sizes))
    lay_out(0, sizes, counts, starts[0])
    room[0] = 0.0
    room[0, starts[0, 0]] = 1.0
    for i in range(n):
        if i % stretch == 0:
            copy_layer(room[i % 2], starts[i % 2], sizes, kept[i // stretch])
        lay_out(i + 1, sizes, counts, starts[(i + 1) % 2])
        step_up(i, x[i], sizes, counts, strides, starts[i % 2], starts[(i + 1) % 2], room[i % 2], room[(i + 1) % 2])
    end = starts[n % 2, -1]
    z = room[n % 2, end]
    room[n % 2, : end + 2] = 0.0
    room[n % 2, end] = 1.0
    for i in range(n - 1, -1, -1):
        if i % stretch == stretch - 1 or i == n - 1:  # walk the stretch that ends here again
            first = i - i % stretch
            lay_out(first, sizes, counts, starts[first % 2])
            copy_layer(kept[first // stretch], starts[first % 2], sizes, layers[0])
            for k in range(first, i):
                lay_out(k + 1, sizes, counts, starts[(k + 1) % 2])
                up = k - first
                step_up(k, x[k], sizes, counts, strides, starts[k % 2], starts[(k + 1) % 2], layers[up], layers[up + 1])
            lay_out(i + 1, sizes, counts, starts[(i + 1) % 2])
        lay_out(i, sizes, counts, starts[i % 2])
        step_down(
            i,
            x[i],
            sizes,
            counts,
            strides,
            starts[i % 2],
            starts[(i + 1) % 2],
            layers[i % stretch],
            room[(i + 1) % 2],
            room[i % 2],
            sums,
        )
        for r in range(len(sizes)):
            marginals[i, r] = x[i, r] * sums[r] / z
    return z
