"""What users see of every estimator: constructor parameters, fields of settings objects, public methods.

    python -m tools.interface [--before COMMIT]

With a commit, the figures of that commit stand beside these.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCIKIT_LEARN = ("get_params", "set_params", "get_metadata_routing", "set_callbacks", "set_output")
"""Methods that scikit-learn adds, besides ``set_..._request``."""


def figures() -> dict[str, dict[str, Any]]:
    """Return, by estimator, its parameters, its settings objects with their fields, and its methods."""
    import slatewise

    found: dict[str, dict[str, Any]] = {}
    for name in slatewise.__all__:
        kind = getattr(slatewise, name)
        if not (inspect.isclass(kind) and hasattr(kind, "get_params")):
            continue
        parameters = list(inspect.signature(kind).parameters)
        methods = [
            one
            for one in dir(kind)
            if not one.startswith("_") and one not in parameters and one not in SCIKIT_LEARN
            if not (one.startswith("set_") and one.endswith("_request"))
        ]
        rules = getattr(kind, "_rules", {})
        kinds = {each for rule in rules.values() for each in getattr(rule, "kinds", ())}
        settings = {each.__name__: list(inspect.signature(each).parameters) for each in kinds}
        found[name] = {"parameters": parameters, "settings": dict(sorted(settings.items())), "methods": methods}
    return found


def main() -> int:
    """Print a line per estimator; return how many constructors or settings objects are too wide."""
    parser = argparse.ArgumentParser(prog="python -m tools.interface", description=__doc__)
    parser.add_argument("--before", metavar="COMMIT")
    parser.add_argument("--json", action="store_true", help="print the figures of the slatewise on the path")
    arguments = parser.parse_args()
    if arguments.json:
        print(json.dumps(figures()))
        return 0
    now, before = figures(), _at(arguments.before) if arguments.before else {}
    widths = [len(one["parameters"]) for one in now.values()]
    print(f"{'estimator':22s} parameters  methods  settings objects (fields)")
    for name in sorted(now.keys() | before.keys()):
        old, new = (len(side[name]["parameters"]) if name in side else "-" for side in (before, now))
        old_methods, new_methods = (len(side[name]["methods"]) if name in side else "-" for side in (before, now))
        settings = now[name]["settings"] if name in now else {}
        fields = ", ".join(f"{one} ({len(names)})" for one, names in settings.items())
        print(f"{name:22s} {old!s:>4} {new!s:>4}  {old_methods!s:>3} {new_methods!s:>4}  {fields}")
    print(f"{len(widths)} estimators, {sum(widths) / len(widths):.1f} parameters in the mean, {max(widths)} at most")
    wide = sum(len(names) > 8 for one in now.values() for names in one["settings"].values())
    return sum(width > 12 for width in widths) + wide


def _at(commit: str) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "other"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(other), commit], cwd=ROOT, check=True)
        try:
            path = os.pathsep.join((str(other / "src"), str(ROOT)))
            command = [sys.executable, "-m", "tools.interface", "--json"]
            done = subprocess.run(
                command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True, text=True
            )
            return json.loads(done.stdout)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(other)], cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
