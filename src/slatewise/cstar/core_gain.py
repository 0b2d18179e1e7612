"""Choosing the core by validated gain: add, one at a time, the label that most raises precision on inner folds.

Candidates are the labels that say most about the others, twice as many as wanted. The core ends early when no
candidate raises the precision: a smaller core is then better than the requested one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.cstar.core_labels import greedy_core
from slatewise.cstar.hinge import StarHinge
from slatewise.cstar.selection import held_out_precision, pair_unit, typical_strength
from slatewise.cstar.training import Settings, Solver

CANDIDATES = 2
"""How many candidates there are for each place in the core."""


def gainful_core(hinge: StarHinge, Y: Floats, weight: Floats, size: int, solver: Solver, settings: Settings) -> Ints:
    """Return at most ``size`` labels, in the order in which they were added."""
    rough = replace(settings, C=typical_strength(hinge.problem), rho=0.1 * pair_unit(hinge.problem))
    candidates = greedy_core(Y, min(CANDIDATES * size, Y.shape[1]), weight).tolist()
    core: list[int] = []
    best = held_out_precision(hinge.with_core(np.array(core, dtype=np.int64)), solver, rough)
    while len(core) < size and candidates:
        gains = [held_out_precision(hinge.with_core(np.array([*core, c])), solver, rough) for c in candidates]
        if max(gains) <= best:
            break
        best = max(gains)
        core.append(candidates.pop(int(np.argmax(gains))))
    return np.array(core, dtype=np.int64)
