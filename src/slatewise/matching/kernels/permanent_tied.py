"""Sums over rankings whose positions fall into R classes: a walk over how many items each class has.

    f_0 = [k = 0],    f_{i+1}[k] = sum_r x_ir f_i[k - e_r]           items before i + 1 fill the classes to k
    g_n = [k = m],    g_i[k]     = sum_r x_ir g_{i+1}[k + e_r]
    Z = f_n[m],       P_ir = x_ir sum_k f_i[k] g_{i+1}[k + e_r] / Z

Of every class counts from ``lows[r, i]`` to ``highs[r, i]`` are walked after i items; each item adds 0 or 1 to both.
After i items the counts add up to i, so class 0 is not kept. The last class lies along a row of memory, in a window:

    max(low_last, i - high_0 - q) <= b <= min(high_last, i - low_0 - q),     q the items of the classes between

A zero on each side of a window, and a row of zeros on each side of the rows, stand for what is left out: from layer to
layer no bound moves further. The walk up is kept where each stretch of items begins, and done again for a stretch when
the walk down gets there: all of it at once would be far from the processor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.kernel import kernel, kernel_fastmath


class Grid(NamedTuple):
    """The counts that are walked."""

    counts: Ints
    """(rows, R - 1) of the classes between, and their sum, one row of a layer each."""
    strides: Ints
    """(R - 2,) how many rows one more item of a class between moves."""
    lows: Ints
    """(R, n + 1) of each class after each item."""
    highs: Ints


class Buffers(NamedTuple):
    """Where layers of f and g are kept."""

    kept: Floats
    """f where each stretch of items begins."""
    layers: Floats
    """f in one stretch."""
    two: Floats
    """The layer that is walked from and the one that is walked to."""


@kernel
def scale_classes(x: Floats, sizes: Ints, sweeps: int) -> float:
    """Divide rows and columns in turn, towards row sums 1 and column sums m_r; return the logarithm taken off."""
    n, n_classes = x.shape
    taken, sums = 0.0, np.empty(n_classes)
    for sweep in range(sweeps):
        if sweep:
            for r in range(n_classes):
                factor = sizes[r] / sums[r]
                taken -= sizes[r] * np.log(factor)
                for i in range(n):
                    x[i, r] *= factor
        sums[:] = 0.0
        for i in range(n):
            total = 0.0
            for r in range(n_classes):
                total += x[i, r]
            taken += np.log(total)
            for r in range(n_classes):
                x[i, r] /= total
                sums[r] += x[i, r]
    return taken


@kernel
def rows_at(i: int, grid: Grid) -> tuple[int, int]:
    """Return the rows among which those of layer i are: from the first to before the last."""
    if len(grid.strides) == 0:
        return 0, 1
    stride = grid.strides[0]
    return max(0, grid.lows[1, i] - 1) * stride, min(len(grid.counts), (grid.highs[1, i] + 2) * stride)


@kernel
def lay_out(i: int, grid: Grid, places: Ints) -> int:
    """Put the windows of layer i in line; return how many numbers they take.

    ``places[row]`` gets where its count 0 would lie, its lowest count, the number of counts (-1: no window at all),
    and whether any is walked.
    """
    used, lows, highs = 0, grid.lows, grid.highs
    first, last = rows_at(i, grid)
    for row in range(first, last):
        count, walked, there = grid.counts[row], 1, True
        for r in range(len(grid.strides)):
            if count[r] < lows[r + 1, i] or count[r] > highs[r + 1, i]:
                walked = 0
                there = there and lows[r + 1, i] - 1 <= count[r] <= highs[r + 1, i] + 1
        low, high = max(lows[-1, i], i - highs[0, i] - count[-1]), min(highs[-1, i], i - lows[0, i] - count[-1])
        place, size = places[row], max(0, high - low + 1)
        if there and high >= low - 2:  # another layer's window may be one wider to each side
            place[0], place[1], place[2], place[3] = used + 1 - low, low, size, walked and size > 0
            used += size + 2
        else:
            place[2] = -1
    return used


@kernel
def longest_layer(grid: Grid) -> int:
    """Return how many numbers the largest layer takes."""
    places, most = np.empty((len(grid.counts), 4), np.int64), 0
    for i in range(grid.lows.shape[1]):
        most = max(most, lay_out(i, grid, places))
    return most


@kernel
def add_row(out: Floats, weight: float, values: Floats) -> None:
    """Add weight * values to out."""
    for b in range(len(out)):
        out[b] += weight * values[b]


@kernel_fastmath
def meet(f: Floats, g: Floats) -> float:
    """Return the inner product."""
    total = 0.0
    for b in range(len(f)):
        total += f[b] * g[b]
    return total


@kernel
def mix(out: Floats, x: float, first: Floats, y: float, second: Floats, z: float, third: Floats) -> None:
    """Fill out with x * first + y * second + z * third."""
    for b in range(len(out)):
        out[b] = x * first[b] + y * second[b] + z * third[b]


@kernel_fastmath
def mix_and_meet(
    out: Floats, x: float, first: Floats, y: float, second: Floats, z: float, third: Floats, f: Floats
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
def step_up(x: Floats, grid: Grid, rows: tuple[int, int], here: Ints, there: Ints, now: Floats, then: Floats) -> None:
    """Fill layer i + 1 (``then``, laid out as ``there`` in ``rows``) from layer i."""
    counts, strides = grid.counts, grid.strides
    for row in range(rows[0], rows[1]):
        base, low, size = there[row, 0], there[row, 1], there[row, 2]
        if size < 0:
            continue
        start = base + low
        out = then[start : start + size]
        if there[row, 3]:
            at = here[row, 0] + low
            same, less = now[at : at + size], now[at - 1 : at + size - 1]
            # Most often three classes: the first between goes with the others in one pass, with weight 0 at the edge.
            third, weight = same, 0.0
            if len(strides) and counts[row, 0] > 0:
                at = here[row - strides[0], 0] + low
                third, weight = now[at : at + size], x[1]
            mix(out, x[0], same, x[-1], less, weight, third)
            for r in range(1, len(strides)):
                if counts[row, r] > 0:
                    at = here[row - strides[r], 0] + low
                    add_row(out, x[r + 1], now[at : at + size])
        else:
            out[:] = 0.0
        then[start - 1] = 0.0
        then[start + size] = 0.0


@kernel
def step_down(
    x: Floats,
    grid: Grid,
    rows: tuple[int, int],
    here: Ints,
    there: Ints,
    f: Floats,
    then: Floats,
    now: Floats,
    sums: Floats,
) -> None:
    """Fill layer i of g (``now``) from layer i + 1; ``sums[r]`` gets sum_k f_i[k] g_{i+1}[k + e_r]."""
    counts, strides = grid.counts, grid.strides
    sums[:] = 0.0
    for row in range(rows[0], rows[1]):
        base, low, size = here[row, 0], here[row, 1], here[row, 2]
        if size < 0:
            continue
        start = base + low
        out = now[start : start + size]
        if here[row, 3]:
            at = there[row, 0] + low
            before, same, more = f[start : start + size], then[at : at + size], then[at + 1 : at + size + 1]
            third, weight = same, 0.0
            if len(strides) and row + strides[0] < len(counts):
                at = there[row + strides[0], 0] + low
                third, weight = then[at : at + size], x[1]
            with_first, with_last, with_third = mix_and_meet(out, x[0], same, x[-1], more, weight, third, before)
            sums[0] += with_first
            sums[-1] += with_last
            if weight > 0.0:
                sums[1] += with_third
            for r in range(1, len(strides)):
                if counts[row, r] < counts[-1, r]:
                    at = there[row + strides[r], 0] + low
                    add_row(out, x[r + 1], then[at : at + size])
                    sums[r + 1] += meet(before, then[at : at + size])
        else:
            out[:] = 0.0
        now[start - 1] = 0.0
        now[start + size] = 0.0


@kernel
def sum_classes(x: Floats, grid: Grid, buffers: Buffers, marginals: Floats) -> float:
    """Return Z, and fill ``marginals`` (n, R)."""
    kept, layers, two = buffers.kept, buffers.layers, buffers.two
    n, stretch = len(x), len(layers)
    places, sums = np.empty((2, len(grid.counts), 4), np.int64), np.empty(x.shape[1])
    used = lay_out(0, grid, places[0])
    two[0, :used] = 0.0
    two[0, places[0, 0, 0]] = 1.0
    for i in range(n):
        if i % stretch == 0:
            kept[i // stretch, :used] = two[i % 2, :used]
        here, there = places[i % 2], places[(i + 1) % 2]
        used = lay_out(i + 1, grid, there)
        rows = rows_at(i + 1, grid)
        step_up(x[i], grid, rows, here, there, two[i % 2], two[(i + 1) % 2])
    end = places[n % 2, -1, 0] + grid.highs[-1, n]
    z = float(two[n % 2, end])
    two[n % 2, :used] = 0.0
    two[n % 2, end] = 1.0
    for i in range(n - 1, -1, -1):
        here, there = places[i % 2], places[(i + 1) % 2]
        if i % stretch == stretch - 1 or i == n - 1:  # walk the stretch that ends here again
            first = i - i % stretch
            used = lay_out(first, grid, places[first % 2])
            layers[0, :used] = kept[first // stretch, :used]
            for k in range(first, i):
                this, other = places[k % 2], places[(k + 1) % 2]
                lay_out(k + 1, grid, other)
                rows = rows_at(k + 1, grid)
                step_up(x[k], grid, rows, this, other, layers[k - first], layers[k + 1 - first])
            lay_out(i + 1, grid, there)
        lay_out(i, grid, here)
        f, then, now = layers[i % stretch], two[(i + 1) % 2], two[i % 2]
        rows = rows_at(i, grid)
        step_down(x[i], grid, rows, here, there, f, then, now, sums)
        for r in range(len(sums)):
            marginals[i, r] = x[i, r] * sums[r] / z
    return z
