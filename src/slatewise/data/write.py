"""A run in the format its file name asks for: TREC, CSV or Parquet."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from slatewise.core.files import atomic_file, atomic_path
from slatewise.data.records import Run
from slatewise.data.trec import best_first, check_run, write_run

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
