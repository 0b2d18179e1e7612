"""The doors of MetricRanker: rows ask for the rows of fit that are like them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slatewise.serve.door import Asked, Door, Doors, Request
from slatewise.serve.fields import (
    Field,
    Ranking,
    check_numbers,
    feature_rows,
    fingerprint,
    places_field,
    request_type,
    row_type,
    several,
    whole,
)
from slatewise.serve.labels import shared_out
from slatewise.serve.limits import Limits


@dataclass(frozen=True, eq=False)
class Examples:
    """One ranker, and the limits."""

    ranker: Any
    limits: Limits

    def doors(self) -> Doors:
        """Return the doors."""
        n_rows, n_features = len(self.ranker.catalogue_), self.ranker.n_features_in_
        queries: Field = ("queries", several(row_type(n_features), 1, self.limits.queries))
        items: Field = ("items", several(whole(0, n_rows - 1), 1, self.limits.ids))
        rank = request_type("Rank", queries, places_field(self.limits, n_rows))
        scores = request_type("Scores", queries, items)
        row = [[0.0] * n_features]
        nearest, far = "The nearest rows of fit.", "Minus the squared distances to rows of fit."
        about = {"n_items": n_rows, "ids": "whole numbers"}
        one, some = rank(queries=row), scores(queries=row, items=[0])
        doors = (
            Door("rank", rank, Ranking, self._checked_rank, self._ranked, "rows", one, nearest, (), about),
            Door("scores", scores, Ranking, self._checked_scores, self._scored, "rows", some, far),
        )
        return {door.name: door for door in doors}

    def _checked_rank(self, request: Request) -> Asked:
        rows = feature_rows(request.queries)
        check_numbers(self.limits, "k", len(rows), request.k)
        return Asked(request, len(rows), request.k, (), {"rows": rows})

    def _checked_scores(self, request: Request) -> Asked:
        rows = feature_rows(request.queries)
        check_numbers(self.limits, "items", len(rows), len(request.items))
        return Asked(request, len(rows), fingerprint(request.items), (), {"rows": rows})

    def _ranked(self, batch: Sequence[Asked]) -> list[list[Any]]:
        found = self.ranker.rank(_rows(batch), batch[0].request.k)
        ids, scores = found.lists(), [found.list_scores(place).tolist() for place in range(len(found))]
        return shared_out(batch, lambda n, place: Ranking(n, ids[place].tolist(), scores[place]))

    def _scored(self, batch: Sequence[Asked]) -> list[list[Any]]:
        items = batch[0].request.items
        # Of all rows of fit, whatever is asked for: so few queries at a time that no matrix is larger than an answer.
        step = max(1, self.limits.numbers // len(self.ranker.catalogue_))
        rows = _rows(batch)
        parts = [self.ranker.scores(rows[n : n + step])[:, items] for n in range(0, len(rows), step)]
        scores = np.concatenate(parts)
        return shared_out(batch, lambda n, place: Ranking(n, items, scores[place].tolist()))


def example_doors(ranker: Any, limits: Limits) -> Doors:
    """Return the doors of a ranker of examples."""
    return Examples(ranker, limits).doors()


def _rows(batch: Sequence[Asked]) -> Any:
    return np.concatenate([asked.parts["rows"] for asked in batch])
