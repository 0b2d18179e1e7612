"""Make a mutated file, give it to the reader and to the reference, and say what went wrong."""

from __future__ import annotations

import faulthandler
import gzip
import io
import lzma
import random
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from slatewise.core.errors import DataError
from tests.fuzz import Format, Rejected, collect

LIMIT_SECONDS = 10
_NAME = "mutated.txt"
_TOKENS = (
    *(b"nan", b"inf", b"-Infinity", b"1e400", b"-1e400", b"1e-400", b"99999999999999999999", b"9223372036854775808"),
    *(
        b"0x1p3",
        b"1_0",
        b"1e",
        b"1e+",
        b".",
        b"-",
        b"+",
        b"",
        b"0",
        b"-0.0",
        b"1.",
        b".5",
        b"+1",
        b"007",
        b"2147483648",
    ),
    *(b"1e99999999999999999999", b"0.1e-99999999999999999999", b"9007199254740993", b"2.2250738585072011e-308"),
    *(b"0.500000000000000166533453693773481063544750213623046875", b"179769313486231580793728971405301e276"),
    *(
        b":",
        b"::",
        b"#",
        b",",
        b";",
        b'"',
        b"'",
        b" ",
        b"\t",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\x00",
        b"\x0b",
        b"\x1c",
    ),
    *("é".encode(), "名".encode(), "😀".encode(), b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xef\xbb\xbf"),
)

Mutation = Callable[[random.Random, bytes, Format], bytes]


@dataclass(frozen=True)
class Outcome:
    """How a case ended: ``failure`` is None where reader and reference agree."""

    accepted: bool
    failure: str | None


def _cut(rng: random.Random, data: bytes) -> tuple[int, int]:
    start = rng.randint(0, len(data))
    return start, min(len(data), start + rng.choice((1, 1, 2, 4, 16)))


def _flip(rng: random.Random, data: bytes, form: Format) -> bytes:
    at = rng.randrange(len(data)) if data else 0
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :] if data else data


def _insert(rng: random.Random, data: bytes, form: Format) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + bytes([rng.randrange(256)]) + data[at:]


def _delete(rng: random.Random, data: bytes, form: Format) -> bytes:
    start, stop = _cut(rng, data)
    return data[:start] + data[stop:]


def _duplicate(rng: random.Random, data: bytes, form: Format) -> bytes:
    start, stop = _cut(rng, data)
    return data[:stop] + data[start:]


def _mark(rng: random.Random, data: bytes, form: Format) -> bytes:
    return b"\xef\xbb\xbf" + data


def _truncate(rng: random.Random, data: bytes, form: Format) -> bytes:
    return data[: rng.randint(0, len(data))]


def _move_line(rng: random.Random, data: bytes, form: Format) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        line = rng.choice(lines) if rng.random() < 0.5 else lines.pop(rng.randrange(len(lines)))
        lines.insert(rng.randint(0, len(lines)), line)
    return b"".join(lines)


def _splice_token(rng: random.Random, data: bytes, form: Format) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice(_TOKENS + form.tokens) + data[at:]


def _replace_token(rng: random.Random, data: bytes, form: Format) -> bytes:
    start = stop = rng.randint(0, len(data))
    separators = b" \t\r\n:,;#"
    while start > 0 and data[start - 1] not in separators:
        start -= 1
    while stop < len(data) and data[stop] not in separators:
        stop += 1
    return data[:start] + rng.choice(_TOKENS + form.tokens) + data[stop:]


def _replace_number(rng: random.Random, data: bytes, form: Format) -> bytes:
    start = stop = rng.randint(0, len(data))
    while start > 0 and data[start - 1] in b"0123456789.":
        start -= 1
    while stop < len(data) and data[stop] in b"0123456789.":
        stop += 1
    texts = (repr(rng.random()), str(rng.randrange(100)), f"{rng.uniform(-1e3, 1e3):.25g}", f"{rng.getrandbits(70)}")
    return data[:start] + rng.choice(texts).encode() + data[stop:] if start < stop else data


def _join(rng: random.Random, data: bytes, form: Format) -> bytes:
    other = rng.choice(form.seeds)
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


