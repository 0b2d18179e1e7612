"""The likelihood of sets of any size, of rows whose labels are known or partly known.

    L(w) = sum_m omega_m [ log Z_m(w) - log Z_m(w; known) ]

Z sums over all sets, Z(known) over those that agree with what is known of the row: of a complete row that is one set,
``log Z(known) = f``, and L is convex. A label that is not known is summed out, as if it were missing at random; then L
is a difference of convex functions, and no longer convex. Smooth and exact both ways (:mod:`slatewise.cstar.subsets`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from slatewise.core.executor import ONE_THREAD, Executor
from slatewise.cstar.adjusted import AdjustedScores
from slatewise.cstar.checks import Floats, Ints, Known
from slatewise.cstar.pair import StarPair
from slatewise.cstar.subsets import SubsetRows, SubsetSums, log_partition, subset_scores, subset_sums


@dataclass(frozen=True, eq=False)
class SubsetLikelihood:
    """Rows with given scores, and what is known of their labels."""

    model: AdjustedScores
    known: Known
    """(n, N) 1, 0, or -1 where nobody knows."""
    weight: Floats
    """(n,) weights omega."""
    executor: Executor = ONE_THREAD

    @property
    def n_params(self) -> int:
        """Length of the flat parameter vector."""
        return self.model.n_params

    @cached_property
    def complete(self) -> Ints:
        """The rows of which all labels are known."""
        return np.flatnonzero((self.known >= 0).all(axis=1))

    @cached_property
    def partial(self) -> Ints:
        """The others."""
        return np.flatnonzero((self.known < 0).any(axis=1))

    def rows(self, places: Ints) -> SubsetLikelihood:
        """Return the likelihood of some rows."""
        model = AdjustedScores(self.model.given[places], self.model.core)
        return SubsetLikelihood(model, self.known[places], self.weight[places], self.executor)

    def value(self, params: Floats) -> float:
        """Return L alone, for validation."""
        scores, pair = self.model.scores(params), self.model.star_pair(params)
        free = log_partition(SubsetRows(scores, pair), self.executor)
        return float(self.weight @ (free - log_partition(SubsetRows(scores, pair, self.known), self.executor)))

    def value_and_grad(self, params: Floats) -> tuple[float, Floats]:
        """Return L and its gradient."""
        scores, pair = self.model.scores(params), self.model.star_pair(params)
        free = subset_sums(SubsetRows(scores, pair), self.weight, self.executor)
        held = self._held(scores, pair)
        slopes = self.weight[:, None] * (free.item - held.item)
        value = float(self.weight @ (free.log_z - held.log_z))
        return value, self.model.pull_back(slopes, free.joint - held.joint)

    def _held(self, scores: Floats, pair: StarPair) -> SubsetSums:
        """Sum over the sets that agree with what is known."""
        log_z, item = np.empty(len(scores)), np.empty(scores.shape)
        item[self.complete], joint = self._chosen, self._together
        log_z[self.complete] = subset_scores(scores[self.complete], pair, self._chosen)
        if len(self.partial):
            rows = SubsetRows(scores[self.partial], pair, self.known[self.partial])
            part = subset_sums(rows, self.weight[self.partial], self.executor)
            log_z[self.partial], item[self.partial], joint = part.log_z, part.item, joint + part.joint
        return SubsetSums(log_z, item, joint)

    @cached_property
    def _chosen(self) -> Floats:
        return self.known[self.complete].astype(np.float64)

    @cached_property
    def _together(self) -> Floats:
        """(C, N) by weight, pairs of labels of the complete rows."""
        core, Y = self.model.core, self._chosen
        together = (self.weight[self.complete, None] * Y[:, core]).T @ Y
        # A pair of core labels stands once, in the row of the one that comes first; none stands with itself.
        together[:, core] = np.triu(together[:, core], 1)
        return together
