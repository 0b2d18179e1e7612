"""Endpoints of CStarRanker and CStarMarginRanker: the labels of rows, of which some may be known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal

import msgspec
import numpy as np

from slatewise.core.rules import short_repr
from slatewise.serve.endpoints.base import (
    CheckedRequest,
    Endpoint,
    Field,
    Query,
    Ranking,
    Request,
    best_first,
    check_numbers,
    check_per_query,
    feature_rows,
    k_field,
    list_type,
    rankings,
    request_type,
    row_type,
    split_by_request,
)
from slatewise.serve.settings import Limits
from slatewise.web.codec import RequestError


class FromCore(msgspec.Struct, frozen=True):
    """The contribution of a core label of the selection to a label."""

    label: int | str
    by: float


class LabelPart(msgspec.Struct, frozen=True):
    """Why a label is in the selection."""

    label: int | str
    own: float
    own_rank: int
    from_core: list[FromCore]


class LabelSlate(msgspec.Struct, frozen=True):
    """The selected labels of one row, best first, with the parts of their scores."""

    query: int
    labels: list[LabelPart]


class Question(msgspec.Struct, frozen=True):
    """The best label to query next; null if the answers decide all labels."""

    query: int
    label: int | str | None


class Labels:
    """The endpoints of one ranker of labels."""

    def __init__(self, ranker: Any, limits: Limits) -> None:
        self.ranker, self.limits = ranker, limits
        self.labels = ranker.label_names_.tolist()
        self.numbers = {str(name): number for number, name in enumerate(self.labels)}

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints."""
        n_labels, n_features = len(self.labels), self.ranker.n_features_in_
        queries: Field = ("queries", list_type(row_type(n_features), 1, self.limits.queries))
        k = k_field(self.limits, n_labels, None)
        answers: Any = list_type(dict[str, Literal[0, 1] | bool], 1, self.limits.queries)
        known: Field = ("known", answers | None, None)
        rows, answered = [[0.0] * n_features], [{next(iter(self.numbers)): 1}]
        rank, scores = request_type("Rank", queries, k, known), request_type("Scores", queries, k, known)
        explain = request_type("Explain", queries, k, known)
        ask = request_type("NextQuestion", queries, ("known", answers), k)
        check, few = self._check, min(3, n_labels)
        about = {"n_items": n_labels, "labels": self.labels}
        best, much = "The best labels of each row.", "How much each label belongs in."
        why = "Why labels are in: their own score, and what core labels gave."
        next_one = "The label to ask next, given the answers so far."
        one, whole = rank(queries=rows, k=few), scores(queries=rows)
        some, question = explain(queries=rows, k=few), ask(queries=rows, known=answered)

        def others(made: Any) -> list[Request]:
            return [made(queries=rows, k=size, known=given) for size in (None, few) for given in (answered, None)]

        return [
            Endpoint("rank", rank, Ranking, check, self._rank, "rows", one, best, others(rank), about),
            Endpoint("scores", scores, Ranking, check, self._scores, "rows", whole, much, others(scores)),
            Endpoint(
                "explain", explain, LabelSlate, self._check_alone, self._explain, "rows", some, why, others(explain)
            ),
            Endpoint(
                "next_question", ask, Question, check, self._questions, "rows", question, next_one, others(ask)[::2]
            ),  # always with answers
        ]

    def _check(self, request: Request) -> CheckedRequest:
        rows = feature_rows(request.queries)
        check_per_query("known", request.known, len(rows))
        check_numbers(self.limits, "queries", len(rows), len(self.labels))
        known = None if request.known is None else [self._by_number(n, one) for n, one in enumerate(request.known)]
        if request.k is not None and self.ranker.needs_count:
            for number, answers in enumerate(known or ()):
                if sum(answers.values()) > request.k:
                    expected = f"expected at most k = {request.k} labels that are in, found more"
                    raise RequestError(f"known[{number}]", expected)
        return CheckedRequest(request, len(rows), (request.k, known is None), (), {"rows": rows, "known": known})

    def _check_alone(self, request: Request) -> CheckedRequest:
        """Check a request for explanations, which are as long as the shortest of a batch: each is answered alone."""
        check_numbers(self.limits, "queries", len(request.queries), len(self.labels) * (1 + len(self.ranker.core_)))
        return replace(self._check(request), key=None)

    def _by_number(self, number: int, answers: dict[str, Any]) -> dict[int, int]:
        strange = next((name for name in answers if name not in self.numbers), None)
        if strange is not None:
            raise RequestError(f"known[{number}]", f"expected labels seen in fit, found {short_repr(strange)}")
        return {self.numbers[name]: int(value) for name, value in answers.items()}

    def _arguments(self, batch: Sequence[CheckedRequest]) -> tuple[Any, Any, Any]:
        """Return X, k and known of all requests."""
        rows = np.concatenate([one.parts["rows"] for one in batch])
        if batch[0].parts["known"] is None:
            return rows, batch[0].request.k, None
        known = np.full((len(rows), len(self.labels)), -1, dtype=np.int64)
        for row, answers in enumerate(chain.from_iterable(one.parts["known"] for one in batch)):
            known[row, list(answers)] = list(answers.values())
        return rows, batch[0].request.k, known

    def _rank(self, batch: Sequence[CheckedRequest]) -> list[list[Any]]:
        return best_first(batch, self.ranker.rank(*self._arguments(batch)))

    def _scores(self, batch: Sequence[CheckedRequest]) -> list[list[Any]]:
        scores = self.ranker.decision_function(*self._arguments(batch))
        return rankings(batch, [self.labels] * len(scores), scores)

    def _explain(self, batch: Sequence[CheckedRequest]) -> list[list[Any]]:
        why = self.ranker.explain(*self._arguments(batch))
        core = why.core.tolist()

        def slate(query: Query, at: int) -> LabelSlate:
            labels: list[LabelPart] = []
            for label, own, rank, pairs in zip(
                why.labels[at], why.own[at], why.own_rank[at], why.pairs[at], strict=True
            ):
                moved = [FromCore(one, by) for one, by in zip(core, pairs.tolist(), strict=True) if by]
                labels.append(LabelPart(label.item(), float(own), int(rank), moved))
            return LabelSlate(int(query.name), labels)

        return split_by_request(batch, slate)

    def _questions(self, batch: Sequence[CheckedRequest]) -> list[list[Any]]:
        rows, k, known = self._arguments(batch)
        found = self.ranker.next_question(rows, known, k).tolist()
        return split_by_request(
            batch, lambda query, at: Question(int(query.name), None if found[at] < 0 else self.labels[found[at]])
        )
