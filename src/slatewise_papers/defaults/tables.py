"""Estimators with default settings: no argument given, beside what a user would write in twenty lines.

Papers tune everything; people do not. Each part takes data that the defaults were not chosen on, fits with no argument,
and sets it beside the plain thing (counts, neighbors, logistic regression, a sort) and beside the best setting that
validation finds in a grid named before the run. ``--data`` names one part; without it all run.
"""

from __future__ import annotations

from importlib import import_module

from slatewise_papers.framework.reproduction import Reproduction
from slatewise_papers.framework.running import over_sets

SEED = 2026
PARTS = {
    "documents": "slatewise_papers.defaults.documents",
    "images": "slatewise_papers.defaults.images",
    "latent": "slatewise_papers.defaults.latent",
    "metric": "slatewise_papers.defaults.metric",
    "tags": "slatewise_papers.defaults.tags",
}


def run(data: str | None = None, quick: bool = False, seed: int = SEED) -> Reproduction:
    """Run all parts, or the one that ``data`` names; ``quick``: a part of the rows of each."""
    if data is not None and data not in PARTS:
        raise ValueError(f"data: expected one of {', '.join(PARTS)}, found {data!r}")
    return over_sets(
        "estimators with default settings",
        (*PARTS,),
        data,
        lambda name: import_module(PARTS[name]).rows(quick, seed),
        "part",
    )
