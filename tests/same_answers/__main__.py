"""Compare fits and answers of every estimator with those of another commit, bit for bit, in one run.

    python -m tests.same_answers COMMIT [--cases metric margin] [--threads 1 2]

checks that commit out beside this one, fits every case under both, each side in a process of its own, and compares
every array and number that comes back. Nothing is committed: bits belong to a machine and its libraries.

    python -m tests.same_answers --table

prints the spellings of both sides.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
SYSTEMS = ("documents", "labels", "latent", "matchings", "points", "sessions")

Arrays = dict[str, NDArray[Any]]


def cases(prefixes: Sequence[str]) -> list[Any]:
    """Return the cases whose names begin so; all without prefixes."""
    every = [case for system in SYSTEMS for case in import_module(f"tests.same_answers.{system}").CASES]
    return [case for case in every if not prefixes or case.name.startswith(tuple(prefixes))]


def main() -> int:
    """Run both sides and print what differs; the exit code is the number of answers that do."""
    parser = argparse.ArgumentParser(prog="python -m tests.same_answers", description=__doc__)
    parser.add_argument("commit", help="the commit to compare with", nargs="?")
    parser.add_argument("--cases", nargs="*", default=[], help="beginnings of names; all")
    parser.add_argument("--threads", nargs="*", default=["1", "2"], help="SLATEWISE_THREADS, one run each")
    parser.add_argument("--table", action="store_true", help="print the spellings and stop")
    parser.add_argument("--side", help="answer here, in the words of before or now")
    parser.add_argument("--out", type=Path, help="where --side writes")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(cases(arguments.cases)))
        return 0
    if arguments.side is not None:
        np.savez(arguments.out, **answers(cases(arguments.cases), arguments.side))
        return 0
    if arguments.commit is None:
        parser.error("expected a commit to compare with, found none")
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "other"
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(other), arguments.commit], cwd=ROOT, check=True
        )
        try:
            differing = 0
            for threads in arguments.threads:
                sides = {"before": other, "now": ROOT}
                before, now = (
                    _side(name, root / "src", Path(folder), arguments.cases, threads) for name, root in sides.items()
                )
                differing += _compare(before, now, cases(arguments.cases), threads)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(other)], cwd=ROOT, check=True)
    return differing


def _side(name: str, source: Path, folder: Path, prefixes: Sequence[str], threads: str) -> Arrays:
    out = folder / f"{name}-{threads}.npz"
    environment = {
        **os.environ,
        "PYTHONPATH": f"{source}{os.pathsep}{ROOT}",
        "NUMBA_CACHE_DIR": str(folder / f"{name}.cache"),
        "SLATEWISE_THREADS": threads,
    }
    command = [sys.executable, "-m", "tests.same_answers", "--side", name, "--out", str(out), "--cases", *prefixes]
    subprocess.run(command, check=True, env=environment, cwd=folder)
    with np.load(out) as stored:
        return {key: stored[key] for key in stored.files}


def answers(every: list[Any], side: str) -> Arrays:
    """Fit every case in the words of a side and collect what it learned and answers."""
    import slatewise

    warnings.simplefilter("ignore")
    words = {name: getattr(slatewise, name) for name in slatewise.__all__} | {"np": np, "sklearn": sklearn}
    found: Arrays = {}
    for case in every:
        spelling = getattr(case, side)
        if spelling is None:
            continue
        names = case.renamed if side == "now" else {}
        for part, value in case.ask(eval(spelling, words)):
            found[f"{case.name}/{names.get(part, part)}"] = np.asarray(value)
    return found


def _compare(before: Arrays, now: Arrays, every: list[Any], threads: str) -> int:
    """Print what differs; learned attributes that only one side has are listed, for their names may have changed."""
    tolerance = {case.name: case.tolerance for case in every}
    both, differing = before.keys() & now.keys(), 0
    for name in sorted(both):
        one, two = before[name], now[name]
        if one.shape == two.shape and (one.dtype == two.dtype or tolerance[name.split("/")[0]]):
            allowed = tolerance[name.split("/")[0]]
            if one.tobytes() == two.tobytes() or (allowed and np.allclose(one, two, rtol=allowed, atol=allowed)):
                continue
            print(f"{name}: {np.mean(one != two):.1%} of the entries differ")
        else:
            print(f"{name}: {one.dtype} {one.shape} before, {two.dtype} {two.shape} now")
        differing += 1
    for side, mine, theirs in (("before", before, now), ("now", now, before)):
        compared = {name.split("/")[0] for name in theirs}
        only = sorted(name for name in mine.keys() - theirs.keys() if name.split("/")[0] in compared)
        if only:
            print(f"only {side}: {', '.join(only)}")
    compared = {name.split("/")[0] for name in both}
    print(f"{threads} threads: {len(compared)} cases, {len(both)} answers compared, {differing} differ", flush=True)
    return differing


def table(every: list[Any]) -> str:
    """Return the spellings, a case a line."""
    lines = [f"{case.name}\n    0.2: {case.before}\n    0.3: {case.now or 'dropped: ' + case.why}" for case in every]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
