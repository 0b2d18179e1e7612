"""Parquet and Arrow files to rank (``.parquet``, ``.arrow``, ``.feather``): whole, or block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import narwhals as nw
import numpy as np

from slatewise.core.errors import DataError
from slatewise.core.rules import MOST_LISTED
from slatewise.data.frames import Columns, ids_of, require_columns, rows_of
from slatewise.data.reading import TABLE_MAGIC, PathOrFile
from slatewise.data.records import Ids, RowsToRank

try:
    import pyarrow
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError as error:
    raise ImportError("Parquet and Arrow files need pyarrow: pip install 'slatewise[parquet]'") from error

_PARQUET_MAGIC, _ARROW_MAGIC = TABLE_MAGIC


def read_parquet(
    path: PathOrFile,
    *,
    label: str,
    qid: str,
    doc_id: str | None = None,
    features: Sequence[str] | None = None,
    require_label: bool = True,
) -> RowsToRank:
    """Read a Parquet or Arrow file; rows of one query need not stand together.

    Parameters
    ----------
    path : str, path or binary file
        Recognized by its first bytes, not by its name.
    label, qid : str
        The columns of relevances (numbers) and of query ids (integers or strings).
    doc_id : str, optional
        The column of document ids.
    features : list of str, optional
        The columns of features, numbers or booleans. By default all the others, in the file's order.
    require_label : bool
        Whether the column of relevances must be there; without it they are all 0.

    Raises
    ------
    DataError
        With the file, the column, the row (from 0) and what was expected.

    Examples
    --------
    >>> import io
    >>> import pyarrow
    >>> from pyarrow import feather
    >>> file = io.BytesIO()
    >>> feather.write_feather(pyarrow.table({"q": [1, 1], "rel": [0, 2], "bm25": [0.5, 7.5]}), file)
    >>> _ = file.seek(0)
    >>> read_parquet(file, label="rel", qid="q").y.tolist()
    [0.0, 2.0]
    """
    with _open_table(path) as (table, name):
        own = label if require_label or label in table.names else None
        columns = Columns.among(table.names, name, own, qid, doc_id, features)
        return rows_of(_whole(table, columns.all), columns, name)


def iter_parquet(
    path: PathOrFile,
    *,
    label: str,
    qid: str,
    doc_id: str | None = None,
    features: Sequence[str] | None = None,
    max_bytes: int = 1 << 26,
) -> Iterator[RowsToRank]:
    """Read block by block, for a file larger than memory; every block holds whole queries.

    The rows of a query must stand together: one that comes back after another is an error. Parameters are those of
    :func:`read_parquet`, and ``max_bytes``, about how much of the table is taken at a time; a query larger than that
    still comes in one block.

    Examples
    --------
    >>> import io
    >>> import pyarrow
    >>> from pyarrow import feather
    >>> file = io.BytesIO()
    >>> feather.write_feather(pyarrow.table({"q": [1, 1, 2], "rel": [0, 2, 1], "bm25": [0.5, 7.5, 3.0]}), file)
    >>> _ = file.seek(0)
    >>> [block.y.tolist() for block in iter_parquet(file, label="rel", qid="q", max_bytes=1)]
    [[0.0, 2.0], [1.0]]
    """
    if max_bytes < 1:
        raise ValueError(f"max_bytes: expected a whole number >= 1, found {max_bytes}")
    with _open_table(path) as (table, name):
        columns = Columns.among(table.names, name, label, qid, doc_id, features)
        n_rows = max(1, max_bytes // (8 * len(columns.all)))
        queries = _Queries(columns.qid, name)
        first_row = 0
        for block in queries.blocks(table.batches(columns.all, n_rows)):
            yield rows_of(nw.from_native(block, eager_only=True), columns, name, first_row)
            first_row += block.num_rows


def read_table(path: PathOrFile, chosen: Callable[[list[str], str], list[str]]) -> tuple[nw.DataFrame[Any], str]:
    """Return some columns of a file, and its name; ``chosen`` says which, of the names of all and the file's name."""
    with _open_table(path) as (table, name):
        columns = chosen(table.names, name)
        return _whole(table, columns), name


class RowGroups(NamedTuple):
    """What a Parquet file has, and how many rows each of its row groups."""

    names: list[str]
    sizes: list[int]
    nothing: nw.DataFrame[Any]
    """All columns, without a row."""
    notes: dict[str, str]
    """The notes of :func:`write_columns`."""


