"""Pairs held out of a LatentRanker's training, to decide when a stage ends, and folds to cross-fit its lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slatewise.factors.input import LatentPairs
from slatewise.factors.tables import Ints
from slatewise.factors.training import Validation

MOST_PAIRS = 20_000
FOLDS = 3
_STREAM = 1 << 32
"""Keeps these choices apart from the random numbers of the stages."""


def hold_out(
    pairs: LatentPairs, fraction: float, k: int, seed: int, on_base: bool = False
) -> tuple[LatentPairs, Validation | None]:
    """Cut a share of the pairs off; None where too few are left to choose from.

    Of ids, one pair of every query and one of every item stay: nothing else is known about them. Of features, and where
    a base scores queries that were never seen, all pairs of a query go together; of sessions the last ones go, whole.
    The recall that is watched looks at no more than a quarter of the catalogue: among all items, everybody finds
    everything.
    """
    wanted = min(int(fraction * len(pairs.queries)), MOST_PAIRS)
    rng = np.random.default_rng((seed, _STREAM))
    if pairs.by_id and not on_base:
        often = np.bincount(pairs.queries)[pairs.queries] > 1
        often &= np.bincount(pairs.items)[pairs.items] > 1
        order = np.concatenate([rng.permutation(np.flatnonzero(often)), np.flatnonzero(~often)])
        spare = np.ones(len(order), dtype=bool)  # all but the last of each query and item
        for numbers in (pairs.queries[order], pairs.items[order]):
            spare[_last_places(numbers)] = False
        held = np.zeros(len(order), dtype=bool)
        held[order[spare][:wanted]] = True
    else:
        owners = pairs.owners[pairs.queries]
        n_owners = int(pairs.owners.max(initial=-1)) + 1
        # The last sessions: a log goes on in time, and so will the queries.
        order = rng.permutation(n_owners) if pairs.sessions is None else np.arange(n_owners)[::-1]
        size = np.bincount(owners, minlength=n_owners)[order]
        fair = 2 * size <= len(owners)  # a row with most of the pairs is for training
        order, size = order[fair], size[fair]
        rows = np.zeros(n_owners, dtype=bool)
        rows[order[np.cumsum(size) - size < wanted]] = True
        held = rows[owners]
    if not held.any() or held.all():
        return pairs, None
    used = replace(pairs, queries=pairs.queries[~held], items=pairs.items[~held], weights=pairs.weights[~held])
    depth = min(k, max(1, len(pairs.item_ids) // 4))
    return used, Validation(pairs.queries[held], pairs.items[held], depth)


def _last_places(numbers: Ints) -> Ints:
    """Return where each number that occurs does so for the last time."""
    places = np.full(int(numbers.max(initial=0)) + 1, -1)
    places[numbers] = np.arange(len(numbers))  # of an index that repeats itself, the last value stays
    return places[places >= 0]


def cross_folds(pairs: LatentPairs, seed: int) -> Ints | None:
    """Return a fold for every query given by features or items, that of its session; -1 where it has no pairs.

    None for ids, or where these are few. The lists of ids need no folds: a query of the future is one of the past.
    """
    taught = np.unique(pairs.owners[pairs.queries])
    if pairs.by_id or len(taught) < 2 * FOLDS:
        return None
    folds = np.full(int(pairs.owners.max()) + 1, -1, dtype=np.int64)
    folds[taught] = np.random.default_rng((seed, _STREAM + 1)).permutation(len(taught)) % FOLDS
    return folds[pairs.owners]
