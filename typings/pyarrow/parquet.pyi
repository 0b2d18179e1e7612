from collections.abc import Iterator, Sequence
from typing import BinaryIO

from pyarrow import RecordBatch, Schema, Table

class ParquetFile:
    schema_arrow: Schema
    def __init__(self, source: BinaryIO, *, page_checksum_verification: bool = ...) -> None: ...
    def iter_batches(self, *, batch_size: int, columns: Sequence[str]) -> Iterator[RecordBatch]: ...

def write_table(table: Table, where: BinaryIO) -> None: ...
