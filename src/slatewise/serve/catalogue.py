"""The doors of rankers of a whole catalogue: LatentRanker, LatentFeatureRanker and the rankers of sessions.

Queries are ids, sessions (lists of items, oldest first) or rows of features, as fit saw them; of a ranker of ids a list
of items is a basket, which is folded in. Which switches there are, ``rank`` of the estimator says.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Literal, Protocol, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from slatewise.serve.door import Asked, Door, Doors, Request
from slatewise.serve.fields import (
    UNKNOWN,
    Field,
    KnownIds,
    Ranking,
    check_numbers,
    check_per_query,
    feature_rows,
    fingerprint,
    id_type,
    places_field,
    request_type,
    row_type,
    several,
    told_of,
    whole,
)
from slatewise.serve.limits import Limits
from slatewise.web.codec import RequestError

_EXPLAINED = ("LatentFeatureRanker", "LatentRanker", "SessionRanker")
"""Rankers whose scores have parts, where they have factors."""


class Moved(msgspec.Struct, frozen=True):
    """What an item of the list of the stage before added to a score, or took where it is negative."""

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


class Queries(Protocol):
    """One form of queries."""

    form: ClassVar[str]

    @property
    def field(self) -> Field:
        """Return the field of a request."""
        ...

    def checked(self, request: Request) -> tuple[Any, NDArray[np.int64], int]:
        """Return the queries, how many ids of each fit never saw, and how many ids there are."""
        ...

    def merged(self, every: Sequence[Any], unknown: str) -> Any:
        """Return what the estimator is asked with."""
        ...

    def examples(self, n: int) -> list[Any]:
        """Return n real queries."""
        ...

    def kinds(self) -> list[Any]:
        """Return one query of each kind that is computed in a way of its own."""
        ...


@dataclass(frozen=True, eq=False)
class FeatureQueries:
    """Rows of numbers."""

    form: ClassVar[str] = "rows"
    n_features: int
    limits: Limits

    @property
    def field(self) -> Field:
        """Return the field of a request."""
        return "queries", several(row_type(self.n_features), 1, self.limits.queries)

    def checked(self, request: Request) -> tuple[Any, NDArray[np.int64], int]:
        """Return the queries, how many ids of each are unknown, and how many ids there are."""
        rows = feature_rows(request.queries)
        return rows, np.zeros(len(rows), dtype=np.int64), 0

    def merged(self, every: Sequence[Any], unknown: str) -> Any:
        """Return what the estimator is asked with."""
        return np.concatenate(every)

    def examples(self, n: int) -> list[Any]:
        """Return n real queries."""
        return [[0.0] * self.n_features for _ in range(n)]

    def kinds(self) -> list[Any]:
        """Return one query: all rows are alike."""
        return self.examples(1)


@dataclass(frozen=True, eq=False)
class SessionQueries:
    """Lists of items, oldest first."""

    form: ClassVar[str] = "sessions"
    item_ids: NDArray[Any]
    known: KnownIds
    limits: Limits

    @property
    def field(self) -> Field:
        """Return the field of a request."""
        session = several(id_type(self.item_ids), 0, self.limits.ids)
        return "queries", several(session, 1, self.limits.queries)

    def checked(self, request: Request) -> tuple[Any, NDArray[np.int64], int]:
        """Return the queries, how many ids of each are unknown, and how many ids there are."""
        unknown = self.known.unknown_of_lists("queries", request.queries, request.unknown)
        return self.known.shortened(request.queries), unknown, sum(map(len, request.queries))

    def merged(self, every: Sequence[Any], unknown: str) -> Any:
        """Return what the estimator is asked with."""
        return list(chain.from_iterable(every))

    def examples(self, n: int) -> list[Any]:
        """Return n real queries."""
        items = self.item_ids[: n + 1].tolist()
        return [items[max(place - 1, 0) : place + 1] for place in range(1, n + 1)]

    def kinds(self) -> list[Any]:
        """Return a session of two, and one without items."""
        return [*self.examples(1), []]


@dataclass(frozen=True, eq=False)
class IdQueries:
    """Ids that fit saw; or baskets, lists of items, which are folded in."""

    form: ClassVar[str] = "ids"
    ranker: Any
    known: KnownIds
    known_items: KnownIds
    limits: Limits

    @property
    def field(self) -> Field:
        """Return the field of a request."""
        basket = several(id_type(self.ranker.item_ids_), 0, self.limits.ids)
        return "queries", several(id_type(self.ranker.query_ids_) | basket, 1, self.limits.queries)

    def checked(self, request: Request) -> tuple[Any, NDArray[np.int64], int]:
        """Return the queries, how many ids of each are unknown, and how many ids there are."""
        queries = request.queries
        baskets = [type(query) is list for query in queries]
        if any(baskets) and not all(baskets):
            wrong = baskets.index(not baskets[0])
            kind = "a list of items" if baskets[0] else "an id"
            raise RequestError(f"queries[{wrong}]", f"expected {kind}, as the first query, found another kind")
        if baskets[0]:
            unknown = self.known_items.unknown_of_lists("queries", queries, request.unknown)
            return self.known_items.shortened(queries), unknown, sum(map(len, queries))
        return queries, self.known.unknown_of_ids("queries", queries, request.unknown), len(queries)

    def merged(self, every: Sequence[Any], unknown: str) -> Any:
        """Return what the estimator is asked with."""
        queries = list(chain.from_iterable(every))
        return self.ranker.fold_in(queries, unknown=unknown) if type(queries[0]) is list else queries

    def examples(self, n: int) -> list[Any]:
        """Return n real queries."""
        return np.resize(self.ranker.query_ids_, n).tolist()

    def kinds(self) -> list[Any]:
        """Return an id and a basket."""
        return [*self.examples(1), self.ranker.item_ids_[:2].tolist()]


@dataclass(frozen=True, eq=False)
class Catalogue:
    """One ranker, and what it is asked with."""

    ranker: Any
    queries: Queries
    known: KnownIds
    """Of the items."""
    limits: Limits
    n_context: int = 0
    """How many features of the queries fit had, beside sessions."""

    @classmethod
    def of(cls, ranker: Any, limits: Limits) -> Catalogue:
        """Find out what the queries of a ranker are."""
        items = KnownIds(ranker.item_ids_)
        match type(ranker).__name__:
            case "LatentFeatureRanker":
                return cls(ranker, FeatureQueries(ranker.n_features_in_, limits), items, limits)
            case "LatentRanker":
                return cls(ranker, IdQueries(ranker, KnownIds(ranker.query_ids_), items, limits), items, limits)
            case "SessionRanker":
                n_context = ranker.n_query_features_
            case _:
                n_context = 0
        return cls(ranker, SessionQueries(ranker.item_ids_, items, limits), items, limits, n_context)

    def doors(self) -> Doors:
        """Return the doors that the methods of the ranker open."""
        doors = [self._rank(), self._scores()]
        if type(self.ranker).__name__ in _EXPLAINED and "item_factors_" in vars(self.ranker):
            doors.append(self._explain())
        return {door.name: door for door in doors}

    def _switches(self, method: Any) -> list[Field]:
        """Return the fields of the switches that a method has."""
        item = id_type(self.ranker.item_ids_)
        lists = several(several(item, 0, self.limits.ids), 0, self.limits.queries)
        either = several(item | several(item, 0, self.limits.ids), 0, self.limits.ids)
        fields: dict[str, Field] = {
            "exclude": ("exclude", lists | None, None),
            "exclude_seen": ("exclude_seen", bool | Literal["last"], False),
            "candidates": ("candidates", either | None, None),
            "unknown": UNKNOWN,
        }
        taken = inspect.signature(method).parameters
        if "stage" in taken:
            fields["stage"] = ("stage", whole(0, self.ranker.n_stages_ - 1) | None, None)
        if self.n_context:
            rows = several(row_type(self.n_context), 1, self.limits.queries)
            fields["query_features"] = ("query_features", rows | None, None)
        return [field for name, field in fields.items() if name in taken]

    def _others(self, request: type[msgspec.Struct], **given: Any) -> list[Request]:
        """Return requests with every kind of query and every switch."""
        some = self.ranker.item_ids_[:3].tolist()
        switches: list[dict[str, Any]] = [
            {},
            {"exclude": [some[:1]]},
            {"candidates": some},
            {"candidates": [some]},
            {"exclude_seen": True},
            {"exclude_seen": "last"},
            {"unknown": "ignore"},
        ]
        if "stage" in request.__struct_fields__:
            switches += [{"stage": stage} for stage in range(self.ranker.n_stages_)]
        switches.append({"query_features": [[1.0] * self.n_context]})
        taken = set(request.__struct_fields__)
        made: Any = request  # a type made for this model: nobody knows its fields before
        return [
            made(queries=[query], **given, **switch)
            for query in self.queries.kinds()
            for switch in switches
            if switch.keys() <= taken
        ]

    def _rank(self) -> Door:
        n_items, switches = len(self.ranker.item_ids_), self._switches(self.ranker.rank)
        request = request_type("Rank", self.queries.field, places_field(self.limits, n_items), *switches)
        example = request(**self._asked(2))
        summary = "The k best items of each query, best first."
        kind = "texts" if self.ranker.item_ids_.dtype.kind == "U" else "whole numbers"
        form, about = self.queries.form, {"n_items": n_items, "ids": kind}
        if self.n_context:
            about["query_features"] = self.n_context
        ways = self._others(request)
        return Door("rank", request, Ranking, self._checked_lists, self._ranked, form, example, summary, ways, about)

    def _explain(self) -> Door:
        n_items, switches = len(self.ranker.item_ids_), self._switches(self.ranker.explain)
        request = request_type("Explain", self.queries.field, places_field(self.limits, n_items), *switches)
        few = min(3, n_items)
        example = request(**self._asked(1), k=few)
        summary = "The k best items of each query, and what made their scores."
        form, ways = self.queries.form, self._others(request, k=few)
        return Door("explain", request, Slate, self._checked_parts, self._explained, form, example, summary, ways)

    def _scores(self) -> Door:
        items: Field = ("items", several(id_type(self.ranker.item_ids_), 1, self.limits.ids))
        switches = self._switches(self.ranker.scores)
        request = request_type("Scores", self.queries.field, items, *switches)
        some = self.ranker.item_ids_[:3].tolist()
        example, ways = request(**self._asked(1), items=some), self._others(request, items=some)
        form, summary = self.queries.form, "The scores of the items given, for each query."
        return Door("scores", request, Ranking, self._checked_scores, self._scored, form, example, summary, ways)

    def _asked(self, n: int) -> dict[str, Any]:
        """Return the fields of a real request of n queries."""
        of_those_who_ask = {"query_features": [[0.0] * self.n_context] * n} if self.n_context else {}
        return {"queries": self.queries.examples(n), **of_those_who_ask}

    def _checked_queries(self, request: Request) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return what the queries of a request are, and what there is to say of them."""
        queries, unknown, n_ids = self.queries.checked(request)
        nothing = list(map(_has_nothing, queries, unknown.tolist()))
        own: dict[str, Any] = {"queries": queries, "unknown": unknown, "nothing": nothing}
        warnings = told_of("queries", unknown, n_ids)
        if self.n_context:
            given = request.query_features
            check_per_query("query_features", given, len(queries))
            rows = np.zeros((len(queries), self.n_context)) if given is None else feature_rows(given, "query_features")
            own["features"] = rows
            own["nothing"] = [none and not row.any() for none, row in zip(nothing, rows, strict=True)]
            if given is None:
                warnings += (f"query_features: fit had {self.n_context} and there are none: answered as with zeros",)
        if any(own["nothing"]):
            warnings += (f"queries: {sum(own['nothing'])} of {len(queries)} have no item that fit saw",)
        return own, warnings

    def _checked_lists(self, request: Request) -> Asked:
        own, warnings = self._checked_queries(request)
        queries, switches = own["queries"], _switches_of(request)
        check_numbers(self.limits, "k", len(queries), request.k)
        for name in ("exclude", "candidates"):
            warnings += self._check_items(name, switches.get(name), len(queries), request.unknown)
        common = switches.get("candidates")
        is_common = bool(common) and type(common[0]) is not list
        for name in ("exclude", "candidates"):
            of_queries = None if is_common and name == "candidates" else switches.pop(name, None)
            own[name] = None if of_queries is None else self.known.shortened(of_queries)
        key = request.k, type(queries[0]) is list, common is None, *_hashable(switches)
        return Asked(request, len(queries), key, warnings, {**own, "switches": {**switches, "k": request.k}})

    def _checked_parts(self, request: Request) -> Asked:
        """Check a request for explanations, which name what moved every item."""
        has_lists = type(self.ranker).__name__ != "SessionRanker" and self.ranker.n_stages_ > 1
        n_parts = 1 + (len(self.ranker.position_weights_) + 1 if has_lists else 0)
        check_numbers(self.limits, "k", len(request.queries), request.k * n_parts)
        return self._checked_lists(request)

    def _check_items(self, name: str, lists: Any, n_queries: int, unknown: str) -> tuple[str, ...]:
        if lists is None:
            return ()
        if lists and type(lists[0]) is not list:  # candidates of all queries
            kinds = {type(one) is list for one in lists}
            if len(kinds) > 1:
                raise RequestError(name, "expected ids, or a list of ids for each query, found both")
            counts, n_ids = self.known.unknown_of_ids(name, lists, unknown), len(lists)
            if counts.all():
                raise RequestError(name, "expected items that fit saw, found none")
            return told_of(name, counts, n_ids)
        if any(type(one) is not list for one in lists):
            raise RequestError(name, "expected ids, or a list of ids for each query, found both")
        check_per_query(name, lists, n_queries)
        return told_of(name, self.known.unknown_of_lists(name, lists, unknown), sum(map(len, lists)))

    def _checked_scores(self, request: Request) -> Asked:
        own, warnings = self._checked_queries(request)
        queries = own["queries"]
        check_numbers(self.limits, "items", len(queries), len(request.items))
        strange = self.known.unknown_of_ids("items", request.items, request.unknown)
        warnings += told_of("items", strange, len(request.items))
        switches = _switches_of(request, "items")
        key = fingerprint(request.items), type(queries[0]) is list, *_hashable(switches)
        return Asked(request, len(queries), key, warnings, {**own, "switches": switches})

    def _call(self, method: Any, batch: Sequence[Asked], **more: Any) -> Any:
        switches = dict(batch[0].parts["switches"])
        queries = self.queries.merged([asked.parts["queries"] for asked in batch], switches["unknown"])
        if self.n_context:
            more["query_features"] = np.concatenate([asked.parts["features"] for asked in batch])
        return method(queries, **switches, **more)

    def _call_lists(self, method: Any, batch: Sequence[Asked]) -> Any:
        """Ask with the lists of all requests; those that exclude nothing exclude nothing."""
        lists: dict[str, Any] = {}
        for name in ("exclude", "candidates"):
            every = [asked.parts[name] for asked in batch]
            if any(one is not None for one in every):
                empty: list[Any] = [[[]] * asked.size for asked in batch]
                lists[name] = list(chain.from_iterable(one or none for one, none in zip(every, empty, strict=True)))
        return self._call(method, batch, **lists)

    def _ranked(self, batch: Sequence[Asked]) -> list[list[Any]]:
        found = self._call_lists(self.ranker.rank, batch)
        ids, scores = found.lists(), [found.list_scores(place).tolist() for place in range(len(found))]
        return _shared_out(
            batch,
            lambda query, place, unknown, nothing: Ranking(query, ids[place].tolist(), scores[place], unknown, nothing),
        )

    def _explained(self, batch: Sequence[Asked]) -> list[list[Any]]:
        why = self._call_lists(self.ranker.explain, batch)
        return _shared_out(batch, partial(_slate, why, why.score))

    def _scored(self, batch: Sequence[Asked]) -> list[list[Any]]:
        items = batch[0].request.items
        scores = self._call(self.ranker.scores, batch, items=items)
        return _shared_out(
            batch,
            lambda query, place, unknown, nothing: Ranking(query, items, scores[place].tolist(), unknown, nothing),
        )


