"""What a LatentRanker refuses: parameters that mean nothing, and learned arrays that do not fit each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from slatewise.core import rules
from slatewise.latent.pair_terms import Bilinear, Gram, PairTerm
from slatewise.latent.tables import Segment, Singles, padded

if TYPE_CHECKING:
    from slatewise.latent.ranker import LatentRanker

PAIR_TERMS: Mapping[str, Callable[[Segment], PairTerm]] = {"gram": Gram, "bilinear": Bilinear}


def check_settings(ranker: LatentRanker, featured: bool) -> None:
    """Raise ValueError unless the parameters make sense together, and for queries given so."""
    if featured and ranker.engine == "sampled":
        raise ValueError("engine: expected 'blocked' for queries given by features, found 'sampled'")
    given: Any = ranker.position_weights
    if not isinstance(given, str) and len(given) != ranker.k:
        raise ValueError(f"position_weights: expected {ranker.k} numbers, as many as k, found {len(given)}")
    if featured and ranker.own_weight:
        raise ValueError("own_weight: expected 0 for queries given by features, which are no items")


def position_weights(ranker: LatentRanker) -> Singles:
    """Return w_1 to w_k of equations 2 and 4."""
    given: Any = ranker.position_weights
    if isinstance(given, str):
        return (1.0 / np.arange(1, ranker.k + 1)).astype(np.float32)
    return np.asarray(given, dtype=np.float32)


def pair_term(ranker: LatentRanker) -> PairTerm:
    """Return how a list moves an item in a fitted ranker, and where in a row S and T stand: after V and the bias."""
    n = ranker.n_components_
    return PAIR_TERMS[ranker.pair_](Segment(n + 1, 2 * n + 1, 0.0))


def check_learned(ranker: LatentRanker) -> None:
    """Raise ValueError unless the arrays of a file fit each other and the parameters."""
    check_settings(ranker, False)  # parameters set after fit may not suit features, and change no answer
    if np.asarray(ranker.position_weights_).dtype != np.float32:
        raise ValueError("position_weights_: expected float32, found others")
    if len(ranker.n_epochs_) != ranker.n_stages_:
        raise ValueError(f"n_epochs_: expected {ranker.n_stages_} numbers, found {len(ranker.n_epochs_)}")
    if not ranker.by_features_ and ranker.n_features_in_ != 1:
        raise ValueError(f"n_features_in_: expected 1 where a query is one id, found {ranker.n_features_in_}")
    if ranker.by_features_ and len(ranker.query_ids_):
        raise ValueError(f"query_ids_: expected none for queries given by features, found {len(ranker.query_ids_)}")
    if len(ranker.item_ids_) < 2:
        raise ValueError(f"item_ids_: expected at least two items, found {len(ranker.item_ids_)}")
    width = padded(pair_term(ranker).S.start if ranker.n_stages_ == 1 else pair_term(ranker).segments[-1].stop)
    rows = ranker.n_features_in_ if ranker.by_features_ else len(ranker.query_ids_)
    for name, n_rows in (("query_factors_", rows), ("item_factors_", len(ranker.item_ids_))):
        factors = getattr(ranker, name)
        if factors.shape != (ranker.n_stages_, n_rows, width):
            raise ValueError(f"{name}: expected shape {(ranker.n_stages_, n_rows, width)}, found {factors.shape}")
    for name, shape in (("query_steps_", (rows, 1)), ("item_steps_", (len(ranker.item_ids_), 2))):
        if getattr(ranker, name).shape != shape:
            raise ValueError(f"{name}: expected shape {shape}, found {getattr(ranker, name).shape}")


def require_learnt(learning_rate: float, *factors: Singles) -> None:
    """Raise ValueError if training has gone where float32 has no numbers."""
    if not all(rules.learned_array(values.ndim, np.float32).allows(values) for values in factors):
        raise ValueError(
            f"learning_rate: expected steps under which factors stay finite, found {learning_rate:g}; "
            "features that are too large do the same"
        )
