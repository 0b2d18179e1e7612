"""SVMlight with query ids: strict, leaving out bad rows, in small blocks, and without query ids."""

from __future__ import annotations

import warnings
from typing import BinaryIO

import numpy as np

from slatewise.core.errors import DataWarning
from slatewise.data.records import RowsToRank
from slatewise.data.svmlight import iter_svmlight, read_svmlight
from tests.data import reference_svmlight as reference
from tests.fuzz import Format

_N_FEATURES = 1000
_SEEDS = (
    b"2 qid:1 1:0.5 2:-1.25 3:0 #docid = GX000-00-0000000 inc = 1 prob = 0.02\n0 qid:1 1:1e-3 3:12 #docid = GX1 x\n"
    b"1 qid:2 1:0.205882 46:1.000000 #docid = GX2\n0 qid:3 2:3.25\n",
    b"# a header\n\n1 qid:10 1:0.1\r\n0 qid:10 1:0.2 4:7 # free text \r\n"
    b"  -1.5\tqid:11\t2:1e5\t3:2.5E-7  \r\n0 qid:12\r\n",
    b"0 qid:9223372036854775807 1:1 2:0.1234567890123456789 999:1\n+1 qid:0 1:9007199254740993 2:1e23\n",
    b"3 qid:5 1:0.30000000000000004 2:4.9e-324 3:1.7976931348623157e308\n0 qid:5 5:.5 6:5. 7:00.50#tight\n"
    b"1 qid:6 1:1 #\n",
    "1 qid:4 1:1 # r\u00e9sum\u00e9 \u540d\u524d\n0 qid:4 1:2 #docid=  \U0001f600\n".encode(),
)
_PLAIN_SEEDS = (b"1 1:0.5 3:2\n-1 2:0.25\n\n0.5\n+1 1:3 #x\n", b"1 qid:1 1:2\n0 qid:2 2:3\n", _SEEDS[1])
_TOKENS = (
    b"qid:",
    b"qid:1",
    b" qid:2 ",
    b"qid:-1",
    b"qid:1.0",
    b"QID:1",
    b"0:1",
    b" 1:1",
    b"1000:1",
    b"1001:1",
    b"#docid =",
)


def comparable(ranking: RowsToRank) -> tuple[object, ...]:
    """Return all of a result as values that ``==`` compares, floats by their bits."""
    return (
        ranking.y.tobytes(),
        tuple(ranking.qid.tolist()),
        tuple(np.diff(ranking.X.indptr).tolist()),
        tuple(ranking.X.indices.tolist()),
        ranking.X.data.tobytes(),
        None if ranking.doc_ids is None else tuple(ranking.doc_ids.tolist()),
        ranking.skipped.count,
        tuple(error.line for error in ranking.skipped.first),
    )


def _strict(file: BinaryIO) -> object:
    return comparable(read_svmlight(file))


def _strict_reference(data: bytes) -> object:
    return reference.comparable(reference.read(data))


def _skipping(file: BinaryIO) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return comparable(read_svmlight(file, on_error="skip", zero_based=True))


def _skipping_reference(data: bytes) -> object:
    return reference.comparable(reference.read(data, skip=True, zero_based=True))


def _without_qid(file: BinaryIO) -> object:
    return comparable(read_svmlight(file, require_qid=False, n_features=_N_FEATURES))


def _without_qid_reference(data: bytes) -> object:
    return reference.comparable(reference.read(data, require_qid=False, n_features=_N_FEATURES))


def _blocks(file: BinaryIO) -> object:
    queries: list[int] = []
    labels, rows = b"", []
    for block in iter_svmlight(file, n_features=_N_FEATURES, max_bytes=40):
        queries.extend(np.unique(block.qid).tolist())
        labels += block.y.tobytes()
        ids = [""] * len(block.y) if block.doc_ids is None else block.doc_ids.tolist()
        for i, doc_id in enumerate(ids):
            entries = slice(block.X.indptr[i], block.X.indptr[i + 1])
            rows.append((tuple(block.X.indices[entries].tolist()), block.X.data[entries].tobytes(), doc_id))
    return tuple(sorted(queries)), labels, tuple(rows)


def _blocks_reference(data: bytes) -> object:
    result = reference.read(data, n_features=_N_FEATURES)
    rows = zip(result.rows, result.comments, strict=True)
    return (
        tuple(sorted(set(result.qids))),  # once each: no query is in two blocks
        reference.bits(result.labels),
        tuple((tuple(i for i, _ in row), reference.bits([v for _, v in row]), doc_id) for row, doc_id in rows),
    )


FORMATS = [
    Format("svmlight", _SEEDS, _strict, _strict_reference, _TOKENS),
    Format("svmlight-skip", _SEEDS, _skipping, _skipping_reference, _TOKENS),
    Format("svmlight-blocks", _SEEDS, _blocks, _blocks_reference, _TOKENS),
    Format("svmlight-without-qid", _PLAIN_SEEDS, _without_qid, _without_qid_reference, _TOKENS),
]
