"""``make boundscheck``: with every index checked and no cached kernel, one that leaves its arrays is an error."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"
SOURCE = """
from slatewise.core.running.kernel import kernel, kernel_fastmath

@kernel
def beyond(values):
    return values[len(values)]

@kernel_fastmath
def before(values):
    return values[-len(values) - 1]
"""
USE = """
import numpy as np
from planted import before, beyond
for function in (beyond, before):
    try:
        function(np.zeros(4))
        print("nothing")
    except IndexError:
        print("IndexError")
"""


def planted(folder: Path, **environment: str) -> list[str]:
    """Say what kernels do that read past the ends of their array, in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=folder, env=kept | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_planted_kernels_out_of_range_are_found_with_an_empty_cache_only(tmp_path):
    (tmp_path / "planted.py").write_text(SOURCE)
    assert planted(tmp_path) == ["nothing", "nothing"]
    assert planted(tmp_path, NUMBA_BOUNDSCHECK="1") == ["nothing", "nothing"]  # as cached beside the source
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "empty")}
    assert planted(tmp_path, **checked) == ["IndexError", "IndexError"]


def test_the_target_checks_indices_with_a_new_cache_and_runs_all_tests_of_kernels():
    if not MAKEFILE.exists():
        pytest.skip("the Makefile is not part of the sdist")
    text = MAKEFILE.read_text()
    recipe = text[text.index("\nboundscheck:") :].split("\n\n")[0]
    assert "cache=$$(mktemp -d)" in recipe
    assert 'NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR="$$cache"' in recipe
    tests = re.search(r"KERNEL_TESTS := (.*?)\nboundscheck", text, re.DOTALL)
    assert tests is not None
    named = tests.group(1).replace("\\", " ").split()
    here = MAKEFILE.parent
    kernel = re.compile(r"^ *from slatewise\.[a-z_]+\.kernels\.[a-z]", re.MULTILINE)
    reach = {part for part in here.glob("tests/*") if any(kernel.search(one.read_text()) for one in _sources(part))}
    assert {here / name for name in named} >= reach


def _sources(part: Path) -> list[Path]:
    return list(part.rglob("*.py")) if part.is_dir() else [part] if part.suffix == ".py" else []


@pytest.mark.skipif(os.environ.get("NUMBA_BOUNDSCHECK") != "1", reason="only make boundscheck checks indices here")
def test_here_indices_are_checked():
    from slatewise.matching.kernels.slate_assignment import best_rankings

    ones = np.ones((1, 3))
    with pytest.raises(IndexError):
        best_rankings(ones, ones, ones, ones, np.empty((1, 2), dtype=np.int64))
