"""Runs against judgments: match documents by id, and keep what was judged but not retrieved."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.errors import DataWarning
from slatewise.core.groups import group_rows
from slatewise.metrics.conventions import Array, check_choice
from slatewise.metrics.lists import Scored, Unretrieved, finite

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

Missing: TypeAlias = Literal["skip", "zero"]


class _DocumentRows(Protocol):
    @property
    def qid(self) -> NDArray[Any]:
        """The list of each row."""
        ...

    @property
    def doc_ids(self) -> NDArray[Any]:
        """The document of each row."""
        ...


class RunLike(_DocumentRows, Protocol):
    """Row i: list ``qid[i]`` got document ``doc_ids[i]`` with ``scores[i]``."""

    @property
    def scores(self) -> NDArray[Any]:
        """The score of each row."""
        ...


class QrelsLike(_DocumentRows, Protocol):
    """Row i: document ``doc_ids[i]`` has ``relevance[i]`` for list ``qid[i]``."""

    @property
    def relevance(self) -> NDArray[Any]:
        """The relevance of each row."""
        ...


Columns: TypeAlias = "tuple[ArrayLike, ArrayLike, ArrayLike] | Mapping[str, ArrayLike] | IntoDataFrame"
"""Query, document and value of each row: three arrays, arrays by name, or a frame with such columns."""
RunInput: TypeAlias = "RunLike | Mapping[str, Mapping[str, float]] | Columns"
QrelsInput: TypeAlias = "QrelsLike | Mapping[str, Mapping[str, float]] | Columns"
_Rows: TypeAlias = tuple[Array, Array, Floats]

_QUERY = ("qid", "query_id", "query")
_DOCUMENT = ("doc_ids", "doc_id", "docno", "item")
_SCORE = ("scores", "score")
_RELEVANCE = ("relevance", "rel", "label")
_ABSENT = ("NoneType", "NAType", "NaTType")
"""None, and what pandas has for it."""


def read_run(run: RunInput, qrels: QrelsInput, missing: Missing) -> tuple[Array, Scored]:
    """Return the query ids, in the order of the judgments, and the lists to measure."""
    check_choice("missing", missing, ("skip", "zero"))
    run_qid, docs, scores = _rows("run", run, _SCORE)
    judged_qid, judged_docs, relevance = _rows("qrels", qrels, _RELEVANCE)
    if len(judged_qid) == 0:
        raise ValueError("qrels: expected at least one row, found none")
    query_code: dict[Hashable, int] = {}
    doc_code: dict[Hashable, int] = {}
    judged_query = _codes(judged_qid, query_code)
    names = np.array(list(query_code))
    run_query = _codes(run_qid, query_code)
    # One integer a (query, document) pair: the join is a binary search.
    judged_doc, doc = _codes(judged_docs, doc_code), _codes(docs, doc_code)
    judged_key, key = judged_query * len(doc_code) + judged_doc, run_query * len(doc_code) + doc
    order = _unique_order("qrels", judged_key, judged_qid, judged_docs)
    _unique_order("run", key, run_qid, docs)
    answered = np.zeros(len(query_code), dtype=np.bool_)
    answered[run_query] = True
    kept = np.flatnonzero(answered[: len(names)]) if missing == "skip" else np.arange(len(names))
    if len(kept) == 0:
        raise ValueError("run: expected an answer to at least one judged query, found none (missing='zero' allows it)")
    _warn_of_left_out(len(names) - len(kept), len(names), int(answered[len(names) :].sum()))
    number = np.full(len(query_code), -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))

    ranked = number[run_query] >= 0
    groups = group_rows(number[run_query[ranked]], int(ranked.sum()))
    lengths = np.zeros(len(kept), dtype=np.int64)
    lengths[groups.ids] = np.diff(groups.offsets)
    by_list = np.flatnonzero(ranked)[np.argsort(number[run_query[ranked]], kind="stable")]
    place = np.minimum(np.searchsorted(judged_key[order], key[by_list]), len(order) - 1)
    matched = judged_key[order][place] == key[by_list]
    retrieved = np.zeros(len(judged_key), dtype=np.bool_)
    retrieved[order[place[matched]]] = True
    left_out = ~retrieved & (number[judged_query] >= 0)
    scored = Scored(
        scores[by_list],
        np.where(matched, relevance[order[place]], 0.0),
        np.concatenate(([0], np.cumsum(lengths))),
        docs[by_list],
        Unretrieved(number[judged_query[left_out]], relevance[left_out]),
    )
    return names[kept], scored


def continued(scored: Scored) -> tuple[Scored, Ints]:
    """Put the relevant documents that a run lacks right after the ends of their lists; also return how many of each."""
    n_lists, absent = len(scored.lengths), scored.unretrieved
    if absent is None:
        return scored, np.zeros(n_lists, dtype=np.int64)
    wanted = absent.relevance > 0
    owners = np.concatenate((np.repeat(np.arange(n_lists), scored.lengths), absent.lists[wanted]))
    # Whole numbers for scores: there is always a smaller one, and what tied still does.
    steps = np.unique(scored.scores, return_inverse=True)[1].astype(np.float64)
    after = np.arange(-1.0, -1.0 - int(wanted.sum()), -1.0)
    order = np.argsort(owners, kind="stable")
    ids = None if scored.ids is None else np.concatenate((scored.ids.astype(np.str_), np.full(len(after), "")))[order]
    longer = Scored(
        np.concatenate((steps, after))[order],
        np.concatenate((scored.relevance, absent.relevance[wanted]))[order],
        np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=n_lists)))),
        ids,
        Unretrieved(absent.lists[~wanted], absent.relevance[~wanted]),
    )
    return longer, np.bincount(absent.lists[wanted], minlength=n_lists)


def _warn_of_left_out(unanswered: int, n_judged: int, unjudged: int) -> None:
    what = [f"{unanswered} of {n_judged} judged queries without an answer (missing='zero' counts them as 0)"]
    what = what if unanswered else []
    if unjudged:
        what.append(f"{unjudged} answered {'query' if unjudged == 1 else 'queries'} without judgements")
    if what:
        warnings.warn(f"run: left out {' and '.join(what)}", DataWarning, stacklevel=5)


def _rows(argument: str, given: Any, value_names: tuple[str, ...]) -> _Rows:
    columns = _columns(argument, given, value_names)
    for name, column in zip(("qid", "doc_ids"), columns, strict=False):
        # Before NumPy makes text of them: a missing id would be called "nan" or "None".
        ids = cast("list[Any]", column if isinstance(column, list) else np.asarray(column).ravel().tolist())
        absent = next((row for row, value in enumerate(ids) if _is_absent(value)), None)
        if absent is not None:
            raise ValueError(f"{argument}.{name}[{absent}]: expected an id, found a missing value")
    qid, doc_ids, values = (np.asarray(column) for column in columns)
    if any(column.ndim != 1 for column in (qid, doc_ids, values)) or not len(qid) == len(doc_ids) == len(values):
        shapes = ", ".join(str(len(column) if column.ndim == 1 else column.shape) for column in (qid, doc_ids, values))
        raise ValueError(f"{argument}: expected as many qid as documents and values, found {shapes}")
    return qid, doc_ids, finite(argument, values if len(values) else np.empty(0))


def _is_absent(value: object) -> bool:
    return (isinstance(value, float) and value != value) or type(value).__name__ in _ABSENT


def _columns(argument: str, given: object, value_names: tuple[str, ...]) -> tuple[Any, Any, Any]:
    """Tell the forms apart; return the queries, documents and values of the rows."""
    if isinstance(given, Mapping):
        return _of_mapping(argument, cast("Mapping[Any, Any]", given), value_names)
    attributes = (_QUERY[0], _DOCUMENT[0], value_names[0])
    if all(hasattr(given, name) for name in attributes):
        qid, doc_ids, values = (getattr(given, name) for name in attributes)
        return qid, doc_ids, values
    if isinstance(given, tuple):
        parts = cast("tuple[Any, ...]", given)
        if len(parts) != 3:
            raise ValueError(f"{argument}: expected three arrays, qid, documents and values, found {len(parts)}")
        return parts[0], parts[1], parts[2]
    return _of_frame(argument, given, value_names)


def _of_mapping(argument: str, given: Mapping[Any, Any], value_names: tuple[str, ...]) -> tuple[Any, Any, Any]:
    if all(isinstance(found, Mapping) for found in given.values()):
        return (
            [query for query, docs in given.items() for _ in docs],
            [doc for found in given.values() for doc in found],
            [value for found in given.values() for value in found.values()],
        )
    names = _names(argument, list(given), value_names)
    return given[names[0]], given[names[1]], given[names[2]]


def _of_frame(argument: str, given: Any, value_names: tuple[str, ...]) -> tuple[Any, Any, Any]:
    import narwhals as nw  # only for frames: measures need NumPy alone

    try:
        frame = nw.from_native(given, eager_only=True)
    except TypeError:
        raise ValueError(
            f"{argument}: expected {{qid: {{document: value}}}}, three arrays, a frame, or an object with qid, doc_ids "
            f"and {value_names[0]}, found {type(given).__name__}"
        ) from None
    names = _names(argument, frame.columns, value_names)
    return frame[names[0]].to_list(), frame[names[1]].to_list(), frame[names[2]].to_numpy()


def _names(argument: str, names: list[str], value_names: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for wanted in (_QUERY, _DOCUMENT, value_names):
        here = [name for name in wanted if name in names]
        if len(here) != 1:
            raise ValueError(
                f"{argument}: expected one column called {' or '.join(map(repr, wanted))}, "
                f"found {', '.join(map(repr, here or names)) or 'none'}"
            )
        found.append(here[0])
    return found


def _codes(values: Iterable[Hashable] | Array, code: dict[Hashable, int]) -> Ints:
    """Number values by first appearance, continuing the numbers given so far."""
    return np.array([code.setdefault(value, len(code)) for value in np.asarray(values).tolist()], dtype=np.int64)


def _unique_order(argument: str, key: Ints, qid: Array, docs: Array) -> Ints:
    order = np.argsort(key)
    twice = np.flatnonzero(key[order][1:] == key[order][:-1])
    if len(twice):
        row = order[twice[0]]
        raise ValueError(f"{argument}: expected each document once a query, found {docs[row]} twice for {qid[row]}")
    return order
