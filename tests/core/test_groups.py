"""Rows gathered by list against plain Python dictionaries, with hypothesis choosing ids and row orders."""

import subprocess
import sys
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise.core.checks import cut_points
from slatewise.core.groups import group_rows

qids = st.lists(st.integers(-2, 6), min_size=1, max_size=40)


def by_hand(qid: list[int]) -> dict[int, list[int]]:
    lists: dict[int, list[int]] = {}
    for row, name in enumerate(qid):
        lists.setdefault(name, []).append(row)
    return lists


@given(qids)
def test_rows_are_gathered_as_a_dictionary_would(qid):
    groups = group_rows(qid, len(qid))
    rows = groups.gather(np.arange(len(qid)))
    bounds = zip(groups.offsets[:-1], groups.offsets[1:], strict=True)
    found = {name: rows[start:stop].tolist() for name, (start, stop) in zip(groups.ids.tolist(), bounds, strict=True)}
    assert list(found.items()) == list(by_hand(qid).items())  # lists keep their order of appearance, rows theirs


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 40))
def test_runs_fit_and_are_as_long_as_possible(sizes, most):
    ends = np.concatenate([[0], np.cumsum(sizes)])
    cuts = cut_points(ends, most)
    assert [start for start, _ in cuts] == [0, *(stop for _, stop in cuts[:-1])]
    assert cuts[-1][1] == len(sizes)
    for start, stop in cuts:
        assert stop - start == 1 or ends[stop] - ends[start] <= most
        assert stop == len(sizes) or ends[stop + 1] - ends[start] > most


def test_importing_groups_needs_numpy_only():
    heavy = "('scipy', 'numba', 'sklearn')"
    code = f"import sys, slatewise.core.groups; sys.exit(int(any(m in sys.modules for m in {heavy})))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_strings_and_negative_ids_group():
    assert group_rows(np.array(["x", "y", "x"]), 3).ids.tolist() == ["x", "y"]
    assert group_rows(np.zeros(0, int), 0).offsets.tolist() == [0]
    with pytest.raises(ValueError, match="qid: expected an id in every row, found nan"):
        group_rows([1.0, np.nan], 2)


@pytest.mark.parametrize(
    "qid",
    [
        np.array(["a", None, "a"], dtype=object),
        np.array([1, np.nan, 1], dtype=object),
        np.array([1, "a", 1], dtype=object),
        np.array([None] * 3),
        np.array(["2024-01-01", "NaT", "2024-01-01"], dtype="datetime64[D]"),
        [1.0, np.nan, 1.0],
        [2**63, 2**63 - 1, 2**63],
    ],
)
def test_ids_that_are_missing_or_cannot_be_told_apart_are_refused(qid) -> None:
    with pytest.raises(ValueError, match="qid: expected"):
        group_rows(qid, 3)


def test_objects_of_one_kind_are_ids() -> None:
    one, two = UUID(int=1), UUID(int=2)
    for qid in ([two, one, two], ["b\0", "b", "b\0"], [np.int64(2), 1, np.int8(2)]):
        groups = group_rows(np.array(qid, dtype=object), 3)
        assert groups.ids.tolist() == qid[:2]
        assert groups.order.tolist() == [0, 2, 1]
