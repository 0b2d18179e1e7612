"""Sums over all subsets of the labels of a row: what each core setting weighs, and how likely labels and pairs are.

    Z = sum over core settings z of  exp(const(z)) prod over the others of (1 + x_i(z)) ,    x_i(z) = exp(v_i + z.G_i)

The 2^C numbers x_i(z) of a label are filled by doubling, ``x_i(z with c) = x_i(z) exp G_ci``: one product each instead
of an exponential, none more than C products from its start, and side by side in memory. Products of (1 + x) are as good
as sums of their logarithms until they are large; their logarithm is taken then. Labels whose exponentials may leave the
range go by their logarithms.

Settings are numbers whose bit c says whether core label c is in.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.kernel import kernel, loose_sums
from slatewise.cstar.kernels.subset_layout import KNOWN_IN, TAME, WILD, Floats, SubsetPair, SubsetTerms

LARGEST_PRODUCT = 700.0


@kernel
def fill_products(first: float, step: Floats, out: Floats) -> None:
    """Fill ``first`` times the steps of each setting."""
    out[0] = first
    for c in range(len(step)):
        half = 1 << c
        for j in range(half):
            out[half + j] = out[j] * step[c]


@kernel
def fill_sums(first: float, step: Floats, n_steps: int, out: Floats) -> None:
    """Fill ``first`` plus the steps of each setting of so many core labels."""
    out[0] = first
    for c in range(n_steps):
        half = 1 << c
        for j in range(half):
            out[half + j] = out[j] + step[c]


@kernel
def score_core(h: Floats, fixed: Floats, inner: Floats, among: Floats, score: Floats) -> float:
    """Fill the score of each setting by itself, less that of the core labels that are likely by h, which is returned.

    So a huge h does not swallow the other terms of the settings that matter. What is known of a core label leaves -inf
    to the settings that say otherwise.
    """
    const, score[0] = 0.0, 0.0
    for c in range(len(h)):
        half, likely = 1 << c, fixed[c] == 1.0 or (h[c] > 0.0 and fixed[c] < 0.0)
        without, with_c = (-h[c], 0.0) if likely else (0.0, h[c])
        if fixed[c] >= 0.0:
            without, with_c = (-np.inf, 0.0) if likely else (0.0, -np.inf)
        const += h[c] if likely else 0.0
        fill_sums(with_c, inner[c], c, among)
        for j in range(half):
            score[half + j] = score[j] + among[j]
        for j in range(half):
            score[j] += without
    return const


@kernel
def multiply(odds: Floats, product: Floats) -> None:
    """Multiply by 1 + x."""
    for j in range(len(odds)):
        product[j] *= 1.0 + odds[j]


@kernel
def add_logs(product: Floats, score: Floats) -> None:
    """Move products into the scores."""
    for j in range(len(product)):
        score[j] += np.log(product[j])
        product[j] = 1.0


@kernel
def score_settings(star: SubsetPair, terms: SubsetTerms, score: Floats, const: Floats) -> None:
    """Fill the logarithm of what each setting adds to Z, (n, S), less what all have in common, which ``const`` gets."""
    v, kind, outer = terms.v, terms.kind, star.outer
    n_core, n_settings = outer.shape[1], score.shape[1]
    odds, product = np.empty(n_settings), np.empty(n_settings)
    for row in range(len(v)):
        const[row] += score_core(terms.h[row], terms.fixed[row], star.inner, product, score[row])
        for j in range(n_settings):
            product[j] = 1.0
        room = LARGEST_PRODUCT
        for i in range(v.shape[1]):
            if kind[row, i] == TAME:
                most = max(v[row, i] + star.high[i], 0.0) + 0.7  # log(1 + x) is never more
                if most > room:
                    add_logs(product, score[row])
                    room = LARGEST_PRODUCT
                room -= most
                fill_products(terms.base[row, i], star.factor[i], odds)
                multiply(odds, product)
            elif kind[row, i] == WILD:
                fill_sums(v[row, i], outer[i], n_core, odds)
                for j in range(n_settings):
                    score[row, j] += max(odds[j], 0.0) + np.log1p(np.exp(-abs(odds[j])))
        add_logs(product, score[row])


# Of a plain division Numba asks first whether it is by zero, and then does not divide eight numbers at a time.


@loose_sums
def inside_and_outside(odds: Floats, chance: Floats) -> tuple[float, float]:
    """Return how likely a label is in, and is out: with full precision both."""
    inside, outside = 0.0, 0.0
    for j in range(len(odds)):
        out = np.divide(chance[j], 1.0 + odds[j])
        outside += out
        inside += out * odds[j]
    return inside, outside


@kernel
def log_shares(odds: Floats, sign: float, log_chance: Floats) -> float:
    """Return how likely a label is in (sign 1) or out (-1), as a logarithm, for log x of any size."""
    best, total = -np.inf, 0.0
    for j in range(len(odds)):
        u = sign * odds[j]
        best = max(best, log_chance[j] + min(u, 0.0))
    for j in range(len(odds)):
        u = sign * odds[j]
        total += np.exp(log_chance[j] + min(u, 0.0) - best) / (1.0 + np.exp(-abs(u)))
    return best + np.log(total)


@kernel
def fill_log_odds(star: SubsetPair, terms: SubsetTerms, log_chance: Floats, chance: Floats, log_odds: Floats) -> None:
    """Fill the log-odds of the labels that are not in the core, (n, R); those of known labels stay as they are."""
    v, kind = terms.v, terms.kind
    odds = np.empty(chance.shape[1])
    for row in range(len(v)):
        for i in range(v.shape[1]):
            if kind[row, i] == TAME:
                fill_products(terms.base[row, i], star.factor[i], odds)
                inside, outside = inside_and_outside(odds, chance[row])
                log_odds[row, i] = np.log(inside / outside)
            elif kind[row, i] < KNOWN_IN:
                fill_sums(v[row, i], star.outer[i], star.outer.shape[1], odds)
                log_odds[row, i] = log_shares(odds, 1.0, log_chance[row]) - log_shares(odds, -1.0, log_chance[row])


@kernel
def shares(odds: Floats, chance: Floats, out: Floats) -> None:
    """Fill how likely a label is in with each setting."""
    for j in range(len(odds)):
        out[j] = np.divide(chance[j] * odds[j], 1.0 + odds[j])


@loose_sums
def total_of(values: Floats, first: int, last: int) -> float:
    """Return the sum of a range."""
    total = 0.0
    for j in range(first, last):
        total += values[j]
    return total


@kernel
def fold(values: Floats, with_each: Floats) -> float:
    """Fill the sum over the settings with each core label; return the sum over all. ``values`` are lost."""
    for c in range(len(with_each) - 1, -1, -1):
        half = 1 << c
        with_each[c] = total_of(values, half, 2 * half)
        for j in range(half):
            values[j] += values[half + j]
    return values[0]


@kernel
def fill_gradient(
    star: SubsetPair, terms: SubsetTerms, chance: Floats, weight: Floats, item: Floats, joint: Floats
) -> None:
    """Fill how likely labels that are not in the core are, (n, R); add how likely with the core, (R, C), by weight."""
    v, kind, n_core = terms.v, terms.kind, star.outer.shape[1]
    odds, part, with_each = np.empty(chance.shape[1]), np.empty(chance.shape[1]), np.empty(n_core)
    for row in range(len(v)):
        for i in range(v.shape[1]):
            if kind[row, i] == TAME:
                fill_products(terms.base[row, i], star.factor[i], odds)
                shares(odds, chance[row], part)
            elif kind[row, i] < KNOWN_IN:
                fill_sums(v[row, i], star.outer[i], n_core, odds)
                for j in range(len(odds)):
                    e = np.exp(-abs(odds[j]))
                    part[j] = chance[row, j] * (1.0 if odds[j] >= 0.0 else e) / (1.0 + e)
            else:
                is_in = kind[row, i] == KNOWN_IN
                for j in range(len(part)):
                    part[j] = chance[row, j] if is_in else 0.0
            item[row, i] = fold(part, with_each)
            for c in range(n_core):
                joint[i, c] += weight[row] * with_each[c]
