"""Multi-label SVMlight: strict, and leaving out bad rows."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import BinaryIO

from scipy.sparse import csr_array

from slatewise.core.errors import DataWarning
from slatewise.data.multilabel_svmlight import read_multilabel_svmlight
from slatewise.data.records import MultiLabel
from tests.data import reference_multilabel_svmlight as reference
from tests.fuzz import Format

_N_FEATURES, _N_LABELS = 1000, 100
_SEEDS = (
    b"1,3,5 1:0.5 2:-1.25\n0 1:1e-3 3:12\n 2:3\n7,2 999:0.1234567890123456789 1000:1\n",
    b"# header\n\n99\r\n4,5 1:.5 6:5. #comment\r\n3:1 4:2\t5:3\r\n",
    b"10,9,8,7,6,5,4,3,2,1,0 1:9007199254740993\n1:4.9e-324",
)
_TOKENS = (b",", b",,", b"1,1", b"100", b"99,100", b"0,00", b" 1,2 ", b"1.0", b"-1", b"0:1", b"1001:1", b"1, 2")


def _rows(matrix: csr_array) -> tuple[tuple[int, ...], ...]:
    ends = matrix.indptr.tolist()
    columns = matrix.indices.tolist()
    return tuple(tuple(columns[start:stop]) for start, stop in pairwise(ends))


def _comparable(data: MultiLabel) -> object:
    X = csr_array(data.X)
    lines = tuple(error.line for error in data.skipped.first)
    return _rows(data.Y), _rows(X), X.data.tobytes(), data.skipped.count, lines


def _strict(file: BinaryIO) -> object:
    return _comparable(read_multilabel_svmlight(file, n_features=_N_FEATURES, n_labels=_N_LABELS))


def _strict_reference(data: bytes) -> object:
    return reference.read(data, skip=False, n_features=_N_FEATURES, n_labels=_N_LABELS)


def _skipping(file: BinaryIO) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return _comparable(read_multilabel_svmlight(file, on_error="skip"))


def _skipping_reference(data: bytes) -> object:
    return reference.read(data, skip=True, n_features=2**31 - 1, n_labels=2**20)


FORMATS = [
    Format("multilabel-svmlight", _SEEDS, _strict, _strict_reference, _TOKENS),
    Format("multilabel-svmlight-skip", _SEEDS, _skipping, _skipping_reference, _TOKENS),
]
