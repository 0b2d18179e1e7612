"""The pairs of a StructuredReranker by number."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from slatewise.latent.base_scorer import check_numbers, numbered
from slatewise.latent.input import Ids, LatentPairs, check_pairs

if TYPE_CHECKING:
    from slatewise.latent.structured_reranker import StructuredReranker


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
