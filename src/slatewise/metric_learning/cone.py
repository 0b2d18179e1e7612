"""The two cones a metric is sought in, and their projections with derivatives.

    Psd       W = L'L , positive semidefinite d x d            <A, B> = sum of the products of all entries
    Orthant   W = diag(l * l), a weight >= 0 per feature       kept as vectors of length d

A point is held by its factor (L or l), which is free of constraints: d<M, W>/dL = 2 L M. The projection of a matrix
keeps its positive eigenvalues; its derivative in the direction A is, in the eigenbasis, A times the divided differences
of max(., 0), which vanish between two negative eigenvalues. So the second-order model needs the rows that belong to the
positive ones only, and W has few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.linalg import eigh

from slatewise.core.arrays import Floats
from slatewise.metric_learning.distance import Rows, dense, is_sparse
from slatewise.metric_learning.distance import factor as psd_factor


@dataclass(frozen=True)
class Psd:
    """Positive semidefinite matrices."""

    def identity(self, n_features: int) -> Floats:
        """Return the W of the unscaled distance, the unit matrix; <identity, W> is the trace."""
        return np.eye(n_features)

    def start(self, W: Floats) -> Floats:
        """Return a factor of W to descend from: the symmetric root, whose rows leave no direction closed."""
        values, vectors = _eigh(W)
        return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T

    def point(self, factor: Floats) -> Floats:
        """Return the W of a factor, L'L."""
        return factor.T @ factor

    def pull_back(self, factor: Floats, slope: Floats) -> Floats:
        """Return the gradient for the factor of a function whose gradient for W is ``slope``: 2 L M."""
        return 2.0 * (factor @ slope)

    def eigenvalues(self, M: Floats) -> Floats:
        """Return the eigenvalues, rising: M lies in the cone if none is negative."""
        return eigh(M, eigvals_only=True, check_finite=False)

    def project(self, M: Floats) -> PsdProjection:
        """Return the nearest point of the cone."""
        return PsdProjection(*_eigh(M))

    def pruned(self, W: Floats, share: float) -> Floats:
        """Return a factor of W without eigenvalues below this share of the largest."""
        values, vectors = _eigh(W)
        return PsdProjection(np.where(values >= share * values[-1], values, 0.0), vectors).factor

    def truncated(self, W: Floats, rank: int) -> Floats:
        """Return a factor of the largest eigenvalues of W; no step from there on the factor raises its rank."""
        return psd_factor(W)[:rank]

    def components(self, W: Floats) -> Floats:
        """Return L (rank, d), W = L'L, of the directions with an eigenvalue > 0."""
        return psd_factor(W)

    def embed(self, X: Rows, factor: Floats) -> Rows:
        """Map points to where distances are Euclidean, XL'."""
        return X @ factor.T

    def products(self, Q: Rows, SX: Rows) -> Floats:
        """Return Q'(SX), as far as W can see it."""
        return dense(Q.T @ SX)

    def symmetric(self, products: Floats) -> Floats:
        """Return products + products'."""
        return products + products.T


@dataclass(frozen=True, eq=False)
class PsdProjection:
    """The positive part of a symmetric matrix."""

    values: Floats
    """Ascending eigenvalues of the matrix projected."""
    vectors: Floats

    @property
    def point(self) -> Floats:
        """Return W, Q max(lambda, 0) Q'."""
        kept = self.values > 0
        return (self.vectors[:, kept] * self.values[kept]) @ self.vectors[:, kept].T

    @property
    def factor(self) -> Floats:
        """Return a factor, L (rank, d); one row of zeros at W = 0."""
        kept = self.values > 0
        if not kept.any():
            return np.zeros((1, len(self.values)))
        return np.ascontiguousarray((self.vectors[:, kept] * np.sqrt(self.values[kept])).T)

    def curvature(self, directions: Floats) -> Floats:
        """Return <A_j, derivative in the direction A_k> for all pairs of directions, (m, m)."""
        kept = self.values > 0
        m, rest = len(directions), ~kept
        if not kept.any():
            return np.zeros((m, m))
        rows = np.matmul(np.matmul(self.vectors[:, kept].T, directions), self.vectors)
        inside, across = rows[:, :, kept].reshape(m, -1), rows[:, :, rest]
        # Divided differences between a positive and another eigenvalue; between two positive ones they are 1.
        above = self.values[kept][:, None]
        steep = above / (above - self.values[rest])
        return inside @ inside.T + 2.0 * ((across * steep).reshape(m, -1) @ across.reshape(m, -1).T)


@dataclass(frozen=True)
class Orthant:
    """One weight >= 0 per feature."""

    def identity(self, n_features: int) -> Floats:
        """Return all ones."""
        return np.ones(n_features)

    def start(self, W: Floats) -> Floats:
        """Return the roots."""
        return np.sqrt(W)

    def point(self, factor: Floats) -> Floats:
        """Return the squares."""
        return factor * factor

    def pull_back(self, factor: Floats, slope: Floats) -> Floats:
        """Return 2 l m."""
        return 2.0 * factor * slope

    def eigenvalues(self, M: Floats) -> Floats:
        """Return the entries, rising."""
        return np.sort(M)

    def project(self, M: Floats) -> OrthantProjection:
        """Return the nearest point of the cone."""
        return OrthantProjection(M)

    def pruned(self, W: Floats, share: float) -> Floats:
        """Return a factor without weights below this share of the largest."""
        return np.sqrt(np.where(share * W.max() <= W, W, 0.0))

    def truncated(self, W: Floats, rank: int) -> Floats:
        """Return a factor of the largest weights; one of 0 has no slope, so it remains 0."""
        kept = np.argsort(-W, kind="stable")[:rank]
        factor = np.zeros_like(W)
        factor[kept] = np.sqrt(W[kept])
        return factor

    def components(self, W: Floats) -> Floats:
        """Return a row for every feature with a weight > 0."""
        kept = np.flatnonzero(W > 0)
        L = np.zeros((len(kept), len(W)))
        L[np.arange(len(kept)), kept] = np.sqrt(W[kept])
        return L

    def embed(self, X: Rows, factor: Floats) -> Rows:
        """Scale the columns."""
        return (X * factor).tocsr() if is_sparse(X) else X * factor

    def products(self, Q: Rows, SX: Rows) -> Floats:
        """Return the diagonal of the matrix product."""
        return np.asarray((Q * SX).sum(axis=0), dtype=np.float64).ravel()

    def symmetric(self, products: Floats) -> Floats:
        """Return twice the products."""
        return 2.0 * products


@dataclass(frozen=True, eq=False)
class OrthantProjection:
    """The positive part of a vector."""

    values: Floats

    @property
    def point(self) -> Floats:
        """Return max(., 0)."""
        return np.maximum(self.values, 0.0)

    @property
    def factor(self) -> Floats:
        """Return the roots."""
        return np.sqrt(self.point)

    def curvature(self, directions: Floats) -> Floats:
        """Return the products over the positive entries."""
        inside = directions[:, self.values > 0]
        return inside @ inside.T


Cone: TypeAlias = Psd | Orthant
Projection: TypeAlias = PsdProjection | OrthantProjection


def _eigh(M: Floats) -> tuple[Floats, Floats]:
    # Divide and conquer is the fastest driver for all eigenvectors.
    return eigh(M, driver="evd", check_finite=False)
