"""JSON lines of tagged rows under mutation."""

from typing import BinaryIO

import numpy as np

from slatewise.data import read_tags
from tests.data.reference_tags import reference_tag_json
from tests.fuzz import Format


def json_lines(file: BinaryIO) -> object:
    rows = read_tags(file)
    flags = tuple(map(tuple, rows.Y.toarray().tolist()))
    ids = None if rows.ids is None else tuple(rows.ids.tolist())
    if isinstance(rows.X, np.ndarray):
        features = tuple(row.tobytes() for row in rows.X)
    else:
        assert rows.feature_names is not None
        names, X = rows.feature_names.tolist(), rows.X
        bounds = [slice(a, b) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
        features = tuple(
            tuple((names[at], value.tobytes()) for at, value in zip(X.indices[row], X.data[row], strict=True))
            for row in bounds
        )
    return features, flags, tuple(rows.label_names.tolist()), ids


TOKENS = (
    *(b"null", b"true", b"[]", b"{}", b"[", b"]", b"{", b"}", b'"', b"\\", b"\\u0041", b"\\ud83d\\ude00", b"\\ud800"),
    *(b"\\n", b'"id": 3,', b'"tags": [],', b'"features": [1],', b"01", b"NaN", b"Infinity", b", ", b'""', b'" "', b"-"),
)

FORMATS = [
    Format(
        "tags_jsonl",
        (
            b'{"features": [1, -2.5e3], "tags": ["sky", "sea"]}\n{"features":[0,0.5],"tags":[]}\n',
            b'{"id": "a", "features": {"x": 1, "y": 2}, "tags": ["s"]}\r\n\r\n'
            b'{"tags": ["\\u00e9"], "id": "b", "features": {}}\r\n',
            b'{"features": [1], "tags": ["x"], "id": 7}\n {"features" : [ 2 ] , "tags":[ "y" , "x" ],"id":8}',
        ),
        json_lines,
        reference_tag_json,
        TOKENS,
    )
]