def row_groups(path: str) -> RowGroups:
    """Look into a Parquet file, without reading a row."""
    with _open_parquet(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
        require_columns(schema.names, path, [])
        sizes = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
        notes = {name.decode(): text.decode(errors="replace") for name, text in (schema.metadata or {}).items()}
        return RowGroups(schema.names, sizes, nw.from_native(schema.empty_table(), eager_only=True), notes)


def read_group(path: str, number: int, columns: Sequence[str]) -> nw.DataFrame[Any]:
    """Return some columns of one row group of a Parquet file."""
    with _open_parquet(path) as file:
        rows = file.read_row_group(number, columns=columns)
        _require_stored(rows, columns, rows.num_rows)
        return nw.from_native(rows, eager_only=True)


@contextmanager
def _open_parquet(path: str) -> Generator[pyarrow.parquet.ParquetFile]:
    with open(path, "rb") as file:
        try:
            yield pyarrow.parquet.ParquetFile(file, page_checksum_verification=True)
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DataError(path, 0, 0, "a complete Parquet file", str(error).partition("\n")[0]) from None


def write_columns(path: Path, columns: dict[str, Any], notes: dict[str, str] | None = None) -> None:
    """Write columns of equal length as a Parquet file, and notes beside them."""
    with open(path, "wb") as file:
        pyarrow.parquet.write_table(pyarrow.table(columns, metadata=notes), file)


class _Queries:
    """Cuts a stream of tables between queries, and refuses a query that comes back."""

    def __init__(self, qid: str, name: str) -> None:
        self._qid, self._name = qid, name
        self._seen: set[object] = set()
        self._last: object = None
        self._n_rows = 0

    def blocks(self, tables: Iterator[pyarrow.Table]) -> Iterator[pyarrow.Table]:
        """Yield tables of whole queries."""
        held: list[pyarrow.Table] = []
        for table in tables:
            starts = self._new_queries(table)
            if starts and (held or starts[-1]):
                yield pyarrow.concat_tables([*held, table.slice(0, starts[-1])])
                held = []
            if table.num_rows:
                held.append(table.slice(starts[-1] if starts else 0))
        if held:
            yield pyarrow.concat_tables(held)

    def _new_queries(self, table: pyarrow.Table) -> list[int]:
        """Return the rows of the table at which another query begins."""
        ids: Ids = ids_of(nw.from_native(table, eager_only=True)[self._qid], self._name, self._n_rows)
        changes = np.concatenate(([True], ids[1:] != ids[:-1])) if len(ids) else np.zeros(0, dtype=np.bool_)
        starts: list[int] = []
        for row in np.flatnonzero(changes).tolist():
            query: object = ids[row].item()
            if row == 0 and self._seen and query == self._last:
                continue
            if query in self._seen:
                place = f"{self._name}, column {self._qid!r}, row {self._n_rows + row}"
                raise DataError(place, 0, 0, "the rows of a query together", f"query {query!r} again after another")
            self._seen.add(query)
            self._last = query
            starts.append(row)
        self._n_rows += len(ids)
        return starts


class _Table(Protocol):
    """A file of either format."""

    @property
    def names(self) -> list[str]: ...

    def empty(self, columns: list[str]) -> pyarrow.Table:
        """Return the columns without rows."""
        ...

    def batches(self, columns: list[str], n_rows: int) -> Iterator[pyarrow.Table]:
        """Yield the columns, at most ``n_rows`` rows at a time."""
        ...


class _Parquet:
    def __init__(self, file: BinaryIO) -> None:
        self._file = pyarrow.parquet.ParquetFile(file, page_checksum_verification=True)
        self.names = self._file.schema_arrow.names

    def empty(self, columns: list[str]) -> pyarrow.Table:
        return self._file.schema_arrow.empty_table().select(columns)

    def batches(self, columns: list[str], n_rows: int) -> Iterator[pyarrow.Table]:
        for batch in self._file.iter_batches(batch_size=n_rows, columns=columns):
            _require_stored(batch, columns, self._file.metadata.num_rows)
            yield pyarrow.Table.from_batches([batch])


class _Arrow:
    def __init__(self, file: BinaryIO) -> None:
        self._file = pyarrow.ipc.open_file(file)
        self.names = self._file.schema.names

    def empty(self, columns: list[str]) -> pyarrow.Table:
        return self._file.schema.empty_table().select(columns)

    def batches(self, columns: list[str], n_rows: int) -> Iterator[pyarrow.Table]:
        for number in range(self._file.num_record_batches):
            batch = self._file.get_batch(number)
            batch.validate(full=True)  # offsets out of bounds would otherwise read foreign memory
            _require_stored(batch, columns, batch.num_rows)
            for start in range(0, batch.num_rows, n_rows):
                yield pyarrow.Table.from_batches([batch.select(columns).slice(start, n_rows)])


def _require_stored(rows: pyarrow.RecordBatch | pyarrow.Table, columns: Sequence[str], n_rows: int) -> None:
    """Raise pyarrow's error where a column of ``n_rows``, some of them given, has no bytes for them: of nulls, say.

    Few rows pass, because memory for them does not matter: a later check then names the cell.
    """
    for name in columns if n_rows > MOST_LISTED else ():
        column = rows[name]
        if rows.num_rows > 8 * column.nbytes:
            found = f"column {name!r} of {column.type}, which claims {n_rows} rows and has no bytes for them"
            raise pyarrow.ArrowInvalid(found)


def _whole(table: _Table, columns: list[str]) -> nw.DataFrame[Any]:
    whole = pyarrow.concat_tables([table.empty(columns), *table.batches(columns, 1 << 20)])
    return nw.from_native(whole, eager_only=True)


@contextmanager
def _open_table(path: PathOrFile) -> Generator[tuple[_Table, str]]:
    is_path = isinstance(path, str | os.PathLike)
    name = os.fspath(path) if is_path else str(getattr(path, "name", "<stream>"))
    with open(path, "rb") if is_path else nullcontext(path) as file:
        start = file.tell()
        magic = file.read(len(_ARROW_MAGIC))
        file.seek(start)
        try:
            if magic.startswith(_PARQUET_MAGIC):
                yield _Parquet(file), name
            elif magic == _ARROW_MAGIC:
                yield _Arrow(file), name
            else:
                raise DataError(name, 0, 0, "a Parquet or Arrow file", "another kind of file")
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DataError(name, 0, 0, "a complete Parquet or Arrow file", str(error).partition("\n")[0]) from None
