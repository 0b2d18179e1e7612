"""The likelihood of a c-star problem, given how many labels are relevant.

    L(w) = sum_m omega_m [ log Z_m(w) - f_m(z_m; w) ] ,      Z_m = sum over the sets t of k_m labels of exp f_m(t; w)

Smooth and convex, and exact (:mod:`slatewise.cstar.sums`). It asks what the hinge does not: how likely a set
is, also in rows where nothing is at stake.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slatewise.core.executor import ONE_THREAD, Executor
from slatewise.cstar.adjusted import AdjustedScores
from slatewise.cstar.lists import StarLists
from slatewise.cstar.problem import Floats, Ints, StarProblem, indicator
from slatewise.cstar.sums import star_sums


@dataclass(frozen=True, eq=False)
class StarLikelihood:
    """Rows with given scores and labels, each with at least one."""

    model: AdjustedScores
    Y: Floats
    """(n, N) 0/1."""
    k: Ints
    weight: Floats
    """(n,) weights omega."""
    executor: Executor = ONE_THREAD

    @classmethod
    def of(cls, problem: StarProblem, executor: Executor = ONE_THREAD) -> StarLikelihood:
        """Adjust the fixed part of a problem's scores to its targets, every row by the weight it was given."""
        if problem.offset is None:
            raise ValueError("problem: expected given scores, found none")
        Y = indicator(problem.target, problem.n_items)
        model, weight = AdjustedScores(problem.offset, problem.core), problem.weight * problem.total_weight
        return cls(model, Y, problem.k, weight, executor)

    @property
    def n_params(self) -> int:
        """Length of the flat parameter vector."""
        return self.model.n_params

    def value_and_grad(self, params: Floats) -> tuple[float, Floats]:
        """Return L and its gradient."""
        scores = self.model.scores(params)
        sums = star_sums(StarLists(scores, self.model.star_pair(params), self.k), self.weight, self.executor)
        core = self.model.core
        # A pair of core labels stands once, in the row of the one that comes first; none stands with itself.
        together = (self.weight[:, None] * self.Y[:, core]).T @ self.Y
        together[:, core] = np.triu(together[:, core], 1)
        own = float(self.weight @ (self.Y * scores).sum(axis=1) + (together * self.model.unpack(params)[2]).sum())
        slopes = self.weight[:, None] * (sums.item - self.Y)
        return float(self.weight @ sums.log_z) - own, self.model.pull_back(slopes, sums.joint - together)
