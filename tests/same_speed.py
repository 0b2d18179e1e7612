"""Compare the speed of benchmarks with that of another commit: the two in turn, and the median of several runs.

    python -m tests.same_speed COMMIT star permanent metric warp topk --times 5

checks that commit out beside this one and runs ``slatewise bench NAME`` under both, after a run that compiles. For
every row that is a time it prints those of either, and how many times as fast this commit is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WHOLE = ("star", "permanent")
"""Benchmarks that take less than a minute as they are; of the others a smaller run."""


def main() -> None:
    """Print a line per row of every benchmark."""
    parser = argparse.ArgumentParser(prog="python -m tests.same_speed", description=__doc__)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("names", nargs="+", help="benchmarks")
    parser.add_argument("--times", type=int, default=5, help="runs of either side")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "other"
        add = ["git", "worktree", "add", "--quiet", "--detach", str(other), arguments.commit]
        subprocess.run(add, cwd=ROOT, check=True)
        try:
            for name in arguments.names:
                _compare(name, {"before": other, "now": ROOT}, Path(folder), arguments.times)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(other)], cwd=ROOT, check=True)


def _compare(name: str, sides: dict[str, Path], folder: Path, times: int) -> None:
    found: dict[str, list[list[dict[str, Any]]]] = {side: [] for side in sides}
    for run in range(times + 1):
        for side, root in sides.items():
            rows = _rows(name, root, folder / side)
            if run:  # the first one compiles
                found[side].append(rows)
    before, now = (_by_name(runs) for runs in found.values())
    for what in before.keys() & now.keys():
        unit, (old, new) = now[what][1], (median(side[what][0]) for side in (before, now))
        print(f"{name}: {what}: {old:.4g} {unit} before, {new:.4g} now: {old / new:.2f}x", flush=True)
    for side, names in (("before", before.keys() - now.keys()), ("now", now.keys() - before.keys())):
        for what in sorted(names):
            print(f"{name}: {what}: only {side}", flush=True)


def _by_name(runs: list[list[dict[str, Any]]]) -> dict[str, tuple[list[float], str]]:
    """Return the times of every row, and their unit; rows that are no times are left out."""
    found: dict[str, tuple[list[float], str]] = {}
    for row in (row for run in runs for row in run if row["unit"] in ("s", "ms")):
        found.setdefault(row["what"], ([], row["unit"]))[0].append(row["ours"])
    return found


def _rows(name: str, root: Path, folder: Path) -> list[dict[str, Any]]:
    out = folder.with_suffix(".json")
    cache = {"PYTHONPATH": str(root / "src"), "NUMBA_CACHE_DIR": str(folder.with_suffix(".cache"))}
    command = [sys.executable, "-m", "slatewise", "bench", name, "--json", str(out)]
    quick = [] if name in WHOLE else ["--quick"]
    subprocess.run([*command, *quick], check=True, env={**os.environ, **cache}, stdout=subprocess.DEVNULL)
    return json.loads(out.read_text())["rows"]


if __name__ == "__main__":
    main()
