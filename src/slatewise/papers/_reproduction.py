"""What a reproduction returns, and the list of those there are."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

PAPERS = {"cstar": "slatewise.papers.cstar", "letor": "slatewise.papers.letor"}


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


def reproduce(paper: str, data: str | None = None, quick: bool = False) -> Reproduction:
    """Run one paper's tables and time the whole."""
    if paper not in PAPERS:
        raise ValueError(f"paper: expected one of {', '.join(PAPERS)}, found {paper!r}")
    start = time.perf_counter()
    result: Reproduction = import_module(PAPERS[paper]).run(data, quick)
    return Reproduction(result.paper, result.data, result.rows, time.perf_counter() - start)
