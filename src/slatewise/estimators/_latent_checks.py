"""What a LatentRanker refuses: parameters that mean nothing, and learned arrays that do not fit each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from slatewise import rules
from slatewise.estimators._latent_search import GRIDS
from slatewise.warp.pair_terms import Bilinear, Gram, PairTerm
from slatewise.warp.tables import Segment, Singles, padded

if TYPE_CHECKING:
    from slatewise.estimators.latent import LatentRanker

PAIR_TERMS: Mapping[str, Callable[[Segment], PairTerm]] = {"gram": Gram, "bilinear": Bilinear}


def check_settings(ranker: LatentRanker, featured: bool) -> None:
    """Raise ValueError unless the parameters make sense together, and for queries given so."""
    for name in GRIDS:
        if isinstance(getattr(ranker, name), str) and ranker.checkpoint is not None:
            raise ValueError(f"{name}: expected a number for a fit with a checkpoint, found 'auto'")
    if featured and ranker.engine == "sampled":
        raise ValueError("engine: expected 'blocked' for queries given by features, found 'sampled'")
    position_weights(ranker)
    if featured and ranker.own_weight:
        raise ValueError("own_weight: expected 0 for queries given by features, which are no items")


def position_weights(ranker: LatentRanker) -> Singles:
    """Return w_1 to w_k of equations 2 and 4."""
    given: Any = ranker.position_weights
    if isinstance(given, str):
        return (1.0 / np.arange(1, ranker.k + 1)).astype(np.float32)
    weights = np.asarray(given, dtype=np.float32)
    if weights.shape != (ranker.k,):
        raise ValueError(f"position_weights: expected {ranker.k} numbers, as many as k, found {len(weights)}")
    return weights


def pair_term(ranker: LatentRanker) -> PairTerm:
    """Return how a list moves an item in a fitted ranker, and where in a row S and T stand: after V and the bias."""
    n = ranker.n_components_
    return PAIR_TERMS[ranker.pair_](Segment(n + 1, 2 * n + 1, 0.0))


def check_learned(ranker: LatentRanker) -> None:
    """Raise ValueError unless the arrays of a file fit each other and the parameters."""
    rules.check(ranker)
    check_settings(ranker, False)  # parameters set after fit may not suit features, and change no answer
    if type(ranker.by_features_) is not bool or type(ranker.n_stages_) is not int or ranker.n_stages_ < 1:
        raise ValueError("by_features_, n_stages_: expected a boolean and a number of stages >= 1")
    if type(ranker.n_components_) is not int or ranker.n_components_ < 1 or ranker.pair_ not in tuple(PAIR_TERMS):
        raise ValueError(f"n_components_, pair_: expected a number >= 1 and one of {', '.join(PAIR_TERMS)}")
    rules.SINGLES.check("position_weights_", ranker.position_weights_)
    if ranker.position_weights_.dtype != np.float32:
        raise ValueError(f"position_weights_: expected float32, found {ranker.position_weights_.dtype}")
    rules.SINGLE_NOT_NEGATIVE.check("own_weight_", ranker.own_weight_)
    for name in GRIDS:
        rules.SINGLE_POSITIVE.check(f"{name}_", getattr(ranker, f"{name}_"))
    width = padded(pair_term(ranker).S.start if ranker.n_stages_ == 1 else pair_term(ranker).segments[-1].stop)
    rows = ranker.n_features_in_ if ranker.by_features_ else len(ranker.query_ids_)
    for name, n_rows in (("query_factors_", rows), ("item_factors_", len(ranker.item_ids_))):
        factors = getattr(ranker, name)
        if factors.shape != (ranker.n_stages_, n_rows, width) or factors.dtype != np.float32:
            raise ValueError(f"{name}: expected float32 of shape {(ranker.n_stages_, n_rows, width)}")
        require_finite_factors(name, factors)
    for name, shape in (("query_steps_", (rows, 1)), ("item_steps_", (len(ranker.item_ids_), 2))):
        steps = getattr(ranker, name)
        if steps.shape != shape or steps.dtype != np.float32 or not (steps >= 0).all():
            raise ValueError(f"{name}: expected float32 numbers >= 0 of shape {shape}")
    for name in ("query_ids_", "item_ids_"):
        ids = getattr(ranker, name)
        if ids.ndim != 1 or ids.dtype.kind not in "iU" or (ids[1:] <= ids[:-1]).any():
            raise ValueError(f"{name}: expected ascending ids")


def require_learnt(learning_rate: float, *factors: Singles) -> None:
    """Raise ValueError if training has gone where float32 has no numbers."""
    if not all(_are_finite(values) for values in factors):
        raise ValueError(
            f"learning_rate: expected steps under which factors stay finite, found {learning_rate:g}; "
            "features that are too large do the same"
        )


def require_finite_factors(name: str, factors: Singles) -> None:
    """Raise ValueError if one is not."""
    if not _are_finite(factors):
        raise ValueError(f"{name}: expected finite numbers")


def _are_finite(factors: Singles) -> bool:
    # Unlike a mask, the extremes take no memory, which a mapped file would notice.
    return bool(np.isfinite((factors.min(initial=0.0), factors.max(initial=0.0))).all())
