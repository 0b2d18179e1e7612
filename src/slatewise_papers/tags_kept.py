"""Results of a split in a JSON file: a run that was killed goes on, and sets run one by one make one table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from slatewise_papers.tags_split import FIGURES, Measured, SplitResult

_DIGITS = 6


def kept_or_run(path: Path | None, run: Callable[[], SplitResult]) -> SplitResult:
    """Read the file where there is one; else run and write it, whole or not at all."""
    if path is None:
        return run()
    if not path.exists():
        text = json.dumps(_as_json(run()))
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".part")
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    return _of_json(path)


def _as_json(result: SplitResult) -> dict[str, object]:
    systems = {
        name: {
            "settings": measured.n_settings,
            "seconds": round(measured.seconds, 2),
            "figures": measured.figures.round(_DIGITS).tolist(),
        }
        for name, measured in result.systems.items()
    }
    return {"columns": FIGURES, "rows": result.rows.tolist(), "systems": systems}


def _of_json(path: Path) -> SplitResult:
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if read.get("columns") != list(FIGURES):
        raise ValueError(f"{path}: expected the columns {', '.join(FIGURES)}, found {read.get('columns')}")
    systems = {
        name: Measured(np.array(one["figures"], dtype=np.float64), int(one["settings"]), float(one["seconds"]))
        for name, one in read["systems"].items()
    }
    return SplitResult(np.array(read["rows"], dtype=np.int64), systems)
