"""The SVMlight reader: every rule of the format, block reading, writing; scikit-learn's reader where both agree."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file

from slatewise.core.errors import DataError, DataWarning
from slatewise.data import svmlight_text
from slatewise.data.records import RowsToRank
from slatewise.data.svmlight import iter_svmlight, read_svmlight, write_svmlight
from tests.data import reference_svmlight as reference
from tests.fuzz.format_svmlight import comparable

_LETOR = b"2 qid:1 1:0.5 3:0 #docid = A-1 inc = 1\n0 qid:1 2:1e-3 #docid = B\n1 qid:2 1:3\n"


def read(data: bytes, **options: object) -> RowsToRank:
    file = io.BytesIO(data)
    file.name = "rows.txt"
    return read_svmlight(file, **options)


def test_reads_features_labels_queries_and_ids() -> None:
    rows = read(_LETOR)
    np.testing.assert_array_equal(rows.dense(), [[0.5, 0, 0], [0, 1e-3, 0], [3, 0, 0]])
    assert rows.X.nnz == 4, "a zero spelled out stays stored"
    assert rows.y.tolist() == [2, 0, 1]
    assert rows.qid.tolist() == [1, 1, 2]
    assert rows.doc_ids is not None
    assert rows.doc_ids.tolist() == ["A-1", "B", ""]
    assert rows.X.indices.dtype == np.int32
    assert rows.qid.dtype == np.int64


@pytest.mark.parametrize(
    ("data", "line", "column", "expected"),
    [
        (b"1 1:2", 1, 3, "query id"),
        (b"1", 1, 2, "query id"),
        (b"1 qid:1 1:2\n1 1:2", 2, 3, "query id"),
        (b"x qid:1 1:2", 1, 1, "label"),
        (b"nan qid:1 1:2", 1, 1, "label"),
        (b"1e999 qid:1 1:2", 1, 1, "float64"),
        (b"1x qid:1 1:2", 1, 1, "label"),
        (b"1 qid: 1:2", 1, 3, "query id"),
        (b"1 qid:a 1:2", 1, 3, "query id"),
        (b"1 qid:-1 1:2", 1, 3, "query id"),
        (b"1 qid:1.0 1:2", 1, 3, "query id"),
        (b"1 qid:9223372036854775808 1:2", 1, 3, "below 2^63"),
        (b"1 qid:99999999999999999999999 1:2", 1, 3, "below 2^63"),
        (b"1 qid:1 1:nan", 1, 11, "value"),
        (b"1 qid:1 1:inf", 1, 11, "value"),
        (b"1 qid:1 1:-Infinity", 1, 11, "value"),
        (b"1 qid:1 1:0x10", 1, 11, "value"),
        (b"1 qid:1 1:1_0", 1, 11, "value"),
        (b"1 qid:1 1:", 1, 11, "value"),
        (b"1 qid:1 1: 2:3", 1, 11, "value"),
        (b"1 qid:1 1:.", 1, 11, "value"),
        (b"1 qid:1 1:1e", 1, 11, "value"),
        (b"1 qid:1 1:1e+", 1, 11, "value"),
        (b"1 qid:1 1:0.5x", 1, 11, "value"),
        (b"1 qid:1 1:0.5:2", 1, 11, "value"),
        (b"1 qid:1 1:0.5\x00", 1, 11, "value"),
        (b"1 qid:1 1:1e999", 1, 11, "float64"),
        (b"1 qid:1 1:-1e309", 1, 11, "float64"),
        (b"1 qid:1 1:2 qid:1", 1, 13, "index:value"),
        (b"1 qid:1 x:2", 1, 9, "index:value"),
        (b"1 qid:1 1", 1, 9, "index:value"),
        (b"1 qid:1 -1:2", 1, 9, "index:value"),
        (b"1 qid:1 0:2", 1, 9, "from 1 to 2147483647"),
        (b"1 qid:1 2147483648:2", 1, 9, "from 1 to 2147483647"),
        (b"1 qid:1 99999999999999999999999:2", 1, 9, "from 1 to 2147483647"),
        (b"1 qid:1 2:2 2:3", 1, 13, "above the one before"),
        (b"1 qid:1 2:2 1:3", 1, 13, "above the one before"),
        (b"1 qid:1 1:2\n1 qid:2 1:2\n\n#c\n0\tqid:1 1:2", 5, 3, "side by side"),
        (b"1 qid:1 1:2 # a\x00b", 1, 16, "NUL"),
        (b"1 qid:1 1:2 # a\xc3(", 1, 16, "UTF-8"),
        (b"# \xff\n1 qid:1 1:2", 1, 3, "UTF-8"),
        (b"1 qid:1 1:2 #" + b"x" * 256, 1, 14, "at most 255 bytes"),
        (b"1 qid:1 1:2 \r 2:3", 1, 13, "index:value"),
        (2 * b"\xef\xbb\xbf" + b"1 qid:1 1:2", 1, 1, "label"),
        (b"1 qid:1 1:2\n" * 3 + b"1 qid:1 1:0.5.5\n", 4, 11, "value"),
    ],
)
def test_refuses_with_the_place_and_what_was_expected(data: bytes, line: int, column: int, expected: str) -> None:
    with pytest.raises(DataError) as caught:
        read(data)
    assert str(caught.value).startswith(f"rows.txt:{line}:{column}: expected ")
    assert expected in caught.value.expected


def test_hard_numbers_at_the_edge_of_the_range() -> None:
    largest = 2**1024 - 2**970  # halfway between the largest float and 2^1024: rounds to infinity
    assert read(b"1 qid:1 1:%d" % (largest - 1)).X.data[0] == sys.float_info.max
    with pytest.raises(DataError, match=r"rows\.txt:1:11: expected a value within the range of float64"):
        read(b"1 qid:1 1:%d.000" % largest)
    with pytest.warns(DataWarning):
        rows = read(b"1 qid:1 1:%d 2:%d\n0 qid:1 1:%d" % (largest, largest - 1, largest - 1), on_error="skip")
    assert rows.y.tolist() == [0]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_line_ends_blank_lines_and_a_missing_last_newline(end: bytes) -> None:
    lines = [b"# header", b"", b" \t ", b"1 qid:1 1:2", b"", b"\t0  qid:1\t2:3 "]
    for tail in (b"", end):
        rows = read(end.join(lines) + tail)
        np.testing.assert_array_equal(rows.dense(), [[2, 0], [0, 3]])
        assert rows.doc_ids is None


def test_an_empty_file_has_no_rows() -> None:
    for data in (b"", b"\n", b"# nothing\n"):
        rows = read(data)
        assert rows.X.shape == (0, 0)
        assert len(rows.y) == len(rows.qid) == 0
    assert read(b"", n_features=7).X.shape == (0, 7)


@pytest.mark.parametrize(
    ("comment", "doc_id"),
    [
        (b"#docid = GX-1 inc = 1", "GX-1"),
        (b"#docid=GX-1", "GX-1"),
        (b"#\tdocid\t=\tGX-1\t", "GX-1"),
        (b"# docid =", "docid ="),
        (b"# docids = 3", "docids = 3"),
        (b"#  free # text ", "free # text"),
        (b"#", ""),
        ("# é 名 😀".encode(), "é 名 😀"),
    ],
)
def test_document_ids_come_from_comments(comment: bytes, doc_id: str) -> None:
    rows = read(b"1 qid:1 1:2 " + comment + b"\n0 qid:1 1:2 #other\n1 qid:1\n")
    assert rows.doc_ids is not None
    assert rows.doc_ids.tolist() == [doc_id, "other", ""]


def test_long_comments_can_be_left_aside() -> None:
    data = b"1 qid:1 1:2 #" + b"x" * 10_000
    assert read(data, doc_ids=False).doc_ids is None


def test_number_of_features() -> None:
    assert read(b"1 qid:1 3:2", n_features=5).X.shape == (1, 5)
    with pytest.raises(DataError, match=r"rows\.txt:1:9: expected a feature index from 1 to 2, found '3:2'"):
        read(b"1 qid:1 3:2", n_features=2)
    for data, options in ((b"1 qid:1 1:2", {}), (b"1 qid:1 0:2", {"zero_based": True})):
        with pytest.raises(DataError, match="feature index"):
            read(data, n_features=0, **options)
    with pytest.raises(ValueError, match="n_features: expected a whole number from 0"):
        read(b"", n_features=-1)


def test_zero_based_indices() -> None:
    rows = read(b"1 qid:1 0:2 2:3", zero_based=True)
    np.testing.assert_array_equal(rows.dense(), [[2, 0, 3]])


def test_a_file_without_query_ids_is_one_list() -> None:
    rows = read(b"1 1:2\n0 2:3\n", require_qid=False)
    assert rows.qid.tolist() == [0, 0]
    assert read(b"1 qid:4 1:2\n", require_qid=False).qid.tolist() == [4]
    with pytest.raises(DataError, match=r"rows\.txt:2:3: expected no query id"):
        read(b"1 1:2\n0 qid:1 2:3\n", require_qid=False)
    with pytest.raises(DataError, match=r"rows\.txt:2:3: expected a query id"):
        read(b"1 qid:1 1:2\n0 2:3\n", require_qid=False)


def test_skipping_counts_and_reports() -> None:
    data = b"1 qid:1 1:2\nx\n0 qid:2 1:nan\n1 qid:2 1:1\n5 qid:1 1:7\n0 qid:2 1:3\n"
    with pytest.warns(DataWarning, match=r"left out 3 rows; the first: rows.txt:2:1: expected a label"):
        rows = read(data, on_error="skip")
    assert rows.y.tolist() == [1, 1, 0], "rows that come back are left out, and what follows them stays"
    assert rows.skipped.count == 3
    assert [error.line for error in rows.skipped.first] == [2, 3, 5]


def test_archives() -> None:
    for packed in (gzip.compress(_LETOR), lzma.compress(_LETOR)):
        assert comparable(read(packed)) == comparable(read(_LETOR))
        for on_error in ("raise", "skip"):
            with pytest.raises(DataError, match="expected a complete archive"):
                read(packed[:-9], on_error=on_error)


def test_an_archive_of_several_streams_is_read_to_its_end() -> None:
    rows = _LETOR.splitlines(keepends=True)
    for pack, padding in ((gzip.compress, b""), (lzma.compress, b"\0" * 8)):
        packed = pack(b"".join(rows[:2])) + padding + pack(b"".join(rows[2:])) + padding
        assert comparable(read(packed)) == comparable(read(_LETOR))
    for junk in (b"junk", lzma.compress(b"1 qid:99 1:1\n").replace(b"7zXZ", b"8zXZ")):
        with pytest.raises(DataError, match="expected a complete archive"):
            read(lzma.compress(_LETOR) + junk)


def test_a_pipe_and_a_text_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(lzma.compress(_LETOR),))
    writer.start()
    assert comparable(read_svmlight(pipe)) == comparable(read(_LETOR))
    writer.join()
    with pytest.raises(TypeError, match="binary mode"):
        read_svmlight(io.StringIO("1 qid:1 1:1"))


def test_arguments_are_checked_at_the_door() -> None:
    with pytest.raises(ValueError, match="scale: expected None or 'minmax', found 'max'"):
        read(b"", scale="max")
    with pytest.raises(ValueError, match="on_error: expected"):
        read(b"", on_error="ignore")
    with pytest.raises(ValueError, match="max_bytes: expected"):
        next(iter_svmlight(io.BytesIO(b""), n_features=1, max_bytes=0))


def _many_rows(n_queries: int) -> bytes:
    rng = np.random.default_rng(0)
    lines = [
        f"{rng.integers(3)} qid:{query} "
        + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(rng.normal(size=rng.integers(6)).tolist()))
        + f" #docid = {query}-{row}\n"
        for query in range(n_queries)
        for row in range(rng.integers(1, 9))
    ]
    return "".join(lines).encode()


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_pieces_of_any_size_give_the_same_rows(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = _many_rows(30)
    expected = comparable(read(data))
    assert expected == reference.comparable(reference.read(data))
    monkeypatch.setattr("slatewise.data.svmlight.CHUNK_BYTES", size)
    for threads in ("1", "3"):
        monkeypatch.setenv("SLATEWISE_THREADS", threads)
        monkeypatch.setattr(svmlight_text, "_THREADS_PAY_FROM", 0)
        assert comparable(read(data)) == expected
        with pytest.raises(DataError, match=f"rows.txt:{data.count(bytes([10])) + 1}:3: expected a query id"):
            read(data + b"1 1:1\n" + data)


@pytest.mark.parametrize("max_bytes", [1, 100, 1000, 1 << 20])
def test_blocks_hold_whole_queries_within_their_size(max_bytes: int) -> None:
    data = _many_rows(30)
    whole = read(data, n_features=6)
    blocks = list(iter_svmlight(io.BytesIO(data), n_features=6, max_bytes=max_bytes))
    queries = [np.unique(block.qid) for block in blocks]
    np.testing.assert_array_equal(np.concatenate(queries), np.arange(30))
    np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), whole.y)
    np.testing.assert_array_equal(np.vstack([block.dense() for block in blocks]), whole.dense())
    text_of_query = [len(line) for line in data.splitlines(keepends=True)]
    starts = np.concatenate(([0], np.cumsum([len(block.y) for block in blocks])))
    for start, stop, query in zip(starts[:-1], starts[1:], queries, strict=True):
        # A block ends with the piece that fills it, so it has at most two pieces' text, or it is a single query.
        assert len(query) == 1 or sum(text_of_query[start:stop]) <= 2 * max_bytes + max(text_of_query) * 10


def test_block_reading_reports_what_it_left_out() -> None:
    file = io.BytesIO(b"1 qid:1 1:1\nx\n1 qid:2 1:1\n1 qid:3 1:1\n1 qid:1 1:1\n")
    with pytest.warns(DataWarning, match="left out 2 rows"):
        blocks = list(iter_svmlight(file, n_features=1, max_bytes=5, on_error="skip"))
    assert [block.qid.tolist() for block in blocks] == [[1], [2], [3]]
    assert [block.skipped.count for block in blocks] == [0, 0, 2]


def test_block_reading_scales_whole_queries() -> None:
    data = _many_rows(20)
    whole = read(data, n_features=6, scale="minmax")
    blocks = list(iter_svmlight(io.BytesIO(data), n_features=6, max_bytes=200, scale="minmax"))
    np.testing.assert_array_equal(np.vstack([block.dense() for block in blocks]), whole.dense())


def test_a_line_longer_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slatewise.data.svmlight.CHUNK_BYTES", 16)
    features = " ".join(f"{j}:{j}" for j in range(1, 2000))
    rows = read(f"1 qid:1 {features}\n0 qid:1 1:1".encode())
    assert rows.X.shape == (2, 1999)
    np.testing.assert_array_equal(rows.dense()[0], np.arange(1, 2000))


_finite = st.floats(allow_nan=False, allow_infinity=False)
_ids = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r"), max_size=20).map(
    lambda text: text.strip(" \t")
)


@settings(max_examples=60, deadline=None)
@given(X=arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=_finite), data=st.data())
def test_writing_and_reading_gives_the_same_bits(X: np.ndarray, data: st.DataObject, tmp_path_factory) -> None:
    n = len(X)
    y = data.draw(arrays(np.float64, n, elements=_finite))
    qid = np.sort(data.draw(arrays(np.int64, n, elements=st.integers(0, 2**63 - 1))))
    doc_ids = np.array(data.draw(st.lists(_ids.filter(lambda s: not s.startswith("docid")), min_size=n, max_size=n)))
    ending = data.draw(st.sampled_from(["txt", "gz", "xz"]))
    zero_based = data.draw(st.booleans())
    path = tmp_path_factory.getbasetemp() / f"written.{ending}"
    write_svmlight(path, RowsToRank(csr_array(X), y, qid, doc_ids.astype(str)), zero_based=zero_based)
    back = read_svmlight(path, n_features=X.shape[1], zero_based=zero_based)
    assert back.X.data.tobytes() == csr_array(X).data.tobytes()
    np.testing.assert_array_equal(back.dense(), X)
    assert back.y.tobytes() == y.tobytes()
    np.testing.assert_array_equal(back.qid, qid)
    assert (back.doc_ids.tolist() if back.doc_ids is not None else [""] * n) == doc_ids.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.array([np.nan, 0])}, "y: expected finite numbers, found nan"),
        ({"X": csr_array([[np.inf], [0]])}, "X: expected finite numbers, found inf"),
        ({"qid": np.array([-1, 0])}, "qid: expected whole numbers"),
        ({"qid": np.array(["a", "b"])}, "qid: expected whole numbers"),
        ({"y": np.zeros(3)}, "y: expected one per row of X, 2"),
        ({"qid": np.array([1])}, "qid: expected one per row of X, 2"),
        ({"doc_ids": np.array(["a"])}, "doc_ids: expected one per row of X, 2"),
        ({"doc_ids": np.array(["a\nb", ""])}, "doc_ids: expected ids that a comment"),
        ({"doc_ids": np.array(["docid = x y", ""])}, "doc_ids: expected ids that a comment"),
        ({"doc_ids": np.array([" a", ""])}, "doc_ids: expected ids that a comment"),
        ({"doc_ids": np.array(["x" * 256, ""])}, "doc_ids: expected ids that a comment"),
    ],
)
def test_writing_refuses_what_could_not_be_read_back(change: dict, message: str, tmp_path: Path) -> None:
    fields = {"X": csr_array([[1.0], [2.0]]), "y": np.zeros(2), "qid": np.array([1, 2]), **change}
    with pytest.raises(ValueError, match=message):
        write_svmlight(tmp_path / "rows.txt", RowsToRank(**fields))
    assert not list(tmp_path.iterdir())


def test_writing_refuses_a_split_query(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="qid: expected the rows of a query side by side"):
        write_svmlight(tmp_path / "rows.txt", RowsToRank(csr_array((3, 1)), np.zeros(3), np.array([1, 2, 1])))


@pytest.mark.data
@pytest.mark.parametrize("name", ["ohsumed25/part1.txt.xz", "lightgbm-rank/test.txt.xz", "mq2007-85pct/part2.txt.xz"])
def test_agrees_with_scikit_learn_on_public_files(name: str, shared_data: Path) -> None:
    rows = read_svmlight(shared_data / name)
    with lzma.open(shared_data / name) as file:
        X, y, qid = load_svmlight_file(file, query_id=True, zero_based=False)
    assert rows.X.data.tobytes() == X.data.tobytes()
    np.testing.assert_array_equal(rows.X.indices, X.indices)
    np.testing.assert_array_equal(rows.X.indptr, X.indptr)
    np.testing.assert_array_equal(rows.y, y)
    np.testing.assert_array_equal(rows.qid, qid)


def test_without_the_compiler() -> None:
    """The kernels are plain Python underneath and give the same rows."""
    code = (
        "import numpy as np, pathlib; np.seterr(over='ignore')\n"
        "from tests.fuzz import collect; from tests.fuzz.engine import judge, case\n"
        "for form in collect():\n"
        "    if 'svmlight' in form.name:\n"
        "        for index in range(40):\n"
        "            outcome = judge(form, case(form, 9, index)); assert outcome.failure is None, outcome\n"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
