"""How much a base weighs against what was learnt on top of it, chosen on the pairs held out.

    score = a g(base) / m + what was learnt ,    m = 0: the base alone,  m = 1: as learnt together,  None: no base

A sum that is learnt as a whole moves the top of lists up and may lose items further down which the base alone finds. So
of all weights under which recall at k of the held-out pairs is not below that of the base alone, or by less than its
standard error, the best NDCG at k is looked for; and the weight nearest to the base is taken that has half of its gain.
For what comes later is like what is held out and not the same: the first half of the gain is nearly free, and the
second is paid for in recall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.executor import Executor
from slatewise.factors.bags import AgeWeights
from slatewise.factors.cascade import Cascade
from slatewise.factors.tables import Table
from slatewise.factors.training import Validation
from slatewise.recommend.evaluation import gains_of

WEIGHTS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, None)
"""Of what was learnt, from the base alone, which is 0, away."""


@dataclass(frozen=True, eq=False)
class Mixed:
    """Tables that answer by a weight, and what they reach with every pair held out."""

    weight: float | None
    tables: tuple[Table, Table]
    gains: Floats
    """1 / log2(1 + place) where the item is among the k best, else 0."""


def choose_weight(
    tables: tuple[Table, Table],
    ages: Callable[[Table], AgeWeights],
    popularity: Ints,
    ranked_by: Callable[[tuple[Table, Table]], Cascade],
    held: Validation,
    executor: Executor,
) -> Mixed:
    """Return the best mixture of a base and what was learnt; ``ranked_by`` tables the held-out pairs are ranked."""
    tried: list[Mixed] = []
    for weight in (0.0, *WEIGHTS):
        made = _weighed(tables, ages, popularity, weight)
        tried.append(Mixed(weight, made, reached(ranked_by(made), held, executor)))
    return best_mixture(*tried)


def best_mixture(base: Mixed, *others: Mixed) -> Mixed:
    """Return the base alone, or the one of the others, which come from the base away, that the rule takes."""
    allowed = [one for one in others if _finds_as_much(one.gains, base.gains)]
    allowed = [one for one in allowed if one.gains.mean() > base.gains.mean()]
    if not allowed:
        return base
    best = max(float(one.gains.mean()) for one in allowed)
    enough = (best + float(base.gains.mean())) / 2
    return next(one for one in allowed if one.gains.mean() >= enough)


def _finds_as_much(gains: Floats, others: Floats) -> bool:
    """Say whether recall is not below another's, or by less than the standard error of their difference."""
    found = (gains > 0).astype(np.float64) - (others > 0)
    return bool(found.mean() >= -found.std() / np.sqrt(len(found)))


def _weighed(
    tables: tuple[Table, Table], ages: Callable[[Table], AgeWeights], popularity: Ints, weight: float | None
) -> tuple[Table, Table]:
    queries, items = (table.copy() for table in tables)
    weights = ages(queries)
    steps = queries.values[weights.knots, 0]
    if weight == 0:
        # Items that the base says nothing of come by popularity: so little of it that the order of all others, which
        # have 1 at least, stays.
        steps[:] = 1.0
        queries.values[weights.repeats, 0] = 0.0
        items.values[:] = 0.0
        items.values[:, items.segments[1].start] = 1e-7 * popularity / (popularity.sum() + 1.0)
    else:
        steps *= np.float32(0.0 if weight is None else 1.0 / weight)
    return queries, items


def reached(cascade: Cascade, held: Validation, executor: Executor) -> Floats:
    """Return the gain of every pair."""
    distinct, own = np.unique(held.queries, return_inverse=True)
    lists = cascade.top(distinct, held.k, executor=executor).items
    places: NDArray[np.int64] = np.full(len(own), -1, dtype=np.int64)
    for place in range(lists.shape[1]):
        places[lists[own, place] == held.items] = place
    return gains_of(places, held.k)
