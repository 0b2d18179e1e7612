"""Parquet and Arrow files: equal to pyarrow's own reading, whole or in blocks of whole queries."""

import io
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, parquet

from slatewise.core.errors import DataError
from slatewise.data import iter_parquet, read_parquet
from tests.data.strategies import named


def as_parquet(table: pa.Table, n_rows: int) -> bytes:
    file = io.BytesIO()
    parquet.write_table(table, file, row_group_size=n_rows)
    return file.getvalue()


def as_arrow(table: pa.Table, n_rows: int) -> bytes:
    file = io.BytesIO()
    feather.write_feather(table, file, chunksize=n_rows)
    return file.getvalue()


WRITERS = {"parquet": as_parquet, "arrow": as_arrow}
COLUMNS = {"label": "rel", "qid": "q", "doc_id": "d"}


def make(sizes: list[int]) -> pa.Table:
    rng = np.random.default_rng(len(sizes))
    n = sum(sizes)
    return pa.table(
        {
            "rel": pa.array(rng.integers(0, 3, n), pa.int8()),
            "q": pa.array(np.repeat(np.arange(len(sizes)), sizes).astype(str)).dictionary_encode(),
            "d": pa.array([f"d{row}" for row in range(n)], pa.string()),
            "f": pa.array(rng.normal(size=n), pa.float64()),
            "g": pa.array(rng.integers(0, 2, n), pa.int64()),
        }
    )


@given(sizes=st.lists(st.integers(1, 5), max_size=12), n_rows=st.integers(1, 20), max_bytes=st.integers(1, 1000))
@pytest.mark.parametrize("kind", WRITERS)
def test_whole_and_in_blocks(kind: str, sizes, n_rows, max_bytes) -> None:
    table = make(sizes)
    content = WRITERS[kind](table, n_rows)
    found = read_parquet(named(content), **COLUMNS)
    assert found.y.tolist() == table["rel"].to_pylist()
    assert found.qid.tolist() == table["q"].to_pylist()
    assert found.doc_ids is not None
    assert found.doc_ids.tolist() == table["d"].to_pylist()
    np.testing.assert_array_equal(found.dense(), np.column_stack([table["f"].to_numpy(), table["g"].to_numpy()]))
    blocks = list(iter_parquet(named(content), max_bytes=max_bytes, **COLUMNS))
    assert [query for block in blocks for query in block.qid.tolist()] == found.qid.tolist()
    assert [value for block in blocks for value in block.y.tolist()] == found.y.tolist()
    queries = [set(block.qid.tolist()) for block in blocks]
    assert sum(map(len, queries)) == len(sizes)
    if blocks:
        np.testing.assert_array_equal(np.vstack([block.dense() for block in blocks]), found.dense())
        widest = max(1, max_bytes // (8 * 5)) + max(sizes)
        assert max(len(block.y) for block in blocks) < widest + max(sizes)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_query_in_two_places_is_fine_as_a_whole_and_an_error_in_blocks(kind: str) -> None:
    content = WRITERS[kind](pa.table({"q": [1, 1, 2, 1], "rel": [0, 1, 2, 3], "f": [1.0, 2.0, 3.0, 4.0]}), 2)
    assert read_parquet(named(content), label="rel", qid="q").qid.tolist() == [1, 1, 2, 1]
    for max_bytes in (1, 1 << 20):
        with pytest.raises(
            DataError, match=r"^file.txt, column 'q', row 3: expected the rows of a query together, found query 1"
        ):
            list(iter_parquet(named(content), label="rel", qid="q", max_bytes=max_bytes))


@pytest.mark.parametrize("kind", WRITERS)
def test_rows_in_messages_count_from_the_start_of_the_file(kind: str) -> None:
    content = WRITERS[kind](pa.table({"q": [1, 2, 3, 4], "rel": [0, 1, 2, 3], "f": [1.0, 2.0, None, 4.0]}), 2)
    message = r"file.txt, column 'f', row 2: expected a finite number, found a missing value"
    with pytest.raises(DataError, match=message):
        read_parquet(named(content), label="rel", qid="q")
    with pytest.raises(DataError, match=message):
        list(iter_parquet(named(content), label="rel", qid="q", max_bytes=1))


def test_only_the_columns_asked_for_are_read(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    parquet.write_table(make([2, 1]).append_column("note", pa.array(["x", None, "y"])), path)
    assert read_parquet(path, features=["g"], **COLUMNS).X.shape == (3, 1)
    with pytest.raises(
        DataError, match=r"table.parquet, column 'note', row 0: expected numbers, found a column of String"
    ):
        read_parquet(path, **COLUMNS)
    with pytest.raises(DataError, match=r"table.parquet: expected a column called 'query', found the columns 'rel'"):
        read_parquet(path, label="rel", qid="query")
    with pytest.raises(FileNotFoundError):
        read_parquet(tmp_path / "none.parquet", label="rel", qid="q")


@pytest.mark.parametrize("kind", WRITERS)
def test_truncated_files(kind: str) -> None:
    content = WRITERS[kind](make([3, 2]), 2)
    for length in range(0, len(content) - 1, 97):
        with pytest.raises(DataError, match=r"^file.txt: expected a (complete )?Parquet or Arrow file"):
            read_parquet(named(content[:length]), **COLUMNS)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="max_bytes: expected a whole number >= 1, found 0"):
        next(iter_parquet(named(b""), label="rel", qid="q", max_bytes=0))


def test_without_pyarrow_the_extra_is_named() -> None:
    code = "import sys; sys.modules['pyarrow'] = None\nfrom slatewise import data\ndata.read_pairs\ndata.read_parquet"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: Parquet and Arrow files need pyarrow: pip install 'slatewise[parquet]'" in done.stderr


@pytest.mark.parametrize("kind", WRITERS)
def test_damage_is_a_data_error_or_goes_unseen_but_never_worse(kind: str) -> None:
    content = WRITERS[kind](make([3, 2, 4]), 4)
    rng = random.Random(0)
    messages: list[str] = []
    for _ in range(300):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] = rng.randrange(256)
        try:
            read_parquet(named(bytes(damaged)), **COLUMNS)
        except DataError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert not any("\n" in message for message in messages)


@pytest.mark.parametrize("kind", WRITERS)
def test_rows_of_which_no_byte_is_there_are_refused_before_room_is_made_for_them(kind: str) -> None:
    n_rows = 4 << 20
    content = WRITERS[kind](pa.table(dict.fromkeys(("q", "rel", "x"), pa.nulls(n_rows))), n_rows)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"found column '.*' of null, which claims 4194304 rows and has no"):
            read_parquet(named(content), label="rel", qid="q")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
