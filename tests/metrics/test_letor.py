"""The official figures of ten LETOR runs on OHSUMED, to the four decimals that were published; LETOR 4.0 by hand."""

import lzma
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slatewise.metrics import NDCG, MeanNDCG, evaluate, evaluate_run, preset


def read_part(path):
    with lzma.open(path, "rt") as file:
        fields = [line.split(maxsplit=2)[:2] for line in file]
    return np.array([float(label) for label, _ in fields]), np.array([qid for _, qid in fields])


def read_performance(path):
    """Lines ``name: value value ...``."""
    lines = (line.split(":") for line in path.read_text().splitlines() if ":" in line)
    return {name.strip(): [float(value) for value in values.split()] for name, values in lines}


@pytest.mark.data
@pytest.mark.parametrize("fold", range(1, 6))
@pytest.mark.parametrize("system", ["RankSVM", "RankBoost"])
def test_official_run(shared_data, system, fold):
    folder = shared_data / "ohsumed25"
    relevance, qid = read_part(folder / f"part{fold}.txt.xz")
    with lzma.open(folder / "official_runs" / f"{system}_fold{fold}_scores.txt.xz", "rt") as file:
        scores = np.array([float(line) for line in file])
    official = read_performance(folder / "official_runs" / f"{system}_fold{fold}_perf.txt")
    letor = preset("letor")
    measures = [letor.AP(), *map(letor.Precision, range(1, 17)), *map(letor.NDCG, range(1, 17))]
    found = list(evaluate(measures, relevance, scores, qid).values())
    expected = [*official["MAP"], *official["precision"], *official["NDCG"]]
    assert len(expected) == 33
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-5)


def slow_letor4(relevance, scores):
    """What LETOR 4.0's tool prints of one list, from its definition: NDCG@1..10, MeanNDCG, P@1..10, MAP."""
    order = sorted(range(len(scores)), key=lambda row: -scores[row])  # a stable sort: ties keep the file's order
    ranked = [relevance[row] for row in order]
    ideal = sorted(relevance, reverse=True)

    def dcg(grades, k):
        return sum((2**grade - 1) / (1 if rank <= 2 else log2(rank)) for rank, grade in enumerate(grades[:k], 1))

    # The tool has a figure for every rank of the list, and what it has no figure for counts as 0.
    by_rank = [dcg(ranked, k) / dcg(ideal, k) if any(relevance) else 0.0 for k in range(1, len(ranked) + 1)]
    ndcg = [by_rank[k - 1] if k <= len(by_rank) else 0.0 for k in range(1, 11)]
    precision = [sum(grade > 0 for grade in ranked[:k]) / k for k in range(1, 11)]
    hits = [rank for rank, grade in enumerate(ranked, 1) if grade > 0]
    average = sum(number / rank for number, rank in enumerate(hits, 1)) / len(hits) if hits else 0.0
    return [*ndcg, sum(by_rank) / len(by_rank), *precision, average]


LETOR4 = preset("letor4")
LETOR4_MEASURES = [
    *map(LETOR4.NDCG, range(1, 11)),
    LETOR4.MeanNDCG(),
    *map(LETOR4.Precision, range(1, 11)),
    LETOR4.AP(),
]


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=14), min_size=1, max_size=4)
)
def test_letor4_is_its_slow_definition(lists):
    relevance = [grade for one in lists for grade, _ in one]
    scores = [score for one in lists for _, score in one]
    found = [measure.per_list(relevance, scores, group=[len(one) for one in lists]) for measure in LETOR4_MEASURES]
    expected = [slow_letor4([grade for grade, _ in one], [score for _, score in one]) for one in lists]
    np.testing.assert_allclose(np.transpose(found), expected, rtol=0, atol=1e-12)


def test_letor4_gives_0_where_letor_does_not():
    relevance, scores = [[2, 1, 0]], [[3.0, 2.0, 1.0]]
    assert [preset("letor").NDCG(k)(relevance, scores) for k in (3, 4, 10)] == [1.0, 1.0, 1.0]
    assert [LETOR4.NDCG(k)(relevance, scores) for k in (3, 4, 10)] == [1.0, 0.0, 0.0]
    assert LETOR4.NDCG()(relevance, scores) == LETOR4.MeanNDCG()(relevance, scores) == 1.0


@pytest.mark.parametrize("gain", ["exp2", "linear"])
@pytest.mark.parametrize("empty", [0, 1, "skip"])
def test_mean_ndcg_is_the_mean_of_ndcg_at_every_rank(gain, empty):
    """With ties averaged, and with items that a run left out."""
    rng = np.random.default_rng(3)
    measure = MeanNDCG(gain=gain, empty=empty)
    for size in (1, 2, 7):
        relevance, scores = rng.integers(0, 3, size=(5, size)), rng.integers(0, 3, size=(5, size))
        relevance[0] = 0
        at_each = [NDCG(k, gain=gain, empty=empty).per_list(relevance, scores) for k in range(1, size + 1)]
        np.testing.assert_allclose(measure.per_list(relevance, scores), np.mean(at_each, axis=0), rtol=0, atol=1e-12)
    run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 0, "b": 1, "c": 2, "d": 0}}
    at_each = [evaluate_run([NDCG(k, gain=gain)], run, qrels)[f"ndcg@{k}"] for k in (1, 2, 3, 4)]
    assert evaluate_run([measure], run, qrels)["mean_ndcg"] == pytest.approx(np.mean(at_each), abs=1e-12)
