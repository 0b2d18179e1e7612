"""Sums over the six permutations of three, one document a rating: written out, a matrix at a time.

    t_y = w[0, y(0)] + w[1, y(1)] + w[2, y(2)],     parts_y = exp(t_y - max t),     Z = exp(max t) sum_y parts_y

Six exponentials per matrix instead of nine, and none can overflow or all vanish: nothing has to be scaled first, as
long as a sum of nine |w| is a number (:func:`slatewise.inference.permanent` refuses more than 1e300). They are taken
between the two kernels, by NumPy, eight at a time.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.running.kernel import kernel


@kernel
def weigh_threes(log_weights: Floats, parts: Floats, largest: Floats, sizes: Floats) -> int:
    """Fill ``parts`` (G, 6) with t - max t, ``largest`` with max t; return the first matrix without a matching, or -1.

    ``sizes`` gets the sum of all finite |w|: what the sums over three may have rounded.
    """
    at = -1
    for number in range(len(log_weights)):
        w = log_weights[number]
        a, b, c = w[0, 0], w[0, 1], w[0, 2]
        d, e, f = w[1, 0], w[1, 1], w[1, 2]
        g, h, i = w[2, 0], w[2, 1], w[2, 2]
        one, two, three, four, five, six = a + e + i, b + f + g, c + d + h, c + e + g, b + d + i, a + f + h
        # Written as choices between two, which become one instruction each.
        best = one if one > two else two
        other = three if three > four else four
        last = five if five > six else six
        best = best if best > other else other
        best = best if best > last else last
        if at < 0 and best == -np.inf:
            at = number
        p = parts[number]
        p[0], p[1], p[2], p[3], p[4], p[5] = one - best, two - best, three - best, four - best, five - best, six - best
        size = 0.0
        for x in (a, b, c, d, e, f, g, h, i):
            size += abs(x) if x > -np.inf else 0.0
        largest[number], sizes[number] = best, size
    return at


@kernel
def sum_threes(parts: Floats, z: Floats, marginals: Floats) -> None:
    """Fill ``z`` (G,) with the sums of ``parts``, and ``marginals`` (G, 3, 3): each edge is in two permutations."""
    for number in range(len(parts)):
        p = parts[number]
        one, two, three, four, five, six = p[0], p[1], p[2], p[3], p[4], p[5]
        total = (one + two + three) + (four + five + six)
        z[number] = total
        inverse = 1.0 / total
        one, two, three = one * inverse, two * inverse, three * inverse
        four, five, six = four * inverse, five * inverse, six * inverse
        m = marginals[number]
        m[0, 0], m[0, 1], m[0, 2] = one + six, two + five, three + four
        m[1, 0], m[1, 1], m[1, 2] = three + five, one + four, two + six
        m[2, 0], m[2, 1], m[2, 2] = two + four, three + six, one + five
