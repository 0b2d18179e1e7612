"""Results of a split in a JSON file: a run that was killed goes on, and sets run one by one make one table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from slatewise_papers._kept import kept_or_made
from slatewise_papers.tags_split import FIGURES, Measured, SplitResult

_DIGITS = 6


def kept_or_run(path: Path | None, run: Callable[[], SplitResult]) -> SplitResult:
    """Read the file where there is one; else run and write it."""
    return run() if path is None else _of_json(path, kept_or_made(path, lambda: _as_json(run())))


def _as_json(result: SplitResult) -> dict[str, Any]:
    systems = {
        name: {
            "settings": measured.n_settings,
            "seconds": round(measured.seconds, 2),
            "figures": measured.figures.round(_DIGITS).tolist(),
        }
        for name, measured in result.systems.items()
    }
    return {"columns": FIGURES, "rows": result.rows.tolist(), "systems": systems}


def _of_json(path: Path, read: dict[str, Any]) -> SplitResult:
    if read.get("columns") != list(FIGURES):
        raise ValueError(f"{path}: expected the columns {', '.join(FIGURES)}, found {read.get('columns')}")
    systems = {
        name: Measured(np.array(one["figures"], dtype=np.float64), int(one["settings"]), float(one["seconds"]))
        for name, one in read["systems"].items()
    }
    return SplitResult(np.array(read["rows"], dtype=np.int64), systems)
