"""How far it is from a call to a kernel, and how long the functions on the way are: counted, so that it stays short."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MOST = {"fit": 12, "rank": 6}
MOST_ON_A_BASE, MOST_OF_THE_FIRST = 8, 9
"""A base is asked before anything else: three calls lead to it (rank, the batch of queries, its levels), and five are
its own way, block by block to a block's neighbours. The first rank also freezes both rankers, one through the other,
and makes the index of sessions that the base looks things up in."""
ON_A_BLEND = 3
"""So much further: a blend is a base that asks other bases, freezes them, and puts together what they name."""
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
        assert len(chain) <= _most(name), chain


def _most(name):
    if not name.endswith(("on a base", "on a blend")):
        return MOST[name.partition(",")[0]]
    most = MOST_OF_THE_FIRST if "the first" in name else MOST_ON_A_BASE
    return most + ON_A_BLEND if name.endswith("on a blend") else most


def test_the_functions_on_the_way_are_short(walks):
    assert {name: lines for chain in walks.values() for name, lines in chain if lines > MOST_LINES} == {}
