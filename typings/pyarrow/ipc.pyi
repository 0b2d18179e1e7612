from typing import BinaryIO

from pyarrow import RecordBatch, Schema

class RecordBatchFileReader:
    schema: Schema
    num_record_batches: int
    def get_batch(self, i: int) -> RecordBatch: ...

def open_file(source: BinaryIO) -> RecordBatchFileReader: ...
