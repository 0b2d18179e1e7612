"""The fields of requests as types: msgspec checks a body by them, and makes the schema of the document from them."""

from __future__ import annotations

from hashlib import blake2b
from itertools import chain
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from slatewise.serve.limits import Limits
from slatewise.web.codec import RequestError

MOST_LETTERS = 1000
Field: TypeAlias = "tuple[str, Any] | tuple[str, Any, Any]"


class Ranking(msgspec.Struct, frozen=True):
    """The list of one query, best first; of scores: in the order asked."""

    query: int | str
    """Its id where queries are ids, else its place in the request."""
    ids: list[int | str]
    scores: list[float | None]
    """An infinity, of what is known to be so, is null in JSON."""
    unknown: int = 0
    """How many ids of the query fit never saw."""
    nothing_known: bool = False
    """Of sessions and baskets: there is no item that fit saw, and the list is the same for everybody."""


def request_type(name: str, *fields: Field) -> type[msgspec.Struct]:
    """Return a type of requests that takes these fields and no others."""
    return msgspec.defstruct(name, fields, forbid_unknown_fields=True, frozen=True)


def whole(least: int, most: int) -> Any:
    """Return the type of whole numbers in a range."""
    return Annotated[int, Meta(ge=least, le=most)]


def id_type(known: NDArray[Any]) -> Any:
    """Return the type of ids like those that fit saw."""
    if known.dtype.kind == "U":
        return Annotated[str, Meta(max_length=MOST_LETTERS)]
    return whole(-(1 << 63), (1 << 63) - 1)


def several(of: Any, least: int, most: int) -> Any:
    """Return the type of lists."""
    return Annotated[list[of], Meta(min_length=least, max_length=most)]


def row_type(n_features: int) -> Any:
    """Return the type of one row of features."""
    return several(float, n_features, n_features)


def places_field(limits: Limits, most: int, default: int | None = 10) -> Field:
    """Return how deep a list is, never deeper than there are items."""
    deepest = min(limits.k, most)
    if default is None:
        return "k", whole(1, deepest) | None, None
    return "k", whole(1, deepest), min(default, deepest)


def fingerprint(ids: list[Any]) -> bytes:
    """Return what stands for a list in the key of a request: keys are compared while others wait, lists may be long."""
    return blake2b(msgspec.msgpack.encode(ids), digest_size=16).digest()


UNKNOWN: Field = ("unknown", Literal["error", "ignore"], "error")


def check_numbers(limits: Limits, name: str, n_queries: int, n_each: int) -> None:
    """Refuse an answer that would be too long."""
    if n_queries * n_each > limits.numbers:
        found = f"{n_queries} queries times {n_each}"
        raise RequestError(name, f"expected an answer of at most {limits.numbers} scores, found {found}")


def check_per_query(name: str, lists: list[Any] | None, n_queries: int) -> None:
    """Refuse lists that are not one per query."""
    if lists is not None and len(lists) != n_queries:
        raise RequestError(name, f"expected one for each of {n_queries} queries, found {len(lists)}")


def feature_rows(rows: list[list[float]], place: str = "queries") -> NDArray[np.float64]:
    """Return finite rows."""
    array = np.array(rows, dtype=np.float64)
    wrong = ~np.isfinite(array)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise RequestError(f"{place}[{row}][{column}]", f"expected a finite number, found {array[row, column]}")
    return array


class KnownIds:
    """Ids that fit saw, in ascending order, and who asks for others."""

    def __init__(self, ids: NDArray[Any]) -> None:
        self._ids = np.ascontiguousarray(ids)
        self._letters = self._ids.dtype.itemsize // 4 + 1

    def unknown_of_ids(self, name: str, ids: list[Any], unknown: str) -> NDArray[np.int64]:
        """Return 1 for every id that fit never saw, else 0; with "error" the first is refused by its place."""
        missing = self._missing(name, ids)
        if unknown == "error" and missing.any():
            place = int(np.argmax(missing))
            raise RequestError(f"{name}[{place}]", f"expected an id seen in fit, found {ids[place]!r}")
        return missing.astype(np.int64)

    def unknown_of_lists(self, name: str, lists: list[list[Any]], unknown: str) -> NDArray[np.int64]:
        """Count the ids of each list that fit never saw; with "error" the first is refused by its place."""
        sizes = np.array([len(ids) for ids in lists], dtype=np.int64)
        owners = np.repeat(np.arange(len(lists)), sizes)
        missing = self._missing(name, list(chain.from_iterable(lists)))
        if unknown == "error" and missing.any():
            owner = int(owners[np.argmax(missing)])
            place = int(np.argmax(missing)) - int(sizes[:owner].sum())
            raise RequestError(
                f"{name}[{owner}][{place}]", f"expected an id seen in fit, found {lists[owner][place]!r}"
            )
        return np.bincount(owners[missing], minlength=len(lists))

    def shortened(self, lists: Any) -> Any:
        """Cut texts one letter behind the longest of fit, so that they stay unknown.

        NumPy gives all texts of an array the room of the longest: a million of one letter and one of a thousand would
        take 4 GB.
        """
        if self._ids.dtype.kind != "U":
            return lists
        return [[text[: self._letters] for text in ids] for ids in lists]

    def _missing(self, name: str, ids: list[Any]) -> NDArray[np.bool_]:
        if not ids:
            return np.zeros(0, dtype=np.bool_)
        is_text = self._ids.dtype.kind == "U"
        asked = np.array(ids, dtype=f"U{self._letters}" if is_text else None)
        if is_text and any("\0" in text for text in ids):
            # NumPy drops zeros at the end of a text: it would be found under another name.
            raise RequestError(name, "expected texts without the character 0")
        places = np.minimum(np.searchsorted(self._ids, asked), len(self._ids) - 1)
        return self._ids[places] != asked


def told_of(name: str, unknown: NDArray[np.int64], n_ids: int) -> tuple[str, ...]:
    """Say how many ids fit never saw."""
    total = int(unknown.sum())
    return (f"{name}: {total} of {n_ids} ids were not seen in fit",) if total else ()
