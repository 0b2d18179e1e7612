"""Endpoints of rankers of documents (MarginRanker, MatchingRanker, BestFeatureRanker): a query brings its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from slatewise.serve.endpoints.base import (
    ANY_INTEGER,
    CheckedRequest,
    Endpoint,
    Ranking,
    Request,
    feature_rows,
    k_field,
    list_type,
    rankings,
    request_type,
    row_type,
)
from slatewise.serve.settings import Limits
from slatewise.web.codec import RequestError

MAX_ROWS = 10_000


class Documents:
    """The endpoints of one ranker of documents."""

    def __init__(self, ranker: Any, limits: Limits) -> None:
        self.ranker, self.limits = ranker, limits

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints."""
        n_features = self.ranker.n_features_in_
        rows, names = list_type(row_type(n_features), 1, MAX_ROWS), list_type(ANY_INTEGER | str, 1, MAX_ROWS)
        query = msgspec.defstruct(
            "Documents", [("rows", rows), ("ids", names | None, None)], forbid_unknown_fields=True, frozen=True
        )
        queries = ("queries", list_type(query, 1, self.limits.queries))
        rank = request_type("Rank", queries, k_field(self.limits, MAX_ROWS, None))
        scores = request_type("Scores", queries)
        two = [query(rows=[[0.0] * n_features] * 2, ids=["a", "b"])]
        one, every = rank(queries=two), scores(queries=two)
        best, whole = "The rows, best first.", "The score of every row."
        return [
            Endpoint("rank", rank, Ranking, self._check, self._rank, "documents", one, best),
            Endpoint("scores", scores, Ranking, self._check, self._scores, "documents", every, whole),
        ]

    def _check(self, request: Request) -> CheckedRequest:
        total = sum(len(query.rows) for query in request.queries)
        if total > self.limits.numbers:
            raise RequestError("queries", f"expected at most {self.limits.numbers} rows, found {total}")
        for number, query in enumerate(request.queries):
            if query.ids is not None and len(query.ids) != len(query.rows):
                expected = f"expected one for each of {len(query.rows)} rows, found {len(query.ids)}"
                raise RequestError(f"queries[{number}].ids", expected)
        rows = np.concatenate([feature_rows(q.rows, f"queries[{n}].rows") for n, q in enumerate(request.queries)])
        return CheckedRequest(request, len(request.queries), "rows", (), {"rows": rows})

    def _rank(self, batch: Sequence[CheckedRequest]) -> list[list[Any]]:
        scores = self._predict(batch)
        depths = [one.request.k for one in batch for _ in one.request.queries]
        return _answers(
            batch, scores, [np.argsort(-own, kind="stable")[:k] for own, k in zip(scores, depths, strict=True)]
        )

    def _scores(self, batch: Sequence[CheckedRequest]) -> list[list[Any]]:
        scores = self._predict(batch)
        return _answers(batch, scores, [np.arange(len(own)) for own in scores])

    def _predict(self, batch: Sequence[CheckedRequest]) -> list[Any]:
        sizes = [len(query.rows) for one in batch for query in one.request.queries]
        every = self.ranker.predict(np.concatenate([one.parts["rows"] for one in batch]))
        return np.split(every, np.cumsum(sizes)[:-1])


def _answers(batch: Sequence[CheckedRequest], scores: list[Any], orders: list[Any]) -> list[list[Any]]:
    names = [query.ids for one in batch for query in one.request.queries]
    ids = [
        order.tolist() if own is None else [own[row] for row in order.tolist()]
        for own, order in zip(names, orders, strict=True)
    ]
    return rankings(batch, ids, [own[order] for own, order in zip(scores, orders, strict=True)])
