"""Quasi-Newton descent on the factor of a metric: quick to a good point, although the objective has kinks.

    W = L'L ,    f(L) = F(L'L) ,    df/dL = 2 L dF/dW

L-BFGS directions with a line search for the weak Wolfe conditions by bisection, which needs a subgradient only and
keeps the curvature positive at kinks as well (Lewis and Overton 2013). A sum over many queries is smooth for all
practical purposes, and with as many rows in L as features no spurious minimum was ever met; nothing relies on either:
the cuts gathered on the way prove how good the point is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slatewise.core.arrays import Floats

MEMORY, LEAST_MEMORY = 20, 4
MOST_BYTES = 1 << 27
MOST_TRIALS = 12
ENOUGH_DECREASE, ENOUGH_SLOPE = 1e-4, 0.9
FIRST_STEP, MOST_STEP = 0.1, 0.7
"""Of the norm of the factor. A factor of 0 is a stationary point, best W or not: no step may jump there."""


class Descent:
    """Where the descent is, and what it remembers of the curvature."""

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
