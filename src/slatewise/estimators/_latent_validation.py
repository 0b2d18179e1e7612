"""Pairs held out of a LatentRanker's training, to decide when a stage ends, and folds to cross-fit its lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slatewise.estimators._latent_input import LatentPairs
from slatewise.warp.tables import Ints
from slatewise.warp.training import Validation

MOST_PAIRS = 20_000
FOLDS = 3
_STREAM = 1 << 32
"""Keeps these choices apart from the random numbers of the stages."""


def hold_out(pairs: LatentPairs, fraction: float, k: int, seed: int) -> tuple[LatentPairs, Validation | None]:
    """Cut a share of the pairs off; None where too few are left to choose from.

    Of ids, only pairs whose query and item occur elsewhere too are held out: nothing else is known about them. Of
    features, all pairs of a row go together.
    """
    wanted = min(int(fraction * len(pairs.queries)), MOST_PAIRS)
    rng = np.random.default_rng((seed, _STREAM))
    if pairs.features is None:
        often = np.bincount(pairs.queries)[pairs.queries] > 1
        often &= np.bincount(pairs.items)[pairs.items] > 1
        chosen = rng.permutation(np.flatnonzero(often))[:wanted]
        held = np.zeros(len(pairs.queries), dtype=bool)
        held[chosen] = True
    else:
        order = rng.permutation(pairs.n_queries)
        size = np.bincount(pairs.queries, minlength=pairs.n_queries)[order]
        rows = np.zeros(pairs.n_queries, dtype=bool)
        rows[order[np.cumsum(size) <= wanted]] = True
        held = rows[pairs.queries]
    if not held.any() or held.all():
        return pairs, None
    used = replace(pairs, queries=pairs.queries[~held], items=pairs.items[~held], weights=pairs.weights[~held])
    return used, Validation(pairs.queries[held], pairs.items[held], k)


def cross_folds(pairs: LatentPairs, validation: Validation | None, seed: int) -> Ints | None:
    """Return a fold for every query given by features, -1 where it is held out anyway; None for ids.

    The lists of ids need no folds: a query of the future is one of the past.
    """
    if pairs.features is None or pairs.n_queries < 2 * FOLDS:
        return None
    folds = np.random.default_rng((seed, _STREAM + 1)).permutation(pairs.n_queries) % FOLDS
    if validation is not None:
        folds[validation.queries] = -1
    return folds
