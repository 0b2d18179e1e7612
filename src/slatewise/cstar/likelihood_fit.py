"""Adjusting given log-odds by maximum likelihood: scale and shift per label, and pairs that say what comes together.

    P(w) = 1/2 |w|^2_rho + C L(w) ,      |w|^2_rho = |a|^2 + |v|^2 + rho |G|^2 ,    L the sum over rows

In the coordinates of its norm ``P(w*) >= P(w) - 1/2 |grad P(w)|^2``: a small gradient is a certificate. Where labels
are noisy the hinge of precision sees little to gain from a pair; the likelihood still measures it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slatewise.core.executor import ONE_THREAD, Executor
from slatewise.core.lbfgs import minimise
from slatewise.core.results import Fit, Round
from slatewise.cstar.core_labels import greedy_core, residual_label
from slatewise.cstar.likelihood import StarLikelihood
from slatewise.cstar.problem import Floats, Ints, StarProblem, indicator
from slatewise.cstar.selection import Choice, inner_folds, mean_over_folds, quietly
from slatewise.cstar.sums import star_sums
from slatewise.cstar.training import Settings

STRENGTHS = (0.1, 0.3, 1.0)
"""The C to choose from."""
_MIDDLE = STRENGTHS[1]
_ROUGH = 10.0  # a gap so much larger is enough to choose by


@dataclass(frozen=True, eq=False)
class _Weighed:
    """C L, in the coordinates u of the norm."""

    likelihood: StarLikelihood
    C: float
    root: Floats
    """u / w."""

    @property
    def n_params(self) -> int:
        return self.likelihood.n_params

    def value_and_grad(self, params: Floats) -> tuple[float, Floats]:
        value, gradient = self.likelihood.value_and_grad(params / self.root)
        return self.C * value, self.C * gradient / self.root


def likelihood_fit(
    problem: StarProblem, settings: Settings, executor: Executor = ONE_THREAD, start: Floats | None = None
) -> Fit:
    """Fit the log-odds ``problem.offset`` to the targets; parameters and a start are laid out as the problem's."""
    likelihood = StarLikelihood.of(problem, executor)
    model = likelihood.model
    root = np.ones(model.n_params)
    model.unpack(root)[2][:] = np.sqrt(settings.rho)
    first = np.zeros(model.n_params)
    if start is not None:
        W, G = problem.unpack(start)
        first = root * np.concatenate([W[:, 0], W[:, 1], G.ravel()])

    def tell(found: Round) -> None:
        if settings.callback is not None:
            settings.callback(found, None)

    objective = _Weighed(likelihood, settings.C, root)
    fit = minimise(objective, 1.0, first, tol=settings.tol, max_iter=settings.max_iter, callback=tell, easier="lower C")
    params = np.zeros(problem.n_params)
    W, G = problem.unpack(params)
    W[:, 0], W[:, 1], G[:] = model.unpack(fit.params / root)
    return replace(fit, params=params)


def choose_likelihood(problem: StarProblem, settings: Settings) -> Choice:
    """Return the C with the highest mean precision on the inner folds; C = 0: the scores as they are."""
    folds = _folds(problem, settings)
    params = [np.zeros(problem.n_params) for _ in folds]
    best = Choice(0.0, 1.0, _mean_precision(folds, params))
    for strength in STRENGTHS:
        tried = _rough(settings, strength)
        params = [_params(inner, tried, ONE_THREAD, start) for (inner, _), start in zip(folds, params, strict=True)]
        score = _mean_precision(folds, params)
        if score > best.score:
            best = Choice(tried.C, tried.rho, score)
    return best


def likely_core(problem: StarProblem, size: int, settings: Settings, executor: Executor = ONE_THREAD) -> Ints:
    """Return the better of two cores by mean precision on the inner folds.

    Labels that say most about the others, or labels that say most of what the others' scores do not: which is better
    depends on how good the scores are.
    """
    if size == 0:
        return problem.core[:0]
    Y = indicator(problem.target, problem.n_items)
    weight, rough = problem.weight * problem.total_weight, _rough(settings, _MIDDLE)
    cores = [greedy_core(Y, size, weight), unexplained_core(problem, size, settings, executor)]

    def precision(core: Ints) -> float:
        folds = _folds(replace(problem, core=core), settings)
        params = [_params(inner, rough, ONE_THREAD, np.zeros(inner.n_params)) for inner, _ in folds]
        return _mean_precision(folds, params)

    return max(cores, key=precision)


def unexplained_core(problem: StarProblem, size: int, settings: Settings, executor: Executor = ONE_THREAD) -> Ints:
    """Return ``size`` labels, each chosen for what the scores and the core so far leave unexplained of the others."""
    Y = indicator(problem.target, problem.n_items)
    weight = problem.weight * problem.total_weight
    core = problem.core[:0]
    params = np.zeros(replace(problem, core=core).n_params)
    rough = _rough(settings, _MIDDLE)
    while len(core) < size:
        inner = replace(problem, core=core)
        params = _params(inner, rough, executor, params)
        known = np.full(Y.shape, -1, dtype=np.int8)
        known[:, core] = Y[:, core]
        chance = star_sums(replace(inner.scored(params), known=known), weight).item
        core = np.append(core, residual_label(Y, chance, core, weight))
        params = np.append(params, np.zeros(problem.n_items))
    return core


def _rough(settings: Settings, C: float) -> Settings:
    return replace(settings, C=C, rho=1.0, tol=_ROUGH * settings.tol, callback=None)


def _params(problem: StarProblem, settings: Settings, executor: Executor, start: Floats) -> Floats:
    return quietly(lambda: likelihood_fit(problem, settings, executor, start)).params


def _folds(problem: StarProblem, settings: Settings) -> list[tuple[StarProblem, StarProblem]]:
    folds = inner_folds(problem.n_lists, settings.random_state)
    return [(problem.part(inner), problem.part(out)) for inner, out in folds]


def _mean_precision(folds: list[tuple[StarProblem, StarProblem]], params: list[Floats]) -> float:
    return mean_over_folds(probable_precision(out, found) for (_, out), found in zip(folds, params, strict=True))


def probable_precision(problem: StarProblem, params: Floats) -> float:
    """Mean over lists of the precision of the k most probable labels."""
    chance = star_sums(problem.scored(params), problem.weight).item
    places = np.argsort(np.argsort(-chance, axis=1, kind="stable"), axis=1)
    hits = indicator(problem.target, problem.n_items) * (places < problem.k[:, None])
    return float(problem.weight @ (hits.sum(axis=1) / np.maximum(problem.k, 1)))
