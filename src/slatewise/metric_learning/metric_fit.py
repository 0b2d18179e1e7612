"""Training a metric: descend on a factor of W, and prove with the cuts met on the way.

    F(W) = tau tr(W) + sigma/2 |W|^2 + C R(W) ,    W in a cone

Every evaluation of R yields a cut (:mod:`slatewise.metric_learning.cuts`). While the descent
(:mod:`slatewise.metric_learning.descent`) makes headway, the latest cut alone bounds F from below; when it slows down
against the gap, the multipliers of the best combination of recent cuts are sought, which usually closes it. Should the
descent end at a kink, a proximal bundle goes on from there with the same cuts: its proximal weight falls until the
model expects a fair share of the gap, and rises when the step went too far.

A target rank comes last: of the best W of any rank the largest eigenvalues are kept, and the descent goes on in a
factor of as many rows. That problem is not convex; what is proven of it is the bound, which holds for every W.

F is never negative, no bound lies above it, and scores are wrong by about the machine's precision times the square of
the largest mapped point. Numbers that contradict the former, or a gap smaller than the latter, are rounding: points lie
so far from each other, or from 0, that their differences are lost. Then nothing is proven, and the fit says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats
from slatewise.core.numerics.result import ConvergenceWarning, Fit, Round, warn_unless_converged
from slatewise.core.running.blas import one_blas_thread
from slatewise.metric_learning.cone import Cone
from slatewise.metric_learning.cuts import Cuts, Proposal, Regularizer
from slatewise.metric_learning.descent import Descent
from slatewise.metric_learning.distance import squares
from slatewise.metric_learning.metric_hinge import MetricHinge

SLOW, SLOW_STEPS = 0.3, 2
"""The descent is slow when this number of steps gained less than this share of the gap: time to look for a proof."""
STALLED, STALLED_STEPS, PATIENCE = 1e-3, 10, 15.0
"""The same for giving the descent up; the share doubles every `PATIENCE` passes, for a crawl along kinks never ends."""
FAIR_SHARE = 0.3
"""Of the gap: what the model must expect of a proposal."""
FIRST_RHO = 200.0
"""A step of a tenth of W's size costs the gap."""
LEAST_RHO = 1e-4
"""Of what the regularizer is worth: below, the proximal term no longer moves anything."""
ROUNDING = 1e-6
"""Share of the objective by which rounding may lift the bound of an optimal point above it."""
LOOSEN, TIGHTEN = 0.3, 2.0
MOST_PROPOSALS = 6
PRUNED = 1e-3
"""Eigenvalues below this share of the largest are dropped at the end, if that costs nothing."""
OPEN = 0.3
"""Share of a given W's trace that is spread over all directions before the descent starts from it."""


@dataclass(frozen=True)
class MetricProblem:
    """What is minimized."""

    hinge: MetricHinge
    cone: Cone
    regularizer: Regularizer
    C: float


