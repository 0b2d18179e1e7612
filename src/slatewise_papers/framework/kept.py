"""Finished parts of a long run as JSON files: a run that was killed goes on from there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def kept_or_made(path: Path | None, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Read the file where there is one; else make what it says, and write it, whole or not at all."""
    if path is None:
        return make()
    if not path.exists():
        text = json.dumps(make())
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".part")
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    return json.loads(path.read_text(encoding="utf-8"))
