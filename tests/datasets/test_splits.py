"""Splits: every row once, no list cut, nothing from the future in training."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise.datasets import by_time, k_fold_by_list
from slatewise.datasets.splits import Split, rotate

qids = st.lists(st.integers(0, 9), min_size=12, max_size=60).filter(lambda qid: len(set(qid)) >= 5)


def parts(split: Split) -> list[np.ndarray]:
    return [split.train, split.validation, split.test]


@given(qids, st.integers(3, 5), st.integers(0, 1000))
def test_folds_cover_every_row_and_cut_no_list(qid, n_splits, seed):
    qid = np.array(qid)
    folds = k_fold_by_list(qid, n_splits, seed)
    assert len(folds) == n_splits
    for fold in folds:
        assert sorted(np.concatenate(parts(fold)).tolist()) == list(range(len(qid)))
        names = [set(qid[part].tolist()) for part in parts(fold)]
        assert all(names)
        assert not names[0] & names[1]
        assert not names[0] & names[2]
        assert not names[1] & names[2]
    assert sorted(np.concatenate([fold.test for fold in folds]).tolist()) == list(range(len(qid)))
    for fold, before in zip(folds, (folds[-1], *folds[:-1]), strict=True):
        np.testing.assert_array_equal(fold.validation, before.test)
    sizes = [len(set(qid[fold.test].tolist())) for fold in folds]
    assert max(sizes) - min(sizes) <= 1


def test_a_seed_fixes_the_folds():
    qid = np.arange(30) // 3
    first, again = k_fold_by_list(qid, 5, 7), k_fold_by_list(qid, 5, np.random.default_rng(7))
    other = k_fold_by_list(qid, 5, 8)
    assert all(np.array_equal(a.test, b.test) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a.test, b.test) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("n_splits", [0, 2, 5])
def test_too_few_parts_or_lists_is_named(n_splits):
    with pytest.raises(ValueError, match=r"n_splits: expected a number from 3 to the 4 lists in qid"):
        k_fold_by_list([1, 2, 3, 4, 4], n_splits)


def test_rotation_is_letors():
    folds = rotate(np.array([0, 1, 2, 3, 4]), 5)
    assert (folds[0].test.tolist(), folds[0].validation.tolist(), folds[0].train.tolist()) == ([0], [4], [1, 2, 3])
    assert (folds[3].test.tolist(), folds[3].validation.tolist(), folds[3].train.tolist()) == ([3], [2], [0, 1, 4])


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 20)), min_size=1, max_size=40),
    st.booleans(),
    st.tuples(st.integers(0, 10), st.integers(0, 10), st.integers(1, 10)),
)
def test_time_runs_forward(rows, with_lists, shares):
    qid, times = (np.array(column) for column in zip(*rows, strict=True))
    fractions = np.array(shares) / sum(shares)
    split = by_time(times, fractions, qid if with_lists else None)
    assert sorted(np.concatenate(parts(split)).tolist()) == list(range(len(times)))
    names = qid if with_lists else np.arange(len(times))
    last = {name: times[names == name].max() for name in names.tolist()}
    whens = [{last[name] for name in names[part].tolist()} for part in parts(split)]
    for earlier, later in [(0, 1), (1, 2), (0, 2)]:
        if whens[earlier] and whens[later]:
            assert max(whens[earlier]) < min(whens[later])
    assert len(split.train) <= fractions[0] * len(times) + 1e-6
    assert len(split.train) + len(split.validation) <= (fractions[0] + fractions[1]) * len(times) + 1e-6


def test_distinct_times_are_cut_exactly():
    split = by_time(np.arange(10)[::-1], (0.1, 0.2, 0.7))
    assert [part.tolist() for part in parts(split)] == [[9], [7, 8], [0, 1, 2, 3, 4, 5, 6]]


def test_dates_are_times():
    days = np.array(["2020-01-02", "2020-01-01", "2020-01-03"], dtype="datetime64[D]")
    assert by_time(days, (0.34, 0.33, 0.33)).train.tolist() == [1]


@pytest.mark.parametrize(
    ("times", "fractions", "message"),
    [
        ([1, 2], (0.5, 0.5), "fractions: expected three numbers"),
        ([1, 2], (0.5, 0.6, 0.1), "fractions: expected three numbers"),
        ([1.0, np.nan], (0.5, 0.25, 0.25), "times: expected a time in every row, found none in row 1"),
        (["a"], (0.5, 0.25, 0.25), "times: expected a time a row"),
        ([[1]], (0.5, 0.25, 0.25), "times: expected a time a row"),
    ],
)
def test_bad_times_are_named(times, fractions, message):
    with pytest.raises(ValueError, match=message):
        by_time(times, fractions)
