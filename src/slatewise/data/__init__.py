"""Readers and writers, one format per file; every reader returns a record of :mod:`slatewise.data.records`.

Names load on first use, so that asking for one format does not pay for the others.
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
    "ListeningLog": "slatewise.data.listening_log",
    "MultiLabel": "slatewise.data.records",
    "Pairs": "slatewise.data.records",
    "Prefixes": "slatewise.data.records",
    "Qrels": "slatewise.data.records",
    "RowsToRank": "slatewise.data.records",
    "Run": "slatewise.data.records",
    "Sessions": "slatewise.data.records",
    "from_frame": "slatewise.data.frames",
    "iter_parquet": "slatewise.data.parquet",
    "iter_svmlight": "slatewise.data.svmlight",
    "minmax_per_query": "slatewise.data.scaling",
    "read_arff": "slatewise.data.arff",
    "read_events": "slatewise.data.events",
    "read_listening_log": "slatewise.data.listening_log",
    "read_multilabel_svmlight": "slatewise.data.multilabel_svmlight",
    "read_npz": "slatewise.data.npz",
    "read_pairs": "slatewise.data.pairs",
    "read_parquet": "slatewise.data.parquet",
    "read_qrels": "slatewise.data.trec",
    "read_run": "slatewise.data.trec",
    "read_sessions": "slatewise.data.sessions",
    "read_svmlight": "slatewise.data.svmlight",
    "read_tags": "slatewise.data.tags",
    "sessions_from_events": "slatewise.data.events",
    "split_sessions": "slatewise.data.events",
    "write_multilabel_svmlight": "slatewise.data.multilabel_svmlight",
    "write_npz": "slatewise.data.npz",
    "write_qrels": "slatewise.data.trec",
    "write_run": "slatewise.data.trec",
    "write_run_as": "slatewise.data.trec",
    "write_sessions": "slatewise.data.sessions",
    "write_svmlight": "slatewise.data.svmlight",
}

__getattr__ = lazy_getattr(globals(), _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
