"""Choosing C and the weight of G by inner validation: folds over the training rows, break-even precision.

All candidates of a fold share one path of growing C, each started where the one before ended. Where the scores were
given (pre-trained), C = 0 is a candidate too: it leaves them as they are, so the choice cannot end below them on the
validation rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from slatewise.inference.star import argmax_block
from slatewise.learners.result import ConvergenceWarning
from slatewise.learners.star_training import Floats, Ints, Learner, Settings, Start
from slatewise.surrogates.star_hinge import StarHinge

STRENGTHS = (10.0, 30.0, 100.0, 300.0, 1000.0)
"""C times the mean squared length of a row of features."""
PAIR_WEIGHTS = (0.1, 1.0)
FOLDS = 3
_TOLERANCE = 1e-2


class Choice(NamedTuple):
    """The chosen C (0: leave the given scores as they are), rho, and what validation measured."""

    C: float
    rho: float
    score: float


def choose(hinge: StarHinge, learner: Learner, settings: Settings, rhos: Sequence[float] = PAIR_WEIGHTS) -> Choice:
    """Return the candidate with the highest mean break-even precision on the inner folds."""
    scale = float(np.einsum("nd,nd->", hinge.phi, hinge.phi)) / len(hinge.phi)
    strengths = [strength / max(scale, 1e-300) for strength in STRENGTHS]
    totals = np.zeros((len(rhos), len(strengths)))
    base = 0.0
    parts = np.random.default_rng(settings.random_state).permutation(hinge.n_lists) % FOLDS
    for fold in range(FOLDS):
        train, held_out = np.flatnonzero(parts != fold), np.flatnonzero(parts == fold)
        inner, outer = hinge.part(train), hinge.part(held_out)
        base += break_even(outer, np.zeros(hinge.n_params)) / FOLDS
        for i, rho in enumerate(rhos):
            start: Start | None = None
            for j, C in enumerate(strengths):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # a rough fit is enough to choose by
                    fit = learner(inner, replace(settings, C=C, rho=rho, tol=_TOLERANCE, callback=None), start)
                totals[i, j] += break_even(outer, fit.params) / FOLDS
                if fit.state is not None and j + 1 < len(strengths):
                    fit.state.rescale(strengths[j + 1] / C)
                    start = Start(fit.state)
    i, j = divmod(int(np.argmax(totals)), len(strengths))
    if hinge.offset is not None and base >= totals[i, j]:
        return Choice(0.0, rhos[0], base)
    return Choice(strengths[j], rhos[i], float(totals[i, j]))


def break_even(hinge: StarHinge, params: Floats) -> float:
    """Mean over lists of the precision of the argmax without loss."""
    W, G = hinge.unpack(params)
    found = argmax_block(hinge.scores(W, slice(None)), hinge.star_pair(G), hinge.k)
    return float(hinge.weight @ _hits(found.selected, hinge.target, hinge.k))


def _hits(selected: Ints, target: Ints, k: Ints) -> Floats:
    same = (selected[:, :, None] == target[:, None, :]) & (selected >= 0)[:, :, None]
    return same.sum(axis=(1, 2)) / np.maximum(k, 1)
