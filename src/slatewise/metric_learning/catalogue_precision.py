"""How well a distance ranks a catalogue: mean average precision, block by block."""

from __future__ import annotations

import numpy as np

from slatewise.metric_learning.mahalanobis import Floats, catalogue_scores, row_blocks, squares
from slatewise.metric_learning.relevant_items import Relevance
from slatewise.metrics import AP


def mean_average_precision(queries: Floats, items: Floats, wanted: Relevance) -> float:
    """Return the mean over the queries that want anything; points are mapped, so that distances are Euclidean."""
    item_squares, values = squares(items), np.empty(len(queries))
    for block in row_blocks(len(queries), len(items)):
        scores = catalogue_scores(queries[block], items, item_squares)
        relevance = np.empty(scores.shape, dtype=np.int8)
        wanted.fill(block, relevance)
        # Items left out come last as irrelevant ones: that changes no precision at the rank of a relevant item.
        scores[relevance < 0] = scores.min() - 1.0
        values[block] = AP(empty="skip").per_list(np.maximum(relevance, 0), scores)
    if np.isnan(values).all():
        raise ValueError(f"X: expected a query with a relevant row in the catalogue, found none among {len(queries)}")
    return float(np.nanmean(values))
