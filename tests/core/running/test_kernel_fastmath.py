"""Sums in any order: the bits must not depend on where the arrays lie in memory, nor on who compiled them."""

import os
import subprocess
import sys

import numpy as np
import pytest

from slatewise.cstar.kernels.enumerate import flip_row
from slatewise.cstar.kernels.sums import shrink
from slatewise.matching.kernels.permanent_rows import quads_backward
from slatewise.matching.kernels.permanent_tied import mix_and_meet


def _laid_out(arrays, seed):
    """Copy arrays into one room, in another order and with other gaps for every seed, many back to back."""
    rng = np.random.default_rng(seed)
    room, place = np.zeros(2 * sum(array.size for array in arrays) + 400), int(rng.integers(0, 16))
    out = list(arrays)
    for i in rng.permutation(len(arrays)):
        size = arrays[i].size
        out[i] = room[place : place + size].reshape(arrays[i].shape)
        out[i][:] = arrays[i]
        place += size + (0 if rng.random() < 0.6 else int(rng.integers(0, 40)))
    return out


@pytest.mark.parametrize("n", [3, 8, 12, 16, 32, 52, 100])
def test_sums_do_not_depend_on_places(n):
    rng = np.random.default_rng(n)
    arrays = [rng.normal(size=n) for _ in range(5)]
    found = {"mix": set(), "flip": set(), "quads": set(), "shrink": set()}
    table, factor, base = rng.random((4, 2 * n)), rng.random((3, n)), rng.random(3)
    first = np.array([0, n, 2 * n])
    for seed in range(60):
        out, one, two, three, with_these = _laid_out(arrays, seed)
        found["mix"].add(mix_and_meet(out, 0.3, one, 0.5, two, 0.7, three, with_these))
        values, row = _laid_out(arrays[:2], seed)
        found["flip"].add(flip_row(values, row, n, 1.0, 0.1))
        if n % 4 == 0:
            found["quads"].add(quads_backward(0.3, 0.4, *_laid_out(arrays[:3], seed)))
        parts = [table, factor, base, np.ones(2 * n), np.zeros(n), np.zeros((3, n)), np.zeros(3)]
        grown, factors, bases, back, share, together, chance = _laid_out(parts, seed)
        shrink(grown, factors, bases, first, 1, back, 0.5, share, together, chance)
        found["shrink"].add(chance.tobytes())
    assert max(len(of) for of in found.values()) == 1


_SUMS = """
import numpy as np
from slatewise.cstar.inference.model import StarLists
from slatewise.cstar.inference.fixed_size import star_sums

rng = np.random.default_rng(0)
pair = 0.3 * rng.normal(size=(8, 60))
pair[:, :8] = 0.0
sums = star_sums(StarLists.of(rng.normal(size=(20, 60)), pair=pair, core=list(range(8)), k=4), np.ones(20))
print(sums.item.tobytes().hex(), sums.joint.tobytes().hex())
"""


def test_sums_of_a_process_that_compiles_are_those_of_one_that_finds_machine_code(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    found = {subprocess.check_output([sys.executable, "-c", _SUMS], env=environment) for _ in range(2)}
    assert len(found) == 1
