"""Endpoints of MetricRanker: rows rank the rows of fit by their distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slatewise.serve.endpoints.base import (
    CheckedRequest,
    Endpoint,
    Field,
    Ranking,
    Request,
    best_first,
    check_numbers,
    feature_rows,
    fingerprint,
    integer_type,
    k_field,
    list_type,
    rankings,
    request_type,
    row_type,
)
from slatewise.serve.settings import Limits


class Examples:
    """The endpoints of one ranker of examples."""

    def __init__(self, ranker: Any, limits: Limits) -> None:
        self.ranker, self.limits = ranker, limits

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints."""
        n_rows, n_features = len(self.ranker.catalogue_), self.ranker.n_features_in_
        queries: Field = ("queries", list_type(row_type(n_features), 1, self.limits.queries))
        items: Field = ("items", list_type(integer_type(0, n_rows - 1), 1, self.limits.ids))
        rank = request_type("Rank", queries, k_field(self.limits, n_rows))
        scores = request_type("Scores", queries, items)
        row = [[0.0] * n_features]
        one, some = rank(queries=row), scores(queries=row, items=[0])
        nearest, far = "The nearest rows of fit.", "Minus the squared distances to rows of fit."
        about = {"n_items": n_rows, "ids": "whole numbers"}
        return [
            Endpoint("rank", rank, Ranking, self._check_rank, self._rank, "rows", one, nearest, (), about),
            Endpoint("scores", scores, Ranking, self._check_scores, self._scores, "rows", some, far),
        ]

    def _check_rank(self, request: Request) -> CheckedRequest:
        rows = feature_rows(request.queries)
        check_numbers(self.limits, "k", len(rows), request.k)
        return CheckedRequest(request, len(rows), request.k, (), {"rows": rows})

    def _check_scores(self, request: Request) -> CheckedRequest:
        rows = feature_rows(request.queries)
        check_numbers(self.limits, "items", len(rows), len(request.items))
        return CheckedRequest(request, len(rows), fingerprint(request.items), (), {"rows": rows})

    def _rank(self, batch: Sequence[CheckedRequest]) -> list[list[Any]]:
        return best_first(batch, self.ranker.rank(_rows(batch), batch[0].request.k))

    def _scores(self, batch: Sequence[CheckedRequest]) -> list[list[Any]]:
        items = batch[0].request.items
        # The ranker scores all rows of fit: take few queries at a time, so that no matrix is larger than an answer.
        step = max(1, self.limits.numbers // len(self.ranker.catalogue_))
        rows = _rows(batch)
        parts = [self.ranker.scores(rows[n : n + step])[:, items] for n in range(0, len(rows), step)]
        return rankings(batch, [items] * len(rows), np.concatenate(parts))


def _rows(batch: Sequence[CheckedRequest]) -> Any:
    return np.concatenate([one.parts["rows"] for one in batch])
