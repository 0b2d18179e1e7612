"""Estimators as they come: no argument given, beside what a user would write in twenty lines.

Papers tune everything; people do not. Each part takes data that the defaults were not chosen on, fits with no argument,
and sets it beside the plain thing (counts, neighbours, logistic regression, a sort) and beside the best setting that
validation finds in a grid named before the run. ``--data`` names one part; without it all run.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from slatewise.core.running.progress import track
from slatewise_papers._reproduction import Reproduction, Row

SEED = 2026
PARTS = {
    "documents": "slatewise_papers.defaults_documents",
    "images": "slatewise_papers.defaults_images",
    "latent": "slatewise_papers.defaults_latent",
    "metric": "slatewise_papers.defaults_metric",
    "tags": "slatewise_papers.defaults_tags",
}


def run(data: str | None = None, quick: bool = False, seed: int = SEED) -> Reproduction:
    """Run all parts, or the one that ``data`` names; ``quick``: a part of the rows of each."""
    if data is not None and data not in PARTS:
        raise ValueError(f"data: expected one of {', '.join(PARTS)}, found {data!r}")
    names = (*PARTS,) if data is None else (data,)
    rows: list[Row] = []
    for name in track(names, "part"):
        part: Any = import_module(PARTS[name])
        rows += part.rows(quick, seed)
    return Reproduction("estimators as they come", ", ".join(names), rows)
