"""How far it is from a call to a kernel, and how long the functions on the way are: counted, so that it stays short."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MOST = {"fit": 12, "rank": 6}
MOST_ON_A_BASE = 9
"""Of a first rank, which also makes the index that another ranker, the base, looks things up in."""
MOST_LINES = 60


@pytest.fixture(scope="module")
def walks(tmp_path_factory):
    out = tmp_path_factory.mktemp("walks") / "walks.json"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.latent.walks", str(out)],
        cwd=Path(__file__).parents[2],
        env=environment,
        check=True,
    )
    return json.loads(out.read_text())


def test_the_ways_to_a_kernel_are_short(walks):
    assert {name.partition(",")[0] for name in walks} == set(MOST)
    for name, chain in walks.items():
        assert chain[0][0].endswith(f".{name.partition(',')[0]}")
        assert len(chain) <= (MOST_ON_A_BASE if "on a base" in name else MOST[name.partition(",")[0]]), chain


def test_the_functions_on_the_way_are_short(walks):
    assert {name: lines for chain in walks.values() for name, lines in chain if lines > MOST_LINES} == {}
