"""The source archive tests itself: whatever a test reads outside of tests/ is packed with it."""

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKED = {
    path.removeprefix("/")
    for path in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"][
        "include"
    ]
} | {"pyproject.toml"}
OF_THE_REPOSITORY = {".ci", ".gitignore", ".pre-commit-config.yaml"}


def test_what_tests_reach_for_is_packed():
    reached = set()
    for test in (ROOT / "tests").rglob("*.py"):
        reached |= set(
            re.findall(r'(?:\.parent\.parent|parents\[\d\]|root|ROOT)\)? / "([A-Za-z][\w.]*)"', test.read_text())
        )
    assert {"README.md", "examples", "docs", "pyproject.toml"} <= reached  # the search finds what is known to be there
    assert reached <= PACKED


def test_what_is_packed_is_there():
    assert {name for name in PACKED if not (ROOT / name).exists()} == set()


def test_nothing_tracked_is_forgotten():
    if not (ROOT / ".git").exists():
        return  # in the unpacked archive there is nothing else
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {path.split("/")[0] for path in listed.splitlines()} - OF_THE_REPOSITORY == PACKED
