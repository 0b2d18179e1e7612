"""How a CStarRanker trains: the parts its parameters ask for, and the state a killed fit goes on from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.executor import Executor
from slatewise.core.label_names import label_numbers
from slatewise.core.results import Fit, Round
from slatewise.core.row_kernels import KERNELS
from slatewise.cstar.adjusted import AdjustedScores
from slatewise.cstar.base import Base, ForeignBase, LogisticBase, SvcBase
from slatewise.cstar.bcfw import DualState
from slatewise.cstar.checks import Known
from slatewise.cstar.core_gain import gainful_core
from slatewise.cstar.core_labels import greedy_core
from slatewise.cstar.hinge import StarHinge
from slatewise.cstar.label_scores import LinearScores, Prepared, prepare_kernel, prepare_pretrained
from slatewise.cstar.likelihood_fit import choose_likelihood, likelihood_fit, likely_core
from slatewise.cstar.linear_features import linear_scores, prepare_linear
from slatewise.cstar.pair import StarPair
from slatewise.cstar.problem import symmetric_pair
from slatewise.cstar.selection import Choice, choose
from slatewise.cstar.subset_choice import STRENGTHS, SubsetChoice, drawn_rows, labels_to_choose_by
from slatewise.cstar.subset_fit import subset_fit
from slatewise.cstar.subset_likelihood import SubsetLikelihood
from slatewise.cstar.sums import check_summed
from slatewise.cstar.told_terms import NO_TOLD_TERMS, told_fit, worth_telling
from slatewise.cstar.training import LEARNERS, Settings, Start, fixed_k_fit, relevant_hinge
from slatewise.data.row_source import StoredRows
from slatewise.persistence.checkpoint import Checkpoint, resumed

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
    coef: Floats
    intercept: Floats
    pair: Floats
    """(C, N), pairs of core labels in both rows."""
    told: Floats = NO_TOLD_TERMS
    """Rows of :class:`slatewise.cstar.told_terms.ToldTerms`; none where terms stay as they are."""


def base_of(ranker: CStarRanker) -> Base:
    """Return what learns base scores."""
    if ranker.base is None:
        return LogisticBase()
    return SvcBase() if isinstance(ranker.base, str) else ForeignBase(ranker.base)


def is_foreign(ranker: CStarRanker) -> bool:
    """Say whether base scores are learnt by a classifier of the user's."""
    return ranker.scores == "base" and not isinstance(ranker.base, str | None)


def train_sets(
    ranker: CStarRanker, given: Floats, known: Known, weight: Floats, data_sha256: str, executor: Executor
) -> Trained:
    """Fit given log-odds (n, N) by the likelihood of sets of any size; ``known`` is -1 where nobody knows."""
    with resumed(ranker, data_sha256, as_used=_as_used(ranker)) as tell:
        settings = Settings(1.0, 1.0, ranker.tol, ranker.max_iter, ranker.seed_)
        core, C, rho = _chosen(ranker, given, known, weight, settings, executor)

        def tell_round(found: Round, _: DualState | None) -> None:
            tell(found)

        settings = replace(settings, C=C, rho=rho, callback=tell_round)
        model = AdjustedScores(given, core)
        fit = Fit(np.zeros(model.n_params), 0.0, 0.0, True, ())
        told = NO_TOLD_TERMS
        if C > 0.0:
            fit = subset_fit(given, known, weight, core, settings, executor)
            if ranker.multilabel_ and worth_telling(known, weight):
                told = told_fit(given, known, weight, core, settings, executor, fit.params).rows()
    a, v, G = model.unpack(fit.params)
    return Trained(fit, core, C, C / rho, 1.0 + a, v.copy(), symmetric_pair(G, core), told)


