"""Training a c-star by the hinge: the target sets, the solvers, the loop for ambiguous targets, and the checkpoint.

With k = the number of relevant labels of a row the best answer is unique and the problem is convex. With a fixed k
many selections have the smallest possible loss; the tightest bound takes the one with the highest score (eq. 8),
which is not convex: fix these targets, solve the convex problem, take them anew, until they stay (CCCP).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.numerics.bundle import Cuts, one_slack
from slatewise.core.numerics.result import Fit, Round
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.bcfw import DualState, bcfw
from slatewise.cstar.hinge import StarHinge
from slatewise.cstar.inference import argmax_block
from slatewise.cstar.label_scores import Prepared
from slatewise.cstar.lists import StarLists
from slatewise.cstar.pair import StarPair
from slatewise.cstar.problem import StarProblem
from slatewise.cstar.subgradient import subgradient
from slatewise.data.labels import as_sets
from slatewise.persistence.checkpoint import Checkpoint

Solver: TypeAlias = "Callable[[StarHinge, Settings, Start | None], Fit]"
Tell: TypeAlias = Callable[[Round, DualState | None], None]
_MAX_TARGET_ROUNDS = 10


@dataclass(frozen=True)
class Settings:
    """What the solvers share; ``rho = C / C_pair`` weighs the regularizer of G."""

    C: float
    rho: float
    tol: float
    max_iter: int
    random_state: int
    callback: Tell | None = None


@dataclass(frozen=True, eq=False)
class Start:
    """Where to go on: a state of the dual, and the round it was reached in, if that was of the same problem."""

    state: DualState
    after: Round | None = None


def by_bcfw(hinge: StarHinge, settings: Settings, start: Start | None = None) -> Fit:
    """Block-coordinate Frank-Wolfe, the default."""
    return bcfw(
        hinge,
        settings.C,
        settings.rho,
        tol=settings.tol,
        max_iter=settings.max_iter,
        random_state=settings.random_state,
        state=None if start is None else start.state,
        after=None if start is None else start.after,
        callback=settings.callback,
    )


def by_bundle(hinge: StarHinge, settings: Settings, start: Start | None = None) -> Fit:
    """One-slack cutting planes."""
    callback = settings.callback
    return one_slack(
        hinge,
        Cuts(regularizer_weights(hinge.problem, settings.rho)),
        settings.C,
        tol=settings.tol,
        max_iter=settings.max_iter,
        callback=None if callback is None else lambda round_: callback(round_, None),
    )


def by_subgradient(hinge: StarHinge, settings: Settings, start: Start | None = None) -> Fit:
    """Averaged adaptive subgradient steps: quick, without a lower bound of its own."""
    return subgradient(
        hinge,
        regularizer_weights(hinge.problem, settings.rho),
        settings.C,
        max_iter=settings.max_iter,
        random_state=settings.random_state,
    )


SOLVERS: dict[str, Solver] = {"bcfw": by_bcfw, "bundle": by_bundle, "subgradient": by_subgradient}


@contextmanager
def keeping_state(checkpoint: Checkpoint, call: Callable[[Round], None]) -> Generator[tuple[Tell, Start | None]]:
    """Keep the state of block-coordinate Frank-Wolfe in a file from round to round; yield where to go on.

    If targets change, states are of several problems: ``checkpoint`` is then without a file.
    """
    saved = checkpoint.start()
    start = None
    if saved is not None:
        epoch, objective, lower_bound = saved.pop("after").tolist()
        start = Start(DualState(**saved), Round(int(epoch), objective, lower_bound))

    def tell(found: Round, state: DualState | None) -> None:
        if state is not None:
            checkpoint.write({**state.arrays(), "after": np.array([found.round, found.objective, found.lower_bound])})
        call(found)

    yield tell, start
    checkpoint.remove()


def regularizer_weights(problem: StarProblem, rho: float) -> Floats:
    """1 for W, rho for G."""
    weights = np.ones(problem.n_params)
    problem.unpack(weights)[1][:] = rho
    return weights


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
    no_pairs = StarPair.laid_out(np.zeros((0, Y.shape[1])), np.zeros(0, dtype=np.int64))
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
    """The best-scoring selection of k labels among those that hold as many relevant ones as possible."""
    many = Y.sum(axis=1) >= lists.k
    # Enough relevant labels: only they may be in. Too few: all of them must be.
    known = np.where(many[:, None], np.where(Y > 0, -1, 0), np.where(Y > 0, 1, -1)).astype(np.int8)
    return argmax_block(replace(lists, known=known)).selected
