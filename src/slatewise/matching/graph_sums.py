"""Sums over the matchings of graphs in which rows may stay unmatched: exact, by a bound, or by samples.

Leaving rows out with weight e^u each is the same as taking u off every edge and multiplying by e^(M u):

    Z(w, u) = e^(M u) Z(w - u, 0) ,      Z(w - u, 0) = Z((w - u)', 0)

so the smaller side can always stand as the rows, in which sums are exponential. Those rows get a private dummy column.

``"exact"``, ``"bethe"`` and :class:`Sample` are the ``inference`` of :class:`slatewise.GraphMatcher`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from slatewise.core import rules
from slatewise.core.arrays import Floats, Ints
from slatewise.core.declarations import Settings, expanded, param, settings
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.matching.bethe import by_bethe
from slatewise.matching.graph_edges import indicator
from slatewise.matching.permanent_exact import log_permanents
from slatewise.matching.permanents import with_unmatched
from slatewise.matching.samplers import sample_matchings, tables_fit

MOST_EXACT_ROWS = 24
"""On the smaller side: a second per graph."""
MOST_TABLE_ROWS = 16
"""Up to this many rows samples come from a table of all sums, and are exact; beyond, from a chain of swaps."""
MOST_SAMPLES = 100_000
"""Each is an indicator of the whole graph."""


class Sample(Settings, shorthand="sample"):
    """Estimate a sum over matchings by drawn matchings."""

    n_samples: int = param(
        rules.count(1, MOST_SAMPLES),
        "The number of matchings drawn per graph, for a gradient or for marginals.",
        default=100,
    )


Inference: TypeAlias = str | Sample
INFERENCE = rules.one_of("exact", "bethe") | settings(Sample)


def sum_by(inference: Inference, seed: int) -> ExactSum | BetheSum | SampledSum:
    """Return the sum over matchings that ``inference`` stands for."""
    sample = expanded((Sample,), inference)
    if isinstance(sample, Sample):
        return SampledSum(sample.n_samples, np.random.default_rng(seed))
    return ExactSum() if inference == "exact" else BetheSum()


@dataclass(frozen=True)
class ExactSum:
    """Every matching counts."""

    def __call__(
        self, weights: Floats, unmatched: float | None, executor: Executor = ONE_THREAD
    ) -> tuple[Floats, Floats]:
        """Return log Z, (B,), and the marginals of the edges, (B, M, N)."""
        rows = min(weights.shape[1:])
        if rows > MOST_EXACT_ROWS:
            raise ValueError(
                f"inference: expected 'bethe' or 'sample' for graphs of more than {MOST_EXACT_ROWS} rows, found "
                f"'exact' and {rows} rows; in training part_size= makes smaller parts of them"
            )
        return _with_dummies(weights, unmatched, lambda log_weights: log_permanents(log_weights, executor))


@dataclass(frozen=True)
class BetheSum:
    """The Bethe approximation: log Z from below, with marginals that are its gradient."""

    def __call__(
        self, weights: Floats, unmatched: float | None, executor: Executor = ONE_THREAD
    ) -> tuple[Floats, Floats]:
        """Return the bound, (B,), and its marginals, (B, M, N)."""
        return _with_dummies(weights, unmatched, lambda log_weights: by_bethe(log_weights, executor)[:2])


@dataclass(frozen=True)
class SampledSum:
    """Shares of drawn matchings; log Z is known from tables only, NaN otherwise."""

    n_samples: int
    rng: np.random.Generator

    def __call__(
        self, weights: Floats, unmatched: float | None, executor: Executor = ONE_THREAD
    ) -> tuple[Floats, Floats]:
        """Return log Z, (B,), and shares of the edges, (B, M, N); graphs are drawn one after the other."""
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