_MUTATIONS: tuple[Mutation, ...] = (
    *(_flip, _insert, _delete, _duplicate, _truncate, _mark, _move_line, _move_line),
    *(_splice_token, _splice_token, _replace_token, _replace_number, _replace_number, _join),
)


def mutated(rng: random.Random, form: Format) -> bytes:
    """Return a seed changed in a few places; for some cases packed, and of those half damaged."""
    data = rng.choice(form.seeds)
    if form.mutate is not None:
        return form.mutate(rng, data)
    for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 2, 3, 5))):
        data = rng.choice(_MUTATIONS)(rng, data, form)
    if not form.containers or rng.random() >= 0.06:
        return data
    packed = gzip.compress(data, 1, mtime=0) if rng.random() < 0.5 else lzma.compress(data, preset=0)
    return rng.choice((_flip, _truncate, _delete))(rng, packed, form) if rng.random() < 0.5 else packed


def unpacked(data: bytes) -> bytes | None:
    """Return the plain bytes of a file, by the standard library in one go; None if the archive is damaged."""
    try:
        if data.startswith(b"\x1f\x8b"):
            return gzip.decompress(data)
        return lzma.decompress(data) if data.startswith(b"\xfd7zXZ\x00") else data
    except (EOFError, OSError, zlib.error, lzma.LZMAError):
        return None


def judge(form: Format, data: bytes) -> Outcome:
    """Compare the reader with the reference on one file."""
    plain = unpacked(data) if form.containers else data
    expected: object = None
    line, must_reject = 0, plain is None
    try:
        expected = form.reference(plain) if plain is not None else None
    except Rejected as rejected:
        line, must_reject = rejected.line, True
    file = io.BytesIO(data)
    file.name = _NAME
    start = time.perf_counter()
    try:
        found = form.read(file)
    except DataError as error:
        return Outcome(False, _fault_of_rejection(error, form, must_reject, line))
    except Exception as error:  # any other exception is what the harness is looking for
        return Outcome(False, f"raised {error!r}, expected a result or a DataError")
    if time.perf_counter() - start > LIMIT_SECONDS:
        return Outcome(True, f"took more than {LIMIT_SECONDS} s")
    if must_reject:
        where = f"line {line} to be refused" if line else "the file to be refused"
        return Outcome(True, f"accepted, expected {where}; read {found!r}")
    return Outcome(True, None if found == expected else f"read {found!r}, expected {expected!r}")


def _fault_of_rejection(error: DataError, form: Format, must_reject: bool, line: int) -> str | None:
    if not must_reject:
        return f"refused ({error}), expected to be accepted"
    if not form.is_text:
        right = error.name.partition("[")[0] == _NAME and not error.line and not error.column
        return None if right else f"refused ({error}), expected a member of {_NAME} and no line"
    if error.name != _NAME or error.line < 1 or error.column < 1:
        return f"refused ({error}), expected a place {_NAME}:line:column, both from 1"
    return f"refused ({error}), expected line {line}" if line and error.line != line else None


def case(form: Format, seed: int, index: int) -> bytes:
    """Return the file of one case; it depends on nothing else, so a case can be run alone."""
    return mutated(random.Random(f"{seed}/{form.name}/{index}"), form)


def describe(form: Format, seed: int, index: int, failure: str) -> str:
    """Say what failed and how to see it again."""
    command = f"python -m tests.fuzz --format {form.name} --seed {seed} --first {index} --files 1"
    return f"{form.name}: {failure}\n  file: {case(form, seed, index)!r}\n  again: {command}"


def batch(name: str, seed: int, first: int, count: int) -> tuple[int, list[str]]:
    """Return (cases accepted, descriptions of failures); a case that hangs ends the process with a traceback."""
    form = next(form for form in collect() if form.name == name)
    judge(form, form.seeds[0])  # whatever is compiled on first use does not count against a case
    accepted = 0
    failures: list[str] = []
    for index in range(first, first + count):
        faulthandler.dump_traceback_later(LIMIT_SECONDS, exit=True)
        outcome = judge(form, case(form, seed, index))
        accepted += outcome.accepted
        if outcome.failure:
            failures.append(describe(form, seed, index, outcome.failure))
    faulthandler.cancel_dump_traceback_later()
    return accepted, failures
