"""A c-star by the likelihood of the relevant set among the sets of as many labels, on given log-odds.

    P(w) = 1/2 |w|^2_rho + C L(w) ,      |w|^2_rho = |a|^2 + |v|^2 + rho |G|^2 ,    L the sum over rows

In the coordinates of its norm ``P(w*) >= P(w) - 1/2 |grad P(w)|^2``: a small gradient is a certificate. If labels are
noisy, the hinge of precision sees little to gain from a pair; the likelihood still measures it. ``CStarRanker`` has
taken the place of this model: it needs no number of labels. The reproduction of the paper compares with this one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Floats, Ints
from slatewise.core.numerics.result import Fit
from slatewise.core.numerics.strengths import random_folds, rough_fits
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.core_labels import greedy_core, residual_label
from slatewise.cstar.inference.fixed_size import most_probable, star_log_odds, star_sums
from slatewise.cstar.inference.model import StarLists, StarPair, symmetric_pair
from slatewise.cstar.likelihood.fit import Settings, search
from slatewise.cstar.likelihood.objective import AdjustedScores, FixedSizeLikelihood
from slatewise.cstar.margin.choice import FOLDS, Choice
from slatewise.cstar.margin.problem import StarProblem, indicator
from slatewise.cstar.margin.training import relevant_hinge
from slatewise.cstar.margin.unary import prepare_given
from slatewise.data.labels import merge_rows

STRENGTHS = (0.1, 0.3, 1.0)
"""The C to choose from."""
_MIDDLE = STRENGTHS[1]
_ROUGH = 10.0  # the tolerance is this much larger for a fit to choose by


@dataclass(eq=False)
class LikelihoodGivenK:
    """The model, for :func:`slatewise.labeling.simulate` and :meth:`score`."""

    core: int = 5
    """The number of core labels, all if there are fewer."""
    C: float | Literal["auto"] = "auto"
    max_iter: int = 500
    n_jobs: int | None = None
    core_: Ints = field(init=False)
    pair_: Floats = field(init=False)
    coef_: Floats = field(init=False)
    intercept_: Floats = field(init=False)

    def fit(self, X: Floats, Y: ArrayLike) -> Self:
        """Learn from log-odds (n, N) of rows that their model was not trained on, and 0/1 labels (n, N)."""
        labels = np.asarray(Y).astype(np.int8)
        some = np.flatnonzero(np.any(labels > 0, axis=1))
        X, labels, weight = merge_rows(X[some], labels[some], np.ones(len(some)))
        unary, executor = prepare_given(X), Executor.of(self.n_jobs)
        settings = Settings(1.0, 1.0, 1e-3, self.max_iter, 0)
        nothing = np.zeros(0, dtype=np.int64)
        problem = relevant_hinge(unary, labels.astype(np.float64), weight, nothing, executor).problem
        self.core_ = likely_core(problem, min(self.core, labels.shape[1]), settings, executor)
        problem = replace(problem, core=self.core_)
        C = choose_likelihood(problem, settings).C if isinstance(self.C, str) else self.C
        params = np.zeros(problem.n_params)
        if C > 0.0:
            params = likelihood_fit(problem, replace(settings, C=C), executor).params
        W, G = problem.unpack(params)
        self.coef_, self.intercept_ = unary.coefficients(W)
        self.pair_ = symmetric_pair(G, self.core_)
        return self

    def label_scores(self, X: ArrayLike) -> Floats:
        """Return the scaled and shifted log-odds."""
        return np.asarray(X, dtype=np.float64) * self.coef_ + self.intercept_

    @property
    def label_margins(self) -> Callable[..., Floats]:
        """Log-odds given k."""
        return star_log_odds

    @property
    def needs_count(self) -> bool:
        """There are only sets of k labels."""
        return True

    def score(self, X: Floats, Y: ArrayLike) -> float:
        """Return the mean break-even precision of rows with a label: of the k most probable labels, given k."""
        labels = np.asarray(Y, dtype=np.float64)
        some = np.any(labels > 0, axis=1)
        labels, scores = labels[some], self.label_scores(X[some])
        counts = labels.sum(axis=1).astype(np.int64)
        lists = StarLists(scores, StarPair.of(self.pair_, self.core_), counts)
        owners = np.repeat(np.arange(len(labels)), counts)
        hits: Floats = np.bincount(owners, labels[owners, most_probable(lists).items], len(labels)).astype(np.float64)
        return float((hits / counts).mean())


def likelihood_fit(
    problem: StarProblem, settings: Settings, executor: Executor = ONE_THREAD, start: Floats | None = None
) -> Fit:
    """Fit the log-odds ``problem.offset`` to the targets; parameters and a start are laid out as the problem's."""
    if problem.offset is None:
        raise ValueError("problem: expected given scores, found none")
    Y, weight = indicator(problem.target, problem.n_items), problem.weight * problem.total_weight
    model = AdjustedScores(problem.offset, problem.core)
    likelihood = FixedSizeLikelihood(model, Y, problem.k, weight, executor)
    first = np.zeros(likelihood.n_params)
    if start is not None:
        W, G = problem.unpack(start)
        first = np.concatenate([W[:, 0], W[:, 1], G.ravel()])
    fit = search(likelihood, settings, first)
    params = np.zeros(problem.n_params)
    W, G = problem.unpack(params)
    W[:, 0], W[:, 1], G[:] = model.unpack(fit.params)
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

    Labels that say most about the others, or labels that say most of what the others' scores do not: the better choice
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
    with rough_fits():
        return likelihood_fit(problem, settings, executor, start).params


def _folds(problem: StarProblem, settings: Settings) -> list[tuple[StarProblem, StarProblem]]:
    folds = random_folds(problem.n_lists, FOLDS, settings.random_state)
    return [(problem.part(inner), problem.part(out)) for inner, out in folds]


def _mean_precision(folds: list[tuple[StarProblem, StarProblem]], params: list[Floats]) -> float:
    return sum(probable_precision(out, found) for (_, out), found in zip(folds, params, strict=True)) / FOLDS


def probable_precision(problem: StarProblem, params: Floats) -> float:
    """Mean over lists of the precision of the k most probable labels."""
    chance = star_sums(problem.scored(params), problem.weight).item
    places = np.argsort(np.argsort(-chance, axis=1, kind="stable"), axis=1)
    hits = indicator(problem.target, problem.n_items) * (places < problem.k[:, None])
    return float(problem.weight @ (hits.sum(axis=1) / np.maximum(problem.k, 1)))