def _chosen(
    ranker: CStarRanker, given: Floats, known: Known, weight: Floats, settings: Settings, executor: Executor
) -> tuple[Ints, float, float]:
    """Return the core, C and rho = C / C_pair, given or chosen."""
    n_labels, chosen = int(given.shape[1]), core_numbers(ranker.core, ranker.label_names_)
    strengths = STRENGTHS if isinstance(ranker.C, str) else (float(ranker.C),)
    rho = 1.0 if ranker.C_pair is None or isinstance(ranker.C, str) else float(ranker.C) / float(ranker.C_pair)
    is_given = not isinstance(ranker.core, str) and chosen.ndim > 0
    core = _given_core(chosen, n_labels) if is_given else np.zeros(0, dtype=np.int64)
    if not isinstance(ranker.core, str):
        size = len(core) if is_given else int(chosen)
        check_core_size(size, n_labels)
        check_summed(size)
    if is_given and len(strengths) == 1:
        return core, strengths[0], rho
    labels = labels_to_choose_by(known, weight, core)
    rows = _rows_to_choose_by(given, known, weight, labels, settings, executor)
    choice = SubsetChoice.of(rows, replace(settings, rho=rho))
    if isinstance(ranker.core, str):
        tried = choice.core_and_strength(strengths)
        return labels[tried.core], tried.C, rho
    if not is_given:
        core = labels[choice.core(int(chosen), strengths[len(strengths) // 2]).core]
    C = choice.strength(np.searchsorted(labels, core), strengths).C if len(strengths) > 1 else strengths[0]
    return core, C, rho


def _rows_to_choose_by(
    given: Floats | StoredRows, known: Known, weight: Floats, labels: Ints, settings: Settings, executor: Executor
) -> SubsetLikelihood:
    """Return the rows to choose by, with these labels; of rows in files those that are drawn, which are few."""
    if not isinstance(given, np.ndarray):
        drawn = drawn_rows(len(weight), settings.random_state)
        if drawn is not None:
            few = np.ascontiguousarray(given[drawn].read(executor)[:, labels])
            told = np.ascontiguousarray(known[drawn][:, labels])
            return SubsetLikelihood(AdjustedScores(few, labels[:0]), told, weight[drawn], executor.here)
        given = given.read(executor)
    return SubsetLikelihood(AdjustedScores(given[:, labels], labels[:0]), known[:, labels], weight, executor.here)


def core_numbers(core: ArrayLike, names: NDArray[Any]) -> NDArray[Any]:
    """Return core labels by their numbers where they are called by their names, or how many."""
    given = np.asarray(core)
    return label_numbers("core", given.tolist(), names) if given.ndim and given.dtype.kind in "OU" else given


def check_core_size(size: int, n_labels: int) -> None:
    """Raise ValueError where more core labels are asked for than there are labels."""
    if size > n_labels:
        raise ValueError(f"core: expected 'auto' or a number from 0 to {n_labels} labels, found {size}")


def _given_core(core: NDArray[Any], n_labels: int) -> Ints:
    core = core.astype(np.int64) if core.size == 0 else core
    StarPair.of(np.zeros((len(core), n_labels)), core)  # refuses labels that do not exist or stand twice
    return core.astype(np.int64)


def _as_used(ranker: CStarRanker) -> dict[str, str]:
    """Name the user's classifier for the checkpoint, which its scores, part of the data there, tell from others."""
    return {"base": type(ranker.base).__name__} if is_foreign(ranker) else {}


def prepare(ranker: CStarRanker, X: Floats, Y: Floats, weight: Floats, executor: Executor) -> Prepared:
    """Return what single labels are scored by."""
    if ranker.scores == "linear":
        return prepare_linear(X, weight, executor if isinstance(X, StoredRows) else executor.here)
    if ranker.scores in ("base", "pretrained"):
        if ranker.surrogate == "likelihood-k":
            return prepare_pretrained(X)
        size = Y.sum(axis=1) if ranker.k == "relevant" else np.full(len(Y), ranker.k)
        return prepare_pretrained(X, float(np.average(1.0 / size, weights=weight)))
    return prepare_kernel(KERNELS[ranker.scores].of(X, ranker.gamma), X, ranker.n_components)


def training_scores(prepared: Prepared, X: Floats, trained: Trained, executor: Executor) -> Floats:
    """Return what the labels of training rows score by themselves."""
    if isinstance(prepared.scores, LinearScores):
        here = executor if isinstance(X, StoredRows) else executor.here
        return linear_scores(X, trained.coef, trained.intercept, here)
    return prepared.scores.scores(X, trained.coef, trained.intercept)


def train(
    ranker: CStarRanker, prepared: Prepared, Y: Floats, weight: Floats, data_sha256: str, executor: Executor
) -> Trained:
    """Choose the core and the strengths, and fit; go on from the checkpoint where there is one."""
    if ranker.surrogate == "likelihood-k" or ranker.learner != "bcfw":
        with resumed(ranker, data_sha256, as_used=_as_used(ranker)) as tell_round:
            return _train(ranker, prepared, Y, weight, executor, lambda found, _: tell_round(found), None)
    # C and the core may be chosen by fits that end at max_iter too: with another one the state may belong to others.
    checkpoint = Checkpoint.of(ranker, f"{data_sha256} {ranker.max_iter}", as_used=_as_used(ranker))

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
    if ranker.surrogate == "likelihood-k":
        check_summed(len(core))
    hinge = alone.with_core(core)
    C, rho, _ = _strengths(ranker, hinge, settings)
    settings = replace(settings, C=C, rho=rho, callback=tell)
    if C == 0.0:  # nothing to gain: the minimum of the regularizer alone
        fit = Fit(np.zeros(hinge.problem.n_params), 0.0, 0.0, True, ())
    elif ranker.surrogate == "likelihood-k":
        fit = likelihood_fit(hinge.problem, settings, executor)
    elif ranker.k == "relevant":
        fit = learner(hinge, settings, start)
    else:
        fit = fixed_k_fit(hinge, Y, int(ranker.k), learner, settings)
    W, G = hinge.problem.unpack(fit.params)
    return Trained(fit, core, C, C / rho, *prepared.coefficients(W), symmetric_pair(G, core))


def _core(ranker: CStarRanker, hinge: StarHinge, Y: Floats, weight: Floats, settings: Settings) -> Ints:
    n_labels = int(Y.shape[1])
    given = min(TYPICAL_CORE, n_labels) if isinstance(ranker.core, str) else ranker.core
    core = core_numbers(given, ranker.label_names_)
    if core.ndim == 0:
        check_core_size(int(core), n_labels)
        if ranker.core_by == "gain":
            return gainful_core(hinge, Y, weight, int(core), LEARNERS[ranker.learner], settings)
        if ranker.surrogate == "likelihood-k":
            check_summed(int(core))
            return likely_core(hinge.problem, int(core), settings, hinge.executor)
        return greedy_core(Y, int(core), weight)
    return _given_core(core, n_labels)


def _strengths(ranker: CStarRanker, hinge: StarHinge, settings: Settings) -> Choice:
    """Return C and rho = C / C_pair, given or chosen."""
    if ranker.C == "auto":
        if ranker.surrogate == "likelihood-k":
            return choose_likelihood(hinge.problem, settings)
        return choose(hinge, LEARNERS[ranker.learner], settings)
    return Choice(float(ranker.C), 1.0 if ranker.C_pair is None else float(ranker.C) / float(ranker.C_pair), 0.0)
