"""What the driver of a cluster holds: its peak memory with 10 and with 200 pieces of 64 MB that workers make and hold.

    python -m slatewise_papers.bench.ray_memory 200

prints the peak of one fit in KiB. Rows are generated where they are read, so nothing but the driver grows with files.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats
from slatewise.data.row_files import RowGroup
from slatewise.data.row_source import RowSource
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.running import installed

FEATURES, PIECE, ROWS_OF_LIST = 46, 64 << 20, 100
ROWS = PIECE // (8 * FEATURES) // ROWS_OF_LIST * ROWS_OF_LIST
FEW, MANY = 10, 200


@dataclass(frozen=True)
class Generated:
    """Rows that are drawn anew, and the same, where they are read."""

    n_features: int = FEATURES
    has_labels: bool = True
    has_qid: bool = True
    label_names: None = None

    def groups(self, path: str) -> list[RowGroup]:
        """Cut nothing: a name is a piece."""
        return [RowGroup(path, int(path), 0, ROWS, 0)]

    def features(self, group: RowGroup) -> Floats:
        """Draw features."""
        X = np.random.default_rng([group.number, 0]).random((ROWS, FEATURES))
        X[:, 0] += self.numbers(group)
        return X

    def numbers(self, group: RowGroup) -> Floats:
        """Draw relevances."""
        return (np.random.default_rng([group.number, 1]).random(ROWS) < 0.1).astype(np.float64)

    def labels(self, group: RowGroup) -> NDArray[Any]:
        """Return relevances."""
        return self.numbers(group)

    def ids(self, group: RowGroup) -> NDArray[Any]:
        """Number lists through all pieces."""
        return group.number * (ROWS // ROWS_OF_LIST) + np.arange(ROWS) // ROWS_OF_LIST


class _NoFiles(RowSource):
    """A source without files to look at."""

    def sha256(self, *content: bytes) -> str:
        """Return a name: nothing goes on from this fit."""
        return str(len(content))


def run(quick: bool = False) -> Table:
    """Measure; ``quick``: 20 pieces instead of 200."""
    if not installed("ray"):
        return Table("ray-memory", [], ["ray"])
    few, many = (_peak(n) for n in (FEW, 20 if quick else MANY))
    rows = [
        Row(f"driver with {FEW} pieces of 64 MB", few / 1024, unit="MiB"),
        Row(f"driver with {20 if quick else MANY} pieces of 64 MB", many / 1024, unit="MiB"),
        Row("difference", (many - few) / 1024, unit="MiB", bar="<= 95 MiB (100 MB)"),
    ]
    return Table("ray-memory", rows, [], ["peak resident memory of the driver's process; two workers, three rounds"])


def _peak(n_pieces: int) -> int:
    command = [sys.executable, "-m", "slatewise_papers.bench.ray_memory", str(n_pieces)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main(arguments: Sequence[str]) -> None:
    """Fit once, and print the peak of this process in KiB."""
    import warnings

    from slatewise import MarginRanker, cluster

    names = [str(at) for at in range(int(arguments[0]))]
    made = Generated()
    source = _NoFiles(tuple(names), made, tuple(group for name in names for group in made.groups(name)))
    with cluster.ray(workers=2), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MarginRanker("map", max_iter=3).fit(source)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main(sys.argv[1:])
