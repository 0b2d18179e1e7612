"""The SVMlight reader against scikit-learn's on a LETOR-like file: time, peak memory, first call in a new process."""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.data.svmlight import read_svmlight
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.running import installed
from slatewise_papers.framework.timing import best_seconds, numbers_printed

Bytes: TypeAlias = NDArray[np.uint8]

_N_FEATURES = 46
_ROWS_A_QUERY = 60
_STEP = 20_000

# VmHWM is the peak of this program alone; getrusage's would start from the parent's.
_MEMORY = """
import sys
from slatewise.data.svmlight import read_svmlight

def kilobytes(field):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field))

read_svmlight(sys.argv[1])
before = kilobytes("VmRSS")
rows = read_svmlight(sys.argv[2])
arrays = (rows.X.data, rows.X.indices, rows.X.indptr, rows.y, rows.qid, rows.doc_ids)
print((kilobytes("VmHWM") - before) * 1024 / sum(array.nbytes for array in arrays))
"""

_FIRST_CALL = """
import sys, time
from slatewise.data.svmlight import read_svmlight
start = time.perf_counter()
read_svmlight(sys.argv[1])
print(time.perf_counter() - start)
"""


def run(quick: bool = False) -> Table:
    """Time both readers on 1,000,000 rows x 46 features (quick: 50,000 rows)."""
    n_rows = 50_000 if quick else 1_000_000
    rows: list[Row] = []
    left_out: list[str] = []
    with TemporaryDirectory() as folder:
        small, large = Path(folder, "small.txt"), Path(folder, "large.txt")
        write_letor_like(small, 100)
        write_letor_like(large, n_rows)
        read_svmlight(small)
        ours = best_seconds(read_svmlight, [large] * 3)
        what = f"read {n_rows:,} rows x {_N_FEATURES} features, {large.stat().st_size / 1e6:.0f} MB"
        peer, theirs = None, None
        if installed("sklearn"):
            peer = "scikit-learn load_svmlight_file"
            load = partial(import_module("sklearn.datasets").load_svmlight_file, query_id=True)
            theirs = best_seconds(load, [str(large)])
        rows.append(Row(what, ours, peer, theirs, bar="ratio >= 2"))
        if Path("/proc/self/status").exists():
            [peak] = numbers_printed(_MEMORY, small, large)
            rows.append(Row("peak memory, by the arrays returned", peak, unit="x", bar="<= 3"))
        else:
            left_out.append("peak memory (needs /proc)")
        [cached] = numbers_printed(_FIRST_CALL, small)
        elsewhere = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder, "kernels"))}
        [compiled] = numbers_printed(_FIRST_CALL, small, environment=elsewhere)
        rows.append(Row("first call in a new process, kernels on disk", cached))
        rows.append(Row("first call in a new process, kernels to compile", compiled))
    return Table(
        "reader",
        rows,
        left_out,
        ["Both read the file from the page cache. Ours checks every rule of the format and keeps the document ids."],
    )


def write_letor_like(path: Path, n_rows: int, seed: int = 0) -> None:
    """Write rows as LETOR 4.0 does: 46 features with six decimals, about half of them 0, and a document id.

    Every line is a column of fixed width after the other, so that NumPy can write millions of them in seconds.
    """
    rng = np.random.default_rng(seed)
    with open(path, "wb") as file:
        for start in range(0, n_rows, _STEP):
            n = min(_STEP, n_rows - start)
            query = 10_000 + np.arange(start, start + n) // _ROWS_A_QUERY
            parts = [_digits(rng.integers(0, 3, n), 1), _repeat(" qid:", n), _digits(query, 5)]
            for feature in range(1, _N_FEATURES + 1):
                millionths = rng.integers(0, 10**6, n) * rng.integers(0, 2, n)
                parts += [_repeat(f" {feature}:0.", n), _digits(millionths, 6)]
            parts += [_repeat(" #docid = GX", n), _digits(rng.integers(0, 10**9, n), 9)]
            parts += [_repeat(" inc = 1 prob = 0.0214125\n", n)]
            file.write(np.hstack(parts).tobytes())


def _repeat(text: str, n: int) -> Bytes:
    return np.tile(np.frombuffer(text.encode(), dtype=np.uint8), (n, 1))


def _digits(values: NDArray[np.int64], width: int) -> Bytes:
    powers = 10 ** np.arange(width - 1, -1, -1)
    return (values[:, None] // powers % 10 + ord("0")).astype(np.uint8)
