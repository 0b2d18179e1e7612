"""An endpoint of a model, requests that passed its checks, and the pieces that requests and answers are made of.

Msgspec checks a body by the types made here and writes the schema of the OpenAPI document from them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.rankings import Rankings
from slatewise.recommend.ids import find_ids
from slatewise.serve.settings import Limits
from slatewise.web.codec import RequestError

MAX_ID_LENGTH = 1000
Request: TypeAlias = Any
"""An instance of an endpoint's request type, whose fields depend on the model."""
Field: TypeAlias = "tuple[str, Any] | tuple[str, Any, Any]"
UNKNOWN: Field = ("unknown", Literal["error", "ignore"], "error")


class Query(NamedTuple):
    """How the answer names a query (its id, or its number in the request), and what is unknown of it."""

    name: int | str
    n_unknown: int = 0
    nothing_known: bool = False


@dataclass(frozen=True, eq=False)
class CheckedRequest:
    """A request that passed all checks.

    Attributes
    ----------
    size
        The number of queries.
    key
        Requests with the same key can be answered together; None: alone.
    parts
        Arrays and lists that the check has made of the request.
    named
        The queries by name; default: by number.
    """

    request: Request
    size: int
    key: Hashable | None
    warnings: tuple[str, ...] = ()
    parts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    named: Sequence[Query] = ()

    @property
    def queries(self) -> Sequence[Query]:
        """Return the queries as the answer names them."""
        return self.named or [Query(number) for number in range(self.size)]


@dataclass(frozen=True, eq=False)
class Endpoint:
    """One route of one version of a model.

    Attributes
    ----------
    name
        As in the path: rank, scores, explain, next_question.
    request
        The type of requests.
    part
        The type of the answer to one query.
    check
        Returns the checked request, or raises RequestError for what its type cannot express.
    respond
        Answers requests of one key, each with a list of one part per query.
    form
        What its queries are: ids, sessions, rows or documents.
    example
        A real request, answered at the start and shown in the OpenAPI document.
    warmup_requests
        Requests that compile the other code paths of the estimator at the start.
    about
        More about the model: the number of its items, and the type of their ids.
    """

    name: str
    request: type[msgspec.Struct]
    part: type[msgspec.Struct]
    check: Callable[[Request], CheckedRequest]
    respond: Callable[[Sequence[CheckedRequest]], list[list[Any]]]
    form: str
    example: Request
    summary: str = ""
    warmup_requests: Sequence[Request] = ()
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])


Endpoints: TypeAlias = Mapping[str, Endpoint]


class Ranking(msgspec.Struct, frozen=True):
    """The list of one query, best first; for scores, in the order of the request."""

    query: int | str
    """Its id if queries are ids, else its number in the request."""
    ids: list[int | str]
    scores: list[float | None]
    """Infinite scores (certain labels) are null in JSON."""
    unknown: int = 0
    """The number of ids of the query that were not seen in fit."""
    nothing_known: bool = False
    """For sessions and baskets: no item was seen in fit, and the list is the same for all such queries."""


def rankings(batch: Sequence[CheckedRequest], ids: Sequence[Any], scores: Any) -> list[list[Any]]:
    """Return the lists of all queries, one after the other, as answers to the requests of a batch."""
    return split_by_request(
        batch,
        lambda query, at: Ranking(query.name, ids[at], scores[at].tolist(), query.n_unknown, query.nothing_known),
    )


def best_first(batch: Sequence[CheckedRequest], found: Rankings) -> list[list[Any]]:
    """Return the rankings of all queries as answers to the requests of a batch."""
    scores = [found.list_scores(at) for at in range(len(found))]
    return rankings(batch, [ids.tolist() for ids in found.lists()], scores)


def split_by_request(batch: Sequence[CheckedRequest], part: Callable[[Query, int], Any]) -> list[list[Any]]:
    """Make the part of every query, by its name and its number in the batch, and split them by request."""
    parts = iter([part(query, at) for at, query in enumerate(chain.from_iterable(one.queries for one in batch))])
    return [[next(parts) for _ in range(one.size)] for one in batch]


def request_type(name: str, *fields: Field) -> type[msgspec.Struct]:
    """Return a type of requests that takes these fields and no others."""
    return msgspec.defstruct(name, fields, forbid_unknown_fields=True, frozen=True)


def integer_type(lowest: int, highest: int) -> Any:
    """Return the type of integers in a range."""
    return Annotated[int, Meta(ge=lowest, le=highest)]


ANY_INTEGER = integer_type(-(1 << 63), (1 << 63) - 1)


