"""Decimal text to the nearest float64, ties to even: the same bits as Python's ``float``.

A number ``[+-]?(digits[.digits?]|.digits)([eE][+-]?digits)?`` is read as  w * 10^q,  w its first 19 significant digits.

- w <= 2^53 and no exponent: w and the power of ten below it are floats without error, so one division rounds once
  (Clinger, "How to read floating point numbers accurately", 1990).
- otherwise  w * 5^q  is taken from a 128-bit product with a table of powers of five, which settles the rounding of
  every w below 2^64 (Eisel and Lemire, "Number parsing at a gigabyte per second", 2021, section 5; Mushtak and
  Lemire, "Fast number parsing without fallback", 2023).
- more than 19 digits: the float of w and that of w + 1 bracket the value. Where they differ the status is ``HARD``
  and the caller asks Python.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Words
from slatewise.core.running.kernel import kernel

Bytes: TypeAlias = NDArray[np.uint8]

GOOD, MALFORMED, OVERFLOW, HARD = 0, 1, 2, 3

_SMALLEST, _LARGEST = -342, 308  # below, every 19-digit w gives 0; above, every w >= 1 gives infinity
_ONE, _TEN, _LOW_HALF, _EXACT = np.uint64(1), np.uint64(10), np.uint64(0xFFFFFFFF), np.uint64(1 << 53)
_EXACT_POWERS = 10.0 ** np.arange(20)
_PLUS, _MINUS, _POINT, _ZERO = 43, 45, 46, np.uint64(48)


@cache
def powers_of_five() -> Words:
    """Return the 128 leading bits of 5^q, one row (high, low) for q = -342..308."""
    rows: list[tuple[int, int]] = []
    for q in range(_SMALLEST, _LARGEST + 1):
        power = 5 ** abs(q)
        if q >= 0:
            bits = (power << 128) >> power.bit_length()
        else:
            bits = (1 << (127 + power.bit_length())) // power
            # Down to 5^-27 a product w * 5^q can end exactly on a tie; rounding the table up keeps it on its side.
            bits += q >= -27
        rows.append((bits >> 64, bits & 0xFFFFFFFFFFFFFFFF))
    return np.array(rows, dtype=np.uint64)


@kernel
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """64 x 64 -> 128 bits (high, low), by 32-bit halves."""
    shift = np.uint64(32)
    a_high, a_low, b_high, b_low = a >> shift, a & _LOW_HALF, b >> shift, b & _LOW_HALF
    low = a_low * b_low
    middle = a_high * b_low + (low >> shift)
    other = a_low * b_high + (middle & _LOW_HALF)
    return a_high * b_high + (middle >> shift) + (other >> shift), (other << shift) | (low & _LOW_HALF)


@kernel
def _leading_zeros(w: np.uint64) -> int:
    count = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == 0:
            count += step
            w = w << np.uint64(step)
    return count


@kernel
def is_digit(text: Bytes, at: int) -> bool:
    """Say whether one of 0 to 9 stands here."""
    return bool(48 <= text[at] <= 57)


@kernel
def nearest(w: np.uint64, q: int, powers: Words) -> float:
    """Return the float nearest to w * 10^q for 0 < w < 2^64; infinity above the largest float."""
    if q < _SMALLEST:
        return 0.0
    if q > _LARGEST:
        return math.inf
    zeros = _leading_zeros(w)
    w = w << np.uint64(zeros)
    row = q - _SMALLEST
    high, low = _product(w, powers[row, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):  # a carry from the table's lower half could change the rounding
        more, _ = _product(w, powers[row, 1])
        low = low + more
        if low < more:
            high = high + _ONE
    top = int(high >> np.uint64(63))
    shift = np.uint64(top + 9)
    mantissa = high >> shift  # 54 bits: 53 of the float and one to round by
    # 217706 / 2^16 approximates log2(10) closely enough that the floor is right for all q of the table.
    exponent = ((217706 * q) >> 16) + 63 + top - zeros + 1023
    if exponent <= 0:  # subnormal: fewer bits survive; no tie can occur this far down
        if exponent <= -63:
            return 0.0
        mantissa = mantissa >> np.uint64(1 - exponent)
        return math.ldexp(float((mantissa + (mantissa & _ONE)) >> _ONE), -1074)
    is_tie = low <= _ONE and -4 <= q <= 23 and mantissa & np.uint64(3) == _ONE and mantissa << shift == high
    if is_tie:  # the even neighbour is the lower one
        mantissa = mantissa - _ONE
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    if exponent > 2046 or (exponent == 2046 and mantissa >> np.uint64(53) != 0):
        return math.inf
    return math.ldexp(float(mantissa), int(exponent) - 1075)


@kernel
def _general(text: Bytes, start: int, powers: Words) -> tuple[float, int, int]:
    """Read any number: many digits, an exponent, or malformed."""
    at = start + (text[start] == _MINUS or text[start] == _PLUS)
    w, n_kept, q = np.uint64(0), 0, 0
    rest = False  # a digit other than 0 beyond the first 19 significant ones
    n_digits = 0
    past_point = False
    while is_digit(text, at) or (text[at] == _POINT and not past_point):
        if text[at] == _POINT:
            past_point = True
        else:
            digit = np.uint64(text[at]) - _ZERO
            n_digits += 1
            if n_kept < 19:
                w = w * _TEN + digit
                n_kept += w != 0
                q -= past_point
            else:
                rest = rest or digit != 0
                q += not past_point
        at += 1
    if n_digits == 0:
        return 0.0, at, MALFORMED
    if text[at] == 101 or text[at] == 69:  # e or E
        at += 1
        sign = -1 if text[at] == _MINUS else 1
        at += text[at] == _MINUS or text[at] == _PLUS
        if not is_digit(text, at):
            return 0.0, at, MALFORMED
        power = 0
        while is_digit(text, at):
            power = min(power * 10 + (int(text[at]) - 48), 10**15)  # more changes nothing, and must not overflow
            at += 1
        q += sign * power
    value = nearest(w, q, powers) if w != 0 else 0.0
    if rest and nearest(w + _ONE, q, powers) != value:
        return 0.0, at, HARD
    return -value if text[start] == _MINUS else value, at, OVERFLOW if value == math.inf else GOOD


@kernel
def decimal(text: Bytes, start: int, powers: Words) -> tuple[float, int, int]:
    """Read one number at ``start``; return (value, position after it, status).

    The text ends with a byte that belongs to no number, such as a newline.
    """
    at = start + (text[start] == _MINUS or text[start] == _PLUS)
    first = at
    w, n_decimals = np.uint64(0), 0
    while is_digit(text, at):
        w = w * _TEN + (np.uint64(text[at]) - _ZERO)
        at += 1
    n_digits = at - first
    if text[at] == _POINT:
        point = at
        at += 1
        while is_digit(text, at):
            w = w * _TEN + (np.uint64(text[at]) - _ZERO)
            at += 1
        n_decimals = at - point - 1
        n_digits += n_decimals
    # Nearly all numbers of a file stop here: few digits, no exponent.
    if 0 < n_digits <= 19 and text[at] != 101 and text[at] != 69:
        value = float(w) / _EXACT_POWERS[n_decimals] if w <= _EXACT else nearest(w, -n_decimals, powers)
        return -value if text[start] == _MINUS else value, at, GOOD
    return _general(text, start, powers)
