"""What a LatentRanker refuses: parameters that mean nothing, and learned arrays that do not fit each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slatewise.estimators._latent_search import GRIDS
from slatewise.warp.pair_terms import Bilinear, Gram, PairTerm
from slatewise.warp.tables import Segment, Singles, padded

if TYPE_CHECKING:
    from slatewise.estimators.latent import LatentRanker

_LEAST, _MOST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
PAIR_TERMS: Mapping[str, Callable[[Segment], PairTerm]] = {"gram": Gram, "bilinear": Bilinear}


def check_settings(ranker: LatentRanker, featured: bool) -> None:
    """Raise ValueError unless the parameters make sense."""
    for name, allowed in (("loss", ("warp", "auc")), ("engine", ("blocked", "sampled")), ("pair", PAIR_TERMS)):
        if getattr(ranker, name) not in allowed:
            raise ValueError(f"{name}: expected one of {', '.join(allowed)}, found {getattr(ranker, name)!r}")
    for name in ("n_components", "stages", "k", "epochs", "patience"):
        require_count(name, getattr(ranker, name))
    for name in ("batch_size", "max_draws"):
        if getattr(ranker, name) is not None:
            require_count(name, getattr(ranker, name))
    require_seed(ranker.random_state)
    if ranker.negatives != "catalogue":
        require_count("negatives", ranker.negatives, " or 'catalogue'")
    for name in GRIDS:
        value = getattr(ranker, name)
        if value != "auto" and not _is_positive(value):
            raise ValueError(f"{name}: expected a finite float32 number > 0 or 'auto', found {value!r}")
    if not isinstance(ranker.alpha, Real) or not 0 <= float(ranker.alpha) < np.inf:
        raise ValueError(f"alpha: expected a finite number >= 0, found {ranker.alpha!r}")
    if not isinstance(ranker.validation_fraction, Real) or not 0 <= ranker.validation_fraction < 1:
        raise ValueError(
            f"validation_fraction: expected a number from 0 to below 1, found {ranker.validation_fraction!r}"
        )
    if featured and ranker.engine == "sampled":
        raise ValueError("engine: expected 'blocked' for queries given by features, found 'sampled'")
    position_weights(ranker)
    if not _is_weight(ranker.own_weight):
        raise ValueError(f"own_weight: expected a finite float32 number >= 0, found {ranker.own_weight!r}")
    if featured and ranker.own_weight:
        raise ValueError("own_weight: expected 0 for queries given by features, which are no items")


def position_weights(ranker: LatentRanker) -> Singles:
    """Return w_1 to w_k of equations 2 and 4."""
    given: Any = ranker.position_weights
    if isinstance(given, str):
        if given != "reciprocal":
            raise ValueError(f"position_weights: expected 'reciprocal' or k numbers, found {given!r}")
        return (1.0 / np.arange(1, ranker.k + 1)).astype(np.float32)
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (ranker.k,) or not _are_weights(weights):
        raise ValueError(f"position_weights: expected {ranker.k} finite float32 numbers >= 0, found {given!r}")
    return weights.astype(np.float32)


def pair_term(ranker: LatentRanker) -> PairTerm:
    """Return how a list moves an item in a fitted ranker, and where in a row S and T stand: after V and the bias."""
    n = ranker.n_components_
    return PAIR_TERMS[ranker.pair_](Segment(n + 1, 2 * n + 1, 0.0))


def check_learned(ranker: LatentRanker) -> None:
    """Raise ValueError unless the arrays of a file fit each other and the parameters."""
    check_settings(ranker, False)  # parameters set after fit may not suit features, and change no answer
    if type(ranker.by_features_) is not bool or type(ranker.n_stages_) is not int or ranker.n_stages_ < 1:
        raise ValueError("by_features_, n_stages_: expected a boolean and a number of stages >= 1")
    if type(ranker.n_components_) is not int or ranker.n_components_ < 1 or ranker.pair_ not in tuple(PAIR_TERMS):
        raise ValueError(f"n_components_, pair_: expected a number >= 1 and one of {', '.join(PAIR_TERMS)}")
    weights = np.asarray(ranker.position_weights_)  # a file may have anything there
    if weights.dtype != np.float32 or weights.ndim != 1 or not len(weights) or not _are_weights(weights):
        raise ValueError("position_weights_: expected finite float32 numbers >= 0, one a place of a list")
    if not _is_weight(ranker.own_weight_):
        raise ValueError(f"own_weight_: expected a finite float32 number >= 0, found {ranker.own_weight_!r}")
    for name in GRIDS:
        if not _is_positive(getattr(ranker, f"{name}_")):
            raise ValueError(f"{name}_: expected a finite number > 0, found {getattr(ranker, f'{name}_')!r}")
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


def require_seed(random_state: Any) -> None:
    """Raise ValueError unless it can begin random numbers."""
    if random_state is not None and (not is_whole(random_state) or random_state < 0):
        raise ValueError(f"random_state: expected a whole number >= 0 or None, found {random_state!r}")


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


def _is_positive(value: object) -> bool:
    """Tell a number that float32 has, and has above 0."""
    return isinstance(value, Real) and bool(_LEAST <= float(value) <= _MOST)


def _is_weight(value: object) -> bool:
    return isinstance(value, Real) and bool(0 <= float(value) <= _MOST)


def _are_weights(values: NDArray[Any]) -> bool:
    return bool(((values >= 0) & (values <= _MOST)).all())


def is_whole(value: object) -> bool:
    """Tell a whole number, of Python's or NumPy's, from everything else."""
    return type(value) is not bool and isinstance(value, Integral)


def require_count(name: str, value: Any, other: str = "") -> None:
    """Raise ValueError unless a parameter is a whole number >= 1."""
    if not is_whole(value) or value < 1:
        raise ValueError(f"{name}: expected a whole number >= 1{other}, found {value!r}")
