"""Sums over rows of float32 numbers, written so that the compiler uses full vectors."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from slatewise.core.arrays import Singles
from slatewise.core.running.kernel import kernel_fastmath

Number: TypeAlias = float | np.floating[Any]


@kernel_fastmath
def dot(left: Singles, right: Singles) -> Number:
    """Return the inner product of two rows."""
    total = np.float32(0.0)
    for f in range(len(left)):
        total += left[f] * right[f]
    return total


@kernel_fastmath
def square(values: Singles) -> Number:
    """Return the sum of squares."""
    total = np.float32(0.0)
    for f in range(len(values)):
        total += values[f] * values[f]
    return total


@kernel_fastmath
def count_above(values: Singles, bar: Number) -> int:
    """Return how many values are above the bar, of at most 2^24."""
    # Ones are added as float32, in which they are exact so far: integers would be wider than the values.
    total, one, none = np.float32(0.0), np.float32(1.0), np.float32(0.0)
    for f in range(len(values)):
        total += one if values[f] > bar else none
    return int(total)


@kernel_fastmath
def excess_above(values: Singles, bar: Number) -> Number:
    """Return the sum of max(value - bar, 0)."""
    total, none = np.float32(0.0), np.float32(0.0)
    for f in range(len(values)):
        over = values[f] - bar
        total += over if over > none else none
    return total
