"""What a StructuredReranker refuses, and its pairs by number."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from slatewise.estimators._base_scorer import check_numbers, numbered
from slatewise.estimators._latent_checks import PAIR_TERMS, require_count, require_seed
from slatewise.estimators._latent_input import Ids, LatentPairs, check_pairs

if TYPE_CHECKING:
    from slatewise.estimators.structured_reranker import StructuredReranker


def check_settings(reranker: StructuredReranker) -> None:
    """Raise ValueError unless the parameters make sense."""
    if reranker.pair not in PAIR_TERMS:
        raise ValueError(f"pair: expected one of {', '.join(PAIR_TERMS)}, found {reranker.pair!r}")
    for name in ("n_components", "stages", "k", "epochs", "patience"):
        require_count(name, getattr(reranker, name))
    if reranker.batch_size is not None:
        require_count("batch_size", reranker.batch_size)
    require_seed(reranker.random_state)
    for name in ("base_scale", "learning_rate", "max_norm"):
        value = getattr(reranker, name)
        if not isinstance(value, Real) or not 0 < float(value) < np.inf:
            raise ValueError(f"{name}: expected a finite number > 0, found {value!r}")
    fraction: Any = reranker.validation_fraction
    if not isinstance(fraction, Real) or not 0 <= float(fraction) < 1:
        raise ValueError(f"validation_fraction: expected a number from 0 to below 1, found {fraction!r}")


def check_shape(reranker: StructuredReranker) -> None:
    """Raise ValueError unless what a file says of lists and pairs makes sense."""
    if reranker.pair_ not in tuple(PAIR_TERMS):
        raise ValueError(f"pair_: expected one of {', '.join(PAIR_TERMS)}, found {reranker.pair_!r}")
    for name in ("n_components_", "k_"):
        require_count(name, getattr(reranker, name))


def pairs_for(reranker: StructuredReranker, queries: Ids, items: Ids, sample_weight: ArrayLike | None) -> LatentPairs:
    """Number the pairs; a base whose ids are numbers brings its whole catalogue with it."""
    table = numbered(reranker.base)
    if table is None:
        return check_pairs(reranker, queries, items, sample_weight)
    n_queries, n_items = table.shape
    check_numbers("queries", "row", queries, n_queries)
    check_numbers("items", "column", items, n_items)
    pairs = check_pairs(reranker, queries, items, sample_weight)
    return replace(pairs, items=pairs.item_ids[pairs.items], item_ids=np.arange(n_items))
