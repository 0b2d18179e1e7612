"""The fitted parts of a blend: each scores all items for histories, and says what each item of a history adds.

A part is a function of a history alone, so known and new users with the same history have the same scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from slatewise.collaborative import settings
from slatewise.collaborative.als import fit_items, gram_of, user_vectors
from slatewise.collaborative.item_item import item_weights
from slatewise.collaborative.low_pass import normalized, right_singular_vectors
from slatewise.core.arrays import Floats, Ints, Singles
from slatewise.core.running.executor import ONE_THREAD, Executor

ROUNDING, LEAST = 1e-5, 1e-30
"""The deviation of equal scores: relative to their mean, and in itself."""


class FittedPart(Protocol):
    """Scores of all items, linear in what a history holds."""

    def scores(self, histories: csr_array) -> Singles:
        """Return the scores of all items, (histories, items)."""
        ...

    def contributions(self, history: csr_array, items: Ints) -> Floats:
        """Return what each entry of one history adds to the scores of some items, (entries, items)."""
        ...


@dataclass(frozen=True, eq=False)
class ItemItem:
    """``history B``."""

    weights: csr_array
    """B, (items, items)."""

    def scores(self, histories: csr_array) -> Singles:
        """Return the scores of all items, (histories, items)."""
        return (histories @ self.weights).toarray()

    def contributions(self, history: csr_array, items: Ints) -> Floats:
        """Return what each entry of one history adds to the scores of some items, (entries, items)."""
        rows = self.weights[history.indices][:, items].toarray()
        return history.data[:, None].astype(np.float64) * rows


@dataclass(frozen=True, eq=False)
class LowPass:
    """``history N'N + weight * history D_i^-1/2 V V' D_i^1/2``."""

    users: csr_array
    """N, (users, items)."""
    items: csr_array
    """N', (items, users)."""
    roots: Singles
    """The diagonal of D_i^1/2."""
    vectors: Singles
    """V, (items, n_components)."""
    weight: float

    @classmethod
    def of(cls, matrix: csr_array, vectors: Singles, weight: float) -> LowPass:
        """Take the training histories and the singular vectors of N."""
        users, roots = normalized(matrix)
        return cls(users, users.T.tocsr(), roots, vectors, weight)

    @cached_property
    def inward(self) -> Singles:
        """D_i^-1/2 V."""
        return self.vectors / self.roots[:, None]

    def scores(self, histories: csr_array) -> Singles:
        """Return the scores of all items, (histories, items)."""
        common = ((histories @ self.items) @ self.users).toarray()
        smooth = (histories @ self.inward) @ self.vectors.T
        return common + np.float32(self.weight) * self.roots * smooth

    def contributions(self, history: csr_array, items: Ints) -> Floats:
        """Return what each entry of one history adds to the scores of some items, (entries, items)."""
        places = history.indices
        common = (self.items[places] @ self.items[items].T).toarray().astype(np.float64)
        smooth = self.inward[places].astype(np.float64) @ self.vectors[items].T.astype(np.float64)
        return history.data[:, None].astype(np.float64) * (common + self.weight * self.roots[items] * smooth)


@dataclass(frozen=True, eq=False)
class ALS:
    """``u(history).v``."""

    items: Singles
    """V, (items, n_components)."""
    regularization: float
    unobserved_weight: float

    @cached_property
    def gram(self) -> Singles:
        """What all items add to the equations of a user."""
        return gram_of(self.items, self.unobserved_weight)

    def scores(self, histories: csr_array) -> Singles:
        """Return the scores of all items, (histories, items)."""
        penalties = self.regularization, self.unobserved_weight
        users = user_vectors(histories, self.items, self.gram, *penalties, ONE_THREAD)
        return users @ self.items.T

    def contributions(self, history: csr_array, items: Ints) -> Floats:
        """Return what each entry of one history adds to the scores of some items, (entries, items).

        With A = sum_j w_j v_j v_j' + a0 V'V + ridge I the vector of a user is the sum of w_j A^-1 v_j, so its score of
        an item adds up over the history.
        """
        from slatewise.collaborative.kernels.als import LEAST_DAMPING

        own, weights = self.items[history.indices].astype(np.float64), history.data.astype(np.float64)
        ridge = self.regularization * (len(own) + self.unobserved_weight * len(self.items))
        gram = (own.T * weights) @ own + self.gram
        diagonal = np.diag_indices(len(gram))
        gram[diagonal] += max(ridge, LEAST_DAMPING * gram[diagonal].max())  # as in the kernel
        return weights[:, None] * (own @ np.linalg.solve(gram, self.items[items].T.astype(np.float64)))


@dataclass(frozen=True, eq=False)
class Blend:
    """The weighted sum of the scores of parts, each on one scale: mean 0 and standard deviation 1 over all items."""

    parts: tuple[FittedPart, ...]
    weights: Floats

    @classmethod
    def of(cls, fitted: Sequence[FittedPart]) -> Blend:
        """Add parts up with equal weights."""
        return cls(tuple(fitted), np.ones(len(fitted)))

    def scores(self, histories: csr_array) -> Singles:
        """Return the scores of all items, (histories, items)."""
        total = np.zeros(histories.shape, dtype=np.float32)
        for part, weight in zip(self.parts, self.weights, strict=True):
            scores = part.scores(histories)
            mean, scale = scale_of(scores)
            scores -= mean
            scores *= np.float32(weight) / scale
            total += scores
        return total


def scale_of(scores: Singles) -> tuple[Singles, Singles]:
    """Return the mean and the standard deviation of each row, (rows, 1); its size or 1 where all scores are equal."""
    mean = scores.mean(axis=1, keepdims=True)
    deviation: Floats = scores.std(axis=1, keepdims=True, dtype=np.float64)
    size = np.abs(mean)
    differs = deviation > ROUNDING * size + LEAST
    return mean, np.where(differs, deviation, np.maximum(size, 1.0)).astype(np.float32)


def fit_part(given: settings.Part, matrix: csr_array, seed: int, executor: Executor) -> FittedPart:
    """Learn a part, all of whose settings are numbers."""
    match given:
        case settings.ItemItem(regularization=float(regularization)):
            numbers = regularization, given.dropout, given.n_neighbors
            return ItemItem(item_weights(matrix, *numbers, executor, most_items=given.most_items))
        case settings.LowPass(smooth_weight=float(weight)):
            rng = np.random.default_rng(seed)
            vectors = right_singular_vectors(normalized(matrix)[0], given.n_components, rng)
            return LowPass.of(matrix, vectors, weight)
        case settings.ALS(regularization=float(regularization), unobserved_weight=float(unobserved)):
            rng = np.random.default_rng(seed)
            items = fit_items(matrix, given.n_components, regularization, unobserved, given.epochs, rng, executor)
            return ALS(items, regularization, unobserved)
        case _:
            raise TypeError(f"expected settings without 'auto', found {given}")
