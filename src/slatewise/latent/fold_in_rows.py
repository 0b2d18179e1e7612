"""New queries of a LatentRanker from the items they were seen with."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from slatewise.core.results import ConvergenceWarning
from slatewise.latent.fold_in import TOLERANCE, FoldedQueries, fold_in
from slatewise.latent.input import Unknown
from slatewise.latent.lists import check_sets

if TYPE_CHECKING:
    from slatewise.latent.ranker import LatentRanker


def folded_in(ranker: LatentRanker, items: Any, unknown: Unknown) -> FoldedQueries:
    """Return a row of U a query, for the items as stage 0 has them."""
    if ranker.by_features_:
        raise ValueError("items: expected a ranker of query ids, found one of features, which rank takes as they are")
    seen = check_sets("items", items, ranker.item_ids_, unknown)
    if not (np.isfinite(seen.data) & (seen.data > 0)).all():
        raise ValueError("items: expected finite weights >= 0, found others")
    n, table = ranker.n_components_, ranker.item_factors_[0]
    factors = np.ascontiguousarray(table[:, :n])
    found = fold_in(seen, factors, table[:, n], ranker.max_norm_, ranker.n_threads)
    if not found.gap <= TOLERANCE:
        warnings.warn(
            f"fold_in stopped with a certified gap of {found.gap:.1e} (asked for {TOLERANCE:.0e})",
            ConvergenceWarning,
            stacklevel=3,
        )
    return found.rows.astype(np.float32).view(FoldedQueries)
