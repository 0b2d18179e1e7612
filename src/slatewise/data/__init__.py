"""Readers and writers, one format a file; every reader returns a record of :mod:`slatewise.data.records`.

Names load on first use, so that asking for one format does not pay for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slatewise.data.arff import read_arff
    from slatewise.data.frames import from_frame
    from slatewise.data.listening_log import ListeningLog, read_listening_log
    from slatewise.data.multilabel_svmlight import read_multilabel_svmlight
    from slatewise.data.npz import read_npz, write_npz
    from slatewise.data.pairs import read_pairs
    from slatewise.data.parquet import iter_parquet, read_parquet
    from slatewise.data.records import MultiLabel, Pairs, Qrels, Ranking, Run, Sessions
    from slatewise.data.scaling import minmax_per_query
    from slatewise.data.sessions import read_sessions, write_sessions
    from slatewise.data.svmlight import iter_svmlight, read_svmlight, write_svmlight
    from slatewise.data.trec import read_qrels, read_run, write_qrels, write_run
    from slatewise.data.write import write_run_as

__all__ = [
    "ListeningLog",
    "MultiLabel",
    "Pairs",
    "Qrels",
    "Ranking",
    "Run",
    "Sessions",
    "from_frame",
    "iter_parquet",
    "iter_svmlight",
    "minmax_per_query",
    "read_arff",
    "read_listening_log",
    "read_multilabel_svmlight",
    "read_npz",
    "read_pairs",
    "read_parquet",
    "read_qrels",
    "read_run",
    "read_sessions",
    "read_svmlight",
    "write_npz",
    "write_qrels",
    "write_run",
    "write_run_as",
    "write_sessions",
    "write_svmlight",
]

_HOMES = {
    "ListeningLog": "listening_log",
    "MultiLabel": "records",
    "Pairs": "records",
    "Qrels": "records",
    "Ranking": "records",
    "Run": "records",
    "Sessions": "records",
    "from_frame": "frames",
    "iter_parquet": "parquet",
    "iter_svmlight": "svmlight",
    "minmax_per_query": "scaling",
    "read_arff": "arff",
    "read_listening_log": "listening_log",
    "read_multilabel_svmlight": "multilabel_svmlight",
    "read_npz": "npz",
    "read_pairs": "pairs",
    "read_parquet": "parquet",
    "read_qrels": "trec",
    "read_run": "trec",
    "read_sessions": "sessions",
    "read_svmlight": "svmlight",
    "write_npz": "npz",
    "write_qrels": "trec",
    "write_run": "trec",
    "write_run_as": "write",
    "write_sessions": "sessions",
    "write_svmlight": "svmlight",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'slatewise.data' has no attribute {name!r}")
    value = getattr(import_module(f"slatewise.data.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
