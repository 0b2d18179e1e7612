"""Cuts below a metric's risk: what they prove, and the point they propose.

The objective is ``F(W) = tau tr(W) + sigma/2 |W|^2 + C R(W)`` over a cone, and every cut says
``R(W) >= o_j + <G_j, W>``. For any a >= 0 with sum a <= C, and M = tau I + sum_j a_j G_j,

    F(W) >= a.o + min over the cone of [ <M, W> + sigma/2 |W|^2 ]

    sigma = 0   the minimum is 0 if M lies in the cone, so a is scaled by  min(1, tau / -smallest eigenvalue of sum a G)
    sigma > 0   the minimum is -|negative part of M|^2 / 2 sigma

Any a proves a bound, however it was found. Good ones come from the model of all cuts with a proximal term that keeps W
near a centre V. Its dual over a is smooth and has few variables:

    D(a) = a.o - (sigma + rho)/2 |W(a)|^2 + rho/2 |V|^2 ,    W(a) = projection of (rho V - M(a)) / (sigma + rho)

Newton's method maximises it: each step is a quadratic program over a with the derivative of the projection as Hessian.
No C and no regularizer is in a cut: the same cuts serve a whole path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.metric_learning.cone import Cone, Projection

MOST_BYTES = 1 << 27
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
    """The best point of the model near a centre."""

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

    def propose(self, C: float, centre: Floats, rho: float, tol: float, objective: float = np.inf) -> Proposal:
        """Minimise the model plus ``rho/2 |W - centre|^2`` to within ``tol``.

        ``objective``, the best F so far, says how large multipliers can be: ``alpha . offsets`` proves no more. With a
        large C and no risk left they are far smaller than C.
        """
        unit = min(C, objective / max(float(self.offsets.max()), 1e-300))
        dual = _Dual(self, C, centre, rho, unit)
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
    """The concave function that :meth:`Cuts.propose` maximises."""

    def __init__(self, cuts: Cuts, C: float, centre: Floats, rho: float, unit: float) -> None:
        self.cuts, self.C, self.centre, self.rho, self.unit = cuts, C, centre, rho, unit
        self.scale = cuts.regularizer.square + rho
        self.base = rho * centre - cuts.regularizer.trace * cuts.identity
        self.constant = 0.5 * rho * float(np.vdot(centre, centre))

    def at(self, alpha: Floats) -> _DualPoint:
        cuts = self.cuts
        projection = cuts.cone.project((self.base - np.tensordot(alpha, cuts.gradients, 1)) / self.scale)
        W = projection.point
        value = float(alpha @ cuts.offsets) - 0.5 * self.scale * float(np.vdot(W, W)) + self.constant
        slope = cuts.offsets + cuts.gradients.reshape(len(alpha), -1) @ W.ravel()
        model = cuts.regularizer.value(W, cuts.identity) + self.C * max(float(slope.max()), 0.0)
        distance = 0.5 * self.rho * float(np.vdot(W - self.centre, W - self.centre))
        return _DualPoint(alpha, value, slope, projection, W, model, distance)

    def step(self, here: _DualPoint) -> _DualPoint | None:
        """Return a better point by a Newton step cut short where needed; None where rounding allows none."""
        import daqp  # only here: oracles and their sums do without

        # The program is solved in units of alpha and of the largest slope: daqp's tolerances are absolute.
        m, steepest = len(here.alpha), max(float(np.abs(here.slope).max()), 1e-300)
        hessian = here.projection.curvature(self.cuts.gradients) * (self.unit / (self.scale * steepest))
        # Where W(a) = 0 there is no curvature at all; the program needs a little, and centred here it biases nothing.
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
