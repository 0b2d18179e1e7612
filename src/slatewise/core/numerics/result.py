"""What a learner returns: parameters with a certificate, and how it got there."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

from slatewise.core.arrays import Floats


class ConvergenceWarning(UserWarning):
    """The certified gap is larger than ``tol``."""


class NothingLearnedWarning(UserWarning):
    """Nothing was learned: no parameters can be much better than zeros, or those found are worse than zeros."""


@dataclass(frozen=True)
class Round:
    """One certified evaluation: the objective at the parameters reached, and a bound no parameters can go below."""

    round: int
    objective: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """(objective - lower bound) / objective: what is certainly not lost."""
        return (self.objective - self.lower_bound) / max(abs(self.objective), 1e-300)

    def __str__(self) -> str:
        return f"round {self.round}, objective {self.objective:.6g}, gap {100 * self.gap:.3g}%"


@dataclass(frozen=True, eq=False)
class Fit:
    """Parameters, their objective, a lower bound on any objective, and the rounds."""

    params: Floats
    objective: float
    lower_bound: float
    converged: bool
    history: tuple[Round, ...] = field(default=())
    state: Any = None

    @property
    def gap(self) -> float:
        """Relative certified gap."""
        return Round(len(self.history), self.objective, self.lower_bound).gap


def warn_unless_converged(converged: bool, gap: float, tol: float, rounds: int, easier: str = "lower C") -> None:
    """Warn if a learner stopped early; ``easier`` advises how to change the strength, in the parameters of the user."""
    if not converged:
        warnings.warn(
            f"stopped after {rounds} rounds with a certified gap of {gap:.2e} (tol={tol:.1e}): "
            f"raise max_iter, or tol, or {easier}",
            ConvergenceWarning,
            stacklevel=3,
        )
