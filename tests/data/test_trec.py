"""TREC runs and judgements: round trips, another library's readers, and where errors point."""

import csv
import gzip
import io
import lzma
from pathlib import Path

import ir_measures
import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise.core.errors import DataError, DataWarning
from slatewise.data import Qrels, Run, read_qrels, read_run, write_qrels, write_run, write_run_as
from tests.data.strategies import finite, int64, named, words

keyed = st.dictionaries(st.tuples(words, words), finite, max_size=8)


def make_run(rows: dict[tuple[str, str], float], tag: str = "t") -> Run:
    qid = np.array([qid for qid, _ in rows], dtype=np.str_)
    doc_ids = np.array([doc for _, doc in rows], dtype=np.str_)
    return Run(qid, doc_ids, np.array(list(rows.values()), dtype=np.float64), tag)


def as_dict(run: Run) -> dict[tuple[str, str], str]:
    keys = zip(run.qid.tolist(), run.doc_ids.tolist(), strict=True)
    return dict(zip(keys, map(repr, run.scores.tolist()), strict=True))


@given(rows=keyed, tag=words)
def test_a_run_reads_back_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, rows, tag) -> None:
    path = tmp_path_factory.getbasetemp() / "round.run"
    run = make_run(rows, tag)
    write_run(path, run)
    again = read_run(path)
    assert as_dict(again) == as_dict(run)
    assert again.tag == (tag if rows else "slatewise")
    ranks = [line.split(" ")[3] for line in path.read_text().split("\n")[:-1]]
    expected: dict[str, int] = {}
    for qid, rank in zip(again.qid.tolist(), ranks, strict=True):
        expected[qid] = expected.get(qid, 0) + 1
        assert int(rank) == expected[qid]
    for qid in expected:
        scores = again.scores[again.qid == qid]
        assert (np.diff(scores) <= 0).all()


@given(rows=st.dictionaries(st.tuples(words, words), int64, max_size=8))
def test_judgements_read_back_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, rows) -> None:
    path = tmp_path_factory.getbasetemp() / "round.qrels"
    qid, doc_ids = (np.array([key[place] for key in rows], dtype=np.str_) for place in (0, 1))
    write_qrels(path, Qrels(qid, doc_ids, np.array(list(rows.values()), dtype=np.int64)))
    again = read_qrels(path)
    assert again.qid.tolist() == qid.tolist()
    assert again.doc_ids.tolist() == doc_ids.tolist()
    assert again.relevance.tolist() == list(rows.values())


def test_ir_measures_reads_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = {(f"q{i % 7}", f"d{i}"): score for i, score in enumerate(rng.normal(size=50).tolist())}
    write_run(tmp_path / "a.run", make_run(rows))
    theirs = {(row.query_id, row.doc_id): repr(row.score) for row in ir_measures.read_trec_run(str(tmp_path / "a.run"))}
    assert theirs == as_dict(make_run(rows)) == as_dict(read_run(tmp_path / "a.run"))
    (tmp_path / "qrels").write_text("q1 0 d1 2\nq2 0 d1 0\nq1 0 d2 -1\n")
    ours = read_qrels(tmp_path / "qrels")
    judged = {(row.query_id, row.doc_id): row.relevance for row in ir_measures.read_trec_qrels(str(tmp_path / "qrels"))}
    assert judged == dict(
        zip(zip(ours.qid.tolist(), ours.doc_ids.tolist(), strict=True), ours.relevance.tolist(), strict=True)
    )


def test_equal_scores_keep_their_order_and_queries_theirs(tmp_path: Path) -> None:
    write_run(tmp_path / "a.run", make_run({("z", "b"): 1.0, ("a", "x"): 0.0, ("z", "a"): 1.0, ("z", "c"): 2.0}))
    assert (tmp_path / "a.run").read_text() == "z Q0 c 1 2.0 t\nz Q0 b 2 1.0 t\nz Q0 a 3 1.0 t\na Q0 x 1 0.0 t\n"


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        (b"q Q0 d 1 2.5\n", 1, 13, "6 fields: qid Q0 docno rank score tag, found 5"),
        (b"q Q0 d 1 2.5 t extra\n", 1, 16, "6 fields: qid Q0 docno rank score tag, found more"),
        (b"\nq Q0 d 1.0 2.5 t\n", 2, 8, "an integer rank within int64, found '1.0'"),
        (b"q Q0 \xc3\xa9 1 nan t\n", 1, 11, "a finite score, found 'nan'"),
        (b"q Q0 d 1 1e999 t\n", 1, 10, "a finite score, found '1e999'"),
        (b"q Q0 d 1 1_0 t\n", 1, 10, "a finite score, found '1_0'"),
        (
            b"q Q0 d 1 1 t\np Q0 d 1 1 t\nq Q0  d 1 1 t\n",
            3,
            7,
            "every document once per query, found 'd' again for query 'q'",
        ),
        (b"q Q0 d 1 1 t\np Q0 d 1 1 u\n", 2, 12, "one tag a run, 't' as in the lines before, found 'u'"),
        (b"q Q0 \xff 1 1 t\n", 1, 6, "UTF-8 text, found byte 0xff"),
        (b"q Q0 d\x00 1 1 t\n", 1, 7, "printable text, found control character 0x00"),
        (2 * b"\xef\xbb\xbf" + b"q Q0 d 1 1 t\n", 1, 1, "text without a second byte order mark, found U+FEFF"),
        (b"q Q0 d 9223372036854775808 1 t\n", 1, 8, "an integer rank within int64, found '9223372036854775808'"),
    ],
)
def test_a_bad_run_is_refused_at_its_place(text: bytes, line: int, column: int, expected: str) -> None:
    with pytest.raises(DataError) as caught:
        read_run(named(text))
    assert str(caught.value) == f"file.txt:{line}:{column}: expected {expected}"


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        (b"q 0 d\n", 1, 6, "4 fields: qid iter docno rel, found 3"),
        (b"q 0 d 1\nq 0 d 2\n", 2, 5, "every document once per query, found 'd' again for query 'q'"),
        (b"q 0 d 0.5\n", 1, 7, "an integer relevance within int64, found '0.5'"),
        (b"q 0 d " + b"9" * 5000 + b"\n", 1, 7, "an integer relevance within int64, found '9999999"),
    ],
)
def test_bad_judgements_are_refused_at_their_place(text: bytes, line: int, column: int, expected: str) -> None:
    with pytest.raises(DataError) as caught:
        read_qrels(named(text))
    assert str(caught.value).startswith(f"file.txt:{line}:{column}: expected {expected}")