class MetricSearch:
    """The state of a fit; one :meth:`round` after another."""

    def __init__(self, problem: MetricProblem, tol: float, cuts: Cuts, start: Floats) -> None:
        self.problem, self.tol, self.cuts = problem, tol, cuts
        self.descent = Descent(start)
        self.descending = True
        self.passes = 0
        self.best, self.objective, self.bound = problem.cone.point(start), np.inf, 0.0
        self.size = float(np.vdot(self.best, self.best))
        """Of the first W, for where the best one is 0."""
        self.values = np.empty(0)
        """The latest objectives of the descent."""
        self.since_proof = 0
        self.rho = 0.0

    def round(self) -> Round:
        """Take one step, of the descent or of the bundle."""
        if self.descending:
            self._descend()
        else:
            self._propose_and_try()
        return self.last_round

    @property
    def last_round(self) -> Round:
        """The certificate so far; of numbers that are not sound only F >= 0 is left."""
        return Round(self.passes, self.objective, min(self.bound, self.objective) if self.sound else 0.0)

    @property
    def sound(self) -> bool:
        """Whether objective and bound can both be true."""
        return self.objective >= 0.0 and self.bound <= self.objective * (1.0 + ROUNDING)

    def trusted(self) -> bool:
        """Whether the numbers are sound, and rounding of the scores at the best point is smaller than the gap."""
        hinge, cone = self.problem.hinge, self.problem.cone
        factor = cone.project(self.best).factor
        items = float(np.sqrt(squares(cone.embed(hinge.items, factor)).max()))
        queries = float(np.sqrt(hinge.largest_square(factor)))
        lost = self.problem.C * hinge.rounding * items * max(items, queries)
        return self.sound and lost <= max(self.tol, self.last_round.gap) * self.objective

    @property
    def certified(self) -> bool:
        """Whether the gap is small enough."""
        return self.sound and self.last_round.gap <= self.tol

    def evaluate(self, factor: Floats) -> tuple[float, Floats]:
        """Return F and its gradient for the factor; keep the cut, and the point if it is the best."""
        problem, cuts = self.problem, self.cuts
        W = problem.cone.point(factor)
        offset, gradient = problem.hinge.cut(factor)
        risk = offset + float(np.vdot(gradient, W))
        value = problem.regularizer.value(W, cuts.identity) + problem.C * risk
        cuts.add(offset, gradient)
        self.passes += 1
        self.bound = max(self.bound, cuts.bound_of(problem.C * offset, problem.C * gradient))
        if value < self.objective:
            self.best, self.objective = W, value
        slope = problem.regularizer.slope(W, cuts.identity) + problem.C * gradient
        return value, problem.cone.pull_back(factor, slope)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Name the arrays of a checkpoint: with them :meth:`restore` goes on to the same bits."""
        descent, cuts = self.descent, self.cuts
        numbers = (self.descending, self.passes, self.objective, self.bound, self.since_proof, self.rho, descent.value)
        return {
            "numbers": np.array(numbers, dtype=np.float64),
            "best": self.best,
            "values": self.values,
            "factor": descent.factor,
            "gradient": descent.gradient,
            "steps": descent.steps,
            "changes": descent.changes,
            "offsets": cuts.offsets,
            "gradients": cuts.gradients,
            "alpha": cuts.alpha,
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a checkpoint of the same problem."""
        descent, cuts = self.descent, self.cuts
        descending, passes, self.objective, self.bound, since_proof, self.rho, descent.value = (
            float(number) for number in arrays["numbers"]
        )
        self.descending, self.passes, self.since_proof = bool(descending), int(passes), int(since_proof)
        self.best, self.values = arrays["best"], arrays["values"]
        descent.factor, descent.gradient = arrays["factor"], arrays["gradient"]
        descent.steps, descent.changes = arrays["steps"], arrays["changes"]
        cuts.offsets, cuts.gradients, cuts.alpha = arrays["offsets"], arrays["gradients"], arrays["alpha"]

    def prune(self) -> None:
        """Drop the directions of W that hardly count, if what is left is certified as well."""
        cone = self.problem.cone
        factor, allowed = cone.pruned(self.best, PRUNED), max(self.tol, self.last_round.gap)
        value, _ = self.evaluate(factor)
        if Round(self.passes, value, self.bound).gap <= allowed:
            self.best, self.objective = cone.point(factor), value

    def limit_rank(self, rank: int, max_iter: int) -> None:
        """Go on with W of at most this rank, until steps gain next to nothing; the bound stays that of any rank."""
        cone = self.problem.cone
        if len(cone.components(self.best)) <= rank:
            return
        descent, most = Descent(cone.truncated(self.best, rank)), self.passes + max_iter
        self.objective, self.values = np.inf, np.empty(0)
        while descent.step(self.evaluate, lambda: self.certified) and not self.certified and self.passes < most:
            self.values = np.append(self.values, descent.value)
            if self._gain(STALLED_STEPS) < self.tol * self.objective:
                break

    def _descend(self) -> None:
        moved = self.descent.step(self.evaluate, lambda: self.certified)
        self.values = np.append(self.values, self.descent.value)[-STALLED_STEPS - 1 :]
        self.since_proof += 1
        gap = self.objective - self.bound
        if self.since_proof > SLOW_STEPS and self._gain(SLOW_STEPS) < SLOW * gap and not self.certified:
            self._propose()
            self.since_proof = 0
        patience = STALLED * 2.0 ** min(self.passes / PATIENCE, 30.0)
        self.descending = moved and self._gain(STALLED_STEPS) >= patience * gap

    def _gain(self, steps: int) -> float:
        return float(self.values[-steps - 1] - self.values[-1]) if len(self.values) > steps else np.inf

    def _propose(self) -> Proposal:
        """Ask the cuts for a point near the best one, and for the bound they prove."""
        size = max(float(np.vdot(self.best, self.best)), 1e-4 * self.size, 1e-300)
        if self.descending or self.rho == 0.0:
            self.rho = FIRST_RHO * (self.objective - self.bound) / size
        found = self._proposal()
        least = LEAST_RHO * self.problem.regularizer.value(self.best, self.cuts.identity) / size
        for _ in range(MOST_PROPOSALS - 1):
            fair = self.objective - found.model >= FAIR_SHARE * (self.objective - self.bound)
            if fair or self.certified or self.rho <= least:
                break
            self.rho *= LOOSEN
            found = self._proposal()
        return found

    def _proposal(self) -> Proposal:
        tol = 0.05 * self.tol * self.objective
        found = self.cuts.propose(self.problem.C, self.best, self.rho, tol, self.objective)
        self.bound = max(self.bound, self.cuts.bound(found.alpha))
        return found

    def _propose_and_try(self) -> None:
        found, before = self._propose(), self.objective
        if self.certified:
            return
        value, _ = self.evaluate(found.projection.factor)
        if value - before > self.objective - self.bound:
            self.rho *= TIGHTEN


