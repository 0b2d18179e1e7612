"""Terms for rows whose number of labels is known, fitted among the sets of that many labels.

    s'_i = slope_i s_i + shift_i  and  G'     in the place of s and G, for P(t) given |t| = k

With the same terms the likelihood of sets of any size explains how many labels there are and which. If the number is
known, only the second is in question, which is the likelihood given k. Core and strength are the same; scale and shift
of the given log-odds are drawn to 1 and 0 again; the search starts at the terms of any size.

A sum given k costs about k times that of any size. So there are no such terms for rows with many labels, for very many
labels, and for partly known labels: those of any size serve there too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.checks import require_in_range
from slatewise.core.running.executor import Executor
from slatewise.cstar.adjusted import AdjustedScores
from slatewise.cstar.likelihood import StarLikelihood
from slatewise.cstar.pair import StarPair
from slatewise.cstar.problem import symmetric_pair
from slatewise.cstar.subset_fit import search
from slatewise.cstar.training import Settings

_MAX_PER_ROW = 10.0
_MAX_LABELS = 1000
_ROUGH = 10.0
"""The tolerance is this much larger: nothing is certified of these terms."""
_LEAST_SCALE = 1e-6


class KnownCountTerms(NamedTuple):
    """A scale and a shift of label scores, and pair terms, for a known number of labels."""

    slope: Floats
    """(N,)"""
    shift: Floats
    pair: Floats
    """(C, N), pairs of core labels in both rows."""

    @classmethod
    def of(cls, rows: Floats) -> KnownCountTerms:
        """Take them from the array that :meth:`rows` returns."""
        return cls(rows[0], rows[1], rows[2:])

    def rows(self) -> Floats:
        """Return all of them, (2 + C, N)."""
        return np.vstack([self.slope, self.shift, self.pair])

    def scores(self, scores: Floats) -> Floats:
        """Return label scores (n, N) for sets of a known size."""
        with np.errstate(over="ignore", invalid="ignore"):
            adjusted = np.ascontiguousarray(self.slope * scores + self.shift)
        require_in_range("the scores of X", adjusted)
        return adjusted

    def star_pair(self, core: Ints) -> StarPair:
        """Lay the pair terms out for inference."""
        return StarPair.laid_out(self.pair.copy(), core.copy())


def has_known_count_terms(known: Bytes, weight: Floats) -> bool:
    """Tell whether such terms are learned from these labels (n, N).

    Examples
    --------
    >>> has_known_count_terms(np.array([[1, 0]], dtype=np.int8), np.ones(1))
    True
    >>> has_known_count_terms(np.array([[1, -1]], dtype=np.int8), np.ones(1))
    False
    """
    if known.shape[1] > _MAX_LABELS or bool((known < 0).any()):
        return False
    counts = (known > 0).sum(axis=1)
    return bool(counts.any()) and float(np.average(counts, weights=weight * (counts > 0))) <= _MAX_PER_ROW


def fit_known_count(
    given: Floats, known: Bytes, weight: Floats, core: Ints, settings: Settings, executor: Executor, params: Floats
) -> KnownCountTerms:
    """Fit given log-odds (n, N) to labels that are all known, from the parameters of sets of any size.

    Examples
    --------
    Either label 0 applies or label 1. If there is one label, their odds decide.

    >>> from slatewise.core.running.executor import ONE_THREAD
    >>> known = np.array([[1, 0], [0, 1]] * 20, dtype=np.int8)
    >>> settings, none = Settings(C=1.0, rho=1.0, tol=1e-3, max_iter=100, random_state=0), np.zeros(0, dtype=np.int64)
    >>> terms = fit_known_count(2.0 * known - 1.0, known, np.ones(40), none, settings, ONE_THREAD, np.zeros(4))
    >>> bool((terms.slope > 1.0).all()), terms.pair.shape
    (True, (0, 2))
    """
    some = np.flatnonzero(known.any(axis=1))  # there is only one set of none, or of all labels
    Y, model = known[some], AdjustedScores(given[some], core)
    likelihood = StarLikelihood(model, Y, Y.sum(axis=1, dtype=np.int64), weight[some], executor)
    rough = replace(settings, tol=_ROUGH * settings.tol, callback=None)
    found = search(likelihood, rough, params).params
    a, v, _ = model.unpack(params)
    a_known, v_known, G = model.unpack(found)
    # A label whose given log-odds do not count for sets of any size has none here either.
    scored = np.abs(1.0 + a) > _LEAST_SCALE
    slope = np.where(scored, (1.0 + a_known) / np.where(scored, 1.0 + a, 1.0), 0.0)
    return KnownCountTerms(slope, v_known - slope * v, symmetric_pair(G, core))
