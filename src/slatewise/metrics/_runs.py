"""Runs against judgements: match documents by id, and keep what was judged but not retrieved."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.lists import group_rows
from slatewise.metrics._input import Scored, Unretrieved, finite
from slatewise.metrics.conventions import Array, Float, Int, check_choice

Missing: TypeAlias = Literal["skip", "zero"]


class RunLike(Protocol):
    """Row i: list ``qid[i]`` got document ``doc_ids[i]`` with ``scores[i]``."""

    @property
    def qid(self) -> NDArray[Any]: ...
    @property
    def doc_ids(self) -> NDArray[Any]: ...
    @property
    def scores(self) -> NDArray[Any]: ...


class QrelsLike(Protocol):
    """Row i: document ``doc_ids[i]`` has ``relevance[i]`` for list ``qid[i]``."""

    @property
    def qid(self) -> NDArray[Any]: ...
    @property
    def doc_ids(self) -> NDArray[Any]: ...
    @property
    def relevance(self) -> NDArray[Any]: ...


RunInput: TypeAlias = RunLike | Mapping[str, Mapping[str, float]]
QrelsInput: TypeAlias = QrelsLike | Mapping[str, Mapping[str, float]]
_Rows: TypeAlias = tuple[Array, Array, Float]


def read_run(run: RunInput, qrels: QrelsInput, missing: Missing) -> tuple[Array, Scored]:
    """Return the query ids, in the order of the judgements, and the lists to measure."""
    check_choice("missing", missing, ("skip", "zero"))
    run_qid, docs, scores = (
        _flatten("run", run) if isinstance(run, Mapping) else _rows("run", run.qid, run.doc_ids, run.scores)
    )
    judged_qid, judged_docs, relevance = (
        _flatten("qrels", qrels)
        if isinstance(qrels, Mapping)
        else _rows("qrels", qrels.qid, qrels.doc_ids, qrels.relevance)
    )
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
        raise ValueError("run: expected an answer to at least one judged query, found none")
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


def _flatten(argument: str, nested: Mapping[str, Mapping[str, float]]) -> _Rows:
    qid = [query for query, docs in nested.items() for _ in docs]
    docs = [doc for found in nested.values() for doc in found]
    values = [value for found in nested.values() for value in found.values()]
    return _rows(argument, np.array(qid), np.array(docs), np.array(values))


def _rows(argument: str, qid: Array, doc_ids: Array, values: Array) -> _Rows:
    if not len(qid) == len(doc_ids) == len(values):
        raise ValueError(
            f"{argument}: expected as many qid as documents and values, found {len(qid)}, {len(doc_ids)}, {len(values)}"
        )
    if len(qid) == 0:
        raise ValueError(f"{argument}: expected at least one row, found none")
    return qid, doc_ids, finite(argument, values)


def _codes(values: Iterable[Hashable] | Array, code: dict[Hashable, int]) -> Int:
    """Number values by first appearance, continuing the numbers given so far."""
    return np.array([code.setdefault(value, len(code)) for value in np.asarray(values).tolist()], dtype=np.int64)


def _unique_order(argument: str, key: Int, qid: Array, docs: Array) -> Int:
    order = np.argsort(key)
    twice = np.flatnonzero(key[order][1:] == key[order][:-1])
    if len(twice):
        row = order[twice[0]]
        raise ValueError(f"{argument}: expected each document once a query, found {docs[row]} twice for {qid[row]}")
    return order
