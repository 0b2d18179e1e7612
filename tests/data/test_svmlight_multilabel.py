"""The multi-label SVMlight reader: labels, empty label sets, and its errors."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from slatewise.core.errors import DataError, DataWarning
from slatewise.data.multilabel_svmlight import read_multilabel_svmlight, write_multilabel_svmlight
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


@pytest.mark.parametrize("dense", [True, False])
def test_what_was_written_is_read_back_bit_for_bit(tmp_path: Path, dense: bool) -> None:
    rng = np.random.default_rng(0)
    X = csr_array(np.hstack([0.1 + rng.random((30, 1)), random_array((30, 4), density=0.5, rng=rng).toarray()]))
    Y = csr_array(rng.integers(0, 2, (30, 4)).astype(np.int8))
    data = MultiLabel(X.toarray() if dense else X, Y, np.array(list("abcd")), ids=np.arange(30))
    write_multilabel_svmlight(tmp_path / "rows.txt.gz", data)
    again = read_multilabel_svmlight(tmp_path / "rows.txt.gz", n_features=5, n_labels=4)
    np.testing.assert_array_equal(again.X.toarray(), X.toarray())
    np.testing.assert_array_equal(again.Y.toarray(), Y.toarray())


@pytest.mark.parametrize(
    ("X", "ids", "message"),
    [
        ([[1.0], [0.0]], None, "X, Y: expected a label or a feature in every row, found neither in row 1"),
        ([[1.0]], None, "X: expected 2 rows as in Y, found 1"),
        ([[np.nan], [1.0]], None, "X: expected finite numbers"),
        ([[1.0], [1.0]], np.array(["a", "b\n1 1:1"]), "ids: expected printable text"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path: Path, X, ids, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_multilabel_svmlight(
            tmp_path / "rows.txt", MultiLabel(np.array(X), csr_array([[1], [0]]), np.array(["a"]), ids=ids)
        )
    assert not list(tmp_path.iterdir())
