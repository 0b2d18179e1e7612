"""New queries of a LatentRanker from the items they were seen with."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from slatewise.core.executor import Executor
from slatewise.core.results import ConvergenceWarning
from slatewise.factors.model import LatentModel
from slatewise.latent.fold_in import TOLERANCE, FoldedQueries, fold_in
from slatewise.recommend.filters import check_sets
from slatewise.recommend.ids import Unknown


def folded_in(model: LatentModel, items: Any, unknown: Unknown, max_norm: float, executor: Executor) -> FoldedQueries:
    """Return a row of U per query, for the items as stage 0 has them."""
    if model.by_features or model.window != 0:
        kind = "features" if model.by_features else "sessions"
        raise ValueError(f"items: expected a ranker of query ids, found one of {kind}, which rank takes as they are")
    seen = check_sets("items", items, model.item_ids, unknown)
    if not (np.isfinite(seen.data) & (seen.data > 0)).all():
        raise ValueError("items: expected finite weights >= 0, found others")
    n, rows = model.n_components, model.items[0].values
    found = fold_in(seen, np.ascontiguousarray(rows[:, :n]), rows[:, n], max_norm, executor)
    if not found.gap <= TOLERANCE:
        warnings.warn(
            f"fold_in stopped with a certified gap of {found.gap:.1e} (asked for {TOLERANCE:.0e})",
            ConvergenceWarning,
            stacklevel=3,
        )
    return found.rows.astype(np.float32).view(FoldedQueries)
