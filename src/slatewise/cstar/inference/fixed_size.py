"""Sums over all sets of k items: how likely items and pairs are if the number of items is known.

    p(t) = exp f(t) / Z ,      f(t) = sum_i s_i t_i + sum over unordered pairs G_ij t_i t_j,    |t| = k

Exact for a few core items: given their setting the others no longer interact, and the sum over the sets of the others
is an elementary symmetric polynomial (``kernels/sums.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.groups import blocks
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.inference.model import Selection, StarLists, StarPair
from slatewise.cstar.kernels.layout import CoreSettings, Pair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MOST_SUMMED = 10
"""All 2^C settings are summed: more core items than this are refused."""
_ROWS = 64
_WIDE, _SURE = 300.0, 40.0
_SMALLEST = 1e-15  # nearer to 0 or 1 than this probabilities are not distinguished


class StarSums(NamedTuple):
    """Log Z and expectations of a block of lists."""

    log_z: Floats
    """(n,)."""
    item: Floats
    """(n, N) the probability that an item is in."""
    joint: Floats
    """(C, N) summed over lists by weight, the probability that a core item and another are in; a pair of core items
    stands once, in the row of the one that comes first."""


def star_sums(
    lists: StarLists, weight: Floats, executor: Executor = ONE_THREAD, settings: CoreSettings | None = None
) -> StarSums:
    """Sum over the lists of k items of each row; the input is trusted.

    ``settings`` are the :func:`all_settings` of ``lists.pair``, for callers that sum over many lists.

    Examples
    --------
    Three lists of two items: {0, 1}, {0, 2}, {1, 2}; the pair of 0 and 2 counts e times.

    >>> lists = StarLists.of(np.zeros((1, 3)), pair=[[0.0, 0.0, 1.0]], core=[0], k=2)
    >>> sums = star_sums(lists, np.ones(1))
    >>> bool(np.isclose(sums.log_z[0], np.log(2 + np.e))), bool(np.isclose(sums.joint[0, 1], 1 / (2 + np.e)))
    (True, True)
    """
    s, k, pair = lists.s, lists.k, lists.pair
    known = np.empty((0, pair.n_items), dtype=np.int8) if lists.known is None else lists.known
    taken_off = np.zeros(len(s))
    if s.size and float((s.max(axis=1) - s.min(axis=1)).max()) > _WIDE:
        known = _decided(lists)
        s, taken_off = _without_decided(s, k, known)
    cuts = blocks(len(s), _ROWS)
    parts = [_Block(s[rows], known[rows], k[rows], weight[rows]) for rows in cuts]
    log_z, item, joint = np.empty(len(s)), np.empty(s.shape), np.zeros((pair.n_core, pair.n_items))
    shared = _Shared(pair.arrays, all_settings(pair) if settings is None else settings)
    found = executor.map_blocks(_block_sums, shared, parts)
    for number, (rows, part) in enumerate(zip(cuts, found, strict=True)):
        log_z[rows], item[rows] = part.log_z, part.item
        joint = joint + part.joint if number else part.joint
    return StarSums(log_z + taken_off, item, joint)


class _Shared(NamedTuple):
    pair: Pair
    core: CoreSettings


class _Block(NamedTuple):
    s: Floats
    known: Bytes
    k: Ints
    weight: Floats


def _block_sums(shared: _Shared, block: _Block) -> StarSums:
    from slatewise.cstar.kernels.sums import star_sums as fill

    log_z, item, joint = np.empty(len(block.s)), np.empty(block.s.shape), np.zeros(shared.pair.full.shape)
    fill(block.s, block.known, shared.pair, shared.core, block.k, block.weight, log_z, item, joint)
    return StarSums(log_z, item, joint)


def all_settings(pair: StarPair) -> CoreSettings:
    """Return all settings of the core, and what each does to the others."""
    settings = np.arange(1 << pair.n_core)
    bits = (settings >> np.arange(pair.n_core)[:, None]) & 1
    few_first = np.argsort(bits.sum(axis=0), kind="stable")
    bits = np.ascontiguousarray(bits[:, few_first], dtype=np.float64)
    among = 0.5 * np.einsum("as,ab,bs->s", bits, pair.arrays.inner, bits, optimize=True)
    terms = pair.arrays.outer.T @ bits
    # Midway, so that neither end of the range overflows in exp.
    shift = 0.5 * (terms.max(axis=0) + terms.min(axis=0)) if len(terms) else np.zeros(len(few_first))
    with np.errstate(over="ignore"):  # the sums are then NaN, and refused
        factors = np.exp(terms - shift)
    return CoreSettings(bits, bits.sum(axis=0).astype(np.int64), among, factors, shift)


def _decided(lists: StarLists) -> Bytes:
    """Return what is known, and what scores far apart decide: no exponential overflows then.

    To exchange item j for item i gains at least ``low_i - high_j``, whatever else is in the list. An item with no k
    others that come within ``_SURE`` of it is in all lists but a share of exp(-40); one that does not come as near to k
    others is in none.
    """
    s, k, pair = lists.s, lists.k, lists.pair
    G = np.zeros((pair.n_items, pair.n_items))
    G[pair.arrays.core] = pair.arrays.full
    G[:, pair.arrays.core] = pair.arrays.full.T
    most = max(int(k.max()) - 1, 0)
    worst, best = np.sort(np.minimum(G, 0.0), axis=1)[:, :most], np.sort(np.maximum(G, 0.0), axis=1)[:, ::-1][:, :most]
    known = np.full(s.shape, -1, dtype=np.int8) if lists.known is None else lists.known.copy()
    low, high = s + worst.sum(axis=1), s + best.sum(axis=1)
    for bound in (low, high):
        bound[known == 1], bound[known == 0] = np.inf, -np.inf
    sure = _SURE + float(np.log(pair.n_items))
    end = np.full((len(s), 1), -np.inf)
    first_out = np.take_along_axis(np.hstack((-np.sort(-high, axis=1), end)), k[:, None], axis=1)
    last_in = np.take_along_axis(np.hstack((-end, -np.sort(-low, axis=1))), k[:, None], axis=1)
    with np.errstate(invalid="ignore"):
        inside, outside = low - first_out > sure, last_in - high > sure
    is_open = known == -1
    known[is_open & inside], known[is_open & outside] = 1, 0
    return known


def _without_decided(s: Floats, k: Ints, known: Bytes) -> tuple[Floats, Floats]:
    """Return the scores of the open items less their largest, 0 elsewhere, and what that takes off log Z."""
    is_open = known == -1
    largest = np.where(is_open, s, -np.inf).max(axis=1)
    largest[~is_open.any(axis=1)] = 0.0
    n_left = k - (known == 1).sum(axis=1)
    return np.where(is_open, s - largest[:, None], 0.0), np.where(known == 1, s, 0.0).sum(axis=1) + n_left * largest


def most_probable(lists: StarLists, executor: Executor = ONE_THREAD) -> Selection:
    """Return the k items of each list with the largest log-odds, most probable first; ties by score.

    Examples
    --------
    >>> most_probable(StarLists.of([0.2, 0.1, 0.0], pair=[[0.0, 0.0, 1.0]], core=[0], k=2)).items
    array([0, 2])
    """
    odds = log_odds(lists, executor)
    order = np.lexsort((-lists.s, -odds), axis=1)
    return Selection.of(order, np.take_along_axis(odds, order, axis=1), lists.k)


def star_log_odds(
    s: ArrayLike,
    pair: ArrayLike,
    core: ArrayLike,
    k: ArrayLike,
    known: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Floats:
    """Return, for each list and item, the log-odds that the item is in: what max-marginals are to the best list.

    The parameters are those of :func:`slatewise.inference.star_top_k`. The k items with the largest log-odds are the
    ones of which most are expected to be right. +inf and -inf where an item is forced, or decided by the others.

    Examples
    --------
    >>> star_log_odds([0.0, 0.0, 0.0], pair=[[0.0, 0.0, 1.0]], core=[0], k=2).round(2)
    array([[ 1.31, -0.31,  1.31]])
    """
    lists = StarLists.of(s, pair, core, k, known)
    if lists.pair.n_core > MOST_SUMMED:
        raise ValueError(
            f"core: expected at most {MOST_SUMMED} items to sum over all settings, found {lists.pair.n_core}"
        )
    return log_odds(lists, Executor.of(n_jobs))


def log_odds(lists: StarLists, executor: Executor = ONE_THREAD) -> Floats:
    """Return the log-odds of the items of lists that were checked."""
    chance = star_sums(lists, np.ones(len(lists.s)), executor).item
    if not np.isfinite(chance).all():
        largest = float(np.abs(lists.pair.arrays.outer).max(initial=0.0))
        raise ValueError(f"pair: expected terms whose exponentials can be summed, found some as large as {largest:.4g}")
    sure = np.clip(chance, _SMALLEST, 1.0 - _SMALLEST)
    odds = np.log(sure) - np.log1p(-sure)
    known = np.full(odds.shape, -1, dtype=np.int8) if lists.known is None else lists.known
    left, is_open = lists.k - (known == 1).sum(axis=1), known == -1
    none_enters, all_enter = (left == 0)[:, None], (left == is_open.sum(axis=1))[:, None]
    odds[(known == 0) | (is_open & none_enters)] = -np.inf
    odds[(known == 1) | (is_open & all_enter & ~none_enters)] = np.inf
    return odds
