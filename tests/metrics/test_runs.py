"""Runs against judgements, held to ir_measures (pytrec_eval) and to the array form."""

import warnings
from dataclasses import dataclass

import ir_measures
import numpy as np
import pandas
import polars
import pyarrow
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from slatewise.core.errors import DataWarning
from slatewise.metrics import NDCG, evaluate, evaluate_queries, evaluate_run, preset

TREC = preset("trec_eval")
PEER = {
    "ndcg@10": ir_measures.nDCG @ 10,
    "ndcg": ir_measures.nDCG,
    "map": ir_measures.AP,
    "mrr": ir_measures.RR,
    "p@10": ir_measures.P @ 10,
    "recall@5": ir_measures.R @ 5,
    "bep": ir_measures.Rprec,
}


def random_lists(n_lists, n_docs):
    """Scores distinct in float32; some documents unjudged, some judged documents not retrieved."""
    rng = np.random.default_rng(11)
    docs = np.array([f"d{number}" for number in range(n_docs + 5)])
    grades = rng.choice(4, size=(n_lists, n_docs + 5), p=[0.6, 0.2, 0.1, 0.1])
    scores = rng.permuted(np.tile(np.arange(n_docs) / 7, (n_lists, 1)), axis=1) + rng.normal(size=(n_lists, 1))
    assert all(len(np.unique(row)) == n_docs for row in scores.astype(np.float32))
    run = {f"q{q}": dict(zip(docs[:n_docs].tolist(), scores[q].tolist(), strict=True)) for q in range(n_lists)}
    judged = rng.random(grades.shape) < 0.7
    judged[:, 0] = True
    qrels = {f"q{q}": {docs[d]: int(grades[q, d]) for d in np.flatnonzero(judged[q])} for q in range(n_lists)}
    return run, qrels


def test_equals_ir_measures_on_ten_thousand_lists():
    run, qrels = random_lists(10_000, 12)
    evaluator = ir_measures.pytrec_eval.evaluator(list(PEER.values()), qrels)
    expected = {(str(found.measure), found.query_id): found.value for found in evaluator.iter_calc(run)}
    found = evaluate_queries([TREC.parse(name) for name in PEER], run, qrels)
    assert len(found.qid) == 10_000
    for name, measure in PEER.items():
        theirs = [expected[str(measure), qid] for qid in found.qid.tolist()]
        np.testing.assert_allclose(found.values[name], theirs, rtol=0, atol=1e-12)


DOCS = st.sampled_from(["a", "b", "B", "d1", "d10", "d9", "é", "z"])
# trec_eval counts grades in an array of the largest grade plus one: with negative grades only it reads past it and may
# never come back, so the peer is asked about queries with some other grade.
JUDGED = st.dictionaries(DOCS, st.integers(-1, 3), min_size=1).filter(lambda docs: max(docs.values()) >= 0)


@given(
    st.dictionaries(st.sampled_from("xyz"), st.dictionaries(DOCS, st.integers(0, 2), min_size=1), min_size=1),
    st.dictionaries(st.sampled_from("wxyz"), JUDGED, min_size=1),
    st.sampled_from([1e-9, 1.0]),
)
def test_ties_and_gaps_equal_pytrec_eval(run, qrels, step):
    """Ids break ties, also those that only float32 sees; unjudged, unretrieved and unanswered all occur."""
    run = {q: {d: 1.0 + step * s for d, s in docs.items()} for q, docs in run.items()}
    names = {"ndcg": "ndcg", "map": "map", "mrr": "recip_rank", "bep": "Rprec", "p@5": "P_5", "recall@5": "recall_5"}
    asked = {"ndcg", "map", "recip_rank", "Rprec", "P.5", "recall.5"}
    expected = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)
    if not expected:
        with pytest.raises(ValueError, match="at least one judged query"):
            evaluate_run([TREC.AP()], run, qrels)
        return
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = evaluate_queries([TREC.parse(name) for name in names], run, qrels)
    assert bool(told) == (set(run) != set(qrels))
    assert found.qid.tolist() == [q for q in qrels if q in run]
    for ours, theirs in names.items():
        values = [expected[q][theirs] for q in found.qid.tolist()]
        np.testing.assert_allclose(found.values[ours], values, rtol=0, atol=1e-12)


