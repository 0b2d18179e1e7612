"""Random matchings from p(y) ~ exp(sum_i w[i, y(i)]).

- *tables*: exact, from the tables of the sum over all matchings.
- *huber-law*: exact by rejection, square matrices; a table over the first rows makes rejection rarer ("deep").
- *chain*: swaps from the best matching on, any size; only approximately p. It walks through impossible edges, without
  drawing there, so that every matching is within reach; still, where p has several peaks with nothing between them, it
  may stay at the one it starts from. A small ``acceptance`` says either that, or that one matching is nearly all of p.

See ``kernels/matching_sampler.py``, :mod:`~slatewise.matching.kernels.permanent_rows` and
:mod:`~slatewise.matching.kernels.swap_chain`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import whole_number
from slatewise.matching.sums.exact import Scaled, scale
from slatewise.matching.sums.permanents import checked_weights

Method: TypeAlias = Literal["auto", "tables", "huber-law", "chain"]
Seed: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint64]]

MOST_STATES = 1 << 22
"""Tables hold at most this many numbers (32 MiB)."""
MOST_TRIES = 1000
"""Huber-Law gives up after this many rejections per sample, and a million on top."""
MOST_WALKED = 50
"""The chain gives up if fewer than one in this number of its steps is at a possible matching."""
_NOTHING = 40.0  # exp(-40) of p is too little to be drawn
_SWEEPS = 200


@dataclass(frozen=True, eq=False)
class MatchingSamples:
    """Random matchings of one matrix."""

    matchings: Ints
    """(n, M): ``matchings[k, i]`` is the column of row i."""
    method: str
    exact: bool
    """Whether they are independent and exactly distributed; the chain's are neither."""
    acceptance: float
    """The share of proposals that were accepted: 1 for tables; of swaps for the chain."""
    log_z: float
    """Tables: log Z. Huber-Law: an estimate. Chain: NaN."""
    error: float
    """The standard error of that estimate."""


def sample_matchings(
    log_weights: ArrayLike,
    n: int,
    random_state: int | np.random.Generator | None = None,
    method: Method = "auto",
    depth: int | None = None,
) -> MatchingSamples:
    """Draw n matchings.

    Parameters
    ----------
    log_weights : (M, N), M <= N
        -inf forbids an edge.
    n : int
    random_state : int, Generator or None
    method : {"auto", "tables", "huber-law", "chain"}
        ``"auto"`` takes tables where they fit (M <= 22, fewer with many columns), Huber-Law for larger square matrices,
        and the chain for larger ones with free columns.
    depth : int, optional
        Huber-Law: rows drawn from a table. None: as many as fit; 0: plain Huber-Law.

    Examples
    --------
    >>> samples = sample_matchings(np.log([[1.0, 3.0], [1.0, 1.0]]), 1000, random_state=0)
    >>> samples.exact, float((samples.matchings[:, 0] == 1).mean())
    (True, 0.7...)
    """
    if method not in get_args(Method):
        raise ValueError(f"method: expected one of {', '.join(get_args(Method))}, found {method!r}")
    n = whole_number("n", n, 0)
    weights = checked_weights(log_weights)
    if len(weights) != 1:
        raise ValueError(f"log_weights: expected one matrix (M, N), found {len(weights)}")
    _, n_rows, n_columns = weights.shape
    is_square, fit = n_rows == n_columns, tables_fit(n_rows, n_columns)
    if depth is not None and whole_number("depth", depth, 0) > n_rows:
        raise ValueError(f"depth: expected 0 to {n_rows}, found {depth}")
    name = method
    if method == "auto":
        name = "tables" if fit else "huber-law" if is_square else "chain"
    if name == "huber-law" and not is_square:
        raise ValueError(f"method: expected 'tables' or 'chain' for shape {(n_rows, n_columns)}, found {name!r}")
    if name == "tables" and not fit:
        raise ValueError(f"method: expected tables of at most {MOST_STATES} numbers, found {n_rows} x {n_columns}")
    seed = np.random.default_rng(random_state).integers(1, 2**63, size=1).astype(np.uint64)
    if name == "chain":
        return _chain(weights, n, seed)
    if name == "tables":
        return _rejection(weights, n, seed, n_rows, name) if is_square else _tables(weights, n, seed)
    return _rejection(weights, n, seed, _deepest(n_rows) if depth is None else depth, name)


def tables_fit(n_rows: int, n_columns: int) -> bool:
    """Say whether the tables for exact samples are small enough."""
    if n_rows == n_columns:
        return _deepest(n_rows) == n_rows
    return (n_columns + 1) << n_rows <= 8 * MOST_STATES


def _deepest(size: int) -> int:
    """Return for how many rows a table fits."""
    total = 0
    for k in range(size + 1):
        total += math.comb(size, k)
        if total > MOST_STATES:
            return k - 1
    return size


