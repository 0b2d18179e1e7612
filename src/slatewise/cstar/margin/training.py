"""Training a c-star by the hinge: unary features, targets, core, strengths, solver, and the checkpoint.

With k = the number of relevant labels of a row the best answer is unique and the problem is convex. With a fixed k
many selections have the smallest possible loss; the tightest bound takes the one with the highest score (eq. 8),
which is not convex: fix these targets, solve the convex problem, take them anew, until they stay (CCCP).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.numerics.result import Fit, Round
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.core.running.progress import tell
from slatewise.cstar.core_labels import greedy_core
from slatewise.cstar.inference.best_set import argmax_block
from slatewise.cstar.inference.model import StarLists, StarPair
from slatewise.cstar.margin.choice import choose, select_core_by_precision
from slatewise.cstar.margin.problem import StarHinge, StarProblem
from slatewise.cstar.margin.solvers import SOLVERS, DualState, Settings, Solver, Start, Tell
from slatewise.cstar.margin.unary import Prepared, prepare_given, prepare_kernel, prepare_linear
from slatewise.data.labels import as_sets
from slatewise.kernels import Kernel
from slatewise.persistence.checkpoint import Callbacks, Checkpoint, Path, resumed

if TYPE_CHECKING:
    from slatewise.data.row_source import StoredRows

Run: TypeAlias = AbstractContextManager[tuple[Tell, Start | None]]
"""Gives the function to call after every round, and where the fit continues."""
_MAX_TARGET_ROUNDS = 10


class TrainingRows(NamedTuple):
    """Rows to learn from."""

    X: Floats | StoredRows
    """Features, given scores, or the matrix of all training rows for a precomputed kernel."""
    Y: Floats
    """(n, N) 0/1."""
    weight: Floats
    numbers: Ints | None = None
    """Which rows of X these are; None: all."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What to train; parameters of :class:`slatewise.CStarMarginRanker`, resolved."""

    unary: str | Kernel
    core: int | Ints
    core_selection: Literal["information", "gain"]
    k: Literal["relevant"] | int
    C: float | Literal["auto"]
    C_pair: float | None
    solver: str
    settings: Settings
    """Of every fit; C and rho are filled in."""


class Trained(NamedTuple):
    """What was trained."""

    unary: Prepared
    core: Ints
    C: float
    """0: given scores are left as they are."""
    rho: float
    fit: Fit
    W: Floats
    G: Floats


def train(rows: TrainingRows, plan: Plan, run: Run, executor: Executor) -> Trained:
    """Choose the core and the strengths, and fit."""
    with run as (tell_round, start):
        unary, hinge, settings = _choose(rows, plan, executor)
        fit = _solve(hinge, rows.Y, plan, replace(settings, callback=tell_round), start)
    return Trained(unary, hinge.problem.core, settings.C, settings.rho, fit, *hinge.problem.unpack(fit.params))


def _choose(rows: TrainingRows, plan: Plan, executor: Executor) -> tuple[Prepared, StarHinge, Settings]:
    """Return the unary scores, the problem with its core, and the settings with C and rho."""
    unary, Y, weight, solver = _prepare(rows, plan, executor), rows.Y, rows.weight, SOLVERS[plan.solver]
    # A row without labels is here only with a fixed k; for the inner validation all of its labels count as relevant.
    never_empty = np.maximum(Y, (Y.sum(axis=1) == 0)[:, None])
    hinge = relevant_hinge(unary, never_empty, weight, np.zeros(0, dtype=np.int64), executor)
    core = plan.core
    if isinstance(core, int):
        tell("choosing the core labels")
        if plan.core_selection == "gain":
            core = select_core_by_precision(hinge, Y, weight, core, solver, plan.settings)
        else:
            core = greedy_core(Y, core, weight)
    hinge = hinge.with_core(core)
    if isinstance(plan.C, str):
        tell("choosing C and C_pair")
        C, rho, _ = choose(hinge, solver, plan.settings)
    else:
        C = float(plan.C)
        rho = 1.0 if plan.C_pair is None else C / float(plan.C_pair)
    return unary, hinge, replace(plan.settings, C=C, rho=rho)


