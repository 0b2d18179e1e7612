"""The likelihood of a c-star model, given how many labels are relevant.

    L(w) = sum_m omega_m [ log Z_m(w) - f_m(z_m; w) ] ,      Z_m = sum over the sets t of k_m labels of exp f_m(t; w)

Smooth and convex, and exact (:mod:`slatewise.cstar.sums`). It asks what the hinge does not: how likely a set
is, also in rows where nothing is at stake.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slatewise.cstar.adjusted import AdjustedScores, Floats
from slatewise.cstar.sums import star_sums


@dataclass(frozen=True, eq=False)
class StarLikelihood:
    """Rows with given scores and labels, each with at least one."""

    model: AdjustedScores
    Y: Floats
    """(n, N) 0/1."""
    weight: Floats
    """(n,) weights omega."""
    n_threads: int | None = None

    @property
    def n_params(self) -> int:
        """Length of the flat parameter vector."""
        return self.model.n_params

    def value_and_grad(self, params: Floats) -> tuple[float, Floats]:
        """Return L and its gradient."""
        scores = self.model.scores(params)
        k = self.Y.sum(axis=1).astype(np.int64)
        sums = star_sums(scores, self.model.star_pair(params), k, self.weight, n_threads=self.n_threads)
        core = self.model.core
        # A pair of core labels stands once, in the row of the one that comes first; none stands with itself.
        together = (self.weight[:, None] * self.Y[:, core]).T @ self.Y
        together[:, core] = np.triu(together[:, core], 1)
        own = float(self.weight @ (self.Y * scores).sum(axis=1) + (together * self.model.unpack(params)[2]).sum())
        slopes = self.weight[:, None] * (sums.item - self.Y)
        return float(self.weight @ sums.log_z) - own, self.model.pull_back(slopes, sums.joint - together)
