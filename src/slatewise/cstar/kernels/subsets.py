"""Sums over all subsets of the labels of a row: what each core setting weighs, and how likely labels and pairs are.

    Z = sum over core settings z of  exp(const(z)) prod over the others of (1 + x_i(z)) ,    x_i(z) = exp(v_i + z.G_i)

The 2^C numbers x_i(z) of a label are products: of exp v_i, of what the lower bits of z multiply it by, 16 numbers, and
of what the higher bits do. So there is one exponential per label, not per label and setting, and none is more than two
roundings away from it. Products of (1 + x) are as good as sums of their logarithms until they are large; their
logarithm is taken then. Labels whose exponentials may leave the range go by their logarithms. All loops over settings
add or multiply 16 numbers side by side, in an order that the source says.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.running.kernel import kernel
from slatewise.cstar.kernels.subset_layout import KNOWN_IN, RUN, TAME, WILD, Floats, SubsetPair, SubsetTerms

LARGEST_PRODUCT = 700.0


# Loops over a run ask for its length: of a number that is known the compiler would write out 16 single steps instead of
# a few wide ones.


@kernel
def fill_sums(first: float, run: Floats, place: Floats, out: Floats) -> None:
    """Fill the sum of each setting."""
    for r in range(len(run)):
        value, at = first + run[r], r * len(place)
        for j in range(len(place)):
            out[at + j] = value + place[j]


@kernel
def multiply(base: float, run: Floats, place: Floats, product: Floats) -> None:
    """Multiply by 1 + x."""
    for r in range(len(run)):
        factor, at = base * run[r], r * len(place)
        for j in range(len(place)):
            product[at + j] *= 1.0 + factor * place[j]


@kernel
def add_logs(product: Floats, score: Floats) -> None:
    """Move products into the scores."""
    for j in range(len(product)):
        score[j] += np.log(product[j])
        product[j] = 1.0


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
        among[0] = with_c
        for d in range(c):
            for j in range(1 << d):
                among[(1 << d) + j] = among[j] + inner[c, d]
        for j in range(half):
            score[half + j] = score[j] + among[j]
            score[j] += without
    return const


@kernel
def score_settings(star: SubsetPair, terms: SubsetTerms, score: Floats, const: Floats) -> None:
    """Fill the logarithm of what each setting adds to Z, (n, S), less what all have in common, which ``const`` gets."""
    v, kind, n_settings = terms.v, terms.kind, score.shape[1]
    u, product = np.empty(n_settings), np.empty(n_settings)
    for row in range(len(v)):
        const[row] += score_core(terms.h[row], terms.fixed[row], star.inner, product, score[row])
        for j in range(n_settings):
            product[j] = 1.0
        room = LARGEST_PRODUCT
        for i in range(v.shape[1]):
            if kind[row, i] == TAME:
                most = max(v[row, i] + star.most[i], 0.0) + 0.7  # log(1 + x) is never more
                if most > room:
                    add_logs(product, score[row])
                    room = LARGEST_PRODUCT
                room -= most
                multiply(terms.base[row, i], star.run_factor[i], star.place_factor[i], product)
            elif kind[row, i] == WILD:
                fill_sums(v[row, i], star.run[i], star.place[i], u)
                for j in range(n_settings):
                    score[row, j] += max(u[j], 0.0) + np.log1p(np.exp(-abs(u[j])))
        add_logs(product, score[row])


@kernel
def add_up(values: Floats) -> float:
    """Return the sum of 16 numbers, which are lost."""
    for j in range(8):
        values[j] += values[8 + j]
    for j in range(4):
        values[j] += values[4 + j]
    return (values[0] + values[2]) + (values[1] + values[3])


# Of a plain division Numba asks first whether it is by zero, and then does not divide several numbers at a time.


@kernel
def fill_odds(base: float, run: Floats, place: Floats, chance: Floats, inside: Floats, outside: Floats) -> None:
    """Fill how likely a label is in, and is out, by place in the run: with full precision both."""
    for j in range(len(place)):
        inside[j] = outside[j] = 0.0
    for r in range(len(run)):
        factor, at = base * run[r], r * len(place)
        for j in range(len(place)):
            x = factor * place[j]
            out = np.divide(chance[at + j], 1.0 + x)
            outside[j] += out
            inside[j] += out * x


@kernel
def log_shares(u: Floats, sign: float, log_chance: Floats) -> float:
    """Return how likely a label is in (sign 1) or out (-1), as a logarithm, for log x of any size."""
    best, total = -np.inf, 0.0
    for j in range(len(u)):
        best = max(best, log_chance[j] + min(sign * u[j], 0.0))
    for j in range(len(u)):
        total += np.exp(log_chance[j] + min(sign * u[j], 0.0) - best) / (1.0 + np.exp(-abs(u[j])))
    return best + np.log(total)


@kernel
def fill_log_odds(star: SubsetPair, terms: SubsetTerms, log_chance: Floats, chance: Floats, log_odds: Floats) -> None:
    """Fill the log-odds of the labels that are not in the core, (n, R); those of known labels stay as they are."""
    v, kind = terms.v, terms.kind
    u, inside, outside = np.empty(chance.shape[1]), np.empty(RUN), np.empty(RUN)
    for row in range(len(v)):
        for i in range(v.shape[1]):
            if kind[row, i] == TAME:
                fill_odds(terms.base[row, i], star.run_factor[i], star.place_factor[i], chance[row], inside, outside)
                log_odds[row, i] = np.log(add_up(inside) / add_up(outside))
            elif kind[row, i] < KNOWN_IN:
                fill_sums(v[row, i], star.run[i], star.place[i], u)
                log_odds[row, i] = log_shares(u, 1.0, log_chance[row]) - log_shares(u, -1.0, log_chance[row])


@kernel
def add_shares(
    base: float, run: Floats, place: Floats, chance: Floats, weight: float, inside: Floats, together: Floats
) -> None:
    """Fill how likely a label is in by place in the run, and add how likely it is in with each setting, by weight."""
    for j in range(len(place)):
        inside[j] = 0.0
    for r in range(len(run)):
        factor, at = base * run[r], r * len(place)
        for j in range(len(place)):
            x = factor * place[j]
            share = np.divide(chance[at + j] * x, 1.0 + x)
            inside[j] += share
            together[at + j] += weight * share


@kernel
def add_other_shares(kind: int, u: Floats, chance: Floats, weight: float, inside: Floats, together: Floats) -> None:
    """Do so for a label that is not tame, by its log x, or is known."""
    for j in range(len(inside)):
        inside[j] = 0.0
    for j in range(len(u)):
        share = chance[j] if kind == KNOWN_IN else 0.0
        if kind < KNOWN_IN:
            e = np.exp(-abs(u[j]))
            share = chance[j] * (1.0 if u[j] >= 0.0 else e) / (1.0 + e)
        inside[j % RUN] += share
        together[j] += weight * share


@kernel
def fold(together: Floats, with_each: Floats) -> None:
    """Add the sums over the settings with each core label; ``together`` is lost."""
    for c in range(len(with_each) - 1, -1, -1):
        half, total = 1 << c, 0.0
        for j in range(half):
            total += together[half + j]
            together[j] += together[half + j]
        with_each[c] = total


@kernel
def fill_gradient(
    star: SubsetPair, terms: SubsetTerms, chance: Floats, weight: Floats, item: Floats, joint: Floats
) -> None:
    """Fill how likely labels that are not in the core are, (n, R), and how likely with the core, (R, C), by weight."""
    v, kind, n_settings = terms.v, terms.kind, chance.shape[1]
    together, u, inside = np.empty(n_settings), np.empty(n_settings), np.empty(RUN)
    for i in range(v.shape[1]):
        run, place = star.run_factor[i], star.place_factor[i]
        for j in range(n_settings):
            together[j] = 0.0
        for row in range(len(v)):
            if kind[row, i] == TAME:
                add_shares(terms.base[row, i], run, place, chance[row], weight[row], inside, together)
            else:
                fill_sums(v[row, i], star.run[i], star.place[i], u)
                add_other_shares(kind[row, i], u, chance[row], weight[row], inside, together)
            item[row, i] = add_up(inside)
        fold(together, joint[i])
