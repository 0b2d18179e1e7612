"""The doors of CStarRanker and CStarMarginRanker: the labels of rows, of which some may be known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import msgspec
import numpy as np

from slatewise.core.rules import short_repr
from slatewise.serve.door import Asked, Door, Doors, Request
from slatewise.serve.fields import (
    Field,
    Ranking,
    check_numbers,
    check_per_query,
    feature_rows,
    places_field,
    request_type,
    row_type,
    several,
)
from slatewise.serve.limits import Limits
from slatewise.web.codec import RequestError


class FromCore(msgspec.Struct, frozen=True):
    """What a core label of the selection gave to a label, or took where it is negative."""

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
    """The label to ask next; null where the answers decide all of them."""

    query: int
    label: int | str | None


@dataclass(frozen=True, eq=False)
class Labels:
    """One ranker, its labels by the names that a request uses, and the limits."""

    ranker: Any
    names: dict[str, int]
    limits: Limits

    def doors(self) -> Doors:
        """Return the doors."""
        n_labels, n_features = len(self.names), self.ranker.n_features_in_
        queries: Field = ("queries", several(row_type(n_features), 1, self.limits.queries))
        k = places_field(self.limits, n_labels, None)
        answers: Any = several(dict[str, Literal[0, 1] | bool], 1, self.limits.queries)
        known: Field = ("known", answers | None, None)
        rows = [[0.0] * n_features]
        told = [{next(iter(self.names)): 1}]
        rank, scores = request_type("Rank", queries, k, known), request_type("Scores", queries, k, known)
        explain = request_type("Explain", queries, k, known)
        ask = request_type("NextQuestion", queries, ("known", answers), k)
        check, few = self._checked, min(3, n_labels)
        about = {"n_items": n_labels, "labels": self.ranker.label_names_.tolist()}
        best, much = "The best labels of each row.", "How much each label belongs in."
        why = "Why labels are in: their own score, and what core labels gave."
        next_one, some = "The label to ask next, given the answers so far.", explain(queries=rows, k=few)

        def others(made: Any) -> list[Request]:
            return [made(queries=rows, k=size, known=given) for size in (None, few) for given in (told, None)]

        ways, question = others(ask)[::2], ask(queries=rows, known=told)  # which is never asked without answers
        doors = (
            Door(
                "rank", rank, Ranking, check, self._ranked, "rows", rank(queries=rows, k=few), best, others(rank), about
            ),
            Door("scores", scores, Ranking, check, self._scored, "rows", scores(queries=rows), much, others(scores)),
            Door("explain", explain, LabelSlate, self._alone, self._explained, "rows", some, why, others(explain)),
            Door("next_question", ask, Question, check, self._questions, "rows", question, next_one, ways),
        )
        return {door.name: door for door in doors}

    def _checked(self, request: Request) -> Asked:
        rows = feature_rows(request.queries)
        check_per_query("known", request.known, len(rows))
        check_numbers(self.limits, "queries", len(rows), len(self.names))
        known = None if request.known is None else [self._numbered(n, told) for n, told in enumerate(request.known)]
        if request.k is not None and self.ranker.needs_count:
            for number, told in enumerate(known or ()):
                if sum(told.values()) > request.k:
                    raise RequestError(
                        f"known[{number}]", f"expected at most k = {request.k} labels that are in, found more"
                    )
        key = request.k, known is None
        return Asked(request, len(rows), key, (), {"rows": rows, "known": known})

    def _alone(self, request: Request) -> Asked:
        """An explanation is as long as the shortest of those asked with it; it names what core labels gave to each."""
        check_numbers(self.limits, "queries", len(request.queries), len(self.names) * (1 + len(self.ranker.core_)))
        asked = self._checked(request)
        return Asked(request, asked.size, None, (), asked.parts)

    def _numbered(self, number: int, told: dict[str, Any]) -> dict[int, int]:
        strange = next((name for name in told if name not in self.names), None)
        if strange is not None:
            raise RequestError(f"known[{number}]", f"expected labels seen in fit, found {short_repr(strange)}")
        return {self.names[name]: int(value) for name, value in told.items()}

    def _asked(self, batch: Sequence[Asked]) -> tuple[Any, Any, Any]:
        rows = np.concatenate([asked.parts["rows"] for asked in batch])
        if batch[0].parts["known"] is None:
            return rows, batch[0].request.k, None
        known = np.full((len(rows), len(self.names)), -1, dtype=np.int64)
        for row, told in enumerate(chain.from_iterable(asked.parts["known"] for asked in batch)):
            known[row, list(told)] = list(told.values())
        return rows, batch[0].request.k, known

    def _ranked(self, batch: Sequence[Asked]) -> list[list[Any]]:
        found = self.ranker.rank(*self._asked(batch))
        ids, scores = found.lists(), [found.list_scores(place).tolist() for place in range(len(found))]
        return shared_out(batch, lambda n, place: Ranking(n, ids[place].tolist(), scores[place]))

    def _scored(self, batch: Sequence[Asked]) -> list[list[Any]]:
        scores, labels = self.ranker.decision_function(*self._asked(batch)), self.ranker.label_names_.tolist()
        return shared_out(batch, lambda n, place: Ranking(n, labels, scores[place].tolist()))

    def _explained(self, batch: Sequence[Asked]) -> list[list[Any]]:
        why = self.ranker.explain(*self._asked(batch))
        core = why.core.tolist()

        def slate(n: int, place: int) -> LabelSlate:
            parts = zip(why.labels[place], why.own[place], why.own_rank[place], why.pairs[place], strict=True)
            return LabelSlate(
                n,
                [
                    LabelPart(
                        name.item(), float(own), int(rank),
                        [FromCore(c, by) for c, by in zip(core, pairs.tolist(), strict=True) if by],
                    )
                    for name, own, rank, pairs in parts
                ],
            )  # fmt: skip

        return shared_out(batch, slate)

    def _questions(self, batch: Sequence[Asked]) -> list[list[Any]]:
        rows, k, known = self._asked(batch)
        numbers = self.ranker.next_question(rows, known, k).tolist()
        labels = self.ranker.label_names_.tolist()
        return shared_out(batch, lambda n, place: Question(n, None if numbers[place] < 0 else labels[numbers[place]]))


def label_doors(ranker: Any, limits: Limits) -> Doors:
    """Return the doors of a ranker of labels."""
    names = {str(name): number for number, name in enumerate(ranker.label_names_.tolist())}
    return Labels(ranker, names, limits).doors()


def shared_out(batch: Sequence[Asked], part: Callable[[int, int], Any]) -> list[list[Any]]:
    """Make the part of every query, numbered in its request, and give each request its own."""
    out: list[list[Any]] = []
    place = 0
    for asked in batch:
        out.append([part(n, place + n) for n in range(asked.size)])
        place += asked.size
    return out
