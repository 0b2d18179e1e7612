"""What a reproduction returns, what a paper printed, and the list of reproductions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias

from slatewise.report import Page

Figure: TypeAlias = tuple[str, str]
"""A drawing (SVG) and its caption."""

SEEDED = ("cstar", "defaults", "lasr", "mlr", "sessions", "stopping", "tags")
"""Reproductions that cut their folds at random, and take the seed as a third argument."""
KEPT = ("sessions", "tags")
"""Reproductions that keep finished parts in a folder, and take it as a fourth argument."""
PAPERS = {
    "cstar": "slatewise_papers.cstar.tables",
    "defaults": "slatewise_papers.defaults.tables",
    "lasr": "slatewise_papers.lasr.tables",
    "letor": "slatewise_papers.letor",
    "mlr": "slatewise_papers.mlr.tables",
    "rankmatch": "slatewise_papers.rankmatch.tables",
    "sessions": "slatewise_papers.sessions.tables",
    "stopping": "slatewise_papers.tags.stopping",
    "tags": "slatewise_papers.tags.tables",
}
_BESIDE = ("_se", "_low", "_high", "_p")
"""Ends of the names of figures that say how certain another figure is."""


@dataclass(frozen=True)
class Row:
    """One row of a published table: what we measured, and what the paper printed (None where it has no figure)."""

    name: str
    measured: dict[str, float]
    paper: Mapping[str, float] | None
    entries: tuple[str, ...] = ()
    """A list, best first, where the row is one; the report sets lists whose names differ at the end side by side."""

    def cell(self, name: str) -> str:
        """Return one figure as text with what belongs to it, the published one in parentheses."""
        if name not in self.measured:
            return ""
        figure = f"{self.measured[name]:.4g}"
        if f"{name}_se" in self.measured:
            figure += f" ± {self.measured[f'{name}_se']:.2g}"
        if f"{name}_low" in self.measured:
            figure += f" [{self.measured[f'{name}_low']:.3g}, {self.measured[f'{name}_high']:.3g}]"
        if f"{name}_p" in self.measured:
            figure += f", p {self.measured[f'{name}_p']:.2g}"
        return figure if self.paper is None or name not in self.paper else f"{figure} ({self.paper[name]:.4g})"


@dataclass(frozen=True)
class Published:
    """The figures that a paper printed, a row per method."""

    columns: Sequence[str]
    figures: Mapping[str, Sequence[float]]
    digits: int = 1
    """Of differences."""

    def of(self, name: str) -> dict[str, float] | None:
        """Return a method's figures, None where there are none."""
        return dict(zip(self.columns, self.figures[name], strict=False)) if name in self.figures else None

    def gain(self, one: str, other: str, relative: Sequence[str] = ()) -> dict[str, float] | None:
        """Return the differences of two methods; those of ``relative`` also in percent, as ``_relative``."""
        after, before = self.of(one), self.of(other)
        if after is None or before is None:
            return None
        gains = {name: round(figure - before[name], self.digits) for name, figure in after.items()}
        return gains | {f"{name}_relative": round(100 * (after[name] / before[name] - 1), 1) for name in relative}


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
        rows = [{name: value for name, value in asdict(row).items() if value != ()} for row in self.rows]
        return {"paper": self.paper, "data": self.data, "seconds": self.seconds, "rows": rows}

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return columns and rows to look at: a figure's error, interval and p value stand in its own cell."""
        return _table(self.rows)

    def page(self) -> Page:
        """Return the report: tables of all figures, published ones in parentheses, lists side by side, the drawings."""
        page = Page(f"{self.paper}: {self.data}")
        figures = [row for row in self.rows if not row.entries]
        for caption, rows in (
            ("Measured, and in parentheses published", [row for row in figures if " minus " not in row.name]),
            ("Differences, and in parentheses published", [row for row in figures if " minus " in row.name]),
        ):
            if rows:
                page.table(caption, *_table(rows))
        for caption, lists in _side_by_side(self.rows).items():
            heads = [
                f"{head} ({', '.join(f'{name} {row.cell(name)}' for name in row.measured)})" for head, row in lists
            ]
            places = zip_longest(*(row.entries for _, row in lists), fillvalue="")
            page.table(caption, ["", *heads], [[f"{place}.", *entries] for place, entries in enumerate(places, 1)])
        for svg, caption in self.figures:
            page.figure(svg, caption)
        return page


def _table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    names = dict.fromkeys(name for row in rows for name in row.measured)
    columns = [name for name in names if not name.endswith(_BESIDE)]
    return ["", *columns], [[row.name, *map(row.cell, columns)] for row in rows]


def _side_by_side(rows: Sequence[Row]) -> dict[str, list[tuple[str, Row]]]:
    """Group lists by their names up to the last comma; what follows it heads the column."""
    groups: dict[str, list[tuple[str, Row]]] = {}
    for row in rows:
        if row.entries:
            caption, _, head = row.name.rpartition(", ")
            groups.setdefault(caption, []).append((head, row))
    return groups


def reproduce(
    paper: str, data: str | None = None, quick: bool = False, seed: int | None = None, keep: Path | None = None
) -> Reproduction:
    """Run one paper's tables and time the whole.

    ``seed`` cuts other folds than the paper's module does by itself; ``keep`` is a folder for finished parts.
    """
    if paper not in PAPERS:
        raise ValueError(f"paper: expected one of {', '.join(PAPERS)}, found {paper!r}")
    if seed is not None and paper not in SEEDED:
        raise ValueError(f"seed: expected none for {paper}, whose folds are fixed, found {seed}")
    if keep is not None and paper not in KEPT:
        raise ValueError(f"keep: expected none for {paper}, which runs as a whole, found {keep}")
    start = time.perf_counter()
    options: dict[str, Any] = {} if seed is None else {"seed": seed}
    result: Reproduction = import_module(PAPERS[paper]).run(
        data, quick, **options, **({} if keep is None else {"keep": keep})
    )
    return replace(result, seconds=time.perf_counter() - start)