def fit_metric(
    problem: MetricProblem,
    *,
    tol: float = 1e-3,
    max_iter: int = 500,
    rank: int | None = None,
    cuts: Cuts | None = None,
    start: Floats | None = None,
    resume: Mapping[str, NDArray[Any]] | None = None,
    callback: Callable[[Round, MetricSearch], None] | None = None,
) -> Fit:
    """Minimize F to a relative certified gap of ``tol``; ``params`` of the result is W, its ``state`` the search.

    With a ``rank`` the gap is that of W before its rank is limited; the bound of the result holds for any rank.

    Parameters
    ----------
    problem
        The hinge, the cone, the regularizer and C.
    tol
        Relative gap.
    max_iter
        The maximum number of passes over the queries.
    rank
        Of W, at most; None: any.
    cuts, start
        Of a fit with another C on the same hinge: its cuts, and its W.
    resume
        Arrays of :meth:`MetricSearch.arrays`, to go on from there.
    callback
        Called after every round.
    """
    cuts = Cuts(problem.cone, problem.hinge.n_features, problem.regularizer) if cuts is None else cuts
    search = MetricSearch(problem, tol, cuts, first_factor(problem, start))
    if resume is not None:
        search.restore(resume)
    history: list[Round] = []
    with one_blas_thread():
        while search.passes == 0 or (search.sound and not search.certified and search.passes < max_iter):
            history.append(search.round())
            if callback is not None:
                callback(history[-1], search)
        if search.sound:
            search.prune()
        gap, certified, passes = search.last_round.gap, search.certified, search.passes
        if rank is not None:
            search.limit_rank(rank, max_iter)
        trusted = search.trusted()
    last = search.last_round
    if not trusted:
        last = Round(search.passes, search.objective, 0.0)
        warnings.warn(
            f"nothing is certified: distances are lost in rounding (objective {search.objective:.6g}, lower bound "
            f"{search.bound:.6g}): standardize the features",
            ConvergenceWarning,
            stacklevel=2,
        )
        return Fit(search.best, last.objective, last.lower_bound, False, (*history, last), search)
    warn_unless_converged(certified, gap, tol, passes)
    return Fit(search.best, last.objective, last.lower_bound, certified, (*history, last), search)


def first_factor(problem: MetricProblem, start: Floats | None) -> Floats:
    """Return where to begin: the unscaled distance, or near a given W but with every direction open."""
    spread, d = problem.hinge.spread, problem.hinge.n_features
    identity = problem.cone.identity(d)
    if start is None:
        return problem.cone.start(identity / spread if spread > 0.0 else 0.0 * identity)
    trace = float(np.vdot(identity, start))
    return problem.cone.start(start + identity * (OPEN * trace / d))
