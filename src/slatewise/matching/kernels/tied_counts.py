"""How many of the first i items a class may have: what is too unlikely to be walked.

    A_i[b] = the weight of the first i items with b of them in the class,     R_i[b] = that of the others with m - b

Looked at alone, a class has two outcomes per item: in it, or in another. Its rankings with b of the first i items weigh
A_i[b] R_i[b], at least as much as those among them that end with every class full. So what the counts left out weigh
together, over all i and all classes, bounds what Z loses by leaving them out.
"""

from __future__ import annotations

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.kernel import kernel

NOTHING = 1e-250
"""Numbers below are 0: far below what is left out, and before the processor slows down on the smallest of all."""


@kernel
def step(out: Floats, stay: float, same: Floats, move: float, other: Floats) -> None:
    """Fill out with stay * same + move * other, nothing for almost nothing."""
    for b in range(len(out)):
        value = stay * same[b] + move * other[b]
        out[b] = value if value > NOTHING else 0.0


@kernel
def likely_counts(
    x: Floats, others: Floats, tail: float, ahead: Floats, behind: Floats, low: Ints, high: Ints
) -> float:
    """Narrow the possible counts; return what those left out weigh.

    ``x`` (n,) is each item's weight in the class, ``others`` that in all others. After each item the lowest and the
    highest counts that weigh no more than ``tail`` of all are left out; none, if all weigh too little to compare.
    ``ahead`` (n + 1, m + 2) and ``behind`` (2, m + 2) are buffers.
    """
    n, size = len(x), ahead.shape[1] - 2
    ahead[0] = 0.0
    ahead[0, 1] = 1.0  # count b is in place b + 1, behind a zero
    for i in range(n):
        ahead[i + 1, 0] = 0.0
        step(ahead[i + 1, 1:], others[i], ahead[i, 1:], x[i], ahead[i, :-1])
    limit, left_out = tail * ahead[n, size + 1], 0.0
    if limit < 1e20 * NOTHING:
        return 0.0
    behind[:] = 0.0
    behind[n % 2, size] = 1.0  # count b is in place b, before a zero
    for i in range(n, -1, -1):
        rest, below, above = behind[i % 2], 0.0, 0.0
        more = ahead[i, low[i] + 1] * rest[low[i]]
        while below + more <= limit and low[i] < high[i]:
            below += more
            low[i] += 1
            more = ahead[i, low[i] + 1] * rest[low[i]]
        more = ahead[i, high[i] + 1] * rest[high[i]]
        while above + more <= limit and low[i] < high[i]:
            above += more
            high[i] -= 1
            more = ahead[i, high[i] + 1] * rest[high[i]]
        left_out += below + above
        if i:
            step(behind[(i - 1) % 2, :-1], others[i - 1], rest[:-1], x[i - 1], rest[1:])
    # Bounds may grow by 0 or 1 per item only: where they do not, they are widened.
    for i in range(n - 1, -1, -1):
        low[i] = min(low[i], low[i + 1])
    for i in range(n):
        low[i + 1], high[i + 1] = min(low[i + 1], low[i] + 1), max(high[i + 1], high[i])
    for i in range(n - 1, -1, -1):
        high[i] = max(high[i], high[i + 1] - 1)
    return left_out