def _prepare(rows: TrainingRows, plan: Plan, executor: Executor) -> Prepared:
    """Return the unary scores as the solvers see them."""
    if plan.unary == "linear":
        in_memory = isinstance(rows.X, np.ndarray)
        return prepare_linear(rows.X, rows.weight, executor.local if in_memory else executor)
    X = cast("Floats", rows.X)
    if not isinstance(plan.unary, str):
        unary = prepare_kernel(plan.unary.of(X), X, plan.unary.n_basis)
        return unary if rows.numbers is None else replace(unary, phi=unary.phi[rows.numbers])
    size = rows.Y.sum(axis=1) if plan.k == "relevant" else np.full(len(rows.Y), float(plan.k))
    return prepare_given(X, float(np.average(1.0 / size, weights=rows.weight)))


def _solve(hinge: StarHinge, Y: Floats, plan: Plan, settings: Settings, start: Start | None) -> Fit:
    if settings.C == 0.0:  # nothing to gain: the minimum of the regularizer alone
        return Fit(np.zeros(hinge.problem.n_params), 0.0, 0.0, True, ())
    if plan.k == "relevant":
        return SOLVERS[plan.solver](hinge, settings, start)
    return fixed_k_fit(hinge, Y, plan.k, SOLVERS[plan.solver], settings)


def relevant_hinge(
    prepared: Prepared, Y: Floats, weight: Floats, core: Ints, executor: Executor = ONE_THREAD
) -> StarHinge:
    """Aim at the relevant labels of each row: break-even precision."""
    k, total = Y.sum(axis=1).astype(np.int64), float(weight.sum())
    problem = StarProblem(
        Y.shape[1], prepared.phi, as_sets(Y > 0), k, weight / total, core, prepared.offset, total_weight=total
    )
    return StarHinge(problem, (1.0 - Y) / k[:, None], executor)


def fixed_k_fit(hinge: StarHinge, Y: Floats, k: int, solver: Solver, settings: Settings) -> Fit:
    """Aim at the best-scoring among the selections of k labels with the smallest loss.

    ``hinge`` has the lists; its targets and losses are taken anew.
    """
    popular = np.ascontiguousarray(np.broadcast_to(Y.mean(axis=0), Y.shape))
    no_pairs = StarPair.from_symmetric(np.zeros((0, Y.shape[1])), np.zeros(0, dtype=np.int64))
    counts = np.full(len(Y), k, dtype=np.int64)
    target = _targets(StarLists(popular, no_pairs, counts), Y)
    hinge = StarHinge(replace(hinge.problem, target=target, k=counts), (1.0 - Y) / k, hinge.executor)
    fit = solver(hinge, settings, None)
    for _ in range(_MAX_TARGET_ROUNDS - 1):
        target = _targets(hinge.problem.scored(fit.params), Y)
        if np.array_equal(target, hinge.problem.target):
            break
        hinge = replace(hinge, problem=replace(hinge.problem, target=target))
        fit = solver(hinge, settings, None)
    return fit


def _targets(lists: StarLists, Y: Floats) -> Ints:
    """Return the best-scoring of the selections of k labels with the maximum number of relevant ones."""
    many = Y.sum(axis=1) >= lists.k
    # Enough relevant labels: only they may be in. Too few: all of them must be.
    known = np.where(many[:, None], np.where(Y > 0, -1, 0), np.where(Y > 0, 1, -1)).astype(np.int8)
    return argmax_block(replace(lists, known=known)).selected


@contextmanager
def resumed_run(
    estimator: Any, sha256: str, callbacks: Callbacks, checkpoint: Path
) -> Generator[tuple[Tell, Start | None]]:
    """Continue from a checkpoint: bcfw from its state, other solvers by replaying what they computed."""
    if estimator.solver != "bcfw":
        with resumed(estimator, sha256, callbacks, checkpoint) as tell_round:
            yield lambda found, _: tell_round(found), None
        return
    # The choice of C and core depends on max_iter, and so does the state.
    file = Checkpoint.of(estimator, f"{sha256} {estimator.max_iter}", checkpoint)
    saved, start = file.start(), None
    if saved is not None:
        epoch, objective, lower_bound = saved.pop("after").tolist()
        start = Start(DualState(**saved), Round(int(epoch), objective, lower_bound))
    with estimator._watched(callbacks) as call:

        def keep(found: Round, state: DualState | None) -> None:
            if state is not None:
                file.write({**state.arrays(), "after": np.array([found.round, found.objective, found.lower_bound])})
            call(found)

        yield keep, start
        file.remove()
