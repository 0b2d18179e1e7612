"""The best list of a c-star model by the textbook: all 2^C core settings in Gray-code order, a selection in each.

It has no bound, no thresholds and no forced items: the baseline of ``slatewise bench star``, and an independent check
of the other kernels.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.running.kernel import kernel
from slatewise.cstar.kernels.instance import Floats, Ints, Pair, nth_largest


@kernel
def plain_scores(s: Floats, pair: Pair, k: Ints, score: Floats) -> None:
    """Fill ``score`` with the best score of each list."""
    n_core, n_rest = pair.outer.shape
    values, chosen = np.empty(n_rest), np.empty(n_rest)
    inside = np.zeros(n_core, np.bool_)
    for number in range(len(s)):
        inside[:] = False
        for i in range(n_rest):
            values[i] = s[number, pair.rest[i]]
        const, count, best = 0.0, 0, -np.inf
        for step in range(1 << n_core):
            if step:
                c = 0
                while (step >> c) & 1 == 0:
                    c += 1
                inside[c] = not inside[c]
                sign = 1 if inside[c] else -1
                gain = s[number, pair.core[c]]
                for d in range(n_core):
                    if d != c and inside[d]:
                        gain += pair.inner[c, d]
                const += sign * gain
                count += sign
                for i in range(n_rest):
                    values[i] += sign * pair.outer[c, i]
            r = k[number] - count
            if r < 0 or r > n_rest:
                continue
            total = const
            if r > 0:
                chosen[:] = values
                nth_largest(chosen, n_rest, r)
                for i in range(r):
                    total += chosen[i]
            best = max(best, total)
        score[number] = best