def test_skipping_counts_and_reports() -> None:
    text = b"q Q0 a 1 1 t\nq Q0 b 1 x t\n\xff\nq Q0 a 1 1 t\nq Q0 c 1 2 t\n"
    with pytest.warns(DataWarning, match=r"left out 3 rows; the first: file.txt:2:10") as caught:
        run = read_run(named(text), on_error="skip")
    assert caught[0].filename == __file__
    assert run.doc_ids.tolist() == ["a", "c"]
    assert run.skipped.count == 3
    assert [error.line for error in run.skipped.first] == [2, 3, 4]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_archives(pack, tmp_path: Path) -> None:
    text = b"".join(b"q Q0 d%d 1 %d t\n" % (row, row) for row in range(2000))
    assert len(read_run(named(pack(text))).scores) == 2000
    for on_error in ("raise", "skip"):
        with pytest.raises(DataError, match="a complete archive"):
            read_run(named(pack(text)[:-30]), on_error=on_error)
    write_run(tmp_path / "a.run.gz", read_run(named(text)))
    assert len(read_run(tmp_path / "a.run.gz").scores) == 2000


def test_an_empty_file_is_an_empty_run() -> None:
    assert len(read_run(named(b"")).scores) == 0
    assert len(read_qrels(named(b"\n \t\n")).relevance) == 0


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (make_run({("q 1", "d"): 1.0}), r"run.qid\[0\]: expected a word without blanks"),
        (make_run({("q", ""): 1.0}), r"run.doc_ids\[0\]: expected a word"),
        (make_run({("q", "d"): float("nan")}), r"run.scores\[0\]: expected a finite score, found nan"),
        (make_run({("q", "d"): 1.0}, "a tag"), "run.tag: expected a word"),
        (
            Run(np.array(["q", "q"]), np.array(["d", "d"]), np.ones(2)),
            r"run.doc_ids\[1\]: expected every document once",
        ),
        (Run(np.array(["q"]), np.array(["d"]), np.ones(2)), r"run.scores: expected one value per row, shape \(1,\)"),
    ],
)
def test_what_would_not_read_back_is_not_written(run: Run, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        write_run(tmp_path / "a.run", run)
    assert not list(tmp_path.iterdir())


def test_write_run_as_chooses_by_ending(tmp_path: Path) -> None:
    run = make_run({("q", "d 1"): 0.1, ("q", 'd,"2'): 0.3, ("p", "d"): 1e-300})
    write_run_as(tmp_path / "a.csv", run)
    write_run_as(tmp_path / "a.b.csv.gz", run)
    write_run_as(tmp_path / "a.parquet", run)
    columns = ["qid", "doc_id", "rank", "score", "tag"]
    rows = [["q", 'd,"2', 1, 0.3, "t"], ["q", "d 1", 2, 0.1, "t"], ["p", "d", 1, 1e-300, "t"]]
    text = (tmp_path / "a.csv").read_text()
    assert text == gzip.decompress((tmp_path / "a.b.csv.gz").read_bytes()).decode()
    assert list(csv.reader(io.StringIO(text))) == [columns, *([str(cell) for cell in row] for row in rows)]
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert table.to_pylist() == [dict(zip(columns, row, strict=True)) for row in rows]
    write_run_as(tmp_path / "a.txt.xz", make_run({("q", "d"): 0.5}))
    assert read_run(tmp_path / "a.txt.xz").scores.tolist() == [0.5]
    with pytest.raises(ValueError, match=r"a.json: expected a file name that ends with one of .run"):
        write_run_as(tmp_path / "a.json", run)
    with pytest.raises(ValueError, match=r"run.scores\[0\]"):
        write_run_as(tmp_path / "bad.parquet", make_run({("q", "d"): float("inf")}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.b.csv.gz", "a.csv", "a.parquet", "a.txt.xz"]


def test_fractional_relevance_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"qrels\.relevance: expected whole numbers"):
        write_qrels(tmp_path / "qrels", Qrels(np.array(["q"]), np.array(["d"]), np.array([1.5])))
    assert not list(tmp_path.iterdir())
