from collections.abc import Iterator, Sequence
from typing import BinaryIO

from pyarrow import RecordBatch, Schema, Table

class RowGroup:
    num_rows: int

class FileMetaData:
    num_row_groups: int
    num_rows: int
    def row_group(self, i: int) -> RowGroup: ...

class ParquetFile:
    schema_arrow: Schema
    metadata: FileMetaData
    def __init__(self, source: BinaryIO, *, page_checksum_verification: bool = ...) -> None: ...
    def read_row_group(self, i: int, columns: Sequence[str]) -> Table: ...
    def iter_batches(self, *, batch_size: int, columns: Sequence[str]) -> Iterator[RecordBatch]: ...

def write_table(table: Table, where: BinaryIO) -> None: ...
