"""Which sets to decide for: the most probable one, how likely sizes are with each label, and the best set for F1.

Given the core setting the others are in independently: their number is a Poisson binomial, one step per label,

    D <- (1 - q_i) D + q_i D shifted by one

for all settings side by side. Without label i it is the same step backwards: from the smallest number up where q_i is
at most 1/2, from the largest down elsewhere, so that an error never grows. Numbers at the upper end that are next to
impossible are cut off.

F1 (general F-measure maximiser, Dembczynski et al. 2011): a set of r > 0 labels expects the sum of

    delta_ir = sum over sizes n of  2 P(y_i = 1, |y| = n) / (r + n)

over its labels, so for each r the r largest are best; the empty set expects P(|y| = 0).
"""

from __future__ import annotations

import numpy as np

from slatewise.core.kernel import kernel
from slatewise.cstar.kernels.instance import Bytes, Floats, Ints, copy, nth_largest
from slatewise.cstar.kernels.subset_layout import KNOWN_IN, RUN, TAME, SubsetPair, SubsetTerms
from slatewise.cstar.kernels.subsets import fill_sums, score_core

NEGLECTED = 1e-13
"""What settings that are left out, and sizes that are cut off, have at most together."""


@kernel
def best_settings(star: SubsetPair, terms: SubsetTerms, setting: Ints, score: Floats) -> None:
    """Fill the setting of the most probable set of each row and add its score; of equal settings the first is taken.

    Known labels are in ``terms.h`` and ``score`` already.
    """
    n_settings = 1 << len(star.inner)
    total, value = np.empty(n_settings), np.empty(n_settings)
    for row in range(len(score)):
        score[row] += score_core(terms.h[row], terms.fixed[row], star.inner, value, total)
        for i in range(terms.v.shape[1]):
            if terms.kind[row, i] < KNOWN_IN:
                fill_sums(terms.v[row, i], star.run[i], star.place[i], value)
                for j in range(n_settings):
                    total[j] += max(value[j], 0.0)
        best = 0
        for j in range(n_settings):
            best = j if total[j] > total[best] else best
        setting[row] = best
        score[row] += total[best]


@kernel
def heavy_settings(chance: Floats) -> Ints:
    """Return the settings that matter."""
    least, n_heavy = NEGLECTED / len(chance), 0
    for j in range(len(chance)):
        n_heavy += chance[j] > least
    heavy, at = np.empty(n_heavy, np.int64), 0
    for j in range(len(chance)):
        if chance[j] > least:
            heavy[at] = j
            at += 1
    return heavy


@kernel
def chances_within(star: SubsetPair, terms: SubsetTerms, row: int, heavy: Ints) -> Floats:
    """Return how likely each label is given each of the settings that matter, (R, settings); 0 if it is known."""
    within = np.zeros((terms.v.shape[1], len(heavy)))
    for i in range(len(within)):
        kind, base, v = terms.kind[row, i], terms.base[row, i], terms.v[row, i]
        if kind < KNOWN_IN:
            for at in range(len(heavy)):
                run, place = heavy[at] // RUN, heavy[at] % RUN
                if kind == TAME:
                    x = base * star.run_factor[i, run] * star.place_factor[i, place]
                    within[i, at] = x / (1.0 + x)
                else:
                    u = v + star.run[i, run] + star.place[i, place]
                    e = np.exp(-abs(u))
                    within[i, at] = (1.0 if u >= 0.0 else e) / (1.0 + e)
    return within


@kernel
def mix(chance: Floats, fewer: Floats, same: Floats) -> None:
    """Let ``same`` be how likely a number is with a label, from that number and one fewer without it."""
    for at in range(len(chance)):
        same[at] += chance[at] * (fewer[at] - same[at])


@kernel
def convolve(within: Floats, number: Floats) -> int:
    """Grow how likely 0 labels are with each setting into how likely 0, 1, ... are; return the largest that is kept."""
    top, least, nothing = 0, NEGLECTED / (len(within) + 1), np.zeros(within.shape[1])
    for i in range(len(within)):
        for at in range(len(nothing)):
            number[top + 1, at] = 0.0
        for m in range(top + 1, 0, -1):
            mix(within[i], number[m - 1], number[m])
        mix(within[i], nothing, number[0])
        top += 1
        lost = 0.0
        while top > 0 and lost < least:
            for at in range(len(nothing)):
                lost += number[top, at]
            top -= lost < least
    return top