@dataclass(frozen=True)
class Rows:
    qid: np.ndarray
    doc_ids: np.ndarray
    scores: np.ndarray
    relevance: np.ndarray


def test_arrays_and_dicts_agree():
    run, qrels = random_lists(30, 12)
    rows = [(q, d, s) for q, docs in run.items() for d, s in docs.items()]
    judged = [(q, d, r) for q, docs in qrels.items() for d, r in docs.items()]
    order = np.random.default_rng(0).permutation(len(rows))
    columns = [np.array(column)[order] for column in zip(*rows, strict=True)]
    truth = [np.array(column) for column in zip(*judged, strict=True)]
    as_rows = Rows(*columns, np.zeros(0)), Rows(truth[0], truth[1], np.zeros(0), truth[2])
    assert evaluate_run(["ndcg@5", "map"], *as_rows) == evaluate_run(["ndcg@5", "map"], run, qrels)


def forms(rows):
    """Every form that a run or judgements may come in; ``rows`` has qid, doc_ids and a column of values."""
    named = {"qid": rows.qid, "doc_id": rows.doc_ids}
    value = "scores" if len(rows.scores) else "relevance"
    values = getattr(rows, value)
    short = "score" if value == "scores" else "label"
    yield rows
    yield rows.qid, rows.doc_ids, values
    yield rows.qid.tolist(), rows.doc_ids.tolist(), values.tolist()
    yield named | {value: values}
    yield pandas.DataFrame({"query_id": rows.qid, "docno": rows.doc_ids, short: values, "rank": 1})
    yield pandas.DataFrame(named | {value: values}).convert_dtypes()
    yield polars.DataFrame({"query": rows.qid, "item": rows.doc_ids, short: values})
    yield pyarrow.table({"qid": rows.qid, "doc_ids": rows.doc_ids, value: values})


def test_frames_tuples_and_dicts_of_arrays_agree_with_nested_dicts():
    run, qrels = random_lists(20, 8)
    columns = [np.array(c) for c in zip(*[(q, d, s) for q, ds in run.items() for d, s in ds.items()], strict=True)]
    truth = [np.array(c) for c in zip(*[(q, d, r) for q, ds in qrels.items() for d, r in ds.items()], strict=True)]
    expected = evaluate_run(["ndcg@5", "map"], run, qrels)
    answers, judgements = Rows(*columns, np.zeros(0)), Rows(truth[0], truth[1], np.zeros(0), truth[2])
    for form in forms(answers):
        assert evaluate_run(["ndcg@5", "map"], form, qrels) == expected
    for form in forms(judgements):
        assert evaluate_run(["ndcg@5", "map"], run, form) == expected


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ((["q"], ["a"]), "run: expected three arrays, qid, documents and values, found 2"),
        ({"qid": ["q"], "doc_id": ["a"]}, "run: expected one column called 'scores' or 'score', found 'qid', 'doc_id'"),
        ({"qid": ["q"], "doc_id": ["a"], "docno": ["a"], "score": [1.0]}, "found 'doc_id', 'docno'"),
        (
            pandas.DataFrame({"qid": ["q", None], "doc_id": ["a", "b"], "score": [1.0, 2.0]}),
            r"run.qid\[1\]: expected an id",
        ),
        (
            polars.DataFrame({"qid": [1, None], "doc_id": ["a", "b"], "score": [1.0, 2.0]}),
            r"run.qid\[1\]: expected an id",
        ),
        (polars.DataFrame({"qid": ["q"], "doc_id": ["a"], "score": [None]}), "run"),
        ((["q"], ["a"], [1j]), "run: expected numbers, found dtype complex128"),
        ((["q"], ["a"], [None]), "run: expected numbers, found dtype object"),
        (([["q"]], ["a"], [1.0]), "run: expected as many qid as documents and values"),
        (7, "run: expected {qid: {document: value}}, three arrays, a frame, or an object .* found int"),
    ],
)
def test_bad_forms_are_refused_by_name(run, message):
    with pytest.raises(ValueError, match=message):
        evaluate_run(["map"], run, {"q": {"a": 1}})


