"""Adjusting given log-odds by the likelihood of sets of any size.

    P(w) = 1/2 |w|^2_rho + C L(w) ,      |w|^2_rho = |a|^2 + |v|^2 + rho |G|^2 ,    L the sum over rows

Of complete rows P is convex, and in the coordinates of its norm ``P(w*) >= P(w) - 1/2 |grad P(w)|^2``: a small gradient
is a certificate. With rows that are known in part it is not: the search starts at the fit of the complete rows and ends
when the gradient is as small; nothing is certified there, so the lower bound is -inf.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.numerics.lbfgs import minimise
from slatewise.core.numerics.result import ConvergenceWarning, Fit, Round
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.adjusted import AdjustedScores
from slatewise.cstar.likelihood import StarLikelihood
from slatewise.cstar.subset_likelihood import SubsetLikelihood
from slatewise.cstar.training import Settings


def subset_fit(
    given: Floats,
    known: Bytes,
    weight: Floats,
    core: Ints,
    settings: Settings,
    executor: Executor = ONE_THREAD,
    start: Floats | None = None,
) -> Fit:
    """Fit given log-odds (n, N) to what is known of the labels (n, N): 1, 0, or -1 for unknown.

    Parameters, also of a start, are those of :class:`slatewise.cstar.adjusted.AdjustedScores`: a, v, G. Arrays are
    trusted. ``settings.callback`` hears of the rounds of both searches.

    Examples
    --------
    Label 1 comes with label 0, which the log-odds do not say.

    >>> rng = np.random.default_rng(0)
    >>> Y = np.repeat(rng.integers(0, 2, (200, 1)), 2, axis=1).astype(np.int8)
    >>> settings = Settings(C=1.0, rho=1.0, tol=1e-3, max_iter=100, random_state=0)
    >>> fit = subset_fit(np.zeros((200, 2)), Y, np.ones(200), np.array([0]), settings)
    >>> a, v, G = AdjustedScores(np.zeros((200, 2)), np.array([0])).unpack(fit.params)
    >>> bool(G[0, 1] > 3), fit.converged
    (True, True)
    """
    likelihood = SubsetLikelihood(AdjustedScores(given, core), known, weight, executor)
    is_known = (known >= 0).any(axis=1)
    if not is_known.all():  # a row without a known label says nothing
        likelihood = likelihood.rows(np.flatnonzero(is_known))
    first = np.zeros(likelihood.n_params) if start is None else start
    if len(likelihood.partial) == 0:
        return search(likelihood, settings, first)
    if start is None and len(likelihood.complete):
        first = search(likelihood.rows(likelihood.complete), settings, first).params
    return _uncertified(likelihood, settings, first)


def search(likelihood: SubsetLikelihood | StarLikelihood, settings: Settings, start: Floats) -> Fit:
    """Minimise P from a start; parameters are those of the likelihood's model."""
    root = np.ones(likelihood.n_params)
    likelihood.model.unpack(root)[2][:] = np.sqrt(settings.rho)

    def tell(found: Round) -> None:
        if settings.callback is not None:
            settings.callback(found, None)

    return minimise(
        likelihood,
        1.0,
        start,
        weight=settings.C,
        root=root,
        tol=settings.tol,
        max_iter=settings.max_iter,
        callback=tell,
        easier="lower C",
    )


def _uncertified(likelihood: SubsetLikelihood, settings: Settings, start: Floats) -> Fit:
    """Search where P is not convex: what the gradient would prove of a convex one only says when to stop."""

    def tell(found: Round, state: None) -> None:
        if settings.callback is not None:
            settings.callback(replace(found, lower_bound=-np.inf), state)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
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
