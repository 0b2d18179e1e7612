"""How what is summed over subsets lies in memory: apart from the kernels, so that it is made without Numba.

A label that is not in the core has an exponent ``v + z.G`` for each setting z of the core. Labels are sorted by what
these can be: all within a range where products of exponentials neither overflow nor vanish (tame), or all so large that
the label is in and brings its exponent itself, or so small that it brings nothing, or anything (wild).

Settings are numbers whose bit c says whether core label c is in. They stand in runs of 16, and kernels take a run at a
time: the lower four bits say where in its run a setting is, the others which run it is. A core of less than four labels
is filled up with some that are known to be out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Bytes, Floats
from slatewise.cstar.kernels.layout import Pair

TAME, WILD, IN, OUT, KNOWN_IN, KNOWN_OUT = 0, 1, 2, 3, 4, 5
"""Kinds of labels: exponents in range; any; in, or out, whatever the core; known. Kernels count on this order."""
RUN_BITS, RUN = 4, 16
_RANGE = 300.0  # x^2 can still be held
_SURE = 40.0  # exp(-40) added to 1 is 1


def summed_bits(n_core: int) -> int:
    """Return of how many core labels settings are walked."""
    return max(n_core, RUN_BITS)


class SubsetPair(NamedTuple):
    """The pair terms, and what sums over subsets need of them."""

    inner: Floats
    """(C, C) symmetric, diagonal 0."""
    outer: Floats
    """(R, C) of the labels that are not in the core."""
    least: Floats
    """(R,) the least that the core can add to an exponent."""
    most: Floats
    """(R,) the most."""
    place: Floats
    """(R, 16) what the lower bits add to it."""
    run: Floats
    """(R, runs) what the others add."""
    place_factor: Floats
    """(R, 16) exp of that."""
    run_factor: Floats
    """(R, runs)."""

    @classmethod
    def of(cls, pair: Pair) -> SubsetPair:
        """Lay out the pair terms."""
        n_core = len(pair.core)
        filler = summed_bits(n_core) - n_core
        inner, outer = np.pad(pair.inner, (0, filler)), np.pad(pair.outer.T, ((0, 0), (0, filler)))
        place, run = _all_sums(outer[:, :RUN_BITS]), _all_sums(outer[:, RUN_BITS:])
        with np.errstate(over="ignore", under="ignore"):  # such labels are never tame
            factors = np.exp(place), np.exp(run)
        least, most = np.minimum(outer, 0.0).sum(axis=1), np.maximum(outer, 0.0).sum(axis=1)
        return cls(inner, outer, least, most, place, run, *factors)


def _all_sums(terms: Floats) -> Floats:
    """Return the sums of all subsets of the columns: bit c of a sum's number says whether column c is in."""
    sums = np.zeros((len(terms), 1))
    for c in range(terms.shape[1]):
        sums = np.hstack([sums, sums + terms[:, c : c + 1]])
    return sums


class SubsetTerms(NamedTuple):
    """A block of rows."""

    v: Floats
    """(n, R) scores of the labels that are not in the core."""
    base: Floats
    """(n, R) exp v of the tame ones."""
    kind: Bytes
    """(n, R)."""
    h: Floats
    """(n, C) scores of the core labels, with the pair terms of all labels that are in."""
    fixed: Floats
    """(n, C) what is known of the core: 1, 0 or -1."""

    @classmethod
    def of(cls, s: Floats, known: Bytes, pair: Pair, star: SubsetPair) -> tuple[SubsetTerms, Floats]:
        """Sort the labels of some rows; also return the scores of those that are in. ``known`` has rows if any is."""
        v = s[:, pair.rest]
        low, high = v + star.least, v + star.most
        kind = np.full(v.shape, WILD, dtype=np.int8)
        kind[high < -_SURE], kind[low > _SURE], kind[(low > -_RANGE) & (high < _RANGE)] = OUT, IN, TAME
        return cls.of_kinds(s, kind, known, pair, star)

    @classmethod
    def of_kinds(cls, s: Floats, kind: Bytes, known: Bytes, pair: Pair, star: SubsetPair) -> tuple[SubsetTerms, Floats]:
        """Do so with given kinds, which change where a label is known."""
        n_core, n_bits = len(pair.core), len(star.inner)
        v, h, fixed = np.ascontiguousarray(s[:, pair.rest]), np.zeros((len(s), n_bits)), np.zeros((len(s), n_bits))
        h[:, :n_core], fixed[:, :n_core] = s[:, pair.core], -1.0
        if len(known):
            answers = known[:, pair.rest]
            kind[answers == 1], kind[answers == 0] = KNOWN_IN, KNOWN_OUT
            fixed[:, :n_core] = known[:, pair.core]
        inside = (kind == IN) | (kind == KNOWN_IN)
        if inside.any():  # sums of whole rows, not products of matrices: the bits do not depend on BLAS
            for c in range(n_core):
                h[:, c] += np.where(inside, star.outer[:, c], 0.0).sum(axis=1)
        base = np.exp(np.where(kind == TAME, v, 0.0))
        return cls(v, base, kind, h, fixed), np.where(inside, v, 0.0).sum(axis=1)
