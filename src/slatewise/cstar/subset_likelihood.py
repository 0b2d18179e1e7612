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

_ENTRIES = 1 << 22
"""Of an array with a number per row and label: rows are taken by as many as have so many."""


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
        return SubsetLikelihood(self.model.rows(places), self.known[places], self.weight[places], self.executor)

    def value(self, params: Floats) -> float:
        """Return L alone, for validation."""
        pair, free, held = self.model.star_pair(params), np.empty(len(self.weight)), np.empty(len(self.weight))
        for cut in self._chunks():
            scores = self.model.rows(cut).scores(params)
            free[cut] = log_partition(SubsetRows(scores, pair), self.executor)
            held[cut] = log_partition(SubsetRows(scores, pair, self.known[cut]), self.executor)
        return float(self.weight @ (free - held))

    def value_and_grad(self, params: Floats) -> tuple[float, Floats]:
        """Return L and its gradient."""
        pair, free, held = self.model.star_pair(params), np.empty(len(self.weight)), np.empty(len(self.weight))
        gradient = np.zeros(self.n_params)
        for cut, together in zip(self._chunks(), self._together, strict=True):
            model, weight = self.model.rows(cut), self.weight[cut]
            scores = model.scores(params)
            sums = subset_sums(SubsetRows(scores, pair), weight, self.executor)
            agreeing = self._held(cut, scores, pair, together)
            free[cut], held[cut] = sums.log_z, agreeing.log_z
            slopes = weight[:, None] * (sums.item - agreeing.item)
            gradient += model.pull_back(slopes, sums.joint - agreeing.joint)
        return float(self.weight @ (free - held)), gradient

    def _chunks(self) -> list[slice]:
        """Cut the rows, so that arrays of a number per row and label stay small beside the given scores."""
        n_rows = max(_ENTRIES // max(self.model.n_labels, 1), 1)
        return [slice(first, min(first + n_rows, len(self.weight))) for first in range(0, len(self.weight), n_rows)]

    def _held(self, cut: slice, scores: Floats, pair: StarPair, together: Floats) -> SubsetSums:
        """Sum over the sets that agree with what is known of some rows; ``together`` of those that are complete."""
        known = self.known[cut]
        complete = (known >= 0).all(axis=1)
        if complete.all():
            chosen = known.astype(np.float64)
            return SubsetSums(subset_scores(scores, pair, chosen), chosen, together)
        log_z, item, chosen = np.empty(len(scores)), np.empty(scores.shape), known[complete].astype(np.float64)
        log_z[complete], item[complete] = subset_scores(scores[complete], pair, chosen), chosen
        rows = SubsetRows(scores[~complete], pair, known[~complete])
        part = subset_sums(rows, self.weight[cut][~complete], self.executor)
        log_z[~complete], item[~complete] = part.log_z, part.item
        return SubsetSums(log_z, item, together + part.joint)

    @cached_property
    def _together(self) -> list[Floats]:
        """(C, N) by weight, pairs of labels of the complete rows of each chunk."""
        core, found = self.model.core, list[Floats]()
        for cut in self._chunks():
            complete = (self.known[cut] >= 0).all(axis=1)
            Y = self.known[cut][complete].astype(np.float64)
            together = (self.weight[cut][complete, None] * Y[:, core]).T @ Y
            # A pair of core labels stands once, in the row of the one that comes first; none stands with itself.
            together[:, core] = np.triu(together[:, core], 1)
            found.append(together)
        return found