def id_type(known: NDArray[Any]) -> Any:
    """Return the type of ids like those that fit saw."""
    return Annotated[str, Meta(max_length=MAX_ID_LENGTH)] if known.dtype.kind == "U" else ANY_INTEGER


def list_type(of: Any, shortest: int, longest: int) -> Any:
    """Return the type of lists of a length in a range."""
    return Annotated[list[of], Meta(min_length=shortest, max_length=longest)]


def row_type(n_features: int) -> Any:
    """Return the type of one row of features."""
    return list_type(float, n_features, n_features)


def k_field(limits: Limits, n_items: int, default: int | None = 10) -> Field:
    """Return the field for the length of lists, at most the number of items."""
    longest = min(limits.k, n_items)
    if default is None:
        return "k", integer_type(1, longest) | None, None
    return "k", integer_type(1, longest), min(default, longest)


def fingerprint(ids: list[Any]) -> bytes:
    """Return a digest that stands for a long list in the key of a request, because keys are compared often."""
    return blake2b(msgspec.msgpack.encode(ids), digest_size=16).digest()


def check_numbers(limits: Limits, name: str, n_queries: int, n_each: int) -> None:
    """Refuse a request for more scores than the limit."""
    if n_queries * n_each > limits.numbers:
        found = f"{n_queries} queries times {n_each}"
        raise RequestError(name, f"expected an answer of at most {limits.numbers} scores, found {found}")


def check_per_query(name: str, lists: list[Any] | None, n_queries: int) -> None:
    """Refuse lists that are not one per query."""
    if lists is not None and len(lists) != n_queries:
        raise RequestError(name, f"expected one for each of {n_queries} queries, found {len(lists)}")


def feature_rows(rows: list[list[float]], place: str = "queries") -> Floats:
    """Return rows as an array; refuse numbers that are not finite."""
    array = np.array(rows, dtype=np.float64)
    wrong = ~np.isfinite(array)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise RequestError(f"{place}[{row}][{column}]", f"expected a finite number, found {array[row, column]}")
    return array


class KnownIds:
    """Ids that fit saw, in ascending order; counts unknown ones in requests."""

    def __init__(self, ids: NDArray[Any]) -> None:
        self._ids = np.ascontiguousarray(ids)
        self._is_text = self._ids.dtype.kind == "U"
        self._length = self._ids.dtype.itemsize // 4 + 1

    def count_ids(self, name: str, ids: list[Any], unknown: str) -> tuple[Ints, tuple[str, ...]]:
        """Return 1 for every unknown id, else 0, and a warning; with "error" the first unknown id is refused."""
        missing = self._missing(name, ids)
        if unknown == "error" and missing.any():
            at = int(np.argmax(missing))
            raise RequestError(f"{name}[{at}]", f"expected an id seen in fit, found {ids[at]!r}")
        return missing.astype(np.int64), _unknown_id_warnings(name, missing)

    def count_lists(self, name: str, lists: list[list[Any]], unknown: str) -> tuple[Ints, tuple[str, ...]]:
        """Return the number of unknown ids of each list, and a warning; with "error" the first one is refused."""
        sizes = np.array([len(ids) for ids in lists], dtype=np.int64)
        owners = np.repeat(np.arange(len(lists)), sizes)
        missing = self._missing(name, list(chain.from_iterable(lists)))
        if unknown == "error" and missing.any():
            owner = int(owners[np.argmax(missing)])
            at = int(np.argmax(missing)) - int(sizes[:owner].sum())
            raise RequestError(f"{name}[{owner}][{at}]", f"expected an id seen in fit, found {lists[owner][at]!r}")
        return np.bincount(owners[missing], minlength=len(lists)), _unknown_id_warnings(name, missing)

    def shortened(self, lists: Any) -> Any:
        """Cut texts one letter beyond the longest known id, so that they stay unknown.

        NumPy gives all texts of an array the room of the longest: a million of one letter and one of a thousand would
        take 4 GB.
        """
        return [[text[: self._length] for text in ids] for ids in lists] if self._is_text else lists

    def _missing(self, name: str, ids: list[Any]) -> NDArray[np.bool_]:
        if not ids:
            return np.zeros(0, dtype=np.bool_)
        if self._is_text and any("\0" in text for text in ids):
            # NumPy drops zeros at the end of a text, so that it would be found as another id.
            raise RequestError(name, "expected texts without the character 0")
        return find_ids(np.array(ids, dtype=f"U{self._length}" if self._is_text else None), self._ids) < 0


def _unknown_id_warnings(name: str, missing: NDArray[np.bool_]) -> tuple[str, ...]:
    total = int(missing.sum())
    return (f"{name}: {total} of {len(missing)} ids were not seen in fit",) if total else ()