@kernel
def add_low(chance: Floats, number: Floats, top: int, at: int, others: Floats, first: int, joint: Floats) -> None:
    """Add to ``joint[first + m + 1, i]`` how likely label i and m others are in, where its chance is at most 1/2.

    All labels go side by side, those above with a chance of 0.
    """
    for i in range(len(chance)):
        others[i] = 0.0
    for m in range(top + 1):
        into, all_labels = joint[first + m + 1], number[m, at]
        for i in range(len(chance)):
            q = chance[i] if chance[i] <= 0.5 else 0.0
            others[i] = max(np.divide(all_labels - q * others[i], 1.0 - q), 0.0)
            into[i] += q * others[i]


@kernel
def add_high(q: float, number: Floats, top: int, at: int, first: int, joint: Floats, i: int) -> None:
    """Do so for one label with a chance above 1/2."""
    others = 0.0
    for m in range(top - 1, -1, -1):
        others = max((number[m + 1, at] - (1.0 - q) * others) / q, 0.0)
        joint[first + m + 1, i] += q * others


@kernel
def sizes_of_row(
    star: SubsetPair, terms: SubsetTerms, row: int, chance: Floats, with_labels: bool
) -> tuple[Floats, Floats]:
    """Return P(|y| = n) and P(y_i = 1, |y| = n), the labels of the core last; the latter of no size if not wanted."""
    n_rest, n_core = star.outer.shape
    heavy, n_in = heavy_settings(chance), 0
    for i in range(n_rest):
        n_in += terms.kind[row, i] == KNOWN_IN
    within, number = chances_within(star, terms, row, heavy), np.empty((n_rest + 2, len(heavy)))
    for at in range(len(heavy)):
        number[0, at] = chance[heavy[at]]
    top, most = convolve(within, number), n_in + n_core
    size, joint = np.zeros(most + top + 2), np.zeros((most + top + 2 if with_labels else 0, n_rest + n_core))
    labels, others = np.empty(n_rest), np.empty(n_rest)
    for at in range(len(heavy)):
        first = n_in
        for c in range(n_core):
            first += (heavy[at] >> c) & 1
        for m in range(top + 1):
            size[first + m] += number[m, at]
        if with_labels:
            for c in range(n_core):
                if (heavy[at] >> c) & 1:
                    for m in range(top + 1):
                        joint[first + m, n_rest + c] += number[m, at]
            for i in range(n_rest):
                labels[i] = within[i, at]
                if labels[i] > 0.5:
                    add_high(labels[i], number, top, at, first, joint, i)
            add_low(labels, number, top, at, others, first, joint)
    for n in range(len(joint)):
        for i in range(n_rest):
            if terms.kind[row, i] == KNOWN_IN:
                joint[n, i] = size[n]
    return size, joint


@kernel
def take_largest(values: Floats, least: float, n: int, chosen: Bytes) -> None:
    """Fill the n largest values, of which ``least`` is the smallest; of equal ones the first."""
    for i in range(len(values)):
        chosen[i] = values[i] > least
        n -= chosen[i]
    for i in range(len(values)):
        if values[i] == least and n > 0:
            chosen[i] = 1
            n -= 1


@kernel
def best_for_f1(size: Floats, joint: Floats, chosen: Bytes) -> float:
    """Fill the set with the largest expected F1 and return what it expects; the smallest of equal ones."""
    best, delta, top = size[0], np.empty(len(chosen)), np.empty(len(chosen))
    for i in range(len(chosen)):
        chosen[i] = 0
    for r in range(1, len(chosen) + 1):
        bound = 0.0
        for n in range(1, len(size)):
            bound += size[n] * 2.0 * n / (r + n)  # as if all labels of the row were in the set; falls with r
        if bound <= best:
            break
        for i in range(len(delta)):
            delta[i] = 0.0
        for n in range(1, len(size)):
            for i in range(len(delta)):
                delta[i] += 2.0 / (r + n) * joint[n, i]
        copy(delta, len(delta), top)
        least, expected = nth_largest(top, len(top), r), 0.0
        for i in range(r):
            expected += top[i]
        if expected > best:
            best = expected
            take_largest(delta, least, r, chosen)
    return best


@kernel
def decide_for_f1(
    star: SubsetPair, terms: SubsetTerms, chance: Floats, sizes: Floats, chosen: Bytes, expected: Floats
) -> None:
    """Fill how likely each size is (n, N + 1), the best set for F1 (labels of the core last), and what it expects.

    ``chosen`` has no rows where only sizes are wanted.
    """
    for row in range(len(chance)):
        size, joint = sizes_of_row(star, terms, row, chance[row], len(chosen) > 0)
        for n in range(sizes.shape[1]):
            sizes[row, n] = size[n] if n < len(size) else 0.0
        if len(chosen):
            expected[row] = best_for_f1(size, joint, chosen[row])
