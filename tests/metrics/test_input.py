"""Bad arguments are errors that name the argument and say what was expected."""

import numpy as np
import pytest

from slatewise.metrics import AP, AUC, NDCG, RR, BreakEven, MeanRank, Precision, Recall, evaluate, parse, preset


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], [0.1, np.nan]), r"scores\[1\]: expected a finite number, found nan"),
        (([[1, 0]], [[0.1, np.inf]]), r"scores\[0, 1\]: expected a finite number, found inf"),
        (([np.nan, 0], [0.1, 0.2]), r"relevance\[0\]: expected a finite number, found nan"),
        (([1, 0], [0.1]), r"scores: expected the shape of relevance, \(2,\), found \(1,\)"),
        ((["1", "0"], [0.1, 0.2]), "relevance: expected numbers, found dtype <U1"),
        (([[[1]]], [[[1]]]), "scores: expected a non-empty 1-D or 2-D array"),
        (([], []), "scores: expected a non-empty"),
        (([1, 0], [1, 2], [1]), r"qid: expected one id per row, shape \(2,\), found shape \(1,\)"),
        (([[1, 0]], [[1, 2]], [1]), "qid: expected None with 2-D scores"),
        (([1, 0], [1, 2], None, ["a"]), r"ids: expected one id per row, shape \(2,\)"),
        (([[1, 0]], [[1, 2]], None, ["a"]), r"ids: expected shape \(1, 2\) or \(2,\), found shape \(1,\)"),
        (([-1, 0], [1, 2]), "relevance: expected numbers >= 0 .*, found -1"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        NDCG(3)(*arguments)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Precision(0), "k: expected a whole number >= 1 or None, found 0"),
        (lambda: Recall(-3), "k: expected"),
        (lambda: RR(True), "k: expected"),
        (lambda: NDCG(3, gain="log"), "gain: expected 'exp2', 'linear', 'positive', found 'log'"),
        (lambda: NDCG(3, discount="ln"), "discount: expected 'log2', 'letor'"),
        (lambda: NDCG(3, empty=2), "empty: expected 0, 1, 'skip', found 2"),
        (lambda: NDCG(3, labels="stars"), "labels: expected 'any'"),
        (lambda: NDCG(3, score_type="half"), "score_type: expected"),
        (lambda: AP(threshold=0), "threshold: expected a finite number > 0, found 0"),
        (lambda: AP(norm="k"), "norm: expected 'relevant', 'reachable'"),
        (lambda: AUC(ties="together"), "ties: expected 'average', 'input', 'id', 'worst', 'best', found 'together'"),
        (lambda: Precision(3, short="m"), "short: expected 'k', 'n'"),
        (lambda: parse("ndgc@10"), "measure: expected one of ndcg@k, .*, found 'ndgc@10'"),
        (lambda: parse("auc@3"), "measure: expected 'auc' without a cut-off"),
        (lambda: parse("p@0"), "k: expected a whole number >= 1"),
        (lambda: preset("solr"), "preset: expected 'slatewise', 'trec_eval', .*, found 'solr'"),
        (lambda: preset("lightgbm").RR(), "preset 'lightgbm': expected one of AP, NDCG, found RR"),
        (lambda: preset("xgboost").parse("auc"), "preset 'xgboost': expected one of Precision, AP, NDCG, found AUC"),
        (lambda: evaluate(["map"], [1], [1], engine="gpu"), "engine: expected 'auto', 'numpy', 'compiled'"),
        (lambda: evaluate([AP(), AP(ties="id")], [1], [1]), "measures: expected different names, found 'map' twice"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_wrong_types():
    with pytest.raises(TypeError, match=r"k: expected a whole number >= 1 or None, found 2\.5"):
        NDCG(2.5)
    with pytest.raises(TypeError, match="measures: expected several"):
        evaluate("map", [1], [1])


def test_trec_eval_asks_for_ids_only_when_a_tie_matters():
    measure = preset("trec_eval").AP()
    assert measure([1, 0, 0], [0.5, 0.2, 0.2]) == 1.0
    assert measure([1, 0], [1.0, 1.0 + 1e-9], ids=["a", "b"]) == 0.5
    with pytest.raises(ValueError, match=r"ids: expected document ids, because items tie at score 1.0 .*float32"):
        measure([1, 0], [1.0, 1.0 + 1e-9])
    with pytest.raises(ValueError, match="scores: expected numbers within float32, found 1e"):
        measure([1, 0], [1e300, 1.0])


def test_ids_may_name_the_columns_of_dense_scores():
    measure = AP(ties="id")
    columns, rows = measure.per_list([[1, 0], [0, 1]], [[1, 1], [1, 1]], ids=["a", "b"]), [["a", "b"], ["a", "b"]]
    assert columns.tolist() == [0.5, 1.0] == measure.per_list([[1, 0], [0, 1]], [[1, 1], [1, 1]], ids=rows).tolist()


def test_integers_and_booleans_are_numbers():
    assert NDCG()(np.array([True, False]), np.array([2, 1], dtype=np.int8)) == 1.0


def test_skipped_lists_leave_the_mean():
    measure = Recall(1, empty="skip")
    assert np.isnan(measure.per_list([1, 0], [1, 1], qid=["a", "b"])).tolist() == [False, True]
    assert measure([1, 0], [1, 1], qid=["a", "b"]) == 1.0
    assert np.isnan(measure([0], [1]))


def test_sizes_of_groups_are_query_ids_in_other_words():
    rng = np.random.default_rng(0)
    sizes = np.array([3, 1, 5, 2])
    relevance, scores = rng.integers(0, 3, size=11), rng.integers(0, 4, size=11)
    qid = np.repeat(np.arange(4), sizes)
    for measure in (NDCG(2), AP(), Precision(3), Recall(2), RR(), BreakEven(), MeanRank(empty="skip"), AUC()):
        by_id = measure.per_list(relevance > 0, scores, qid)
        np.testing.assert_array_equal(measure.per_list(relevance > 0, scores, group=sizes), by_id)
        np.testing.assert_equal(
            measure(relevance > 0, scores, group=sizes.tolist()), measure(relevance > 0, scores, qid)
        )
    names = ["ndcg@2", "map", "mean_ndcg"]
    assert evaluate(names, relevance, scores, group=sizes) == evaluate(names, relevance, scores, qid)


@pytest.mark.parametrize(
    ("group", "options", "message"),
    [
        ([2, 1], {"qid": [0, 0, 1]}, "group: expected either qid or group, found both"),
        ([2, 2], {}, "group: expected sizes that add up to the 3 rows, found 4"),
        ([1, 1], {}, "group: expected sizes that add up to the 3 rows, found 2"),
        ([3, 0], {}, "group: expected sizes from 1 to the 3 rows, found 0 at 1"),
        ([4, -1], {}, "group: expected sizes from 1 to the 3 rows, found 4 at 0"),
        ([1.5, 1.5], {}, "group: expected whole numbers, one a list, found float64"),
        ([[3]], {}, "group: expected whole numbers, one a list"),
        (3, {}, "group: expected whole numbers, one a list"),
        ([], {}, "group: expected whole numbers, one a list, found float64"),
    ],
)
def test_bad_sizes_of_groups_are_refused(group, options, message):
    with pytest.raises(ValueError, match=message):
        NDCG()([1, 0, 1], [1, 2, 3], group=group, **options)


def test_sizes_of_groups_beside_matrices_are_refused():
    with pytest.raises(ValueError, match="group: expected None with 2-D scores"):
        NDCG()([[1, 0]], [[1, 2]], group=[2])
