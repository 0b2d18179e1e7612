"""Given scores, adjusted: a scale and a shift per label, and the pair terms of the core labels.

    f(t) = sum_i t_i [ (1 + a_i) s_i + v_i ] + sum over unordered pairs G_ij t_i t_j

At a = v = G = 0 the scores are as given. Parameters are one flat vector: a, v, then G (C, N) in which a pair of core
labels stands once, in the row of the one that comes first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.cstar.pair import StarPair
from slatewise.cstar.problem import symmetric_pair

_TERMS, _ROWS, _ENTRIES = 1 << 20, 256, 1 << 22
"""Of a block of rows: about so many settings of the core times labels, but no less rows, nor more numbers."""


@dataclass(frozen=True, eq=False)
class AdjustedScores:
    """Rows of given scores, and what is learnt of them."""

    given: Floats
    """(n, N), best as log-odds."""
    core: Ints

    @property
    def n_labels(self) -> int:
        """How many labels."""
        return self.given.shape[1]

    @property
    def n_params(self) -> int:
        """Length of the flat parameter vector."""
        return self.n_labels * (2 + len(self.core))

    def unpack(self, params: Floats) -> tuple[Floats, Floats, Floats]:
        """Return views a (N,), v (N,) and G (C, N)."""
        n = self.n_labels
        return params[:n], params[n : 2 * n], params[2 * n :].reshape(len(self.core), n)

    def rows(self, places: slice | Ints) -> AdjustedScores:
        """Return some of the rows."""
        return AdjustedScores(self.given[places], self.core)

    def cuts(self) -> list[slice]:
        """Cut the rows into blocks by the number of rows, labels and core labels alone; one where there are none."""
        n_rows, n_labels = len(self.given), max(self.n_labels, 1)
        rows = max(min(max(_TERMS // (n_labels << len(self.core)), _ROWS), _ENTRIES // n_labels), 1)
        return [slice(first, min(first + rows, n_rows)) for first in range(0, max(n_rows, 1), rows)]

    def scores(self, params: Floats) -> Floats:
        """Return what each label scores by itself, (n, N)."""
        a, v, _ = self.unpack(params)
        return (1.0 + a) * self.given + v

    def star_pair(self, params: Floats) -> StarPair:
        """Lay G out for inference."""
        return StarPair.laid_out(symmetric_pair(self.unpack(params)[2], self.core), self.core)

    def pull_back(self, item: Floats, joint: Floats) -> Floats:
        """Return the gradient in the parameters of ``sum (item * scores) + sum (joint * G)``."""
        return np.concatenate([(item * self.given).sum(axis=0), item.sum(axis=0), joint.ravel()])
