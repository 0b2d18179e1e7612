"""Told how many labels are right: terms of their own, fitted among the sets of as many labels.

    s'_i = slope_i s_i + shift_i  and  G'     in the place of s and G, for P(t) given |t| = k

The likelihood of sets of any size pays with the same terms for how many labels there are and for which. Where the
number is told only the second is asked for, and that question is the likelihood given k. Core and strength are the
same; scale and shift of the given log-odds are drawn to 1 and 0 again; the search starts at the terms of any size.

A sum given k costs about k times that of any size: where rows have many labels, where there are very many labels, and
where some are not known, terms stay those of any size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from slatewise.core.checks import require_in_range
from slatewise.core.executor import Executor
from slatewise.cstar.adjusted import AdjustedScores
from slatewise.cstar.checks import Floats, Ints, Known
from slatewise.cstar.likelihood import StarLikelihood
from slatewise.cstar.pair import StarPair
from slatewise.cstar.problem import symmetric_pair
from slatewise.cstar.subset_fit import search
from slatewise.cstar.training import Settings

_MOST_PER_ROW = 10.0
_MOST_LABELS = 1000
_ROUGH = 10.0
"""A gap so much larger is enough: nothing is certified of these terms."""
_LEAST_SCALE = 1e-6


class ToldTerms(NamedTuple):
    """What to do to label scores where the number of labels is told, and which pair terms to take."""

    slope: Floats
    """(N,)"""
    shift: Floats
    pair: Floats
    """(C, N), pairs of core labels in both rows."""

    @classmethod
    def of(cls, rows: Floats) -> ToldTerms | None:
        """Take them from where :meth:`rows` put them; None where terms stay as they are."""
        return cls(rows[0], rows[1], rows[2:]) if len(rows) else None

    def rows(self) -> Floats:
        """Return all of them, (2 + C, N)."""
        return np.vstack([self.slope, self.shift, self.pair])

    def scores(self, scores: Floats) -> Floats:
        """Return label scores (n, N) for sets of a number that is told."""
        with np.errstate(over="ignore", invalid="ignore"):
            told = np.ascontiguousarray(self.slope * scores + self.shift)
        require_in_range("the scores of X", told)
        return told

    def star_pair(self, core: Ints) -> StarPair:
        """Lay the pair terms out for inference."""
        return StarPair.laid_out(self.pair.copy(), core.copy())


NO_TOLD_TERMS = np.empty((0, 0))
"""Rows of terms that stay as they are."""


def worth_telling(known: Known, weight: Floats) -> bool:
    """Say whether there are terms of their own to learn, at a price.

    Examples
    --------
    >>> worth_telling(np.array([[1, 0]], dtype=np.int8), np.ones(1))
    True
    >>> worth_telling(np.array([[1, -1]], dtype=np.int8), np.ones(1))
    False
    """
    if known.shape[1] > _MOST_LABELS or bool((known < 0).any()):
        return False
    counts = (known > 0).sum(axis=1)
    return bool(counts.any()) and float(np.average(counts, weights=weight * (counts > 0))) <= _MOST_PER_ROW


def told_fit(
    given: Floats, known: Known, weight: Floats, core: Ints, settings: Settings, executor: Executor, params: Floats
) -> ToldTerms:
    """Fit given log-odds (n, N) to labels that are all known, from the parameters of sets of any size.

    Examples
    --------
    Label 0 is there or label 1. Told that there is one, an odd score decides.

    >>> from slatewise.core.executor import ONE_THREAD
    >>> known = np.array([[1, 0], [0, 1]] * 20, dtype=np.int8)
    >>> settings, none = Settings(C=1.0, rho=1.0, tol=1e-3, max_iter=100, random_state=0), np.zeros(0, dtype=np.int64)
    >>> told = told_fit(2.0 * known - 1.0, known, np.ones(40), none, settings, ONE_THREAD, np.zeros(4))
    >>> bool((told.slope > 1.0).all()), told.pair.shape
    (True, (0, 2))
    """
    some = np.flatnonzero(known.any(axis=1))  # of none, or of all labels, there is one set only
    Y, model = known[some], AdjustedScores(given[some], core)
    likelihood = StarLikelihood(model, Y, Y.sum(axis=1, dtype=np.int64), weight[some], executor)
    rough = replace(settings, tol=_ROUGH * settings.tol, callback=None)
    found = search(likelihood, rough, params).params
    a, v, _ = model.unpack(params)
    a_told, v_told, G = model.unpack(found)
    # A label that is not scored by what was given is not so when told.
    scored = np.abs(1.0 + a) > _LEAST_SCALE
    slope = np.where(scored, (1.0 + a_told) / np.where(scored, 1.0 + a, 1.0), 0.0)
    return ToldTerms(slope, v_told - slope * v, symmetric_pair(G, core))
