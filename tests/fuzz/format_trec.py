"""TREC runs and judgements under mutation."""

from typing import BinaryIO

from slatewise.data import read_qrels, read_run
from tests.data.reference_text import reference_qrels, reference_run
from tests.fuzz import Format


def run(file: BinaryIO) -> object:
    found = read_run(file)
    keys = tuple(zip(found.qid.tolist(), found.doc_ids.tolist(), strict=True))
    return keys, found.scores.tobytes(), found.tag


def qrels(file: BinaryIO) -> object:
    found = read_qrels(file)
    keys = zip(found.qid.tolist(), found.doc_ids.tolist(), strict=True)
    return tuple(zip(keys, found.relevance.tolist(), strict=True))


FORMATS = [
    Format(
        "trec_run",
        (
            b"q1 Q0 d1 1 2.5 tag\nq1 Q0 d2 2 -1e-3 tag\nq2 Q0 d1 1 0 tag\n",
            b"\tq1\tQ0  d1 \t1 .5 t\r\n\r\n q1 Q0 \xc3\xa9 +2 5. t\r\nq1 Q0 d3 -3 1E+5 t",
            b"7 0 a 0 0.1 x\n8 0 a 0 0.2 x\n7 0 b 0 0.3 x\n8 0 b 0 -0.0 x\n",
        ),
        run,
        reference_run,
        (
            b" Q0 ",
            b" 9223372036854775808 ",
            b" -9223372036854775808 ",
            b"\xe2\x80\x83",
            b"\xc2\xa0",
            b" d1 ",
            b" 0x1p3",
        ),
    ),
    Format(
        "trec_qrels",
        (
            b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 -2\n",
            b"\tq1\t0  d1 \t+1\r\n\r\n q1 0 \xc3\xa9 007\r\nq1 0 d3 9223372036854775807",
        ),
        qrels,
        reference_qrels,
        (b" 0 ", b" 9223372036854775808 ", b" -9223372036854775808 ", b"\xe2\x80\x83", b"\xc2\xa0", b" d1 "),
    ),
]
