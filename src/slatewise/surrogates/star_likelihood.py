"""The pseudo-likelihood of a c-star model: each label given its own score and the core labels.

    L(a, v, G) = sum_m omega_m sum_i log(1 + exp(-y_mi u_mi)) ,      y = 2 z - 1
    u_mi = (1 + a_i) s_mi + v_i + sum over core labels c != i of z_mc G_ci

Smooth and convex, and it asks what the hinge does not: how likely a label is, also in rows where nothing is at stake.
At a = v = G = 0 it leaves the given scores as they are. Parameters are one flat vector: a, v, then G (C, N) in which a
pair of core labels stands once, in the row of the one that comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.surrogates.star_hinge import symmetric_pair

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StarLikelihood:
    """Rows with given scores and labels."""

    scores: Floats
    """(n, N) given, best as log-odds."""
    Y: Floats
    """(n, N) 0/1."""
    weight: Floats
    """(n,) weights omega."""
    core: Ints

    @property
    def n_params(self) -> int:
        """Length of the flat parameter vector."""
        return self.Y.shape[1] * (2 + len(self.core))

    def unpack(self, params: Floats) -> tuple[Floats, Floats, Floats]:
        """Return views a (N,), v (N,) and G (C, N)."""
        n_labels = self.Y.shape[1]
        return params[:n_labels], params[n_labels : 2 * n_labels], params[2 * n_labels :].reshape(-1, n_labels)

    def value_and_grad(self, params: Floats) -> tuple[float, Floats]:
        """Return L and its gradient."""
        a, v, G = self.unpack(params)
        among = self.Y[:, self.core]
        signs = 2.0 * self.Y - 1.0
        margins = signs * ((1.0 + a) * self.scores + v + among @ symmetric_pair(G, self.core))
        # d/du log(1 + exp(-y u)) = -y / (1 + exp(y u))
        slopes = -signs * (0.5 - 0.5 * np.tanh(0.5 * margins)) * self.weight[:, None]
        gradient = np.empty(self.n_params)
        da, dv, dG = self.unpack(gradient)
        da[:] = (slopes * self.scores).sum(axis=0)
        dv[:] = slopes.sum(axis=0)
        dG[:] = among.T @ slopes
        inner = dG[:, self.core]
        dG[:, self.core] = np.triu(inner + inner.T, 1)
        return float(self.weight @ np.logaddexp(0.0, -margins).sum(axis=1)), gradient
