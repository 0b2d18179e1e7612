"""Petterson, Caetano, McAuley and Yu (2009): ranking (Figures 2 and 3, Table 1) and image matching (section 5.2).

Without ``--data`` everything runs on the data at hand: OHSUMED in full, MQ2007 (85% of its rows) as a second
collection, silhouettes and the CMU house. With ``--data`` the ranking tables run on that collection alone, ``images``
being the name of the image part.
"""

from __future__ import annotations

from collections.abc import Sequence

from slatewise.report import lines
from slatewise_papers.framework.reproduction import Figure, Reproduction, Row
from slatewise_papers.rankmatch.data import load_ranking
from slatewise_papers.rankmatch.images import run_images
from slatewise_papers.rankmatch.ranking import DEPTHS, consistency, figure_2, table_1

MAIN, SECOND, IMAGES = "ohsumed25", "mq2007-85pct", "images"
_LINES = 5  # in one drawing: there are no more colors


def run(data: str | None = None, quick: bool = False) -> Reproduction:
    """Run the tables and draw the figures; ``quick``: one fold, few lists, one draw."""
    rows: list[Row] = []
    figures: list[Figure] = []
    for name in () if data == IMAGES else (MAIN, SECOND) if data is None else (data,):
        problem = load_ranking(name)
        problem = problem.smaller() if quick else problem
        measured = figure_2(problem, quick)
        rows += measured
        figures += _draw_depths(measured, problem.name)
        if name != SECOND:
            growing = consistency(problem, quick)
            rows += growing + table_1(problem, quick)
            figures.append(_draw_growth(growing, problem.name))
    if data in (None, IMAGES):
        images = run_images(quick)
        rows += images.rows
        figures += images.figures
    where = f"{MAIN}, {SECOND}, {IMAGES}" if data is None else data
    return Reproduction("RankMatch, Figures 2 and 3, Table 1", where, rows, figures=figures)


def _draw_depths(rows: Sequence[Row], collection: str) -> list[Figure]:
    """Draw NDCG@k of every system, a few of them at a time beside the first one."""
    series = {
        row.name.removeprefix(f"{collection}: "): [row.measured[f"NDCG@{k}"] for k in DEPTHS]
        for row in rows
        if row.measured and " minus " not in row.name
    }
    first, *others = series
    batches = [others[start : start + _LINES - 1] for start in range(0, len(others), _LINES - 1)]
    caption = f"{collection}: NDCG@k with LETOR's discount (Figure 2)."
    return [(lines(list(DEPTHS), {name: series[name] for name in (first, *b)}, "k", "NDCG"), caption) for b in batches]


def _draw_growth(rows: Sequence[Row], collection: str) -> Figure:
    """Draw NDCG@1 of both estimators against the number of slates."""
    series: dict[str, list[float]] = {}
    places: list[float] = []
    for row in rows:
        system, _, rest = row.name.removeprefix(f"{collection}: ").partition(", ")
        series.setdefault(system, []).append(row.measured["NDCG@1"])
        fraction = float(rest.split()[0])
        places += [fraction] if fraction not in places else []
    drawn = lines(places, series, "slates of a query of D documents, over D M", "NDCG@1")
    return drawn, f"{collection}: NDCG@1 with a growing number of slates (Figure 3, right)."
