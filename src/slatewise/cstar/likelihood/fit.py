"""Adjusting given log-odds by the likelihood of sets of any size, and again for rows whose number of labels is known.

    P(w) = 1/2 |w|^2_rho + C L(w) ,      |w|^2_rho = |a|^2 + |v|^2 + rho |G|^2 ,    L the sum over rows

Of complete rows P is convex, and in the coordinates of its norm ``P(w*) >= P(w) - 1/2 |grad P(w)|^2``: a small gradient
is a certificate. With partly known rows it is not: the search starts at the fit of the complete rows and ends when the
gradient is as small; nothing is certified there, so the lower bound is -inf.

If the number of labels is known, terms of their own are fitted among the sets of that many labels:

    s'_i = slope_i s_i + shift_i  and  G'     instead of s and G, for P(t) given |t| = k

With the same terms the likelihood of sets of any size explains how many labels there are and which. If the number is
known, only the second is in question, which is the likelihood given k. Core and strength are the same; scale and shift
of the given log-odds are drawn to 1 and 0 again; the search starts at the terms of any size. A sum given k costs about
k times that of any size. So there are no such terms for rows with many labels, for very many labels, and for partly
known labels: those of any size serve there too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.checks import require_in_range
from slatewise.core.numerics.lbfgs import minimize
from slatewise.core.numerics.result import ConvergenceWarning, Fit, Round
from slatewise.core.numerics.strengths import rough_fits
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.inference.model import StarPair, symmetric_pair
from slatewise.cstar.likelihood.objective import AdjustedScores, AnySizeLikelihood, FixedSizeLikelihood

_MAX_PER_ROW = 10.0
_MAX_LABELS = 1000
_ROUGH = 10.0
"""The tolerance of terms for a known number of labels is this much larger: nothing is certified of them."""
_LEAST_SCALE = 1e-6


@dataclass(frozen=True)
class Settings:
    """What every fit shares; ``rho = C / C_pair`` weighs the regularizer of G."""

    C: float
    rho: float
    tol: float
    max_iter: int
    random_state: int
    callback: Callable[[Round], None] | None = None


def fit_any_size(
    given: Floats,
    known: Bytes,
    weight: Floats,
    core: Ints,
    settings: Settings,
    executor: Executor = ONE_THREAD,
    start: Floats | None = None,
) -> Fit:
    """Fit given log-odds (n, N) to what is known of the labels (n, N): 1, 0, or -1 for unknown.

    Parameters, also of a start, are those of :class:`slatewise.cstar.likelihood.objective.AdjustedScores`: a, v, G.
    Arrays are trusted. ``settings.callback`` is called with the rounds of both searches.

    Examples
    --------
    Label 1 comes with label 0, which the log-odds do not say.

    >>> rng = np.random.default_rng(0)
    >>> Y = np.repeat(rng.integers(0, 2, (200, 1)), 2, axis=1).astype(np.int8)
    >>> settings = Settings(C=1.0, rho=1.0, tol=1e-3, max_iter=100, random_state=0)
    >>> fit = fit_any_size(np.zeros((200, 2)), Y, np.ones(200), np.array([0]), settings)
    >>> a, v, G = AdjustedScores(np.zeros((200, 2)), np.array([0])).unpack(fit.params)
    >>> bool(G[0, 1] > 3), fit.converged
    (True, True)
    """
    likelihood = AnySizeLikelihood(AdjustedScores(given, core), known, weight, executor)
    is_known = (known >= 0).any(axis=1)
    if not is_known.all():  # a row without a known label adds nothing
        likelihood = likelihood.rows(np.flatnonzero(is_known))
    first = np.zeros(likelihood.n_params) if start is None else start
    if likelihood.is_complete.all():
        return search(likelihood, settings, first)
    if start is None and likelihood.is_complete.any():
        first = search(likelihood.rows(np.flatnonzero(likelihood.is_complete)), settings, first).params
    return _uncertified(likelihood, settings, first)


def search(likelihood: AnySizeLikelihood | FixedSizeLikelihood, settings: Settings, start: Floats) -> Fit:
    """Minimize P from a start; parameters are those of the likelihood's model."""
    root = np.ones(likelihood.n_params)
    likelihood.model.unpack(root)[2][:] = np.sqrt(settings.rho)
    return minimize(
        likelihood,
        1.0,
        start,
        weight=settings.C,
        root=root,
        tol=settings.tol,
        max_iter=settings.max_iter,
        callback=settings.callback,
        easier="lower C",
    )


def _uncertified(likelihood: AnySizeLikelihood, settings: Settings, start: Floats) -> Fit:
    """Search where P is not convex: the gap that a convex P would have only says when to stop."""

    def tell(found: Round) -> None:
        if settings.callback is not None:
            settings.callback(replace(found, lower_bound=-np.inf))

    with rough_fits():
        fit = search(likelihood, replace(settings, callback=tell), start)
    if not fit.converged:
        warnings.warn(
            f"stopped after {len(fit.history)} rounds where the gradient is not yet small (gap {fit.gap:.2e} if the "
            f"likelihood of partly known rows were convex, required {settings.tol:.1e}): raise max_iter, or tol",
            ConvergenceWarning,
            stacklevel=3,
        )
    history = tuple(replace(found, lower_bound=-np.inf) for found in fit.history)
    return replace(fit, lower_bound=-np.inf, history=history)


# --- a known number of labels -----------------------------------------------------------------------------------------


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
        return StarPair.from_symmetric(self.pair.copy(), core.copy())


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
    likelihood = FixedSizeLikelihood(model, Y, Y.sum(axis=1, dtype=np.int64), weight[some], executor)
    rough = replace(settings, tol=_ROUGH * settings.tol, callback=None)
    found = search(likelihood, rough, params).params
    a, v, _ = model.unpack(params)
    a_known, v_known, G = model.unpack(found)
    # A label whose given log-odds do not count for sets of any size has none here either.
    scored = np.abs(1.0 + a) > _LEAST_SCALE
    slope = np.where(scored, (1.0 + a_known) / np.where(scored, 1.0 + a, 1.0), 0.0)
    return KnownCountTerms(slope, v_known - slope * v, symmetric_pair(G, core))
