"""Readers and writers, one format per file; every reader returns a record of :mod:`slatewise.data.records`.

The path of data: bytes (``reading``) -> lines -> fields (``fields``) -> rows of a format -> arrays of a record.

records              what readers return
reading, fields      bytes of plain or packed files, lines with their places, bad rows; tokens and delimiters
trec                 runs and judgments, and writers of runs
pairs, events        (query, item) pairs; logs of events, which become sessions
sessions             session files, and sessions in any form: lists, frames, arrays with offsets
listening_log        plays of Last.fm
tags, tag_table      rows with tags as CSV, TSV or JSON lines; as Parquet or Arrow
labels               labels of rows in every form, as 0/1 rows with names
svmlight, multilabel_svmlight, svmlight_text   rows of index:value, with query ids or label sets; what both share
arff, npz            multi-label data of Mulan and MEKA; of NumPy
frames, parquet      rows to rank in data frames; in Parquet and Arrow files
scaling              features scaled within each query
row_files, row_source   files of rows read piece by piece; rows that stay in their files until a worker needs them
kernels/             compiled parsers of numbers and of SVMlight rows; scaling

Names load on first use, so that one format does not pay for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slatewise._lazy import lazy_getattr

if TYPE_CHECKING:
    from slatewise.data.arff import read_arff
    from slatewise.data.events import read_events, sessions_from_events, split_sessions
    from slatewise.data.frames import from_frame
    from slatewise.data.listening_log import ListeningLog, read_listening_log
    from slatewise.data.multilabel_svmlight import read_multilabel_svmlight, write_multilabel_svmlight
    from slatewise.data.npz import read_npz, write_npz
    from slatewise.data.pairs import read_pairs
    from slatewise.data.parquet import iter_parquet, read_parquet
    from slatewise.data.records import MultiLabel, Pairs, Prefixes, Qrels, RowsToRank, Run, Sessions
    from slatewise.data.scaling import minmax_per_query
    from slatewise.data.sessions import read_sessions, write_sessions
    from slatewise.data.svmlight import iter_svmlight, read_svmlight, write_svmlight
    from slatewise.data.tags import read_tags
    from slatewise.data.trec import read_qrels, read_run, write_qrels, write_run, write_run_as

__all__ = [
    "ListeningLog",
    "MultiLabel",
    "Pairs",
    "Prefixes",
    "Qrels",
    "RowsToRank",
    "Run",
    "Sessions",
    "from_frame",
    "iter_parquet",
    "iter_svmlight",
    "minmax_per_query",
    "read_arff",
    "read_events",
    "read_listening_log",
    "read_multilabel_svmlight",
    "read_npz",
    "read_pairs",
    "read_parquet",
    "read_qrels",
    "read_run",
    "read_sessions",
    "read_svmlight",
    "read_tags",
    "sessions_from_events",
    "split_sessions",
    "write_multilabel_svmlight",
    "write_npz",
    "write_qrels",
    "write_run",
    "write_run_as",
    "write_sessions",
    "write_svmlight",
]

_HOMES = {
    "arff": ["read_arff"],
    "events": ["read_events", "sessions_from_events", "split_sessions"],
    "frames": ["from_frame"],
    "listening_log": ["ListeningLog", "read_listening_log"],
    "multilabel_svmlight": ["read_multilabel_svmlight", "write_multilabel_svmlight"],
    "npz": ["read_npz", "write_npz"],
    "pairs": ["read_pairs"],
    "parquet": ["iter_parquet", "read_parquet"],
    "records": ["MultiLabel", "Pairs", "Prefixes", "Qrels", "RowsToRank", "Run", "Sessions"],
    "scaling": ["minmax_per_query"],
    "sessions": ["read_sessions", "write_sessions"],
    "svmlight": ["iter_svmlight", "read_svmlight", "write_svmlight"],
    "tags": ["read_tags"],
    "trec": ["read_qrels", "read_run", "write_qrels", "write_run", "write_run_as"],
}

__getattr__ = lazy_getattr(
    globals(), {name: f"slatewise.data.{module}" for module, names in _HOMES.items() for name in names}
)


def __dir__() -> list[str]:
    return sorted(__all__)