def test_complete_judgements_equal_arrays():
    rng = np.random.default_rng(5)
    relevance, scores = rng.integers(0, 3, size=(20, 8)), rng.integers(0, 4, size=(20, 8))
    names = ["ndcg@3", "map", "mrr", "auc", "mean_rank", "bep"]
    run = {f"q{q}": {f"d{d}": scores[q, d] for d in range(8)} for q in range(20)}
    qrels = {f"q{q}": {f"d{d}": relevance[q, d] for d in range(8)} for q in range(20)}
    assert evaluate_run(names, run, qrels) == evaluate(names, relevance, scores)


def test_missing_queries():
    run, qrels = {"a": {"x": 1.0}, "unjudged": {"x": 1.0}}, {"b": {"x": 1}, "a": {"x": 1, "y": 1}}
    with pytest.warns(DataWarning, match="left out 1 of 2 judged queries .* and 1 answered query without judgements"):
        assert evaluate_run(["recall@1", "p@1"], run, qrels) == {"recall@1": 0.5, "p@1": 1.0}
    with pytest.warns(DataWarning, match="run: left out 1 answered query without judgements$"):
        assert evaluate_run(["recall@1", "p@1", "ndcg"], run, qrels, missing="zero") == pytest.approx(
            {"recall@1": 0.25, "p@1": 0.5, "ndcg": 0.5 / (1 + 1 / np.log2(3))}
        )
    del run["unjudged"]
    assert evaluate_queries(["mrr"], run, qrels, missing="zero").qid.tolist() == ["b", "a"]


@pytest.mark.parametrize("run", [{}, {"a": {}}, (np.empty(0, str), np.empty(0, str), np.empty(0)), {"b": {}, "a": {}}])
def test_an_empty_run_counts_0(run):
    qrels = {"a": {"x": 1}, "b": {"x": 2, "y": 0}}
    names = ["ndcg@10", "map", "mrr", "p@5", "recall@5", "bep", "mean_ndcg"]
    assert evaluate_run(names, run, qrels, missing="zero") == dict.fromkeys(names, 0.0)
    with pytest.raises(ValueError, match="run: expected an answer to at least one judged query"):
        evaluate_run(names, run, qrels)


def test_unretrieved_relevant_items_have_no_rank():
    run, qrels = {"a": {"x": 1.0}}, {"a": {"x": 0, "y": 1}}
    for name in ("auc", "mean_rank"):
        with pytest.raises(ValueError, match="was not retrieved"):
            evaluate_run([name], run, qrels)


def test_unretrieved_items_of_negative_relevance_stand_at_the_end_of_the_ideal():
    measure = NDCG(labels="any", gain="linear")
    run, qrels = {"q": {"a": 2.0}}, {"q": {"a": 2, "zero": 0, "minus": -1}}
    assert evaluate_run([measure], run, qrels)["ndcg"] == pytest.approx(2 / (2 - 1 / 2))


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        ({}, {"q": {"a": 1}}, "run: expected an answer to at least one judged query, found none"),
        ({"q": {"a": 1.0}}, {}, "qrels: expected at least one row"),
        ({"q": {"a": float("nan")}}, {"q": {"a": 1}}, r"run\[0\]: expected a finite number, found nan"),
        ({"q": {"a": 1.0}}, {"r": {"a": 1}}, "run: expected an answer to at least one judged query"),
    ],
)
def test_bad_runs(run, qrels, message):
    with pytest.raises(ValueError, match=message):
        evaluate_run(["map"], run, qrels)


def test_repeated_documents_and_uneven_columns():
    twice = Rows(np.array(["q", "q"]), np.array(["a", "a"]), np.array([1.0, 2.0]), np.array([1, 1]))
    with pytest.raises(ValueError, match="run: expected each document once a query, found a twice for q"):
        evaluate_run(["map"], twice, {"q": {"a": 1}})
    with pytest.raises(ValueError, match="qrels: expected each document once a query"):
        evaluate_run(["map"], {"q": {"a": 1.0}}, twice)
    uneven = Rows(np.array(["q"]), np.array(["a", "b"]), np.array([1.0, 2.0]), np.array([1, 1]))
    with pytest.raises(ValueError, match="run: expected as many qid"):
        evaluate_run(["map"], uneven, {"q": {"a": 1}})
    with pytest.raises(ValueError, match="missing: expected 'skip', 'zero'"):
        evaluate_run(["map"], {"q": {"a": 1.0}}, {"q": {"a": 1}}, missing="drop")
