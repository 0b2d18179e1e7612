"""The doors of rankers of documents (MarginRanker, MatchingRanker, BestFeatureRanker): a query brings its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from slatewise.serve.door import Asked, Door, Doors, Request
from slatewise.serve.fields import (
    Ranking,
    feature_rows,
    places_field,
    request_type,
    row_type,
    several,
    whole,
)
from slatewise.serve.labels import shared_out
from slatewise.serve.limits import Limits
from slatewise.web.codec import RequestError

ROWS = 10_000


@dataclass(frozen=True, eq=False)
class Documents:
    """One ranker, and the limits."""

    ranker: Any
    limits: Limits

    def doors(self) -> Doors:
        """Return the doors."""
        rows = several(row_type(self.ranker.n_features_in_), 1, ROWS)
        names = several(whole(-(1 << 63), (1 << 63) - 1) | str, 1, ROWS)
        query = msgspec.defstruct(
            "Documents", [("rows", rows), ("ids", names | None, None)], forbid_unknown_fields=True, frozen=True
        )
        queries = ("queries", several(query, 1, self.limits.queries))
        rank, scores = (
            request_type("Rank", queries, places_field(self.limits, ROWS, None)),
            request_type("Scores", queries),
        )
        zeros = [0.0] * self.ranker.n_features_in_
        two = [query(rows=[zeros, zeros], ids=["a", "b"])]
        form, every = "documents", "The score of every row."
        doors = (
            Door("rank", rank, Ranking, self._checked, self._ranked, form, rank(queries=two), "The rows, best first."),
            Door("scores", scores, Ranking, self._checked, self._scored, form, scores(queries=two), every),
        )
        return {door.name: door for door in doors}

    def _checked(self, request: Request) -> Asked:
        total = sum(len(query.rows) for query in request.queries)
        if total > self.limits.numbers:
            raise RequestError("queries", f"expected at most {self.limits.numbers} rows, found {total}")
        for place, query in enumerate(request.queries):
            if query.ids is not None and len(query.ids) != len(query.rows):
                where = f"queries[{place}].ids"
                raise RequestError(where, f"expected one for each of {len(query.rows)} rows, found {len(query.ids)}")
        rows = np.concatenate([feature_rows(q.rows, f"queries[{n}].rows") for n, q in enumerate(request.queries)])
        return Asked(request, len(request.queries), "rows", (), {"rows": rows})

    def _ranked(self, batch: Sequence[Asked]) -> list[list[Any]]:
        scores = self._scores_of(batch)
        depths = [asked.request.k for asked in batch for _ in asked.request.queries]
        orders = [np.argsort(-own, kind="stable")[:k] for own, k in zip(scores, depths, strict=True)]
        return self._answers(batch, scores, orders)

    def _scored(self, batch: Sequence[Asked]) -> list[list[Any]]:
        scores = self._scores_of(batch)
        return self._answers(batch, scores, [np.arange(len(own)) for own in scores])

    def _scores_of(self, batch: Sequence[Asked]) -> list[Any]:
        sizes = [len(query.rows) for asked in batch for query in asked.request.queries]
        every = self.ranker.predict(np.concatenate([asked.parts["rows"] for asked in batch]))
        return np.split(every, np.cumsum(sizes)[:-1])

    def _answers(self, batch: Sequence[Asked], scores: list[Any], orders: list[Any]) -> list[list[Any]]:
        names = [query.ids for asked in batch for query in asked.request.queries]

        def ranking(n: int, place: int) -> Ranking:
            order, ids = orders[place].tolist(), names[place]
            return Ranking(
                n, order if ids is None else [ids[row] for row in order], scores[place][orders[place]].tolist()
            )

        return shared_out(batch, ranking)


def document_doors(ranker: Any, limits: Limits) -> Doors:
    """Return the doors of a ranker of documents."""
    return Documents(ranker, limits).doors()
