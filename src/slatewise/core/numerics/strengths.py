"""Choosing how strong a regularizer is: a path of strengths, each validated on folds.

    loss(C) = sum over folds f of the held-out loss of the parameters fitted on the other folds with C

The fit of a fold starts where that of the strength before ended, so a path costs little more than its last point.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from slatewise.core.arrays import Ints
from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.core.running.progress import track

Found = TypeVar("Found")
Ends = Callable[[Sequence[float]], bool]
"""Whether a path ends, by its losses so far."""


class Step(NamedTuple, Generic[Found]):
    """One strength of a path."""

    strength: float
    loss: float
    """The sum of the held-out losses of all folds."""
    found: list[Found]
    """What was fitted on each fold."""


def search_path(
    strengths: Sequence[float],
    n_folds: int,
    fit: Callable[[int, float, Found | None], Found],
    loss: Callable[[int, Found], float],
    ends: Ends | None = None,
    starts: Sequence[Found] | None = None,
) -> list[Step[Found]]:
    """Fit and validate one strength after the other; return the steps that were taken.

    Parameters
    ----------
    strengths
        In the order of the path.
    n_folds
        The number of folds.
    fit
        Of fold, strength and what the strength before found there (None at first). Its convergence warnings are not
        shown: a rough fit is enough to choose by.
    loss
        Of fold and what was fitted: the held-out loss, weighted so that folds add up.
    ends
        Whether to stop before the last strength.
    starts
        What the first fit of each fold starts from.

    Examples
    --------
    The loss falls up to 2 and then grows, twice.

    >>> path = search_path([1, 2, 3, 4, 5], 1, lambda fold, C, start: C, lambda fold, C: abs(C - 2.0), fell_behind)
    >>> [step.strength for step in path], min(path, key=lambda step: step.loss).strength
    ([1, 2, 3, 4], 2)
    """
    return list(iterate_path(strengths, n_folds, fit, loss, ends, starts))


def iterate_path(
    strengths: Sequence[float],
    n_folds: int,
    fit: Callable[[int, float, Found | None], Found],
    loss: Callable[[int, Found], float],
    ends: Ends | None = None,
    starts: Sequence[Found] | None = None,
) -> Iterator[Step[Found]]:
    """Do what :func:`search_path` does one step at a time, if what is fitted is too large to keep all of it."""
    losses: list[float] = []
    before: Sequence[Found | None] = [None] * n_folds if starts is None else starts
    for strength in track(strengths, "strengths"):
        with rough_fits():
            found = [fit(fold, strength, start) for fold, start in enumerate(before)]
            losses.append(sum(loss(fold, one) for fold, one in enumerate(found)))
        yield Step(strength, losses[-1], found)
        if ends is not None and ends(losses):
            break
        before = found


def fell_behind(losses: Sequence[float]) -> bool:
    """Tell whether the last two losses are both above the smallest; ends a path that is not quite convex."""
    return min(losses) < min(losses[-2:])


def stopped_falling(losses: Sequence[float]) -> bool:
    """Tell whether the last loss is no smaller than the one before."""
    return len(losses) > 1 and losses[-1] >= losses[-2]


def random_folds(n_rows: int, n_folds: int, seed: int) -> list[tuple[Ints, Ints]]:
    """Return, for each fold, the rows to fit on and the held-out ones, both rising; no more folds than rows.

    Examples
    --------
    >>> [(inner.tolist(), held_out.tolist()) for inner, held_out in random_folds(4, 2, seed=0)]
    [([2, 3], [0, 1]), ([0, 1], [2, 3])]
    """
    part = np.random.default_rng(seed).permutation(n_rows) % n_folds
    return [(np.flatnonzero(part != fold), np.flatnonzero(part == fold)) for fold in range(min(n_folds, n_rows))]


@contextmanager
def rough_fits() -> Generator[None]:
    """Do not warn of fits that have not converged: they are enough to choose by."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
