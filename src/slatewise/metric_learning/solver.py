"""Training a metric: descend on a factor of W, and prove with the cuts met on the way.

    F(W) = tau tr(W) + sigma/2 |W|^2 + C R(W) ,    W in a cone

*Cuts.* Every evaluation of R yields a cut, ``R(W) >= o_j + <G_j, W>``. For any a >= 0 with sum a <= C, and
M = tau I + sum_j a_j G_j,

    F(W) >= a.o + min over the cone of [ <M, W> + sigma/2 |W|^2 ]

    sigma = 0   the minimum is 0 if M lies in the cone, so a is scaled by  min(1, tau / -smallest eigenvalue of sum a G)
    sigma > 0   the minimum is -|negative part of M|^2 / 2 sigma

Any a proves a bound, however it was found. Good ones come from the model of all cuts with a proximal term that keeps W
near a center V. Its dual over a is smooth and has few variables:

    D(a) = a.o - (sigma + rho)/2 |W(a)|^2 + rho/2 |V|^2 ,    W(a) = projection of (rho V - M(a)) / (sigma + rho)

Newton's method maximizes it: each step is a quadratic program over a with the derivative of the projection as Hessian.
No C and no regularizer is in a cut: the same cuts serve a whole path.

*Descent* on the factor of W, quick to a good point, although the objective has kinks:

    W = L'L ,    f(L) = F(L'L) ,    df/dL = 2 L dF/dW

L-BFGS directions with a line search for the weak Wolfe conditions by bisection, which needs a subgradient only and
keeps the curvature positive at kinks as well (Lewis and Overton 2013). A sum over many queries is smooth for all
practical purposes, and with as many rows in L as features no spurious minimum was ever met; nothing relies on either,
since the cuts prove how good the point is.

*Search.* While the descent makes headway, the latest cut alone bounds F from below; when it slows down against the gap,
the multipliers of the best combination of recent cuts are sought, which usually closes it. If the descent ends at a
kink, a proximal bundle goes on from there with the same cuts: its proximal weight falls until the model expects a fair
share of the gap, and rises when the step went too far.

A target rank comes last: of the best W of any rank the largest eigenvalues are kept, and the descent goes on in a
factor of as many rows. That problem is not convex; what is proven of it is the bound, which holds for every W.

*Rounding.* F is never negative, no bound lies above it, and scores are wrong by about the machine's precision times the
square of the largest mapped point. Numbers that contradict the former, or a gap smaller than the latter, are rounding:
points lie so far from each other, or from 0, that their differences are lost. Then nothing is proven, and the fit says
so.
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
from slatewise.metric_learning.cone import Cone, Projection
from slatewise.metric_learning.distance import squares
from slatewise.metric_learning.hinge import MetricHinge

MOST_BYTES = 1 << 27
"""Of the cuts, and of what the descent remembers."""


# --- cuts -------------------------------------------------------------------------------------------------------------

MOST_CUTS, LEAST_CUTS = 48, 8
MOST_NEWTON_STEPS = 30


@dataclass(frozen=True)
class Regularizer:
    """``trace`` tr(W) + ``square``/2 |W|^2."""

    trace: float
    square: float

    def value(self, W: Floats, identity: Floats) -> float:
        """Return the regularizer at W."""
        return self.trace * float(np.vdot(identity, W)) + 0.5 * self.square * float(np.vdot(W, W))

    def slope(self, W: Floats, identity: Floats) -> Floats:
        """Return its gradient."""
        return self.trace * identity + self.square * W


@dataclass(frozen=True, eq=False)
class Proposal:
    """The best point of the model near a center."""

    alpha: Floats
    projection: Projection
    W: Floats
    model: float
    """Regularizer + C times the largest cut, at W: what the cuts expect of F there."""


class Cuts:
    """The latest cuts, as many as memory allows."""

    def __init__(self, cone: Cone, n_features: int, regularizer: Regularizer) -> None:
        self.cone, self.regularizer = cone, regularizer
        self.identity = cone.identity(n_features)
        self.most = int(np.clip(MOST_BYTES // self.identity.nbytes, LEAST_CUTS, MOST_CUTS))
        self.offsets = np.empty(0)
        self.gradients = np.empty((0, *self.identity.shape))
        self.alpha = np.empty(0)
        """Multipliers of the last proposal, where the next one starts."""

    def add(self, offset: float, gradient: Floats) -> None:
        """Append a cut; when there are too many, the oldest one that carries no weight goes."""
        if len(self.offsets) == self.most:
            idle = np.flatnonzero(self.alpha <= 1e-10 * self.alpha.max(initial=0.0))
            kept = np.arange(self.most) != (idle[0] if len(idle) else 0)
            self.offsets, self.gradients = self.offsets[kept], self.gradients[kept]
            self.alpha = self.alpha[kept]
        self.offsets = np.append(self.offsets, offset)
        self.gradients = np.concatenate([self.gradients, gradient[None]])
        self.alpha = np.append(self.alpha, 0.0)

    def bound(self, alpha: Floats) -> float:
        """Return the lower bound on F that any alpha >= 0 with sum <= C proves."""
        return self.bound_of(float(alpha @ self.offsets), np.tensordot(alpha, self.gradients, 1))

    def bound_of(self, offset: float, gradient: Floats) -> float:
        """Return the bound of one plane, already multiplied by its share of C."""
        trace, square = self.regularizer.trace, self.regularizer.square
        values = self.cone.eigenvalues(gradient)
        if square > 0.0:
            return offset - 0.5 * float((np.minimum(values + trace, 0.0) ** 2).sum()) / square
        return offset * min(1.0, trace / max(-float(values[0]), 1e-300))

    def propose(self, C: float, center: Floats, rho: float, tol: float, objective: float = np.inf) -> Proposal:
        """Minimize the model plus ``rho/2 |W - center|^2`` to within ``tol``.

        ``objective``, the best F so far, says how large multipliers can be: ``alpha . offsets`` proves no more. With a
        large C and no risk left they are far smaller than C.
        """
        unit = min(C, objective / max(float(self.offsets.max()), 1e-300))
        dual = _Dual(self, C, center, rho, unit)
        alpha = self.alpha
        if alpha.sum() <= 0.0:
            alpha = np.zeros(len(self.offsets))
            alpha[-1] = C
        alpha = alpha * min(1.0, C / alpha.sum())
        here = dual.at(alpha)
        for _ in range(MOST_NEWTON_STEPS):
            if here.model + here.distance - here.value <= tol:
                break
            there = dual.step(here)
            if there is None:
                break
            here = there
        self.alpha = here.alpha
        return Proposal(here.alpha, here.projection, here.W, here.model)


@dataclass(frozen=True, eq=False)
class _DualPoint:
    alpha: Floats
    value: float
    slope: Floats
    """(m,) the value of every cut at W."""
    projection: Projection
    W: Floats
    model: float
    distance: float


class _Dual:
    """The concave function that :meth:`Cuts.propose` maximizes."""

    def __init__(self, cuts: Cuts, C: float, center: Floats, rho: float, unit: float) -> None:
        self.cuts, self.C, self.center, self.rho, self.unit = cuts, C, center, rho, unit
        self.scale = cuts.regularizer.square + rho
        self.base = rho * center - cuts.regularizer.trace * cuts.identity
        self.constant = 0.5 * rho * float(np.vdot(center, center))

    def at(self, alpha: Floats) -> _DualPoint:
        cuts = self.cuts
        projection = cuts.cone.project((self.base - np.tensordot(alpha, cuts.gradients, 1)) / self.scale)
        W = projection.point
        value = float(alpha @ cuts.offsets) - 0.5 * self.scale * float(np.vdot(W, W)) + self.constant
        slope = cuts.offsets + cuts.gradients.reshape(len(alpha), -1) @ W.ravel()
        model = cuts.regularizer.value(W, cuts.identity) + self.C * max(float(slope.max()), 0.0)
        distance = 0.5 * self.rho * float(np.vdot(W - self.center, W - self.center))
        return _DualPoint(alpha, value, slope, projection, W, model, distance)

    def step(self, here: _DualPoint) -> _DualPoint | None:
        """Return a better point by a Newton step cut short where needed; None where rounding allows none."""
        import daqp  # only here: oracles and their sums do without

        # The program is solved in units of alpha and of the largest slope: daqp's tolerances are absolute.
        m, steepest = len(here.alpha), max(float(np.abs(here.slope).max()), 1e-300)
        hessian = here.projection.curvature(self.cuts.gradients) * (self.unit / (self.scale * steepest))
        # Where W(a) = 0 there is no curvature at all; the program needs a little, and centered here it biases nothing.
        hessian += (1e-10 * float(np.trace(hessian)) / m + 1e-6) * np.eye(m)
        found = daqp.solve(
            hessian,
            -(here.slope / steepest + hessian @ (here.alpha / self.unit)),
            np.ones((1, m)),
            np.full(m + 1, self.C / self.unit),
            np.zeros(m + 1),
        )[0]
        target = np.maximum(np.nan_to_num(found), 0.0) * self.unit
        target *= min(1.0, self.C / max(float(target.sum()), 1e-300))
        step = target - here.alpha
        gain = float(here.slope @ step)
        length = 1.0
        while gain > 0.0 and length > 1e-6:
            there = self.at(here.alpha + length * step)
            if there.value >= here.value + 1e-4 * length * gain:
                return there if there.value > here.value else None
            length *= 0.5
        return None


# --- descent ----------------------------------------------------------------------------------------------------------

MEMORY, LEAST_MEMORY = 20, 4
MOST_TRIALS = 12
ENOUGH_DECREASE, ENOUGH_SLOPE = 1e-4, 0.9
FIRST_STEP, MOST_STEP = 0.1, 0.7
"""Of the norm of the factor. A factor of 0 is a stationary point, best W or not: no step may jump there."""


class Descent:
    """The state of the descent: its factor, its value, and past steps that estimate the curvature."""

    def __init__(self, factor: Floats) -> None:
        self.factor = factor
        self.value = np.inf
        self.gradient = np.zeros_like(factor)
        self.memory = int(np.clip(MOST_BYTES // (2 * factor.nbytes), LEAST_MEMORY, MEMORY))
        self.steps = np.empty((0, *factor.shape))
        self.changes = np.empty((0, *factor.shape))

    def step(self, evaluate: Callable[[Floats], tuple[float, Floats]], enough: Callable[[], bool]) -> bool:
        """Go one step; False where none was found that pays. ``enough`` may end the search for a good length."""
        if np.isinf(self.value):
            self.value, self.gradient = evaluate(self.factor)
            return True
        direction = self._direction()
        size, most = float(np.linalg.norm(direction)), MOST_STEP * float(np.linalg.norm(self.factor))
        direction *= min(1.0, most / max(size, 1e-300))
        slope = float(np.vdot(self.gradient, direction))
        if slope >= 0.0:
            return False
        low, high, length = 0.0, np.inf, 1.0
        best: tuple[float, Floats, float] | None = None
        for _ in range(MOST_TRIALS):
            value, gradient = evaluate(self.factor + length * direction)
            if value <= self.value + ENOUGH_DECREASE * length * slope:
                low, best = length, (value, gradient, length)
                if float(np.vdot(gradient, direction)) >= ENOUGH_SLOPE * slope:
                    break
            else:
                high = length
            if enough():
                break
            length = 0.5 * (low + high) if np.isfinite(high) else 2.0 * length
        if best is None:
            return False
        self._move(direction, *best)
        return True

    def _move(self, direction: Floats, value: float, gradient: Floats, length: float) -> None:
        step, change = length * direction, gradient - self.gradient
        if float(np.vdot(step, change)) > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self.steps = np.concatenate([self.steps, step[None]])[-self.memory :]
            self.changes = np.concatenate([self.changes, change[None]])[-self.memory :]
        self.factor, self.value, self.gradient = self.factor + step, value, gradient

    def _direction(self) -> Floats:
        """Minus the gradient times the inverse Hessian that steps and changes suggest (two-loop recursion)."""
        if not len(self.steps):
            size = float(np.linalg.norm(self.gradient))
            return self.gradient * (-FIRST_STEP * float(np.linalg.norm(self.factor)) / max(size, 1e-300))
        q = self.gradient.ravel().copy()
        steps, changes = self.steps.reshape(len(self.steps), -1), self.changes.reshape(len(self.steps), -1)
        inverse = 1.0 / np.einsum("md,md->m", steps, changes)
        shares = np.empty(len(steps))
        for i in range(len(steps) - 1, -1, -1):
            shares[i] = inverse[i] * float(steps[i] @ q)
            q -= shares[i] * changes[i]
        q /= inverse[-1] * float(changes[-1] @ changes[-1])
        for i in range(len(steps)):
            q += (shares[i] - inverse[i] * float(changes[i] @ q)) * steps[i]
        return -q.reshape(self.factor.shape)


# --- search -----------------------------------------------------------------------------------------------------------

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
        """The certificate so far; if the numbers are not sound, its lower bound is 0."""
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
