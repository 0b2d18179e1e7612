"""Decimal text becomes the float that Python's ``float`` makes of it, bit for bit."""

from __future__ import annotations

import io
import random
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import isfinite, isinf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slatewise.data.kernels.decimal import GOOD, HARD, MALFORMED, OVERFLOW, decimal, powers_of_five
from slatewise.data.svmlight import read_svmlight

_GRAMMAR = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def parse(text: str) -> tuple[float, int, int]:
    """Read with the kernel alone."""
    return decimal(np.frombuffer(text.encode() + b"\n", dtype=np.uint8), 0, powers_of_five())


def check(texts: Iterable[str]) -> None:
    """Compare the whole reader with ``float``, on one row whose values are these numbers."""
    kept = [text for text in texts if isfinite(float(text))]
    row = " ".join(f"{index}:{text}" for index, text in enumerate(kept, start=1))
    found = read_svmlight(io.BytesIO(f"1 qid:1 {row}".encode())).X.data
    expected = np.array([float(text) for text in kept])
    wrong = np.flatnonzero(found.view(np.int64) != expected.view(np.int64))
    assert not len(wrong), [(kept[i], found[i], expected[i]) for i in wrong[:5]]


def _floats(rng: random.Random, n: int) -> Iterator[float]:
    """Yield floats whose 64 bits are random."""
    while n:
        (value,) = struct.unpack("=d", rng.randbytes(8))
        if isfinite(value):
            n -= 1
            yield value


def _exact_text(value: Fraction) -> str:
    """Return the full decimal expansion of a number whose denominator is a power of two."""
    power = value.denominator.bit_length() - 1
    return f"{value.numerator * 5**power}e-{power}"


def _halfway(value: float) -> Fraction:
    return (Fraction(value) + Fraction(np.nextafter(value, np.inf).item())) / 2


@pytest.mark.parametrize(
    "write", [repr, *(f"{{:.{digits}g}}".format for digits in (3, 9, 15, 16, 17, 18, 19, 20, 25, 40)), "{:.8e}".format]
)
def test_random_floats_in_every_notation(write: Callable[[float], str]) -> None:
    check(write(value) for value in _floats(random.Random(1), 12_000))


def test_random_digit_strings() -> None:
    rng = random.Random(2)

    def digits(most: int) -> str:
        return "".join(rng.choices("0123456789", k=rng.randint(1, most)))

    check(f"{rng.choice(['', '-', '+'])}{digits(12)}.{digits(12)}" for _ in range(30_000))
    check(f"{digits(25)}.{digits(25)}e{rng.randint(-350, 310)}" for _ in range(30_000))
    check(f"{rng.getrandbits(rng.randint(1, 64))}e{rng.randint(-30, 40)}" for _ in range(30_000))


def test_decimal_places_as_data_files_write_them() -> None:
    rng = random.Random(3)
    check(f"{rng.random():.{places}f}" for places in range(1, 22) for _ in range(2_000))


def test_halfway_between_two_floats_and_just_beside() -> None:
    rng = random.Random(4)
    texts: list[str] = []
    for value in _floats(rng, 1500):
        if abs(value) < 1e308:
            middle = _halfway(value)
            step = abs(middle) / 10**30
            texts += [_exact_text(middle), f"{float(value)!r}", *(_exact_text_of(middle + s) for s in (step, -step))]
    check(texts)
    # Ties that 19 digits hold exactly: the case a 128-bit product has to notice.
    check(str((1 << 53) + 2 * rng.getrandbits(51) + 1) for _ in range(20_000))
    check(f"{rng.getrandbits(52) * 2 + 1}.5" for _ in range(20_000))
    check(f"{(rng.getrandbits(52) | 1 << 52)}.{half}" for half in ("5", "25", "75", "125") for _ in range(5_000))


def _exact_text_of(value: Fraction) -> str:
    """Return 60 significant digits of any number, truncated."""
    scale = 400
    return f"{int(value * 10**scale)}e-{scale}"


def test_subnormals_and_the_edges_of_the_range() -> None:
    rng = random.Random(5)
    tiny = [struct.unpack("=d", struct.pack("=q", rng.getrandbits(rng.randint(1, 53))))[0] for _ in range(20_000)]
    check(map(repr, tiny))
    check(f"{value:.30e}" for value in tiny)
    check(_exact_text(_halfway(value)) for value in tiny[:2000])
    edges = ["4.9e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "2.2250738585072011e-308", "1e-400"]
    check([*edges, "1.7976931348623157e308", "1.7976931348623158e308", "179769313486231570000e289", "0e999999999"])


@pytest.mark.parametrize(
    "text", ["1e309", "1.7976931348623159e308", "1e99999999999999999999", "2" + "0" * 400, "17e400"]
)
def test_overflow(text: str) -> None:
    assert isinf(float(text))
    assert parse(text)[2] == OVERFLOW
    assert parse("-" + text)[2] == OVERFLOW


def test_many_zeros_and_long_exponents_cancel() -> None:
    check(["0." + "0" * 500 + "1e501", "1" + "0" * 500 + "e-500", "0" * 400 + "1.5", "0.1e-99999999999999999999"])
    check(["123456789012345678900000000000", "0.10000000000000000000000000000000000000", "-0", "-0.0e5", "+.5", "5."])


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 25))
def test_any_float_in_any_precision(value: float, digits: int) -> None:
    check([repr(value), f"{value:.{digits}e}"])


@settings(max_examples=500, deadline=None)
@given(st.text("0123456789+-.eE", max_size=12))
def test_the_grammar(text: str) -> None:
    value, end, status = parse(text)
    if _GRAMMAR.fullmatch(text) and status != HARD:
        assert end == len(text)
        assert status == (OVERFLOW if isinf(float(text)) else GOOD)
        assert struct.pack("d", value) == struct.pack("d", float(text))
    elif status == GOOD:
        assert _GRAMMAR.fullmatch(text[:end]), "what was read is a number, though the text goes on"
    else:
        assert status in (MALFORMED, HARD, OVERFLOW)
