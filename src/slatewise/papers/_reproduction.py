"""What a reproduction returns, and the list of those there are."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import TypeAlias

from slatewise.report import Page

Figure: TypeAlias = tuple[str, str]
"""A drawing (SVG) and its caption."""

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

    def cell(self, name: str) -> str:
        """Return one figure as text, the published one in parentheses."""
        if name not in self.measured:
            return ""
        published = "" if self.paper is None or name not in self.paper else f" ({self.paper[name]:.4g})"
        return f"{self.measured[name]:.4g}{published}"


@dataclass(frozen=True)
class Reproduction:
    """A published table beside ours."""

    paper: str
    data: str
    rows: list[Row]
    seconds: float = 0.0
    figures: Sequence[Figure] = ()

    def as_json(self) -> dict[str, object]:
        """Return what ``--json`` writes: everything but the drawings."""
        rows = [asdict(row) for row in self.rows]
        return {"paper": self.paper, "data": self.data, "seconds": self.seconds, "rows": rows}

    def page(self) -> Page:
        """Return the report: one table of all figures, published ones in parentheses, and the drawings."""
        page = Page(f"{self.paper}: {self.data}")
        columns = list(dict.fromkeys(name for row in self.rows for name in row.measured))
        page.table(
            "Measured, and in parentheses published",
            ["", *columns],
            [[row.name, *(row.cell(column) for column in columns)] for row in self.rows],
        )
        for svg, caption in self.figures:
            page.figure(svg, caption)
        return page


def reproduce(paper: str, data: str | None = None, quick: bool = False, seed: int | None = None) -> Reproduction:
    """Run one paper's tables and time the whole; ``seed`` cuts other folds than the paper's module does by itself."""
    if paper not in PAPERS:
        raise ValueError(f"paper: expected one of {', '.join(PAPERS)}, found {paper!r}")
    if seed is not None and paper not in SEEDED:
        raise ValueError(f"seed: expected none for {paper}, whose folds are fixed, found {seed}")
    start = time.perf_counter()
    run = import_module(PAPERS[paper]).run
    result: Reproduction = run(data, quick) if seed is None else run(data, quick, seed)
    return replace(result, seconds=time.perf_counter() - start)
