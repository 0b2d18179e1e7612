"""Endpoints of rankers of a whole catalog: of users, of ids, of feature rows and of sessions.

Queries are ids, sessions (lists of items, oldest first) or rows of features, as in fit; a ranker of users or ids also
takes histories, lists of items. The filters of a request are those of the estimator's ``rank``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Literal, TypeAlias, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints
from slatewise.serve.endpoints.base import (
    UNKNOWN,
    CheckedRequest,
    Endpoint,
    Field,
    KnownIds,
    Query,
    Ranking,
    Request,
    best_first,
    check_numbers,
    check_per_query,
    feature_rows,
    fingerprint,
    id_type,
    integer_type,
    k_field,
    list_type,
    rankings,
    request_type,
    row_type,
    split_by_request,
)
from slatewise.serve.settings import Limits
from slatewise.web.codec import RequestError

_EXPLAINED = ("LatentFeatureRanker", "LatentRanker", "SessionRanker")
"""Rankers with ``explain``, if they have factors."""


class Moved(msgspec.Struct, frozen=True):
    """The contribution of an item in the list of the stage before to a score."""

    id: int | str
    by: float


class Part(msgspec.Struct, frozen=True):
    """The parts of the score of one item."""

    id: int | str
    score: float
    own: float
    bias: float
    moved_by: list[Moved]


class Slate(msgspec.Struct, frozen=True):
    """The list of one query, best first, with the parts of every score."""

    query: int | str
    items: list[Part]
    unknown: int = 0
    nothing_known: bool = False


@dataclass(frozen=True, eq=False)
class FeatureQueries:
    """Rows of numbers."""

    form: ClassVar[str] = "rows"
    n_features: int

    def type(self, limits: Limits) -> Any:
        """Return the type of one query."""
        return row_type(self.n_features)

    def checked(self, request: Request) -> tuple[Any, Ints, tuple[str, ...]]:
        """Return the queries, the number of unknown ids of each, and warnings."""
        rows = feature_rows(request.queries)
        return rows, np.zeros(len(rows), dtype=np.int64), ()

    def merged(self, every: Sequence[Any], unknown: str) -> Any:
        """Return the queries of several requests as the estimator takes them."""
        return np.concatenate(every)

    def examples(self, n: int) -> list[Any]:
        """Return n real queries."""
        return [[0.0] * self.n_features for _ in range(n)]

    def kinds(self) -> list[Any]:
        """Return one query: all rows take the same path."""
        return self.examples(1)


@dataclass(frozen=True, eq=False)
class SessionQueries:
    """Lists of items, oldest first."""

    form: ClassVar[str] = "sessions"
    item_ids: NDArray[Any]
    known: KnownIds

    def type(self, limits: Limits) -> Any:
        """Return the type of one query."""
        return list_type(id_type(self.item_ids), 0, limits.ids)

    def checked(self, request: Request) -> tuple[Any, Ints, tuple[str, ...]]:
        """Return the queries, the number of unknown ids of each, and warnings."""
        counts, warnings = self.known.count_lists("queries", request.queries, request.unknown)
        return self.known.shortened(request.queries), counts, warnings

    def merged(self, every: Sequence[Any], unknown: str) -> Any:
        """Return the queries of several requests as the estimator takes them."""
        return list(chain.from_iterable(every))

    def examples(self, n: int) -> list[Any]:
        """Return n real queries."""
        items = self.item_ids[: n + 1].tolist()
        return [items[max(at - 1, 0) : at + 1] for at in range(1, n + 1)]

    def kinds(self) -> list[Any]:
        """Return a session of two items, and an empty one."""
        return [*self.examples(1), []]


@dataclass(frozen=True, eq=False)
class IdQueries:
    """Ids that fit saw; or histories, lists of items, which a ranker of pairs folds in."""

    form: ClassVar[str] = "ids"
    ranker: Any
    ids: NDArray[Any]
    known_items: KnownIds
    takes_histories: bool
    """Whether ``rank`` takes histories as they are."""

    @cached_property
    def known(self) -> KnownIds:
        """The ids that fit saw."""
        return KnownIds(self.ids)

    def type(self, limits: Limits) -> Any:
        """Return the type of one query."""
        return id_type(self.ids) | list_type(id_type(self.ranker.item_ids_), 0, limits.ids)

    def checked(self, request: Request) -> tuple[Any, Ints, tuple[str, ...]]:
        """Return the queries, the number of unknown ids of each, and warnings."""
        queries = request.queries
        baskets = [type(query) is list for query in queries]
        if any(baskets) and not all(baskets):
            wrong = baskets.index(not baskets[0])
            kind = "a list of items" if baskets[0] else "an id"
            raise RequestError(f"queries[{wrong}]", f"expected {kind}, as the first query, found another kind")
        if baskets[0]:
            return self.known_items.shortened(queries), *self.known_items.count_lists(
                "queries", queries, request.unknown
            )
        return queries, *self.known.count_ids("queries", queries, request.unknown)

    def merged(self, every: Sequence[Any], unknown: str) -> Any:
        """Return the queries of several requests as the estimator takes them."""
        queries = list(chain.from_iterable(every))
        is_folded = type(queries[0]) is list and not self.takes_histories
        return self.ranker.fold_in(queries, unknown=unknown) if is_folded else queries

    def examples(self, n: int) -> list[Any]:
        """Return n real queries."""
        return np.resize(self.ids, n).tolist()

    def kinds(self) -> list[Any]:
        """Return an id and a basket."""
        return [*self.examples(1), self.ranker.item_ids_[:2].tolist()]


Queries: TypeAlias = FeatureQueries | SessionQueries | IdQueries


class Recommender:
    """The endpoints of one ranker of a catalog."""

    def __init__(self, ranker: Any, limits: Limits) -> None:
        self.ranker, self.limits = ranker, limits
        self.name = type(ranker).__name__
        self.has_no_order = self.name == "CollaborativeRanker"
        self.known = KnownIds(ranker.item_ids_)
        self.n_query_features = ranker.n_query_features_ if self.name == "SessionRanker" else 0
        match self.name:
            case "LatentFeatureRanker":
                self.queries: Queries = FeatureQueries(ranker.n_features_in_)
            case "LatentRanker":
                self.queries = IdQueries(ranker, ranker.query_ids_, self.known, takes_histories=False)
            case "CollaborativeRanker":
                self.queries = IdQueries(ranker, ranker.user_ids_, self.known, takes_histories=True)
            case _:
                self.queries = SessionQueries(ranker.item_ids_, self.known)

    def endpoints(self) -> list[Endpoint]:
        """Return an endpoint for each of the ranker's methods."""
        n_items, some = len(self.ranker.item_ids_), self.ranker.item_ids_[:3].tolist()
        k, items = k_field(self.limits, n_items), list_type(id_type(self.ranker.item_ids_), 1, self.limits.ids)
        best, parts = "The k best items of each query", "and what made their scores."
        found = [
            self._endpoint("rank", k, Ranking, self._check_lists, self._rank, f"{best}, best first.", n_examples=2),
            self._endpoint(
                "scores", ("items", items), Ranking, self._check_scores, self._scores,
                "The scores of the items given, for each query.", items=some,
            ),
        ]  # fmt: skip
        if self.name in _EXPLAINED and "item_factors_" in vars(self.ranker):
            few = min(3, n_items)
            found.append(
                self._endpoint("explain", k, Slate, self._check_parts, self._explain, f"{best}, {parts}", k=few)
            )
        return found

    def _endpoint(
        self,
        name: str,
        own: Field,
        part: type[msgspec.Struct],
        check: Callable[[Request], CheckedRequest],
        respond: Callable[[Sequence[CheckedRequest]], list[list[Any]]],
        summary: str,
        n_examples: int = 1,
        **given: Any,
    ) -> Endpoint:
        """Return the endpoint of a method; ``given`` are fields of its own in the examples."""
        n_features, limits = self.n_query_features, self.limits
        queries: Field = ("queries", list_type(self.queries.type(limits), 1, limits.queries))
        request = request_type(name.capitalize(), queries, own, *self._filters(getattr(self.ranker, name)))
        features = {"query_features": [[0.0] * n_features] * n_examples} if n_features else {}
        example = cast("Any", request)(queries=self.queries.examples(n_examples), **features, **given)
        is_text = self.ranker.item_ids_.dtype.kind == "U"
        about = {"n_items": len(self.ranker.item_ids_), "ids": "texts" if is_text else "whole numbers"}
        if n_features:
            about["query_features"] = n_features
        others = self._warmup_requests(request, given)
        return Endpoint(name, request, part, check, respond, self.queries.form, example, summary, others, about)

    def _filters(self, method: Any) -> list[Field]:
        """Return the fields for the filters that a method has."""
        item = id_type(self.ranker.item_ids_)
        lists = list_type(list_type(item, 0, self.limits.ids), 0, self.limits.queries)
        either = list_type(item | list_type(item, 0, self.limits.ids), 0, self.limits.ids)
        fields: list[Field] = [
            ("exclude", lists | None, None),
            ("exclude_seen", bool, True) if self.has_no_order else ("exclude_seen", bool | Literal["last"], False),
            ("candidates", either | None, None),
            UNKNOWN,
        ]
        names = inspect.signature(method).parameters
        if "stage" in names:
            fields.append(("stage", integer_type(0, self.ranker.n_stages_ - 1) | None, None))
        if self.n_query_features:
            rows = list_type(row_type(self.n_query_features), 1, self.limits.queries)
            fields.append(("query_features", rows | None, None))
        return [field for field in fields if field[0] in names]

    def _warmup_requests(self, request: type[msgspec.Struct], given: dict[str, Any]) -> list[Request]:
        """Return requests with every kind of query and every filter."""
        some = self.ranker.item_ids_[:3].tolist()
        filters: list[dict[str, Any]] = [
            {},
            {"exclude": [some[:1]]},
            {"candidates": some},
            {"candidates": [some]},
            {"exclude_seen": True},
            {"unknown": "ignore"},
        ]
        if not self.has_no_order:
            filters.append({"exclude_seen": "last"})
        fields = set(request.__struct_fields__)
        if "stage" in fields:
            filters += [{"stage": stage} for stage in range(self.ranker.n_stages_)]
        filters.append({"query_features": [[1.0] * self.n_query_features]})
        made: Any = request  # its fields depend on the model
        return [
            made(queries=[query], **given, **filter)
            for query in self.queries.kinds()
            for filter in filters
            if filter.keys() <= fields
        ]

    def _check_queries(self, request: Request) -> tuple[dict[str, Any], list[Query], tuple[str, ...]]:
        """Return the queries as arrays and lists, by name, and warnings."""
        queries, counts, warnings = self.queries.checked(request)
        has_ids = type(request.queries[0]) is not list
        named = [
            Query(query if has_ids else number, n, n == (1 if has_ids else len(query)))
            for number, (query, n) in enumerate(zip(queries, counts.tolist(), strict=True))
        ]
        parts: dict[str, Any] = {"queries": queries}
        n_features = self.n_query_features
        if n_features:
            given = request.query_features
            check_per_query("query_features", given, len(queries))
            rows = np.zeros((len(queries), n_features)) if given is None else feature_rows(given, "query_features")
            parts["features"] = rows
            pairs = zip(named, rows, strict=True)
            named = [query._replace(nothing_known=query.nothing_known and not row.any()) for query, row in pairs]
            if given is None:
                warnings += (f"query_features: fit had {n_features} and there are none: answered as with zeros",)
        n_nothing = 0 if has_ids else sum(query.nothing_known for query in named)  # of ids the first warning says it
        if n_nothing:
            warnings += (f"queries: {n_nothing} of {len(queries)} have no item that fit saw",)
        return parts, named, warnings

    def _check_lists(self, request: Request) -> CheckedRequest:
        parts, named, warnings = self._check_queries(request)
        filters = _filters_of(request)
        check_numbers(self.limits, "k", len(named), request.k)
        for name in ("exclude", "candidates"):
            warnings += self._check_items(name, filters.get(name), len(named), request.unknown)
        common = filters.get("candidates")
        is_common = bool(common) and type(common[0]) is not list
        for name in ("exclude", "candidates"):
            lists = None if is_common and name == "candidates" else filters.pop(name, None)
            parts[name] = None if lists is None else self.known.shortened(lists)
        key = request.k, type(request.queries[0]) is list, common is None, *_hashable(filters)
        parts["filters"] = {**filters, "k": request.k}
        return CheckedRequest(request, len(named), key, warnings, parts, named)

    def _check_parts(self, request: Request) -> CheckedRequest:
        """Check a request for explanations, which name all contributions to every item."""
        has_lists = self.name != "SessionRanker" and self.ranker.n_stages_ > 1
        n_parts = 1 + (len(self.ranker.position_weights_) + 1 if has_lists else 0)
        check_numbers(self.limits, "k", len(request.queries), request.k * n_parts)
        return self._check_lists(request)

    def _check_items(self, name: str, lists: Any, n_queries: int, unknown: str) -> tuple[str, ...]:
        if lists is None:
            return ()
        if len({type(one) is list for one in lists}) > 1:
            raise RequestError(name, "expected ids, or a list of ids for each query, found both")
        if lists and type(lists[0]) is not list:  # candidates of all queries
            counts, warnings = self.known.count_ids(name, lists, unknown)
            if counts.all():
                raise RequestError(name, "expected items that fit saw, found none")
            return warnings
        check_per_query(name, lists, n_queries)
        return self.known.count_lists(name, lists, unknown)[1]

    def _check_scores(self, request: Request) -> CheckedRequest:
        parts, named, warnings = self._check_queries(request)
        check_numbers(self.limits, "items", len(named), len(request.items))
        warnings += self.known.count_ids("items", request.items, request.unknown)[1]
        filters = _filters_of(request, "items")
        key = fingerprint(request.items), type(request.queries[0]) is list, *_hashable(filters)
        return CheckedRequest(request, len(named), key, warnings, {**parts, "filters": filters}, named)

    def _call(self, method: Any, batch: Sequence[CheckedRequest], **more: Any) -> Any:
        filters = dict(batch[0].parts["filters"])
        queries = self.queries.merged([one.parts["queries"] for one in batch], filters["unknown"])
        if self.n_query_features:
            more["query_features"] = np.concatenate([one.parts["features"] for one in batch])
        return method(queries, **filters, **more)

    def _call_lists(self, method: Any, batch: Sequence[CheckedRequest]) -> Any:
        """Call a method with the lists of all requests; requests without a list get empty ones."""
        lists: dict[str, Any] = {}
        for name in ("exclude", "candidates"):
            every = [one.parts[name] for one in batch]
            if any(one is not None for one in every):
                empty: list[Any] = [[[]] * one.size for one in batch]
                lists[name] = list(chain.from_iterable(one or none for one, none in zip(every, empty, strict=True)))
        return self._call(method, batch, **lists)

    def _rank(self, batch: Sequence[CheckedRequest]) -> list[list[Any]]:
        return best_first(batch, self._call_lists(self.ranker.rank, batch))

    def _scores(self, batch: Sequence[CheckedRequest]) -> list[list[Any]]:
        items = batch[0].request.items
        scores = self._call(self.ranker.scores, batch, items=items)
        return rankings(batch, [items] * len(scores), scores)

    def _explain(self, batch: Sequence[CheckedRequest]) -> list[list[Any]]:
        why = self._call_lists(self.ranker.explain, batch)
        scores = why.score

        def slate(query: Query, at: int) -> Slate:
            neighbours = why.neighbours[at].tolist()
            parts: list[Part] = []
            for rank, name in enumerate(why.items[at].tolist()):
                own, bias = float(why.own[at, rank]), float(why.bias[at, rank])
                if not np.isfinite(own):  # the filters leave fewer than k items
                    break
                moved = zip(neighbours, why.moved_by[at, rank].tolist(), strict=True)
                parts.append(Part(name, float(scores[at, rank]), own, bias, [Moved(one, by) for one, by in moved]))
            return Slate(query.name, parts, query.n_unknown, query.nothing_known)

        return split_by_request(batch, slate)


def _filters_of(request: Request, *own: str) -> dict[str, Any]:
    fields = msgspec.structs.asdict(request)
    return {name: value for name, value in fields.items() if name not in ("queries", "query_features", "k", *own)}


def _hashable(filters: dict[str, Any]) -> tuple[Any, ...]:
    values: list[Any] = list(filters.values())
    return tuple(fingerprint(cast("list[Any]", value)) if type(value) is list else value for value in values)
