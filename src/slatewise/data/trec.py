"""TREC files: runs ``qid Q0 docno rank score tag`` and judgments ``qid iter docno rel``.

Fields are separated by runs of blanks or tabs; blank lines carry nothing. Lines may come in any order, so the lines
of one query need not stand together.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.files import atomic_file, atomic_path
from slatewise.core.rankings import rank_rows
from slatewise.data.fields import check_word, number, whole, word_offset, words
from slatewise.data.reading import (
    MAX_LINE,
    Line,
    OnError,
    PathOrFile,
    read_lines,
    text_reader,
)
from slatewise.data.records import Qrels, Run, Strings

_RUN_FIELDS = ("qid", "Q0", "docno", "rank", "score", "tag")
_QRELS_FIELDS = ("qid", "iter", "docno", "rel")


@text_reader
def read_run(path: PathOrFile, *, on_error: OnError = "raise", max_line: int = MAX_LINE) -> Run:
    r"""Read a run: six fields per line, a finite score, an integer rank, every document once per query, one tag.

    The order of a run is the order of its scores, as in trec_eval: the rank column must hold an integer and is not
    used otherwise. Rows keep the order of the file.

    Examples
    --------
    >>> from io import BytesIO
    >>> run = read_run(BytesIO(b"q1 Q0 d7 1 2.5 mine\nq1 Q0 d3 2 0.5 mine\n"))
    >>> run.doc_ids.tolist(), run.scores.tolist(), run.tag
    (['d7', 'd3'], [2.5, 0.5], 'mine')
    """
    tags: list[str] = []
    rows, problems = read_lines(path, on_error, max_line, partial(_run_row, seen=set(), tags=tags))
    scores = np.array([row[2] for row in rows], dtype=np.float64)
    return Run(*_keys(rows), scores, *tags, skipped=problems.report())


@text_reader
def read_qrels(path: PathOrFile, *, on_error: OnError = "raise", max_line: int = MAX_LINE) -> Qrels:
    r"""Read judgements: four fields per line, an integer relevance within int64, every document once per query.

    Examples
    --------
    >>> from io import BytesIO
    >>> qrels = read_qrels(BytesIO(b"q1 0 d7 2\nq1 0 d3 0\n"))
    >>> qrels.doc_ids.tolist(), qrels.relevance.tolist()
    (['d7', 'd3'], [2, 0])
    """
    rows, problems = read_lines(path, on_error, max_line, partial(_qrels_row, seen=set()))
    return Qrels(*_keys(rows), np.array([row[2] for row in rows], dtype=np.int64), problems.report())


def write_run(path: str | os.PathLike[str], run: Run) -> None:
    """Write a run best first with ranks from 1; ``.gz`` and ``.xz`` are compressed.

    Queries keep the order in which they first appear; equal scores keep the order of their rows. Scores are written so
    that reading gives the same bits. The file appears whole or not at all.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> run = Run(np.array(["q1", "q1"]), np.array(["d3", "d7"]), np.array([0.5, 2.5]), "mine")
    >>> with TemporaryDirectory() as folder:
    ...     write_run(Path(folder, "mine.run"), run)
    ...     print(Path(folder, "mine.run").read_text())
    q1 Q0 d7 1 2.5 mine
    q1 Q0 d3 2 0.5 mine
    """
    check_run(run)
    _check_words("run", run.qid, run.doc_ids)
    check_word("run.tag", run.tag)
    order, ranks = best_first(run)
    rows = zip(
        run.qid[order].tolist(), run.doc_ids[order].tolist(), ranks.tolist(), run.scores[order].tolist(), strict=True
    )
    with atomic_file(path) as file:
        file.writelines(f"{qid} Q0 {doc} {rank} {score!r} {run.tag}\n".encode() for qid, doc, rank, score in rows)


def write_qrels(path: str | os.PathLike[str], qrels: Qrels) -> None:
    """Write judgements in the order of their rows; ``.gz`` and ``.xz`` are compressed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_qrels(Path(folder, "qrels"), Qrels(np.array(["q1"]), np.array(["d7"]), np.array([2])))
    ...     print(Path(folder, "qrels").read_text())
    q1 0 d7 2
    """
    _check_keys("qrels", qrels.qid, qrels.doc_ids)
    _check_words("qrels", qrels.qid, qrels.doc_ids)
    _check_length("qrels.relevance", qrels.relevance, len(qrels.qid))
    if qrels.relevance.dtype.kind not in "iu":
        raise ValueError(f"qrels.relevance: expected whole numbers, found dtype {qrels.relevance.dtype}")
    rows = zip(qrels.qid.tolist(), qrels.doc_ids.tolist(), qrels.relevance.tolist(), strict=True)
    with atomic_file(path) as file:
        file.writelines(f"{qid} 0 {doc} {relevance}\n".encode() for qid, doc, relevance in rows)


def best_first(run: Run) -> tuple[Ints, Ints]:
    """Return the rows of a run query by query, best first, and the rank of each from 1."""
    rankings = rank_rows(run.scores, run.qid)
    return rankings.ids.reshape(-1), rankings.positions() + 1


def check_run(run: Run) -> None:
    """Raise ValueError unless every row has a finite score and every document comes once per query."""
    _check_keys("run", run.qid, run.doc_ids)
    _check_length("run.scores", run.scores, len(run.qid))
    if run.scores.dtype.kind not in "biuf":
        raise ValueError(f"run.scores: expected numbers, found dtype {run.scores.dtype}")
    if not np.isfinite(run.scores).all():
        row = int(np.flatnonzero(~np.isfinite(run.scores))[0])
        raise ValueError(f"run.scores[{row}]: expected a finite score, found {run.scores[row]}")


def _run_row(line: Line, seen: set[tuple[str, str]], tags: list[str]) -> tuple[str, str, float]:
    qid, _, docno, rank, score_text, tag = _fields(line, _RUN_FIELDS)
    if whole(rank) is None:
        raise line.fault(word_offset(line.text, 3), "an integer rank within int64", repr(rank))
    score = number(score_text)
    if score is None:
        raise line.fault(word_offset(line.text, 4), "a finite score", repr(score_text))
    if tags and tags[0] != tag:
        raise line.fault(word_offset(line.text, 5), f"one tag a run, {tags[0]!r} as in the lines before", repr(tag))
    _once(line, qid, docno, seen)
    if not tags:
        tags.append(tag)
    return qid, docno, score


def _qrels_row(line: Line, seen: set[tuple[str, str]]) -> tuple[str, str, int]:
    qid, _, docno, relevance_text = _fields(line, _QRELS_FIELDS)
    relevance = whole(relevance_text)
    if relevance is None:
        raise line.fault(word_offset(line.text, 3), "an integer relevance within int64", repr(relevance_text))
    _once(line, qid, docno, seen)
    return qid, docno, relevance


def _fields(line: Line, names: tuple[str, ...]) -> list[str]:
    fields = words(line.text, len(names))  # one too many is enough to know
    if len(fields) != len(names):
        offset = word_offset(line.text, len(names))
        found = "more" if len(fields) > len(names) else f"{len(fields)}"
        raise line.fault(offset, f"{len(names)} fields: {' '.join(names)}", found)
    return fields


def _once(line: Line, qid: str, docno: str, seen: set[tuple[str, str]]) -> None:
    if (qid, docno) in seen:
        found = f"{docno!r} again for query {qid!r}"
        raise line.fault(word_offset(line.text, 2), "every document once per query", found)
    seen.add((qid, docno))


def _keys(rows: Sequence[tuple[str, str, float]]) -> tuple[Strings, Strings]:
    return np.array([row[0] for row in rows], dtype=np.str_), np.array([row[1] for row in rows], dtype=np.str_)


def _check_keys(argument: str, qid: Strings, doc_ids: Strings) -> None:
    _check_length(f"{argument}.doc_ids", doc_ids, len(qid))
    seen: set[tuple[str, str]] = set()
    for row, key in enumerate(zip(qid.tolist(), doc_ids.tolist(), strict=True)):
        if key in seen:
            raise ValueError(f"{argument}.doc_ids[{row}]: expected every document once per query, found {key} again")
        seen.add(key)


def _check_words(argument: str, qid: Strings, doc_ids: Strings) -> None:
    for field, values in (("qid", qid), ("doc_ids", doc_ids)):
        for row, text in enumerate(values.tolist()):
            check_word(f"{argument}.{field}[{row}]", text)


def _check_length(argument: str, values: Floats | Ints | Strings, length: int) -> None:
    if values.shape != (length,):
        raise ValueError(f"{argument}: expected one value per row, shape ({length},), found shape {values.shape}")


Writer: TypeAlias = Callable[["str | os.PathLike[str]", Run], None]


def write_run_as(path: str | os.PathLike[str], run: Run) -> None:
    """Write a run best first: ``.run`` and ``.txt`` as TREC, ``.csv``, ``.parquet``; text also ``.gz`` and ``.xz``.

    CSV and Parquet have the columns qid, doc_id, rank (from 1), score and tag. The file appears whole or not at all.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> run = Run(np.array(["q1", "q1"]), np.array(["d3", "d7"]), np.array([0.5, 2.5]), "mine")
    >>> with TemporaryDirectory() as folder:
    ...     write_run_as(Path(folder, "mine.csv"), run)
    ...     print(Path(folder, "mine.csv").read_text())
    qid,doc_id,rank,score,tag
    q1,d7,1,2.5,mine
    q1,d3,2,0.5,mine
    """
    writer_for(path)(path, run)


def writer_for(path: str | os.PathLike[str]) -> Writer:
    """Return what writes a file of this name; a name that says no format is an error."""
    ending = "".join(Path(path).suffixes[-2:]).lower()
    for known, writer in _WRITERS.items():
        if ending.endswith(known):
            return writer
    raise ValueError(f"{os.fspath(path)}: expected a file name that ends with one of {', '.join(_WRITERS)}")


def _write_csv(path: str | os.PathLike[str], run: Run) -> None:
    columns = _columns(run)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    with atomic_file(path) as file:
        file.write(text.getvalue().encode())


def _write_parquet(path: str | os.PathLike[str], run: Run) -> None:
    from slatewise.data.parquet import write_columns

    with atomic_path(path) as temporary:
        write_columns(temporary, _columns(run))


def _columns(run: Run) -> dict[str, list[str] | list[int] | list[float]]:
    check_run(run)
    order, ranks = best_first(run)
    return {
        "qid": run.qid[order].tolist(),
        "doc_id": run.doc_ids[order].tolist(),
        "rank": ranks.tolist(),
        "score": run.scores[order].tolist(),
        "tag": [run.tag] * len(order),
    }


_TEXT_WRITERS: dict[str, Writer] = {".run": write_run, ".txt": write_run, ".csv": _write_csv}
_WRITERS: dict[str, Writer] = {
    **{ending + archive: writer for ending, writer in _TEXT_WRITERS.items() for archive in ("", ".gz", ".xz")},
    ".parquet": _write_parquet,
}
