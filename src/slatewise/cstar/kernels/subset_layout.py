"""How what is summed over subsets lies in memory: apart from the kernels, so that it is made without Numba.

A label that is not in the core has an exponent ``v + z.G`` for each setting z of the core. Labels are sorted by what
these can be: all within a range where products of exponentials neither overflow nor vanish (tame), or all so large that
the label is in and brings its exponent itself, or so small that it brings nothing, or anything (wild).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.cstar.checks import Floats, Known
from slatewise.cstar.kernels.layout import Pair

TAME, WILD, IN, OUT, KNOWN_IN, KNOWN_OUT = 0, 1, 2, 3, 4, 5
"""Kinds of labels: exponents in range; any; in, or out, whatever the core; known. Kernels count on this order."""
_RANGE = 300.0  # x^2 can still be held
_SURE = 40.0  # exp(-40) added to 1 is 1


class SubsetPair(NamedTuple):
    """The pair terms, and what sums over subsets need of them."""

    inner: Floats
    """(C, C) symmetric, diagonal 0."""
    outer: Floats
    """(R, C) of the labels that are not in the core."""
    factor: Floats
    """(R, C) exp of it."""
    low: Floats
    """(R,) the least that the core can add to an exponent."""
    high: Floats
    """(R,) the most."""

    @classmethod
    def of(cls, pair: Pair) -> SubsetPair:
        """Lay out the pair terms."""
        outer = np.ascontiguousarray(pair.outer.T)
        with np.errstate(over="ignore", under="ignore"):  # such labels are never tame
            factor = np.exp(outer)
        return cls(pair.inner, outer, factor, np.minimum(outer, 0.0).sum(axis=1), np.maximum(outer, 0.0).sum(axis=1))


class SubsetTerms(NamedTuple):
    """A block of rows."""

    v: Floats
    """(n, R) scores of the labels that are not in the core."""
    base: Floats
    """(n, R) exp v of the tame ones."""
    kind: Known
    """(n, R)."""
    h: Floats
    """(n, C) scores of the core labels, with the pair terms of all labels that are in."""
    fixed: Floats
    """(n, C) what is known of the core: 1, 0 or -1."""

    @classmethod
    def of(cls, s: Floats, known: Known, pair: Pair, star: SubsetPair) -> tuple[SubsetTerms, Floats]:
        """Sort the labels of some rows; also return the scores of those that are in. ``known`` has rows if any is."""
        v = s[:, pair.rest]
        low, high = v + star.low, v + star.high
        kind = np.full(v.shape, WILD, dtype=np.int8)
        kind[high < -_SURE], kind[low > _SURE], kind[(low > -_RANGE) & (high < _RANGE)] = OUT, IN, TAME
        return cls.of_kinds(s, kind, known, pair, star)

    @classmethod
    def of_kinds(cls, s: Floats, kind: Known, known: Known, pair: Pair, star: SubsetPair) -> tuple[SubsetTerms, Floats]:
        """Do so with given kinds, which change where a label is known."""
        v, fixed = np.ascontiguousarray(s[:, pair.rest]), np.full((len(s), len(pair.core)), -1.0)
        if len(known):
            answers = known[:, pair.rest]
            kind[answers == 1], kind[answers == 0] = KNOWN_IN, KNOWN_OUT
            fixed[:] = known[:, pair.core]
        h, base = np.ascontiguousarray(s[:, pair.core]), np.exp(np.where(kind == TAME, v, 0.0))
        inside = (kind == IN) | (kind == KNOWN_IN)
        if inside.any():  # sums of whole rows, not products of matrices: the bits do not depend on BLAS
            for c in range(len(pair.core)):
                h[:, c] += np.where(inside, star.outer[:, c], 0.0).sum(axis=1)
        return cls(v, base, kind, h, fixed), np.where(inside, v, 0.0).sum(axis=1)