def catalogue_doors(ranker: Any, limits: Limits) -> Doors:
    """Return the doors of a ranker of a catalogue."""
    return Catalogue.of(ranker, limits).doors()


def _has_nothing(query: Any, n_unknown: int) -> bool:
    """Whether a query is a list of items that fit never saw."""
    return type(query) is list and len(cast("list[Any]", query)) == n_unknown


def _switches_of(request: Request, *own: str) -> dict[str, Any]:
    fields = msgspec.structs.asdict(request)
    return {name: value for name, value in fields.items() if name not in ("queries", "query_features", "k", *own)}


def _hashable(switches: dict[str, Any]) -> tuple[Any, ...]:
    values: list[Any] = list(switches.values())
    return tuple(fingerprint(cast("list[Any]", value)) if type(value) is list else value for value in values)


def _shared_out(batch: Sequence[Asked], part: Callable[[Any, int, int, bool], Any]) -> list[list[Any]]:
    """Make the part of every query, and give each request its own; queries without an id are numbered."""
    out: list[list[Any]] = []
    place = 0
    for asked in batch:
        queries, nothing = asked.parts["queries"], asked.parts["nothing"]
        unknown, has_ids = asked.parts["unknown"].tolist(), type(asked.request.queries[0]) is not list
        out.append([part(queries[n] if has_ids else n, place + n, unknown[n], nothing[n]) for n in range(asked.size)])
        place += asked.size
    return out


def _slate(why: Any, scores: NDArray[Any], query: Any, place: int, unknown: int, nothing: bool) -> Slate:
    neighbours = why.neighbours[place].tolist()
    parts: list[Part] = []
    for rank, name in enumerate(why.items[place].tolist()):
        if not np.isfinite(why.own[place, rank]):  # so many are excluded that none is left
            break
        moved = zip(neighbours, why.moved_by[place, rank].tolist(), strict=True)
        own, bias = float(why.own[place, rank]), float(why.bias[place, rank])
        parts.append(Part(name, float(scores[place, rank]), own, bias, [Moved(one, by) for one, by in moved]))
    return Slate(query, parts, unknown, nothing)
