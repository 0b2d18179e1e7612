"""The multi-label SVMlight reader: labels, empty label sets, and its errors."""

from __future__ import annotations

import io

import numpy as np
import pytest

from slatewise.core.errors import DataError, DataWarning
from slatewise.data.multilabel_svmlight import read_multilabel_svmlight
from slatewise.data.records import MultiLabel


def read(data: bytes, **options: object) -> MultiLabel:
    file = io.BytesIO(data)
    file.name = "labels.txt"
    return read_multilabel_svmlight(file, **options)


def test_labels_in_any_order_and_rows_without_labels() -> None:
    rows = read(b"3,0 1:0.5 #c\n 2:1\n2:4\n1\n\n")
    np.testing.assert_array_equal(rows.Y.toarray(), [[1, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]])
    np.testing.assert_array_equal(rows.X.toarray(), [[0.5, 0], [0, 1], [0, 4], [0, 0]])
    assert rows.label_names.tolist() == ["0", "1", "2", "3"]


def test_widths_can_be_given() -> None:
    rows = read(b"1 1:1\n", n_features=3, n_labels=5)
    assert rows.X.shape == (1, 3)
    assert rows.Y.shape == (1, 5)
    assert read(b"").Y.shape == (0, 0)
    assert read(b"0 0:7\n", zero_based=True).X.toarray().tolist() == [[7]]
    assert read(b"2000000 1:1", n_labels=2_000_001).Y.indices.tolist() == [2_000_000]


@pytest.mark.parametrize(
    ("data", "column", "expected"),
    [
        (b"1,1 1:1", 1, "every label once"),
        (b"3,1,2,3 1:1", 1, "every label once"),
        (b"1, 1:1", 1, "labels, whole numbers"),
        (b",1 1:1", 1, "labels, whole numbers"),
        (b"1,,2 1:1", 1, "labels, whole numbers"),
        (b"1.0 1:1", 1, "labels, whole numbers"),
        (b"-1 1:1", 1, "labels, whole numbers"),
        (b"a 1:1", 1, "labels, whole numbers"),
        (b"0,1048576 1:1", 3, "a label from 0 to 1048575"),
        (b"99999999999999999999 1:1", 1, "a label from 0"),
        (b"1 2:1 1:1", 7, "above the one before"),
        (b"1 1:x", 5, "a value"),
        (b"1 2 1:1", 3, "index:value"),
    ],
)
def test_refuses_with_the_place(data: bytes, column: int, expected: str) -> None:
    with pytest.raises(DataError) as caught:
        read(b"# first line\n" + data)
    assert str(caught.value).startswith(f"labels.txt:2:{column}: expected ")
    assert expected in caught.value.expected
    with pytest.warns(DataWarning, match="left out 1 row"):
        rows = read(b"0 1:1\n" + data + b"\n1 1:2\n", on_error="skip")
    np.testing.assert_array_equal(rows.X.toarray(), [[1], [2]])
    assert rows.skipped.count == 1


def test_limits_of_the_arguments() -> None:
    for data in (b"0 1:1", b"5 1:1"):
        with pytest.raises(DataError, match="a label from 0 to"):
            read(data, n_labels=0)
    with pytest.raises(ValueError, match="n_labels: expected a whole number from 0"):
        read(b"", n_labels=-1)


def test_many_labels_in_one_row() -> None:
    labels = np.random.default_rng(0).permutation(50_000)
    rows = read((",".join(map(str, labels)) + " 1:1\n").encode())
    assert rows.Y.indices.tolist() == list(range(50_000))
