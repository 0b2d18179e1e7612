"""Pairs held out of training, to decide when a stage ends, and folds to cross-fit lists."""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Bools, Ints
from slatewise.factors.pairs import AnyPairs, Pairs, some_pairs
from slatewise.factors.training import Validation

MOST_PAIRS = 20_000
FOLDS = 3
_STREAM = 1 << 32
"""Keeps these choices apart from the random numbers of the stages."""


def hold_out_pairs(pairs: AnyPairs, fraction: float, depth: int, seed: int) -> tuple[AnyPairs, Validation | None]:
    """Hold out a share of the pairs; None where too few are left to choose from.

    One pair of every query and one of every item stay: nothing else is known about them.
    """
    rng = np.random.default_rng((seed, _STREAM))
    often = np.bincount(pairs.queries)[pairs.queries] > 1
    often &= np.bincount(pairs.items)[pairs.items] > 1
    order = np.concatenate([rng.permutation(np.flatnonzero(often)), np.flatnonzero(~often)])
    spare = np.ones(len(order), dtype=bool)  # all but the last of each query and item
    for numbers in (pairs.queries[order], pairs.items[order]):
        spare[_last_places(numbers)] = False
    held = np.zeros(len(order), dtype=bool)
    held[order[spare][: _wanted(pairs, fraction)]] = True
    return _split(pairs, held, depth)


def hold_out_queries(pairs: AnyPairs, fraction: float, depth: int, seed: int) -> tuple[AnyPairs, Validation | None]:
    """Hold out all pairs of some queries, chosen at random: of queries that are known by their features."""
    order = np.random.default_rng((seed, _STREAM)).permutation(pairs.n_queries)
    return hold_out_owners(pairs, pairs.queries, order, fraction, depth)


def hold_out_owners(
    pairs: AnyPairs, owners: Ints, order: Ints, fraction: float, depth: int
) -> tuple[AnyPairs, Validation | None]:
    """Hold out all pairs of some owners, the first ones in ``order``; ``owners`` has that of each pair."""
    n_owners = len(order)
    size = np.bincount(owners, minlength=n_owners)[order]
    fair = 2 * size <= len(owners)  # an owner of most pairs is for training
    order, size = order[fair], size[fair]
    chosen = np.zeros(n_owners, dtype=bool)
    chosen[order[np.cumsum(size) - size < _wanted(pairs, fraction)]] = True
    return _split(pairs, chosen[owners], depth)


def cross_folds(pairs: Pairs, seed: int) -> Ints | None:
    """Return a fold for every query, -1 for those without pairs; None where these are few."""
    taught = np.unique(pairs.queries)
    if len(taught) < 2 * FOLDS:
        return None
    folds = np.full(pairs.n_queries, -1, dtype=np.int64)
    folds[taught] = np.random.default_rng((seed, _STREAM + 1)).permutation(len(taught)) % FOLDS
    return folds


def _wanted(pairs: Pairs, fraction: float) -> int:
    return min(int(fraction * len(pairs.queries)), MOST_PAIRS)


def _split(pairs: AnyPairs, held: Bools, depth: int) -> tuple[AnyPairs, Validation | None]:
    """Separate held-out pairs, whose recall is watched at most at a quarter of the catalog."""
    if not held.any() or held.all():
        return pairs, None
    depth = min(depth, max(1, len(pairs.item_ids) // 4))
    return some_pairs(pairs, ~held), Validation(pairs.queries[held], pairs.items[held], depth)


def _last_places(numbers: Ints) -> Ints:
    """Return where each number that occurs does so for the last time."""
    places = np.full(int(numbers.max(initial=0)) + 1, -1)
    places[numbers] = np.arange(len(numbers))  # of an index that repeats itself, the last value stays
    return places[places >= 0]
