"""Choices on held-out interactions: settings of the parts, and parts that harm the blend.

A share of every user's interactions is hidden. A setting other than the standard one is taken where NDCG@20 of the
hidden items is better by more than one standard error over users, so that noise decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from slatewise.collaborative import parts
from slatewise.collaborative.parts import Blend, FittedPart, fit_part
from slatewise.collaborative.settings import ALS, ItemItem, LowPass, Part
from slatewise.core.arrays import Floats, Singles
from slatewise.core.running.executor import Executor

DEPTH = 20
MOST_USERS = 4000
"""Of whose hidden items the measure is the mean."""
ROWS = 128
REGULARIZATIONS = (100.0, 30.0, 300.0)
SMOOTH_WEIGHTS = (0.3, 0.1, 1.0)
ALS_STARTS = ((0.01, 0.1), (0.03, 0.03), (0.01, 0.03), (0.003, 0.1), (0.003, 0.03))
"""Regularization and weight of unobserved pairs."""
HARM = 3.0
"""Standard errors by which the blend without a part must be better before the part is dropped."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Histories without some of their interactions, and what is hidden of some of them."""

    training: csr_array
    histories: csr_array
    """Those rows of ``training`` of which something is hidden, at most ``MOST_USERS``."""
    hidden: csr_array

    @classmethod
    def of(cls, matrix: csr_array, share: float, seed: int) -> HeldOut | None:
        """Hide a share of the interactions of users who keep at least one; None where nothing can be hidden."""
        rng = np.random.default_rng(seed)
        sizes = np.diff(matrix.indptr)
        drawn = rng.random(matrix.nnz) < share
        rows = np.repeat(np.arange(matrix.shape[0]), sizes)
        left = sizes - np.bincount(rows[drawn], minlength=len(sizes))
        drawn &= left[rows] > 0
        if not drawn.any():
            return None
        training, hidden = (
            csr_array((matrix.data[part], (rows[part], matrix.indices[part])), shape=matrix.shape)
            for part in (~drawn, drawn)
        )
        judged = np.flatnonzero(np.diff(hidden.indptr))
        if len(judged) > MOST_USERS:
            judged = np.sort(rng.choice(judged, MOST_USERS, replace=False))
        return cls(training, training[judged], hidden[judged])

    def gains(self, scores_of: Callable[[csr_array], Singles], executor: Executor) -> Floats:
        """Return NDCG@20 of the hidden items of each user."""
        gains = np.zeros(self.hidden.shape[0])

        def fill(start: int) -> None:
            rows = slice(start, min(len(gains), start + ROWS))
            gains[rows] = _gains(scores_of(self.histories[rows]), self.histories[rows], self.hidden[rows])

        executor.fill_blocks(fill, range(0, len(gains), ROWS))
        return gains


def _gains(scores: Singles, seen: csr_array, hidden: csr_array) -> Floats:
    at = np.arange(len(scores))
    scores[np.repeat(at, np.diff(seen.indptr)), seen.indices] = -np.inf
    sizes = np.diff(hidden.indptr)
    rows = np.repeat(at, sizes)
    own = scores[rows, hidden.indices]
    depth = min(DEPTH, scores.shape[1])
    bar = -np.partition(-scores, depth - 1, axis=1)[:, depth - 1]
    discounts = 1.0 / np.log2(np.arange(DEPTH) + 2.0)
    gains = np.zeros(len(scores))
    near = own >= bar[rows]
    for row, item, score in zip(rows[near], hidden.indices[near], own[near], strict=True):
        rank = int((scores[row] > score).sum() + (scores[row, :item] == score).sum())
        gains[row] += discounts[rank] if rank < DEPTH else 0.0
    return gains / np.cumsum(discounts)[np.minimum(sizes, DEPTH) - 1]


def is_better(gains: Floats, than: Floats, errors: float = 1.0) -> bool:
    """Tell whether a mean is larger by so many standard errors of the paired difference."""
    difference = gains - than
    return bool(difference.mean() > errors * difference.std(ddof=1) / np.sqrt(len(difference)) > 0)


def candidates(given: Part) -> list[Part]:
    """Return the settings that "auto" may stand for, the standard ones first."""
    match given:
        case ItemItem(regularization="auto"):
            return [replace(given, regularization=one) for one in REGULARIZATIONS]
        case LowPass(smooth_weight="auto"):
            return [replace(given, smooth_weight=one) for one in SMOOTH_WEIGHTS]
        case ALS():
            changes = [{"regularization": one, "unobserved_weight": two} for one, two in ALS_STARTS]
            given_numbers = {name: getattr(given, name) for name in changes[0] if getattr(given, name) != "auto"}
            found = [replace(given, **(change | given_numbers)) for change in changes]
            return list(dict.fromkeys(found))
        case _:
            return [given]


def choose(given: Part, held: HeldOut | None, seed: int, executor: Executor) -> tuple[Part, FittedPart | None]:
    """Return the settings to take, all numbers, and the part of the training interactions that has them."""
    every = candidates(given)
    if held is None:
        return every[0], None
    fitted = _fitted(every, held, seed, executor)
    gains = [held.gains(part.scores, executor) for part in fitted]
    best = 0
    for number in range(1, len(every)):
        if gains[number].mean() > gains[best].mean() and is_better(gains[number], gains[0]):
            best = number
    return every[best], fitted[best]


def _fitted(every: list[Part], held: HeldOut, seed: int, executor: Executor) -> list[FittedPart]:
    first = fit_part(every[0], held.training, seed, executor)
    if isinstance(first, parts.LowPass):  # the singular vectors are those of all weights
        weights = [float(one.smooth_weight) for one in every if isinstance(one, LowPass)]
        return [replace(first, weight=weight) for weight in weights]
    return [first, *(fit_part(one, held.training, seed, executor) for one in every[1:])]


def harmful(held: HeldOut, fitted: list[FittedPart], executor: Executor) -> int | None:
    """Return the number of the part without which the blend is better by far; None where there is none."""
    whole = held.gains(Blend.of(fitted).scores, executor)
    without = [held.gains(Blend.of([part for part in fitted if part is not one]).scores, executor) for one in fitted]
    worst = int(np.argmax([gains.mean() for gains in without]))
    return worst if is_better(without[worst], whole, HARM) else None
