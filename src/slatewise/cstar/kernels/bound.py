"""An upper bound for c-star models with many core items: groups of five core items, each with its own copy of the rest.

Put the core items into groups m with settings a_m. With a threshold theta for the cardinality, and the value of every
other item (and of every core item outside a group) split over the groups, sum_m z_mi = v_i - theta,

    max f <= k theta + sum_m  max over a_m of  [ own_m(a_m) + sum_i max(z_mi + G_m(a_m)_i, 0) ]

because max(x + y, 0) <= max(x, 0) + max(y, 0). Any split gives a bound; a subgradient method looks for the smallest.
The bracket for one a_m, in place of the maximum, bounds all lists with that setting: settings whose bound is below a
known list's score leave the *domain* of their group for good. One core item per group is the usual linear
relaxation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.core.running.kernel import kernel, kernel_fastmath
from slatewise.cstar.kernels.instance import Floats, Instance, Ints

SIZE = 5
WIDTH = 1 << SIZE
# A moving average of subgradients halves the zigzag; the floor keeps the step finite where the average nearly cancels.
_MEMORY = 0.5
_FLOOR = 0.5


class Groups(NamedTuple):
    """What every setting of every group adds, columns: the other items, then the core items."""

    rows: Floats
    """(groups, 32, columns): pair terms with a column; -inf for a group's own core items, which have no copy there."""
    inner: Floats
    """(groups, 32): pair terms inside the group."""
    n_inside: Ints
    """(32,): core items in a setting."""


class Split(NamedTuple):
    """How a node divides the values, and what that gave. Groups that are not free have no meaning here."""

    share: Floats
    """(groups, columns): z, and for a group's own core items their value in the group."""
    theta: Floats
    """(1,)."""
    domain: Ints
    """(groups, 32): the settings that are still possible."""
    n_domain: Ints
    free: Ints
    """The groups that are not fixed."""


class Scratch(NamedTuple):
    """Work space of one bound."""

    value: Floats
    """(groups, 32): the bracket of each setting."""
    largest: Floats
    pick: Ints
    own: Floats
    mean: Floats
    slope: Floats
    best_share: Floats


@kernel
def new_scratch(n_groups: int, n_columns: int) -> Scratch:
    """Allocate the work space."""
    return Scratch(
        np.empty((n_groups, WIDTH)),
        np.empty(n_groups),
        np.zeros(n_groups, np.int64),
        np.zeros(WIDTH),
        np.empty(n_columns),
        np.empty((n_groups, n_columns)),
        np.empty((n_groups, n_columns)),
    )


@kernel
def new_groups(work: Instance, n_core: int, n_rest: int) -> Groups:
    """Add up the rows of every setting; a pair of core items in two groups counts half in each."""
    n_groups = (n_core + SIZE - 1) // SIZE
    rows = np.empty((n_groups, WIDTH, n_rest + n_core))
    inner, count = np.zeros((n_groups, WIDTH)), np.zeros(WIDTH, np.int64)
    for setting in range(1, WIDTH):
        count[setting] = count[setting & (setting - 1)] + 1
    for m in range(n_groups):
        first, last = m * SIZE, min(m * SIZE + SIZE, n_core)
        for i in range(n_rest + n_core):
            rows[m, 0, i] = -np.inf if n_rest + first <= i < n_rest + last else 0.0
        for b in range(last - first):
            core = first + b
            for less in range(1 << b):
                setting = less | (1 << b)
                gain = inner[m, less]
                for d in range(b):
                    if (less >> d) & 1:
                        gain += work.inner[core, first + d]
                inner[m, setting] = gain
                old, new, outer, pairs = rows[m, less], rows[m, setting], work.outer[core], work.inner[core]
                for i in range(n_rest):
                    new[i] = old[i] + outer[i]
                for d in range(n_core):
                    new[n_rest + d] = old[n_rest + d] + 0.5 * pairs[d]
    return Groups(rows, inner, count)


@kernel_fastmath
def positive_sum(left: Floats, right: Floats) -> float:
    """Return sum_i max(left_i + right_i, 0)."""
    total = 0.0
    for i in range(len(left)):
        value = left[i] + right[i]
        total += value if value > 0.0 else 0.0
    return total


@kernel_fastmath
def average(counts: Floats, factor: float) -> tuple[float, float]:
    """Multiply by ``factor``; return the sum p_i and the sum p_i (1 - p_i)."""
    total, spread = 0.0, 0.0
    for i in range(len(counts)):
        counts[i] *= factor
        total += counts[i]
        spread += counts[i] * (1.0 - counts[i])
    return total, spread


