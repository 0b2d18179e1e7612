"""What a reproduction returns, and the list of those there are."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

SEEDED = ("cstar", "lasr")
"""Those that cut their folds at random, and take the seed as a third argument."""
PAPERS = {
    "cstar": "slatewise.papers.cstar",
    "lasr": "slatewise.papers.lasr",
    "letor": "slatewise.papers.letor",
    "mlr": "slatewise.papers.mlr",
    "rankmatch": "slatewise.papers.rankmatch",
}


@dataclass(frozen=True)
class Row:
    """One row of a published table: what we measured, and what the paper printed (None where it has no figure)."""

    name: str
    measured: dict[str, float]
    paper: Mapping[str, float] | None


@dataclass(frozen=True)
class Reproduction:
    """A published table beside ours."""

    paper: str
    data: str
    rows: list[Row]
    seconds: float = 0.0


def reproduce(paper: str, data: str | None = None, quick: bool = False, seed: int | None = None) -> Reproduction:
    """Run one paper's tables and time the whole; ``seed`` cuts other folds than the paper's module does by itself."""
    if paper not in PAPERS:
        raise ValueError(f"paper: expected one of {', '.join(PAPERS)}, found {paper!r}")
    if seed is not None and paper not in SEEDED:
        raise ValueError(f"seed: expected none for {paper}, whose folds are fixed, found {seed}")
    start = time.perf_counter()
    run = import_module(PAPERS[paper]).run
    result: Reproduction = run(data, quick) if seed is None else run(data, quick, seed)
    return Reproduction(result.paper, result.data, result.rows, time.perf_counter() - start)
