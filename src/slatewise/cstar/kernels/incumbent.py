"""A good list to start branch and bound from, and the best one so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Bytes
from slatewise.core.running.kernel import kernel
from slatewise.cstar.kernels.enumerate import start
from slatewise.cstar.kernels.instance import Floats, Instance, top_sum


class Best(NamedTuple):
    """The best list so far: its core setting and its score, and buffers to select in."""

    setting: Bytes
    score: Floats
    trial: Bytes
    values: Floats
    top: Floats


@kernel
def order_core(work: Instance, n_core: int, n_rest: int) -> None:
    """Put the core items with the largest pair terms first."""
    weight = np.zeros(n_core)
    for c in range(n_core):
        for i in range(n_rest):
            weight[c] += abs(work.outer[c, i])
        for d in range(n_core):
            weight[c] += abs(work.inner[c, d])
    for a in range(n_core):  # selection sort: rows and columns move with their core item
        b = a
        for c in range(a + 1, n_core):
            if weight[c] > weight[b]:
                b = c
        if b == a:
            continue
        weight[a], weight[b] = weight[b], weight[a]
        work.core[a], work.core[b] = work.core[b], work.core[a]
        work.h[a], work.h[b] = work.h[b], work.h[a]
        for i in range(n_rest):
            work.outer[a, i], work.outer[b, i] = work.outer[b, i], work.outer[a, i]
        for c in range(n_core):
            work.inner[a, c], work.inner[b, c] = work.inner[b, c], work.inner[a, c]
        for c in range(n_core):
            work.inner[c, a], work.inner[c, b] = work.inner[c, b], work.inner[c, a]


@kernel
def score_of(work: Instance, n_core: int, n_rest: int, r: int, setting: Bytes, best: Best) -> tuple[float, float]:
    """Return the best score with a core setting, and the threshold of its last item."""
    values = best.values
    score, count = start(work, n_core, n_rest, setting, values)
    r -= count
    if r < 0 or r > n_rest:
        return -np.inf, 0.0
    if r == 0:
        return score, np.max(values[:n_rest]) if n_rest else 0.0
    total, threshold = top_sum(values, n_rest, r, np.nan, best.top)
    return score + total, threshold


@kernel
def try_setting(work: Instance, n_core: int, n_rest: int, r: int, best: Best) -> None:
    """Keep ``best.trial`` if it is better."""
    score, _ = score_of(work, n_core, n_rest, r, best.trial, best)
    if score > best.score[0]:
        best.score[0] = score
        for c in range(n_core):
            best.setting[c] = best.trial[c]


@kernel
def climb(work: Instance, n_core: int, n_rest: int, r: int, best: Best) -> None:
    """Flip one core item at a time while that helps."""
    last = -np.inf
    while best.score[0] > last:
        last = best.score[0]
        for c in range(n_core):
            for d in range(n_core):
                best.trial[d] = best.setting[d] ^ (c == d)
            try_setting(work, n_core, n_rest, r, best)
