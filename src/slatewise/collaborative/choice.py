"""Choices on held-out interactions: settings of the parts, and parts that harm the blend.

A share of every user's interactions is hidden. A setting other than the standard one is taken where NDCG@20 of the
hidden items is better by more than one standard error over users, so that noise decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

import numpy as np
from scipy.sparse import csr_array

from slatewise.collaborative.item_item import frequent_items
from slatewise.collaborative.parts import Blend, FittedPart, fit_part
from slatewise.collaborative.parts import LowPass as FittedLowPass
from slatewise.collaborative.settings import ALS, ItemItem, LowPass, Part
from slatewise.core.arrays import Floats, Singles
from slatewise.core.running.executor import Executor

DEPTH = 20
MOST_USERS = 4000
"""Of whose hidden items the measure is the mean."""
ROWS = 128
STANDARD: Mapping[type[Part], Mapping[str, float]] = {
    ItemItem: {"regularization": 100.0},
    LowPass: {"smooth_weight": 0.3},
    ALS: {"regularization": 0.01, "unobserved_weight": 0.03},
}
"""What "auto" is where nothing is held out, and where a search begins."""
LADDERS: Mapping[type[Part], Mapping[str, tuple[float, ...]]] = {
    ItemItem: {"regularization": (10.0, 30.0, 100.0, 300.0, 1000.0)},
    LowPass: {"smooth_weight": (0.03, 0.1, 0.3, 1.0)},
    ALS: {
        "regularization": (0.001, 0.003, 0.01, 0.03, 0.1),
        "unobserved_weight": (0.003, 0.01, 0.03, 0.1, 0.3),
    },
}
TRIED_COMPONENTS, TRIED_EPOCHS = 64, 6
"""Of factors, while their penalties are searched."""
TRIED_ITEMS = 5000
"""The most frequent items, among which the penalty of item-item weights is searched."""
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

    def among_frequent(self, n_items: int) -> HeldOut:
        """Keep the most frequent items."""
        if self.training.shape[1] <= n_items:
            return self
        kept = frequent_items(self.training, n_items)
        training, histories, hidden = (csr_array(one[:, kept]) for one in (self.training, self.histories, self.hidden))
        judged = np.flatnonzero(np.diff(hidden.indptr))
        return HeldOut(training, csr_array(histories[judged]), csr_array(hidden[judged])) if len(judged) else self

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
    """Tell whether a mean is larger by this number of standard errors of the paired difference."""
    difference = gains - than
    if len(difference) < 2:
        return False
    return bool(difference.mean() > errors * difference.std(ddof=1) / np.sqrt(len(difference)) > 0)


def standard(given: Part) -> Part:
    """Return settings with the standard number in place of each "auto"."""
    return replace(given, **{name: value for name, value in STANDARD[type(given)].items() if is_auto(given, name)})


def is_auto(given: Part, name: str) -> bool:
    """Tell whether a setting is to be chosen."""
    return getattr(given, name) == "auto"


def choose(given: Part, held: HeldOut, seed: int, executor: Executor) -> Part:
    """Climb from the standard settings to neighbors on the ladders while held-out interactions say so."""
    free = [name for name in STANDARD[type(given)] if is_auto(given, name)]
    at, ladders = standard(given), LADDERS[type(given)]
    if not free:
        return at
    gains_of = cache(_trial(given, held, seed, executor))
    while True:
        neighbors = [
            replace(at, **{name: ladders[name][step]})
            for name in free
            for step in (ladders[name].index(getattr(at, name)) + move for move in (-1, 1))
            if 0 <= step < len(ladders[name])
        ]
        best = max(neighbors, key=lambda one: gains_of(one).mean())
        if not is_better(gains_of(best), gains_of(at)):
            return at
        at = best


def _trial(given: Part, held: HeldOut, seed: int, executor: Executor) -> Callable[[Part], Floats]:
    """Return what measures settings of a part: cheaper than a fit, and sharing what does not depend on them."""
    if isinstance(given, LowPass):
        first = cast("FittedLowPass", fit_part(standard(given), held.training, seed, executor))
        return lambda one: held.gains(replace(first, weight=float(cast("LowPass", one).smooth_weight)).scores, executor)
    judged, changes = held, dict[str, int]()
    if isinstance(given, ItemItem):
        judged = held.among_frequent(TRIED_ITEMS)
    else:
        changes["n_components"] = min(given.n_components, TRIED_COMPONENTS)
        changes["epochs"] = min(given.epochs, TRIED_EPOCHS)

    def gains_of(one: Part) -> Floats:
        part = fit_part(replace(one, **changes), judged.training, seed, executor)
        return judged.gains(part.scores, executor)

    return gains_of


def harmful(held: HeldOut, fitted: list[FittedPart], executor: Executor) -> int | None:
    """Return the number of the part without which the blend is better by far; None where there is none."""
    whole = held.gains(Blend.of(fitted).scores, executor)
    without = [held.gains(Blend.of([part for part in fitted if part is not one]).scores, executor) for one in fitted]
    worst = int(np.argmax([gains.mean() for gains in without]))
    return worst if is_better(without[worst], whole, HARM) else None