def _tables(weights: Floats, n: int, seed: Seed) -> MatchingSamples:
    from slatewise.matching.kernels.permanent_rows import draw_matchings, fill_forward

    _, n_rows, n_columns = weights.shape
    scaled = scale(weights)
    columns, free = np.ascontiguousarray(scaled.weights[0].T), np.exp(-scaled.v[0])
    tables, drawn = np.empty((n_columns + 1, 1 << n_rows)), np.empty((n, n_rows), dtype=np.int64)
    fill_forward(columns, free, tables)
    draw_matchings(columns, free, tables, seed, drawn)
    log_z = math.log(tables[-1, -1]) + float(scaled.offset[0])
    return MatchingSamples(drawn, "tables", True, 1.0, log_z, 0.0)


def _rejection(weights: Floats, n: int, seed: Seed, depth: int, name: str) -> MatchingSamples:
    from slatewise.matching.kernels.matching_sampler import Table, draw_all, fill_bounds, fill_table
    from slatewise.matching.kernels.sinkhorn import balance

    size = weights.shape[1]
    scaled = scale(weights)
    log_scale = scaled.offset.copy()
    balance(scaled.weights, _SWEEPS, log_scale)
    largest = scaled.weights[0].max(axis=0)
    matrix, bounds = scaled.weights[0] / largest, np.empty((size + 1, size))
    fill_bounds(matrix, bounds)
    choose = np.array([[math.comb(a, b) for b in range(size + 2)] for a in range(size + 1)], dtype=np.int64)
    starts = np.concatenate(([0], np.cumsum(choose[size, : depth + 1])))
    table = Table(matrix, bounds, depth, choose, starts, np.empty(int(starts[-1])))
    drawn = np.empty((n, size), dtype=np.int64)
    fill_table(table)
    total = float(table.sums[0])
    if not 0.0 < total < np.inf:
        raise ValueError(f"log_weights: expected some that can be balanced, found a sum of {total} after balancing")
    most = n if depth == size else 1_000_000 + MOST_TRIES * n
    accepted, tried = draw_all(table, seed, most, drawn)
    if accepted < n:
        raise ValueError(f"method: expected 'chain' here, found that Huber-Law accepted {accepted} of {tried}")
    rate = accepted / tried if tried else 1.0
    log_z = math.log(total) + float(log_scale[0]) + float(np.log(largest).sum()) + math.log(rate)
    error = math.sqrt((1.0 - rate) / accepted) if accepted else 0.0
    return MatchingSamples(drawn, name, True, rate, log_z, error)


def _chain(weights: Floats, n: int, seed: Seed) -> MatchingSamples:
    from slatewise.matching.kernels.swap_chain import walk_matchings

    _, n_rows, n_columns = weights.shape
    drawn = np.empty((n, n_rows), dtype=np.int64)
    scaled = scale(weights)
    walked, closed = _walkable(weights[0], scaled)
    # A sweep proposes every edge once on average: ten of them to forget the start, one between samples.
    sweep = n_rows * n_columns
    most = MOST_WALKED * (n + 10) * sweep
    found, accepted, steps = walk_matchings(walked, closed, scaled.best[0], 10 * sweep, sweep, most, seed, drawn)
    if found < n:
        fitting = ["'tables'"] * tables_fit(n_rows, n_columns) + ["'huber-law'"] * (n_rows == n_columns)
        drew = f"found that the chain drew {found} matchings in {steps} steps"
        if fitting:
            raise ValueError(f"method: expected {' or '.join(fitting)} here, {drew}")
        raise ValueError(
            f"log_weights: expected more possible edges, as only the chain takes {n_rows} x {n_columns}, {drew}"
        )
    return MatchingSamples(drawn, "chain", False, accepted / steps if steps else 1.0, math.nan, math.nan)


def _walkable(weights: Floats, scaled: Scaled) -> tuple[Floats, Ints]:
    """Return weights with a price for edges that no matching to speak of has, and which edges those are, (M, N).

    The best matching weighs 1 after scaling, so all matchings through an edge below exp(-40) over their number together
    have less than exp(-40) of p. Their price is about one step out a sweep. A column that a single row can take is left
    to it: its row can always go there, so nobody has to walk through it.
    """
    n_rows, n_columns = weights.shape
    most_matchings = math.lgamma(n_columns + 1) - math.lgamma(n_columns - n_rows + 1)
    shifts = scaled.u[0][:, None] + scaled.v[0]
    hopeless = weights - shifts < -_NOTHING - most_matchings
    closed = hopeless & ((~hopeless).sum(axis=0) > 1)
    return np.where(closed, shifts - math.log(n_rows * n_columns), weights), closed.astype(np.int64)
