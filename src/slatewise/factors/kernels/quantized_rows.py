"""A copy of the items' rows in bytes, which tells drawn items that cannot violate from those worth a look.

    z_df ~ 2^e_d c_df,    c whole numbers from -127 to 127,    |z_df - 2^e_d c_df| <= 2^e_d / 2
    x . z_d <= 2^e_d (x . c_d + |x|_1 / 2)

Such a row of 50 numbers takes one cache line instead of four. It only ever gives an upper bound: an item above the bar
is scored by its true row, so no violator is missed and none is made up.
"""

from __future__ import annotations

from math import frexp

import numpy as np

from slatewise.core.arrays import Bytes, Singles
from slatewise.core.running.kernel import kernel, kernel_fastmath
from slatewise.recommend.kernels.singles import Number

_POWERS = (2.0 ** np.arange(-128, 128)).astype(np.float32)


@kernel
def quantize_row(table: Singles, row: int, n: int, quantized: Bytes) -> None:
    """Write the first n numbers of a row in bytes; the last byte is the exponent."""
    largest = np.float32(1e-36)  # a row of zeros needs an exponent, too
    for f in range(n):
        largest = max(largest, abs(table[row, f]))
    share, exponent = frexp(largest)
    exponent = max(exponent - (6 if share > 127 / 128 else 7), -126)
    inverse = np.float32(1.0) / _POWERS[exponent + 128]
    for f in range(n):
        quantized[row, f] = np.int8(np.floor(table[row, f] * inverse + np.float32(0.5)))
    quantized[row, quantized.shape[1] - 1] = exponent


@kernel
def quantize_rows(table: Singles, n: int, quantized: Bytes) -> None:
    """Write all rows; ``quantized`` comes in as zeros and is wider than n."""
    for row in range(len(table)):
        quantize_row(table, row, n, quantized)


@kernel_fastmath
def largest_score(quantized: Bytes, row: int, vector: Singles, slack: Number) -> Number:
    """Return what a row's score is at most; the vector is 0 from column n on, and slack its sum of sizes, halved."""
    total = np.float32(slack)
    for f in range(len(vector)):
        total += np.float32(quantized[row, f]) * vector[f]
    return total * _POWERS[int(quantized[row, len(vector) - 1]) + 128]


@kernel_fastmath
def half_size(vector: Singles) -> Number:
    """Return half the sum of absolute values."""
    total = np.float32(0.0)
    for f in range(len(vector)):
        total += abs(vector[f])
    return np.float32(0.5) * total