@kernel
def count_positive(left: Floats, right: Floats, counts: Floats) -> None:
    """Add 1 to the count of every column whose sum is positive."""
    for i in range(len(left)):
        counts[i] += 1.0 if left[i] + right[i] > 0.0 else 0.0


@kernel
def turn(left: Floats, right: Floats, mean: Floats, slope: Floats) -> None:
    """Turn the moving average of subgradients towards (positive or not) - mean."""
    for i in range(len(left)):
        new = (1.0 if left[i] + right[i] > 0.0 else 0.0) - mean[i]
        slope[i] = _MEMORY * slope[i] + (1.0 - _MEMORY) * new


@kernel_fastmath
def squares(values: Floats) -> float:
    """Return the sum of squares."""
    total = 0.0
    for i in range(len(values)):
        total += values[i] * values[i]
    return total


@kernel
def move(share: Floats, slope: Floats, step: float, shift: float) -> None:
    """Step against the slope, and shift."""
    for i in range(len(share)):
        share[i] -= step * slope[i] - shift


@kernel
def bound(groups: Groups, n_core: int, split: Split, n_free: int, left: int, scratch: Scratch) -> float:
    """Return the bound of a split for ``left`` items to choose; ``scratch`` gets the brackets of all settings."""
    total = left * split.theta[0]
    value, own = scratch.value, scratch.own
    n_rest = groups.rows.shape[2] - n_core
    for f in range(n_free):
        m = split.free[f]
        share, rows, inner = split.share[m], groups.rows[m], groups.inner[m]
        first = m * SIZE
        own[0] = 0.0
        for b in range(min(SIZE, n_core - first)):
            gain = share[n_rest + first + b]
            for less in range(1 << b):
                own[less + (1 << b)] = own[less] + gain
        largest = -np.inf
        for a in range(split.n_domain[m]):
            setting = split.domain[m, a]
            bracket = own[setting] + inner[setting] + positive_sum(share, rows[setting])
            value[m, setting] = bracket
            if bracket > largest:
                largest = bracket
                scratch.pick[m] = setting
        scratch.largest[m] = largest
        total += largest
    return total


@kernel
def shrink(split: Split, n_free: int, slack: float, scratch: Scratch) -> None:
    """Drop the settings whose bracket is ``slack`` or more below the largest of their group."""
    for f in range(n_free):
        m = split.free[f]
        kept = 0
        for a in range(split.n_domain[m]):
            setting = split.domain[m, a]
            if scratch.value[m, setting] > scratch.largest[m] - slack:
                split.domain[m, kept] = setting
                kept += 1
        split.n_domain[m] = kept


@kernel
def improve_split(
    groups: Groups, n_core: int, split: Split, n_free: int, left: int, slope: float, gap: float, scratch: Scratch
) -> float:
    """Take one step of length ~ gap against the subgradient at the last bound; return theta's moving slope."""
    n_rest = groups.rows.shape[2] - n_core
    mean, pick = scratch.mean, scratch.pick
    for i in range(len(mean)):
        mean[i] = 0.0
    for f in range(n_free):
        m = split.free[f]
        count_positive(split.share[m], groups.rows[m, pick[m]], mean)
        for b in range(min(SIZE, n_core - m * SIZE)):
            mean[n_rest + m * SIZE + b] += (pick[m] >> b) & 1
    total, spread = average(mean, 1.0 / n_free)
    raw = left - total
    slope = _MEMORY * slope + (1.0 - _MEMORY) * raw
    norm = slope * slope / n_free
    for f in range(n_free):
        m = split.free[f]
        turn(split.share[m], groups.rows[m, pick[m]], mean, scratch.slope[m])
        for b in range(min(SIZE, n_core - m * SIZE)):
            scratch.slope[m, n_rest + m * SIZE + b] += (1.0 - _MEMORY) * ((pick[m] >> b) & 1)
        norm += squares(scratch.slope[m])
    norm = max(norm, _FLOOR * (raw * raw / n_free + n_free * spread))
    if norm > 0.0:
        step = gap / norm
        change = step * slope / n_free
        split.theta[0] -= change
        for f in range(n_free):
            move(split.share[split.free[f]], scratch.slope[split.free[f]], step, change / n_free)
    return slope
