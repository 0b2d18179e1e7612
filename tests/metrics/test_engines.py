"""Both engines, any input form, any order of rows: the same bits."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slatewise.metrics import AP, AUC, NDCG, RR, BreakEven, MeanRank, Precision, Recall, evaluate
from slatewise.metrics.standings import blocks
from tests.metrics.strategies import ragged

MEASURES = [NDCG(5), NDCG(), AP(), AP(3, ties="worst"), RR(), RR(2, ties="input"), Precision(4), Recall(4), AUC(),
            BreakEven(), MeanRank()]  # fmt: skip


def values(relevance, scores, qid, engine):
    return [measure.per_list(relevance, scores, qid, engine=engine) for measure in MEASURES]


@settings(max_examples=40)
@given(ragged(longest=40, scores=st.sampled_from([0.1, 0.2, 0.3, 1.5, -2.0, 1e-9])))
def test_engines_agree_to_the_bit_on_ties(lists):
    for left, right in zip(
        values(lists.relevance, lists.scores, lists.qid, "numpy"),
        values(lists.relevance, lists.scores, lists.qid, "compiled"),
        strict=True,
    ):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("share", [0.02, 0.9])
def test_engines_agree_to_the_bit_on_large_input(share):
    """Few and many relevant items: the kernel counts in one case and sorts in the other."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 400, size=600)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    scores = np.round(rng.normal(size=len(qid)), 2)
    relevance = rng.integers(1, 4, size=len(qid)) * (rng.random(len(qid)) < share)
    for left, right in zip(
        values(relevance, scores, qid, "numpy"), values(relevance, scores, qid, "compiled"), strict=True
    ):
        np.testing.assert_array_equal(left, right)


@given(ragged(longest=8), st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(lists, random):
    rows = list(range(len(lists.qid)))
    random.shuffle(rows)
    order = np.array(rows)
    relevance, scores, qid = np.array(lists.relevance), np.array(lists.scores), np.array(lists.qid)
    names = list(dict.fromkeys(lists.qid))
    shuffled = list(dict.fromkeys(qid[order].tolist()))
    for measure in (NDCG(3), AP(), RR(), AUC(), Precision(2, ties="worst")):
        before = dict(zip(names, measure.per_list(relevance, scores, qid), strict=True))
        after = dict(zip(shuffled, measure.per_list(relevance[order], scores[order], qid[order]), strict=True))
        assert all(before[name] == after[name] or np.isnan(before[name]) for name in names)


def test_dense_flat_and_single_lists_agree():
    rng = np.random.default_rng(0)
    relevance, scores = rng.integers(0, 3, size=(20, 9)), rng.integers(0, 5, size=(20, 9))
    for measure in MEASURES:
        dense = measure.per_list(relevance, scores)
        flat = measure.per_list(relevance.ravel(), scores.ravel(), np.repeat(np.arange(20), 9))
        alone = [measure(relevance[i], scores[i]) for i in range(20)]
        np.testing.assert_array_equal(dense, flat)
        np.testing.assert_array_equal(dense, alone)


def test_evaluate_equals_one_measure_at_a_time():
    rng = np.random.default_rng(1)
    relevance, scores = rng.integers(0, 3, size=(50, 9)), rng.normal(size=(50, 9))
    names = ["ndcg@5", "map", "mrr", "p@3", "recall@2", "auc", "bep", "mean_rank"]
    measures = [NDCG(5), AP(), RR(), Precision(3), Recall(2), AUC(), BreakEven(), MeanRank()]
    found = evaluate(names, relevance, scores)
    assert found == {name: measure(relevance, scores) for name, measure in zip(names, measures, strict=True)}
    assert evaluate(measures, relevance, scores) == found


@given(st.lists(st.integers(0, 2000), min_size=1, max_size=60))
def test_blocks_hold_every_row_once_with_little_padding(sizes):
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    found = list(blocks(offsets))
    rows = np.concatenate([block.rows[block.inside] for block in found] or [np.zeros(0, dtype=np.int64)])
    assert sorted(rows.tolist()) == list(range(sum(sizes)))
    assert sum(block.rows.size for block in found) <= 4 / 3 * sum(sizes)


def test_kernel_counts_the_same_without_compiling():
    code = """
import numpy as np
from slatewise.metrics import AP
from slatewise.metrics.kernels.standings import stand
assert not hasattr(stand, "py_func")
rng = np.random.default_rng(0)
for share in (0.05, 0.9):
    relevance, scores = rng.random((4, 150)) < share, rng.integers(0, 60, size=(4, 150))
    left, right = (AP().per_list(relevance, scores, engine=engine) for engine in ("numpy", "compiled"))
    np.testing.assert_array_equal(left, right)
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"NUMBA_DISABLE_JIT": "1"})
