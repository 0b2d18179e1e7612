"""Frames: pandas, polars and Arrow give the same rows; what is missing or no number is named by column and row."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise.core.errors import DataError
from slatewise.data import from_frame
from tests.data.strategies import finite, words

KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
rows = st.lists(
    st.tuples(st.sampled_from(["a", "b", "é"]), st.integers(0, 4), words, finite, st.booleans()), min_size=1
)


@pytest.fixture(params=KINDS, name="make")
def _make(request: pytest.FixtureRequest):
    return KINDS[request.param]


@given(rows=rows)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_come_out_as_they_went_in(kind: str, rows) -> None:
    q, rel, doc, f, g = map(list, zip(*rows, strict=True))
    frame = KINDS[kind]({"f": f, "rel": rel, "q": q, "doc": doc, "g": g})
    found = from_frame(frame, label="rel", qid="q", doc_id="doc")
    assert found.qid.tolist() == q
    assert found.y.tolist() == rel
    assert found.doc_ids is not None
    assert found.doc_ids.tolist() == doc
    np.testing.assert_array_equal(found.dense(), np.column_stack([f, g]))


def test_columns_can_be_chosen_and_ordered(make) -> None:
    frame = make({"f": [1.0, 2.0], "rel": [0, 1], "q": [7, 7], "d": [5, 6], "g": [3, 4]})
    found = from_frame(frame, label="rel", qid="q", doc_id="d", features=["g", "f"])
    assert found.dense().tolist() == [[3, 1], [4, 2]]
    assert found.qid.dtype == np.int64
    assert found.doc_ids is not None
    assert found.doc_ids.tolist() == ["5", "6"]
    assert from_frame(frame, label="rel", qid="q", features=[]).X.shape == (2, 0)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("f", [1.0, None], r"frame, column 'f', row 1: expected a finite number, found a missing value"),
        ("f", [1.0, float("inf")], r"frame, column 'f', row 1: expected a finite number, found inf"),
        ("f", ["1", "x"], r"frame, column 'f', row 0: expected numbers, found a column of String"),
        ("rel", [None, 1], r"frame, column 'rel', row 0: expected a finite number, found a missing value"),
        ("q", ["a", None], r"frame, column 'q', row 1: expected an id, found a missing value"),
        ("q", [0.5, 1.5], r"frame, column 'q', row 0: expected integer or string ids, found a column of Float64"),
        ("q", np.array([1, 2**64 - 1], dtype=np.uint64), r"frame, column 'q', row 1: expected an id within int64"),
        ("d", ["a", None], r"frame, column 'd', row 1: expected an id, found a missing value"),
    ],
)
def test_a_bad_value_is_named(make, column, values, message) -> None:
    frame = make({"f": [1.0, 2.0], "rel": [0, 1], "q": ["a", "a"], "d": ["x", "y"]} | {column: values})
    with pytest.raises(DataError, match=message):
        from_frame(frame, label="rel", qid="q", doc_id="d")


def test_nan_is_named(make) -> None:
    frame = make({"f": [1.0, float("nan")], "rel": [0, 1], "q": [1, 1]})
    with pytest.raises(
        DataError, match=r"frame, column 'f', row 1: expected a finite number, found (nan|a missing value)"
    ):
        from_frame(frame, label="rel", qid="q")


def test_unknown_and_repeated_columns(make) -> None:
    frame = make({"f": [1.0], "rel": [0], "q": [1]})
    with pytest.raises(DataError, match=r"frame: expected a column called 'label', found the columns 'f', 'rel', 'q'"):
        from_frame(frame, label="label", qid="q")
    with pytest.raises(ValueError, match="features: expected every column once"):
        from_frame(frame, label="rel", qid="q", features=["f", "f"])


def test_repeated_names_in_a_frame() -> None:
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=["f", "f", "rel", "q"])
    with pytest.raises(DataError, match="frame: expected every column name once"):
        from_frame(frame, label="rel", qid="q")


def test_other_types_of_ids_and_numbers() -> None:
    categories = pd.DataFrame({"f": [1, 2], "rel": [0, 1], "q": pd.Categorical(["b", "a"])})
    assert from_frame(categories, label="rel", qid="q").qid.tolist() == ["b", "a"]
    nullable = pd.DataFrame({"f": [1, 2], "rel": [0, 1], "q": [1, 2]}).convert_dtypes()
    assert from_frame(nullable, label="rel", qid="q").dense().tolist() == [[1.0], [2.0]]
    enum = pl.DataFrame({"f": [Decimal("1.5")], "rel": [0], "q": ["a"]}, schema_overrides={"q": pl.Enum(["a"])})
    assert from_frame(enum, label="rel", qid="q").dense().tolist() == [[1.5]]


def test_an_index_does_not_shift_rows() -> None:
    frame = pd.DataFrame({"f": [1.0, 2.0, np.nan], "rel": [0, 1, 2], "q": ["a", "b", "a"]}, index=[7, 3, 5])
    with pytest.raises(DataError, match="row 2"):
        from_frame(frame, label="rel", qid="q")
    assert from_frame(frame[:2], label="rel", qid="q").dense().ravel().tolist() == [1.0, 2.0]


def test_no_rows() -> None:
    frame = pl.DataFrame({"f": [], "rel": [], "q": []}, schema={"f": pl.Float64, "rel": pl.Int64, "q": pl.String})
    found = from_frame(frame, label="rel", qid="q")
    assert found.X.shape == (0, 1)


def test_integers_beyond_float64_are_rounded(make) -> None:
    frame = make({"q": [1, 1], "rel": [0, 1], "hash": [2**60 + 1, 3]})
    assert from_frame(frame, label="rel", qid="q").dense().ravel().tolist() == [float(2**60), 3.0]
