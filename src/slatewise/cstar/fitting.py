"""How a CStarRanker trains: the parts its parameters ask for, and the state a killed fit goes on from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.executor import Executor
from slatewise.core.label_names import label_numbers
from slatewise.core.results import Fit, Round
from slatewise.core.row_kernels import KERNELS
from slatewise.cstar.bcfw import DualState
from slatewise.cstar.core_gain import gainful_core
from slatewise.cstar.core_labels import greedy_core
from slatewise.cstar.hinge import StarHinge
from slatewise.cstar.label_scores import Prepared, prepare_kernel, prepare_linear, prepare_pretrained
from slatewise.cstar.likelihood_fit import choose_likelihood, likelihood_fit, likely_core
from slatewise.cstar.pair import StarPair
from slatewise.cstar.selection import Choice, choose
from slatewise.cstar.sums import check_summed
from slatewise.cstar.training import LEARNERS, Settings, Start, fixed_k_fit, relevant_hinge
from slatewise.model.checkpoint import Checkpoint, resumed

if TYPE_CHECKING:
    from slatewise.cstar.ranker import CStarRanker

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Tell: TypeAlias = Callable[[Round, DualState | None], None]
TYPICAL_CORE = 5
"""How many core labels "auto" takes where there are as many labels."""


class Trained(NamedTuple):
    """What was found, and what was chosen on the way."""

    fit: Fit
    core: Ints
    C: float
    C_pair: float


def prepare(ranker: CStarRanker, X: Floats, Y: Floats, weight: Floats) -> Prepared:
    """Return what single labels are scored by."""
    if ranker.scores == "linear":
        return prepare_linear(X, weight)
    if ranker.scores == "pretrained":
        if ranker.surrogate == "likelihood":
            return prepare_pretrained(X)
        size = Y.sum(axis=1) if ranker.k == "relevant" else np.full(len(Y), ranker.k)
        return prepare_pretrained(X, float(np.average(1.0 / size, weights=weight)))
    return prepare_kernel(KERNELS[ranker.scores].of(X, ranker.gamma), X, ranker.n_components)


def train(
    ranker: CStarRanker, prepared: Prepared, Y: Floats, weight: Floats, data_sha256: str, executor: Executor
) -> Trained:
    """Choose the core and the strengths, and fit; go on from the checkpoint where there is one."""
    if ranker.surrogate == "likelihood" or ranker.learner != "bcfw":
        with resumed(ranker, data_sha256) as tell_round:
            return _train(ranker, prepared, Y, weight, executor, lambda found, _: tell_round(found), None)
    # C and the core may be chosen by fits that end at max_iter too: with another one the state may belong to others.
    checkpoint = Checkpoint.of(ranker, f"{data_sha256} {ranker.max_iter}")

    def tell(found: Round, state: DualState | None) -> None:
        if state is not None and ranker.k == "relevant":
            after = np.array([found.round, found.objective, found.lower_bound])
            checkpoint.write({**state.arrays(), "after": after})
        for callback in ranker.callbacks or ():
            callback(found)

    trained = _train(ranker, prepared, Y, weight, executor, tell, _start(checkpoint.start()))
    checkpoint.remove()
    return trained


def _start(saved: dict[str, NDArray[Any]] | None) -> Start | None:
    if saved is None:
        return None
    epoch, objective, lower_bound = saved.pop("after").tolist()
    return Start(DualState(**saved), Round(int(epoch), objective, lower_bound))


def _train(
    ranker: CStarRanker,
    prepared: Prepared,
    Y: Floats,
    weight: Floats,
    executor: Executor,
    tell: Tell,
    start: Start | None,
) -> Trained:
    learner = LEARNERS[ranker.learner]
    settings = Settings(1.0, 1.0, ranker.tol, ranker.max_iter, ranker.seed_)
    # A row without labels is here only with a fixed k; for the inner validation it counts as all right.
    never_empty = np.maximum(Y, (Y.sum(axis=1) == 0)[:, None])
    alone = relevant_hinge(prepared, never_empty, weight, np.zeros(0, dtype=np.int64), executor)
    core = _core(ranker, alone, Y, weight, settings)
    if ranker.surrogate == "likelihood":
        check_summed(len(core))
    hinge = alone.with_core(core)
    C, rho, _ = _strengths(ranker, hinge, settings)
    settings = replace(settings, C=C, rho=rho, callback=tell)
    if C == 0.0:  # nothing to gain: the minimum of the regularizer alone
        fit = Fit(np.zeros(hinge.problem.n_params), 0.0, 0.0, True, ())
    elif ranker.surrogate == "likelihood":
        fit = likelihood_fit(hinge.problem, settings, executor)
    elif ranker.k == "relevant":
        fit = learner(hinge, settings, start)
    else:
        fit = fixed_k_fit(hinge, Y, int(ranker.k), learner, settings)
    return Trained(fit, core, C, C / rho)


def _core(ranker: CStarRanker, hinge: StarHinge, Y: Floats, weight: Floats, settings: Settings) -> Ints:
    n_labels = int(Y.shape[1])
    core = np.asarray(min(TYPICAL_CORE, n_labels) if isinstance(ranker.core, str) else ranker.core)
    if core.dtype.kind in "OU":
        core = label_numbers("core", core.tolist(), ranker.label_names_)
    if core.ndim == 0:
        if int(core) > n_labels:
            raise ValueError(f"core: expected 'auto' or a number from 0 to {n_labels} labels, found {ranker.core!r}")
        if ranker.core_by == "gain":
            return gainful_core(hinge, Y, weight, int(core), LEARNERS[ranker.learner], settings)
        if ranker.surrogate == "likelihood":
            check_summed(int(core))
            return likely_core(hinge.problem, int(core), settings, hinge.executor)
        return greedy_core(Y, int(core), weight)
    core = core.astype(np.int64) if core.size == 0 else core
    StarPair.of(np.zeros((len(core), n_labels)), core)  # refuses labels that do not exist or stand twice
    return core.astype(np.int64)


def _strengths(ranker: CStarRanker, hinge: StarHinge, settings: Settings) -> Choice:
    """Return C and rho = C / C_pair, given or chosen."""
    if ranker.C == "auto":
        if ranker.surrogate == "likelihood":
            return choose_likelihood(hinge.problem, settings)
        return choose(hinge, LEARNERS[ranker.learner], settings)
    return Choice(float(ranker.C), 1.0 if ranker.C_pair is None else float(ranker.C) / float(ranker.C_pair), 0.0)
