"""Which sets to decide for: the most probable one, how likely sizes are with each label, and the best set for F1.

Given the core setting the others are in independently: their number is a Poisson binomial, one step per label,

    D <- (1 - q_i) D + q_i D shifted by one

for all settings side by side. Without label i it is the same step backwards: from the smallest number up where q_i is
at most 1/2, from the largest down elsewhere, so that an error never grows. Numbers at the upper end that are next to
impossible are cut off.

F1 (general F-measure maximiser, Dembczynski et al. 2011): a set of r > 0 labels expects the sum of

    delta_ir = sum over sizes n of  2 P(y_i = 1, |y| = n) / (r + n)

over its labels, so for each r the r largest are best; the empty set expects P(|y| = 0). As ``delta_ir`` is at most
2 P(y_i = 1) / (r + 1), labels that are hardly ever in need no look at their sizes.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Bytes
from slatewise.core.running.kernel import kernel
from slatewise.cstar.kernels.instance import Floats, Ints, copy, nth_largest
from slatewise.cstar.kernels.subset_layout import KNOWN_IN, RUN, TAME, SubsetPair, SubsetTerms
from slatewise.cstar.kernels.subsets import fill_sums, score_core

NEGLECTED = 1e-13
"""What settings that are left out, and sizes that are cut off, have at most together."""
CANDIDATES = 256
"""The number of labels among which a set for F1 is searched at first; it is proven that no other belongs in, else more
are tried."""


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
def counts_of_row(star: SubsetPair, terms: SubsetTerms, row: int, chance: Floats) -> tuple[Ints, Floats, Floats, int]:
    """Return the settings that matter, how likely labels are within them, and how likely numbers of labels are."""
    heavy = heavy_settings(chance)
    within, number = chances_within(star, terms, row, heavy), np.empty((terms.v.shape[1] + 2, len(heavy)))
    for at in range(len(heavy)):
        number[0, at] = chance[heavy[at]]
    return heavy, within, number, convolve(within, number)


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
def likely_labels(kind: Bytes, chance: Floats, heavy: Ints, within: Floats, most: int) -> tuple[Ints, float]:
    """Return the labels that are most likely in, in order, and how likely those that are left out are at most."""
    if len(within) <= most:
        return np.arange(len(within)), 0.0
    likely, largest = np.empty(len(within)), np.empty(len(within))
    for i in range(len(within)):
        likely[i] = 2.0 if kind[i] == KNOWN_IN else 0.0
        for at in range(len(heavy)):
            likely[i] += chance[heavy[at]] * within[i, at]
    copy(likely, len(likely), largest)
    least, chosen = nth_largest(largest, len(largest), most), np.empty(len(likely), np.int8)
    take_largest(likely, least, most, chosen)
    return np.flatnonzero(chosen), least


@kernel
def sizes_of_row(
    kind: Bytes, n_core: int, heavy: Ints, within: Floats, number: Floats, top: int, labels: Ints
) -> tuple[Floats, Floats]:
    """Return P(|y| = n), and P(y_i = 1, |y| = n) of some labels, those of the core last."""
    n_in, n_labels = 0, len(labels)
    for i in range(len(kind)):
        n_in += kind[i] == KNOWN_IN
    most = n_in + n_core
    size, joint = np.zeros(most + top + 2), np.zeros((most + top + 2, n_labels + n_core))
    inside, others = np.empty(n_labels), np.empty(n_labels)
    for at in range(len(heavy)):
        first = n_in
        for c in range(n_core):
            first += (heavy[at] >> c) & 1
        for m in range(top + 1):
            size[first + m] += number[m, at]
        for c in range(n_core):
            if (heavy[at] >> c) & 1:
                for m in range(top + 1):
                    joint[first + m, n_labels + c] += number[m, at]
        for i in range(n_labels):
            inside[i] = within[labels[i], at]
            if inside[i] > 0.5:
                add_high(inside[i], number, top, at, first, joint, i)
        add_low(inside, number, top, at, others, first, joint)
    for n in range(len(joint)):
        for i in range(n_labels):
            if kind[labels[i]] == KNOWN_IN:
                joint[n, i] = size[n]
    return size, joint


@kernel
def best_for_f1(size: Floats, joint: Floats, left_out: float, chosen: Bytes) -> float:
    """Fill the set with the largest expected F1 and return what it expects; the smallest of equal ones.

    Labels that are not here are in with a chance of at most ``left_out``: where one of them might be in a better set,
    -1 is returned.
    """
    best, delta, top = size[0], np.empty(len(chosen)), np.empty(len(chosen))
    for i in range(len(chosen)):
        chosen[i] = 0
    for r in range(1, len(chosen) + 1):
        bound = 0.0
        for n in range(1, len(size)):
            bound += size[n] * 2.0 * n / (r + n)  # as if all labels of the row were in the set; falls with r
        if bound <= best:
            return best
        for i in range(len(delta)):
            delta[i] = 0.0
        for n in range(1, len(size)):
            for i in range(len(delta)):
                delta[i] += 2.0 / (r + n) * joint[n, i]
        copy(delta, len(delta), top)
        least, expected = nth_largest(top, len(top), r), 0.0
        most, other = 0.0, 2.0 * left_out / (r + 1)  # a label is in with n >= 1 labels
        for i in range(r):
            expected += top[i]
            most += max(top[i], other)
        if least < other and most > best:
            return -1.0
        if expected > best:
            best = expected
            take_largest(delta, least, r, chosen)
    return best if left_out == 0.0 else -1.0


@kernel
def decide_row(
    kind: Bytes, n_core: int, chance: Floats, heavy: Ints, within: Floats, number: Floats, top: int, chosen: Bytes
) -> float:
    """Fill the best set for F1 of a row and return what it expects; by its likeliest labels if these are enough."""
    n_labels, n_rest, n_own = CANDIDATES, len(kind), len(chosen) - len(kind)  # a core may be filled up
    for i in range(len(chosen)):
        chosen[i] = 0
    while True:
        labels, left_out = likely_labels(kind, chance, heavy, within, n_labels)
        size, joint = sizes_of_row(kind, n_core, heavy, within, number, top, labels)
        taken = np.empty(len(labels) + n_own, np.int8)
        expected = best_for_f1(size, joint, left_out, taken)
        if expected >= 0.0:
            for i in range(len(labels)):
                chosen[labels[i]] = taken[i]
            for c in range(n_own):
                chosen[n_rest + c] = taken[len(labels) + c]
            return expected
        n_labels *= 4


@kernel
def decide_for_f1(
    star: SubsetPair, terms: SubsetTerms, chance: Floats, sizes: Floats, chosen: Bytes, expected: Floats
) -> None:
    """Fill how likely each size is (n, N + 1), the best set for F1 (labels of the core last), and what it expects.

    ``chosen`` has no rows where only sizes are wanted.
    """
    n_core, nobody = star.outer.shape[1], np.empty(0, np.int64)
    for row in range(len(chance)):
        heavy, within, number, top = counts_of_row(star, terms, row, chance[row])
        size, _ = sizes_of_row(terms.kind[row], n_core, heavy, within, number, top, nobody)
        for n in range(sizes.shape[1]):
            sizes[row, n] = size[n] if n < len(size) else 0.0
        if len(chosen):
            kind, into = terms.kind[row], chosen[row]
            expected[row] = decide_row(kind, n_core, chance[row], heavy, within, number, top, into)
