"""Lines are bounded, a byte order mark is no part of the text, and what is quoted in a message is cut short."""

import gzip
import io
import lzma
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from slatewise import data
from slatewise.core.errors import DataError, DataWarning
from slatewise.data.reading import Source

ARFF = b"@relation r\n@attribute a numeric\n@attribute p {0,1}\n@data\n"
PLAY = b"u\t2009-05-04T23:08:57Z\ta\tname\tt\ttrack\n"
READERS: dict[str, tuple[Callable[..., Any], bytes, bytes]] = {
    "svmlight": (data.read_svmlight, b"1 qid:1 1:2\n", b"0 qid:1 2:3 # %s\n"),
    "svmlight blocks": (lambda f, **o: list(_blocks(f, **o)), b"1 qid:1 1:2\n", b"0 qid:1 2:3 # %s\n"),
    "multi-label svmlight": (data.read_multilabel_svmlight, b"1,2 1:2\n", b"0 2:3 # %s\n"),
    "run": (data.read_run, b"q Q0 d1 1 2.5 tag\n", b"q Q0 d%s 1 2.5 tag\n"),
    "qrels": (data.read_qrels, b"q 0 d1 1\n", b"q 0 d%s 1\n"),
    "pairs": (data.read_pairs, b"a,b\n", b"a,b%s\n"),
    "sessions": (data.read_sessions, b"a,b\n", b"a,b%s\n"),
    "arff": (lambda f, **o: data.read_arff(f, labels=1, **o), ARFF + b"1,0\n", b"2,1 %% %s\n"),
    "tags": (lambda f, **o: data.read_tags(f, tags="t", separator="|", **o), b"t,a\nx,1\n", b"y%s,2\n"),
    "JSON lines": (data.read_tags, b'{"features":[1],"tags":["x"]}\n', b'{"features":[2],"tags":["y%s"]}\n'),
    "plays": (data.read_listening_log, PLAY, PLAY.replace(b"name", b"name%s")),
}
ON_EVERY = pytest.mark.parametrize("reader", READERS)


def _blocks(file: io.BytesIO, **options: Any) -> Iterator[data.RowsToRank]:
    return data.iter_svmlight(file, n_features=3, max_bytes=1, **options)


def said(found: Any) -> list[Any]:
    """What a reader found, as lists."""
    records = found if isinstance(found, list) else [found]
    return [
        {name: value.toarray().tolist() if hasattr(value, "toarray") else np.asarray(value).tolist()}
        for record in records
        for name, value in vars(record).items()
        if name != "skipped" and value is not None
    ]


@ON_EVERY
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_a_byte_order_mark_is_no_part_of_the_text(reader: str, pack: Callable[[bytes], bytes]) -> None:
    read, good, line = READERS[reader]
    text = good + line % b""
    assert said(read(io.BytesIO(pack(b"\xef\xbb\xbf" + text)))) == said(read(io.BytesIO(text)))
    assert said(read(io.BytesIO(pack(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))))) == said(read(io.BytesIO(text)))


@ON_EVERY
def test_the_longest_line_allowed_is_read_and_the_next_is_refused_with_its_number(reader: str) -> None:
    read, good, line = READERS[reader]
    longest = line % (b"x" * 100)
    limit = max(len(row) for row in (good + longest).split(b"\n"))
    before = good.count(b"\n")
    for end in (b"\n", b"\r\n", b""):
        content = good + longest[:-1] + end
        assert said(read(io.BytesIO(content), max_line=limit)) == said(read(io.BytesIO(content)))
    for on_error in ("raise", "skip"):
        file = io.BytesIO(good + longest)
        file.name = "long.txt"
        with pytest.raises(DataError) as caught:
            read(file, max_line=limit - 1, on_error=on_error)
        assert (caught.value.name, caught.value.line, caught.value.column) == ("long.txt", before + 1, 1)
        assert f"expected a line of at most {limit - 1} bytes" in str(caught.value)
    with pytest.raises(ValueError, match="max_line: expected a whole number >= 1, found 0"):
        read(io.BytesIO(good), max_line=0)


class _Endless:
    """A stream that never ends its line, and counts what was taken of it."""

    def __init__(self) -> None:
        self.taken = 0

    def read(self, size: int, /) -> bytes:
        self.taken += size
        return b"x" * size


def test_a_line_without_end_is_refused_when_the_bound_is_reached() -> None:
    endless = _Endless()
    with pytest.raises(DataError, match="endless:1:1: expected a line of at most 10000000 bytes"):
        list(Source(endless, "endless", 10_000_000).lines())
    assert endless.taken <= 10_000_000 + 2 * (1 << 22)
    assert Source(endless, "endless").max_line == 1 << 26


@pytest.mark.parametrize("reader", ["run", "svmlight", "pairs"])
def test_a_small_archive_of_a_huge_line_takes_the_memory_of_the_bound(reader: str) -> None:
    read, good, line = READERS[reader]
    packed = gzip.compress(good + line % (b" x" * (1 << 24)), 1)
    read(io.BytesIO(good), max_line=1 << 20)  # compiles what it needs, whose memory is not that of the line
    tracemalloc.start()
    with pytest.raises(DataError, match="expected a line of at most 1048576 bytes"):
        read(io.BytesIO(packed), max_line=1 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30 << 20  # a few chunks of 4 MiB; the line has 32 MiB


class _Part(bytes):
    """Counts the bytes that adding parts to each other copies."""

    copied = 0

    def __radd__(self, before: bytes) -> bytes:
        _Part.copied += len(before) + len(self)
        return bytes(before) + bytes(self)

    def __add__(self, after: bytes) -> bytes:
        _Part.copied += len(self) + len(after)
        return bytes(self) + bytes(after)


class _Parts(list[_Part]):
    def read(self, size: int, /) -> bytes:
        return self.pop(0) if self else b""


def test_the_parts_of_a_line_are_joined_once() -> None:
    """Time grows with the length of a line, not with its square: no part is copied again for each that follows."""
    _Part.copied = 0
    (found,) = Source(_Parts([_Part(b"x" * 100)] * 1000 + [_Part(b"\n")]), "parts").lines()
    assert found == (1, b"x" * 100_000)
    assert _Part.copied <= 2 * 100_000


def test_a_hostile_line_of_a_run_is_not_cut_into_all_its_words() -> None:
    content = b"q Q0 d 1 2.5 tag" + b" xy" * 1_000_000
    tracemalloc.start()
    with pytest.raises(DataError, match="6 fields: qid Q0 docno rank score tag, found more"):
        data.read_run(io.BytesIO(content))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * len(content)  # a million words would take sixty


def test_what_a_message_quotes_is_cut_short_and_escaped() -> None:
    with pytest.raises(DataError) as caught:
        data.read_run(io.BytesIO(b"q Q0 d " + b"9" * 100_000 + b" 1 t\n"))
    assert len(str(caught.value)) < 600
    assert str(caught.value).endswith("... (100002 characters)")
    file = io.BytesIO("q Q0 d\u202e 1 \u009b31m t\n".encode())
    file.name = "run\x1b]0;owned\x07.txt"
    with pytest.warns(DataWarning) as told:
        data.read_run(file, on_error="skip")
    assert str(told[0].message).isprintable()
    assert r"run\x1b]0;owned\x07.txt:1" in str(told[0].message)
