"""Training a linear ranker of documents:  min over w of  1/2 |w|^2 + C R(w) ,  and choosing C by inner validation.

R is ``margin_hinge.MarginHinge``. A cut of R has no C in it, so a path of growing C costs
little more than its last point: every fit of a fold starts from the cuts of the one before. A C is judged by the loss
it was trained for, on lists that were left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from slatewise.core.numerics.bundle import ActiveCuts, one_slack
from slatewise.core.numerics.result import ConvergenceWarning, Fit, Round
from slatewise.core.running.blas import one_blas_thread
from slatewise.metric_learning.margin_hinge import HeldHinge, MarginHinge

STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""C times the mean squared distance of a row from the centre of its list."""
FOLDS = 5
_TOLERANCE, _ROUNDS = 1e-2, 200  # a rough fit is enough to choose by


def fit_margin(
    hinge: MarginHinge | HeldHinge, C: float, tol: float, max_iter: int, callback: Callable[[Round], None] | None = None
) -> Fit:
    """Minimise to a certified relative gap of ``tol``."""
    with one_blas_thread():
        return one_slack(hinge, ActiveCuts(np.ones(hinge.n_features)), C, tol=tol, max_iter=max_iter, callback=callback)


def choose_strength(hinge: MarginHinge, random_state: int) -> float:
    """Return the C with the smallest mean loss on folds of the lists; of equals the smallest."""
    if hinge.n_lists < 2:
        raise ValueError(
            f"C: expected a number where there is one list to learn from, found 'auto' and {hinge.n_lists}"
        )
    strengths = [strength / hinge.spread for strength in STRENGTHS]
    part = np.random.default_rng(random_state).permutation(hinge.n_lists) % FOLDS
    totals = np.zeros(len(strengths))
    for fold in range(min(FOLDS, hinge.n_lists)):
        inner, held_out = hinge.part(part != fold), hinge.part(part == fold)
        totals += float(held_out.weights.sum()) * np.array(path_losses(inner, held_out, strengths))
    return strengths[int(np.argmin(totals))]


def path_losses(hinge: MarginHinge, held_out: MarginHinge, strengths: Sequence[float]) -> list[float]:
    """Return the mean loss on the lists left out, for each C of a growing path."""
    cuts = ActiveCuts(np.ones(hinge.n_features))
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [one_slack(hinge, cuts, C, tol=_TOLERANCE, max_iter=_ROUNDS) for C in strengths]
        return [held_out.ranking_loss(fit.params) for fit in fits]
