"""Inference for graphs in which rows may stay unmatched: the best matching, sums over all of them, and samples.

    best matching   max over matchings y of  sum over matched rows i of w_{i, y(i)}  +  u * (number of unmatched rows)

is a linear assignment, with dummy columns if rows may stay unmatched. Sums are exact, by a bound, or by samples.
Leaving rows out with weight e^u each is the same as taking u off every edge and multiplying by e^(M u):

    Z(w, u) = e^(M u) Z(w - u, 0) ,      Z(w - u, 0) = Z((w - u)', 0)

so the smaller side can always be the rows, in which sums are exponential. Those rows get a private dummy column.

``"exact"``, ``"bethe"`` and :class:`Sample` are the ``inference`` of :class:`slatewise.GraphMatcher`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment

from slatewise.core import rules
from slatewise.core.arrays import Floats, Ints
from slatewise.core.declarations import Settings, param, settings
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.matching.graphs.edges import indicator
from slatewise.matching.sums.bethe import by_bethe
from slatewise.matching.sums.exact import log_permanents
from slatewise.matching.sums.permanents import with_unmatched
from slatewise.matching.sums.sampling import sample_matchings, tables_fit

MatchingSum: TypeAlias = Callable[[Floats, float | None, Executor], tuple[Floats, Floats]]
"""From weights (B, M, N) and the score of an unmatched row: log Z, (B,), and the marginals of the edges, (B, M, N)."""

MOST_EXACT_ROWS = 24
"""On the smaller side: a second per graph."""
MOST_TABLE_ROWS = 16
"""Up to this many rows samples come from a table of all sums, and are exact; beyond, from a chain of swaps."""
MOST_SAMPLES = 100_000
"""Each takes an indicator of the whole graph."""


class Sample(Settings, shorthand="sample"):
    """Estimate a sum over matchings by random matchings."""

    n_samples: int = param(
        rules.count(1, MOST_SAMPLES),
        "The number of matchings drawn per graph, for a gradient or for marginals.",
        default=100,
    )


Inference: TypeAlias = str | Sample
INFERENCE = rules.one_of("exact", "bethe") | settings(Sample)


def best_matchings(weights: Floats, unmatched: float | None = None) -> Ints:
    """Return the column of every row, -1 where it has none.

    Parameters
    ----------
    weights : array of shape (B, M, N)
        Finite; as many graphs as B. Without ``unmatched``, M <= N.
    unmatched : float, optional
        The weight of leaving a row unmatched. None: every row is matched.

    Examples
    --------
    >>> best_matchings(np.array([[[3.0, 2.0], [2.0, -5.0]]])).tolist()
    [[1, 0]]
    >>> best_matchings(np.array([[[3.0, 2.0], [2.0, -5.0]]]), unmatched=1.5).tolist()
    [[0, -1]]
    """
    n_graphs, n_rows, n_columns = weights.shape
    found = np.empty((n_graphs, n_rows), dtype=np.int64)
    if unmatched is None:
        for graph, columns in zip(weights, found, strict=True):
            columns[:] = linear_sum_assignment(graph, maximize=True)[1]
        return found
    # One shared weight for leaving a row out: n_rows equal columns hold no more matchings than private ones would.
    rows_and_dummies = np.full((n_rows, n_columns + n_rows), unmatched)
    for graph, columns in zip(weights, found, strict=True):
        rows_and_dummies[:, :n_columns] = graph
        columns[:] = linear_sum_assignment(rows_and_dummies, maximize=True)[1]
    found[found >= n_columns] = -1
    return found


def exact_sum(weights: Floats, unmatched: float | None, executor: Executor = ONE_THREAD) -> tuple[Floats, Floats]:
    """Return log Z and the marginals, of all matchings."""
    rows = min(weights.shape[1:])
    if rows > MOST_EXACT_ROWS:
        raise ValueError(
            f"inference: expected 'bethe' or 'sample' for graphs of more than {MOST_EXACT_ROWS} rows, found "
            f"'exact' and {rows} rows; in training part_size= makes smaller parts of them"
        )
    return _with_dummies(weights, unmatched, lambda log_weights: log_permanents(log_weights, executor))


def bethe_sum(weights: Floats, unmatched: float | None, executor: Executor = ONE_THREAD) -> tuple[Floats, Floats]:
    """Return the Bethe bound, which is below log Z, and its gradient as marginals."""
    return _with_dummies(weights, unmatched, lambda log_weights: by_bethe(log_weights, executor)[:2])


@dataclass(frozen=True)
class SampledSum:
    """Shares of sampled matchings; log Z is known from tables only, NaN otherwise."""

    n_samples: int
    rng: np.random.Generator

    def __call__(
        self, weights: Floats, unmatched: float | None, executor: Executor = ONE_THREAD
    ) -> tuple[Floats, Floats]:
        """Return log Z and the share of samples that have each edge; graphs are sampled one after the other."""
        del executor
        log_z, shares = np.empty(len(weights)), np.empty(weights.shape)
        for number, graph in enumerate(weights):
            log_z[number], drawn = draw_matchings(graph, unmatched, self.n_samples, self.rng)
            shares[number] = indicator(drawn, graph.shape[1]).mean(axis=0)
        return log_z, shares


def draw_matchings(weights: Floats, unmatched: float | None, n: int, rng: np.random.Generator) -> tuple[float, Ints]:
    """Return log Z (NaN where it is not known) and n matchings of one graph, (n, M), -1 for an unmatched row."""
    n_rows, n_columns = weights.shape
    log_weights = weights if unmatched is None else with_unmatched(weights, np.full(n_rows, unmatched))
    method = "tables" if n_rows <= MOST_TABLE_ROWS and tables_fit(*log_weights.shape) else "chain"
    drawn = sample_matchings(log_weights, n, rng, method)
    return drawn.log_z, np.where(drawn.matchings < n_columns, drawn.matchings, -1)


def _with_dummies(
    weights: Floats, unmatched: float | None, sum_matchings: Callable[[Floats], tuple[Floats, Floats]]
) -> tuple[Floats, Floats]:
    if unmatched is None:
        return sum_matchings(np.ascontiguousarray(weights))
    _, n_rows, n_columns = weights.shape
    gains = weights - unmatched
    turned = n_rows > n_columns
    gains = gains.transpose(0, 2, 1) if turned else gains
    log_z, marginals = sum_matchings(with_unmatched(gains, np.zeros(gains.shape[:2])))
    edges = marginals[:, :, : gains.shape[2]]
    return log_z + n_rows * unmatched, edges.transpose(0, 2, 1) if turned else edges
