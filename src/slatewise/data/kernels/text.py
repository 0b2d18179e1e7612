"""Scanning bytes of text that ends with a newline, so that no scan needs a bound of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints
from slatewise.core.running.kernel import kernel
from slatewise.data.kernels.decimal import Bytes, is_digit

_ALMOST_FULL, _FULL = np.uint64(10**18), np.uint64((1 << 64) - 1)


@kernel
def count_byte(text: Bytes, byte: int) -> int:
    """Count one byte value."""
    count = 0
    for i in range(len(text)):
        count += text[i] == byte
    return count


@kernel
def skip_blanks(text: Bytes, at: int) -> int:
    """Return the first position that is neither a space nor a tab."""
    while text[at] == 32 or text[at] == 9:
        at += 1
    return at


@kernel
def at_line_end(text: Bytes, at: int) -> bool:
    """Say whether a line feed, or a carriage return before one, stands here."""
    return text[at] == 10 or (text[at] == 13 and text[at + 1] == 10)


@kernel
def at_token_end(text: Bytes, at: int) -> bool:
    """Say whether a token ends here: a blank, the line end or a comment."""
    return text[at] == 32 or text[at] == 9 or text[at] == 35 or at_line_end(text, at)


@kernel
def next_line(text: Bytes, at: int) -> int:
    """Return the start of the next line."""
    while text[at] != 10:
        at += 1
    return at + 1


@kernel
def whole(text: Bytes, at: int) -> tuple[np.uint64, int]:
    """Read digits; return (number, position after them). Numbers of 20 digits and more become 2^64 - 1."""
    value = np.uint64(0)
    while is_digit(text, at):
        value = value * np.uint64(10) + (np.uint64(text[at]) - np.uint64(48)) if value < _ALMOST_FULL else _FULL
        at += 1
    return value, at


@kernel
def invalid_utf8(text: Bytes, at: int, end: int) -> int:
    """Return where the first byte sequence that is not UTF-8 starts, or -1."""
    while at < end:
        lead = text[at]
        if lead < 0x80:
            at += 1
            continue
        # The second byte's range shuts out overlong forms, surrogates and what lies beyond U+10FFFF.
        low, high = 0x80, 0xBF
        if 0xC2 <= lead <= 0xDF:
            more = 1
        elif 0xE0 <= lead <= 0xEF:
            more = 2
            low = 0xA0 if lead == 0xE0 else low
            high = 0x9F if lead == 0xED else high
        elif 0xF0 <= lead <= 0xF4:
            more = 3
            low = 0x90 if lead == 0xF0 else low
            high = 0x8F if lead == 0xF4 else high
        else:
            return at
        if at + more >= end or text[at + 1] < low or text[at + 1] > high:
            return at
        for i in range(at + 2, at + more + 1):
            if text[i] < 0x80 or text[i] > 0xBF:
                return at
        at += more + 1
    return -1


@kernel
def gather_bytes(text: Bytes, starts: Ints, ends: Ints, out: NDArray[np.uint8]) -> None:
    """Copy the byte strings ``text[starts[i]:ends[i]]`` into the rows of ``out``."""
    for i in range(len(starts)):
        for j in range(ends[i] - starts[i]):
            out[i, j] = text[starts[i] + j]
