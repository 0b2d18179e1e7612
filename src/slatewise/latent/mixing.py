"""How much a base weighs against what was learnt on top of it, chosen on the pairs held out.

    score = a g(base) / m + what was learnt ,    m = 0: the base alone,  m = 1: as learnt together,  None: no base

A sum that is learnt as a whole moves the top of lists up and may lose items further down which the base alone finds. So
of all weights under which recall at k of the held-out pairs is at least that of the base alone, the one is taken under
which their reciprocal rank is best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slatewise.core.executor import Executor
from slatewise.latent.bags import AgeWeights
from slatewise.latent.cascade import Cascade
from slatewise.latent.tables import Ints, Table
from slatewise.latent.training import Validation

WEIGHTS = (1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 1.4, 2.0, 3.0, 5.0, None)
"""Of what was learnt, beside 0: tried in this order, of equals the first is taken."""


@dataclass(frozen=True, eq=False)
class Mixed:
    """Tables that answer by a weight, and what they reach."""

    weight: float | None
    tables: tuple[Table, Table]
    recall: float
    reciprocal_rank: float


def choose_weight(
    tables: tuple[Table, Table],
    ages: Callable[[Table], AgeWeights],
    popularity: Ints,
    ranked_by: Callable[[tuple[Table, Table]], Cascade],
    held: Validation,
    executor: Executor,
) -> Mixed:
    """Return the best mixture of a base and what was learnt; ``ranked_by`` tables the held-out pairs are ranked."""

    def judged(weight: float | None) -> Mixed:
        made = _weighed(tables, ages, popularity, weight)
        return Mixed(weight, made, *_reached(ranked_by(made), held, executor))

    best = base = judged(0.0)
    for weight in WEIGHTS:
        found = judged(weight)
        if found.recall >= base.recall and found.reciprocal_rank > best.reciprocal_rank:
            best = found
    return best


def _weighed(
    tables: tuple[Table, Table], ages: Callable[[Table], AgeWeights], popularity: Ints, weight: float | None
) -> tuple[Table, Table]:
    queries, items = (table.copy() for table in tables)
    weights = ages(queries)
    steps = queries.values[weights.knots, 0]
    if weight == 0:
        # Items that the base says nothing of come by popularity, below 1, which all others have more than.
        steps[:] = 1.0
        queries.values[weights.repeats, 0] = 0.0
        items.values[:] = 0.0
        items.values[:, items.segments[1].start] = popularity / (popularity.sum() + 1.0)
    else:
        steps *= np.float32(0.0 if weight is None else 1.0 / weight)
    return queries, items


def _reached(cascade: Cascade, held: Validation, executor: Executor) -> tuple[float, float]:
    """Return recall and mean reciprocal rank at k."""
    distinct, own = np.unique(held.queries, return_inverse=True)
    lists = cascade.top(distinct, held.k, executor=executor).items
    places: NDArray[np.int64] = np.full(len(own), -1, dtype=np.int64)
    for place in range(lists.shape[1]):
        places[lists[own, place] == held.items] = place
    found = places >= 0
    return float(found.mean()), float(np.where(found, 1.0 / (np.maximum(places, 0) + 1.0), 0.0).mean())
