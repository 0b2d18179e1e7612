"""Lists against plain Python dictionaries, with hypothesis choosing sizes, ids and row orders."""

import subprocess
import sys
from itertools import pairwise
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix, random_array
from slatewise.lists import CatalogueLists, Lists, group_rows

qids = st.lists(st.integers(-2, 6), min_size=1, max_size=40)


def by_hand(qid: list[int], values: np.ndarray) -> dict[int, list[tuple[float, ...]]]:
    lists: dict[int, list[tuple[float, ...]]] = {}
    for name, value in zip(qid, values, strict=True):
        lists.setdefault(name, []).append(tuple(np.atleast_1d(value)))
    return lists


def as_dict(lists: Lists, values: np.ndarray) -> dict[int, list[tuple[float, ...]]]:
    return {
        name: [tuple(np.atleast_1d(value)) for value in values[start:stop]]
        for name, start, stop in zip(lists.ids.tolist(), lists.offsets[:-1], lists.offsets[1:], strict=True)
    }


@given(qids)
def test_rows_are_gathered_as_a_dictionary_would(qid):
    X = np.arange(2.0 * len(qid)).reshape(-1, 2)
    lists = Lists.from_rows(X, y=np.arange(len(qid)), qid=qid)
    assert list(as_dict(lists, lists.features)) == list(by_hand(qid, X))  # lists keep their order of appearance
    assert as_dict(lists, lists.features) == by_hand(qid, X)
    assert as_dict(lists, lists.targets.relevance) == by_hand(qid, np.arange(len(qid)))


@given(qids, st.randoms(use_true_random=False))
def test_any_row_order_gives_the_same_lists(qid, random):
    shuffled = list(range(len(qid)))
    random.shuffle(shuffled)
    X = np.arange(float(len(qid)))[:, None]
    lists = Lists.from_rows(X, qid=qid)
    other = Lists.from_rows(X[shuffled], qid=np.array(qid)[shuffled])
    mine, theirs = as_dict(lists, lists.features), as_dict(other, other.features)
    assert {name: sorted(rows) for name, rows in mine.items()} == {name: sorted(rows) for name, rows in theirs.items()}


@given(qids)
def test_scatter_inverts_gather(qid):
    values = np.arange(3.0 * len(qid)).reshape(-1, 3)
    lists = Lists.from_rows(values, y=values[:, 0], qid=qid, known=np.zeros(len(qid)))
    np.testing.assert_array_equal(lists.scatter(lists.features), values)
    np.testing.assert_array_equal(lists.scatter(lists.targets.relevance), values[:, 0])


@given(qids, st.integers(1, 400), st.booleans())
def test_blocks_joined_are_the_whole(qid, max_bytes, sparse):
    n = len(qid)
    X = np.arange(2.0 * n).reshape(n, 2) % 3
    lists = Lists.from_rows(
        csr_array(X) if sparse else X,
        y=np.arange(n),
        qid=qid,
        k=np.arange(len(set(qid))),
        known=np.zeros(n),
        weight=2.0,
    )
    blocks = lists.blocks(max_bytes)
    features = [block.features.toarray() if sparse else block.features for block in blocks]
    whole = lists.features.toarray() if sparse else lists.features
    np.testing.assert_array_equal(np.vstack(features), whole)
    np.testing.assert_array_equal(np.concatenate([block.rows for block in blocks]), lists.rows)
    np.testing.assert_array_equal(np.concatenate([block.ids for block in blocks]), lists.ids)
    np.testing.assert_array_equal(np.concatenate([np.diff(b.offsets) for b in blocks]), np.diff(lists.offsets))
    for name in ("relevance", "k", "weight", "known"):
        parts = [getattr(block.targets, name) for block in blocks]
        np.testing.assert_array_equal(np.concatenate(parts), getattr(lists.targets, name))
    scattered = sum(block.scatter(block.targets.relevance, fill=0) for block in blocks)
    np.testing.assert_array_equal(scattered, np.arange(n))


@given(qids, st.integers(1, 200))
def test_blocks_fit_and_are_as_long_as_possible(qid, max_bytes):
    lists = Lists.from_rows(np.zeros((len(qid), 2)), qid=qid)
    blocks = lists.blocks(max_bytes)
    for block in blocks:
        assert len(block) == 1 or block.features.nbytes <= max_bytes
    for block, after in pairwise(blocks):
        assert block.features.nbytes + 16 * after.offsets[1] > max_bytes


def test_blocks_are_views():
    dense = Lists.from_rows(np.zeros((6, 2)), y=np.zeros(6), qid=[0, 0, 1, 1, 2, 2])
    for block in dense.blocks(32):
        assert np.shares_memory(block.features, dense.features)
        assert np.shares_memory(block.targets.relevance, dense.targets.relevance)
    sparse = Lists.from_rows(csr_array(np.ones((6, 2))), qid=[0, 0, 1, 1, 2, 2])
    for block in sparse.blocks(64):
        assert np.shares_memory(block.features.data, sparse.features.data)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_dtype_is_kept(dtype):
    assert Lists.from_rows(np.zeros((2, 1), dtype)).features.dtype == dtype
    assert Lists.from_rows(csr_matrix(np.zeros((2, 1), dtype))).features.dtype == dtype
    assert Lists.from_rows(np.zeros((2, 1), int)).features.dtype == np.float64


@settings(deadline=None)
@given(st.integers(0, 6), st.integers(1, 5), st.integers(0, 2**32 - 1), st.integers(1, 64))
def test_csr_rows_become_lists(n, m, seed, max_bytes):
    relevance = random_array((n, m), density=0.5, rng=np.random.default_rng(seed), format="csr")
    lists = Lists.from_csr(relevance)
    back = np.zeros((n, m))
    row = 0
    for block in lists.blocks(max_bytes):
        for start, stop in zip(block.offsets[:-1], block.offsets[1:], strict=True):
            back[row, block.items[start:stop]] = block.targets.relevance[start:stop]
            row += 1
    assert row == n
    np.testing.assert_array_equal(back, relevance.toarray())


def test_a_stored_zero_is_an_item_of_its_list():
    relevance = csr_array((np.array([1.0, 0.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    lists = Lists.from_csr(relevance)
    assert lists.items.tolist() == [0, 2]
    assert lists.targets.relevance.tolist() == [0.0, 1.0]


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=6))
def test_padding_is_dropped_and_put_back(mask):
    mask = np.array(mask)
    X = np.where(mask[:, :, None], np.arange(mask.size * 2.0).reshape(*mask.shape, 2), np.nan)
    lists = Lists.from_padded(X, np.where(mask, X[:, :, 0], np.nan), mask=mask)
    assert np.diff(lists.offsets).tolist() == mask.sum(axis=1).tolist()
    np.testing.assert_array_equal(lists.features, X[mask])
    np.testing.assert_array_equal(lists.scatter(lists.features, fill=np.nan), X)
    np.testing.assert_array_equal(lists.scatter(lists.targets.relevance, fill=np.nan), X[:, :, 0])


def test_lengths_are_a_mask():
    X = np.arange(12.0).reshape(2, 3, 2)
    by_length = Lists.from_padded(X, lengths=[1, 3])
    by_mask = Lists.from_padded(X, mask=np.array([[True, False, False], [True, True, True]]))
    np.testing.assert_array_equal(by_length.features, by_mask.features)
    np.testing.assert_array_equal(by_length.offsets, by_mask.offsets)


@given(st.integers(0, 9), st.integers(1, 5), st.integers(1, 300))
def test_catalogue_blocks_hold_the_queries_whose_scores_fit(n, items, max_bytes):
    relevance = csr_array(np.arange(n * items).reshape(n, items) % 2)
    queries = np.arange(2.0 * n).reshape(n, 2)
    lists = CatalogueLists.from_features(queries, np.ones((items, 2)), relevance, k=1, weight=1.0)
    blocks = lists.blocks(max_bytes)
    for block in blocks:
        assert len(block) == 1 or (block.queries @ block.catalogue.T).nbytes <= max_bytes
        assert block.catalogue is lists.catalogue
        np.testing.assert_array_equal(block.relevance.toarray(), relevance.toarray()[block.rows])
        np.testing.assert_array_equal(block.queries, queries[block.rows])
        assert len(block.k) == len(block.weight) == len(block)
    assert np.concatenate([np.zeros(0, int), *(block.rows for block in blocks)]).tolist() == list(range(n))


def nan_at(shape: tuple[int, ...], *where: int) -> np.ndarray:
    values = np.zeros(shape)
    values[where] = np.nan
    return values


CSR = csr_array(np.eye(2))
BAD = {
    "X: expected finite numbers, found nan at row 1, column 2": lambda: Lists.from_rows(nan_at((3, 4), 1, 2)),
    "X: expected finite numbers, found nan at row 0, column 1": lambda: Lists.from_rows(
        csr_array(nan_at((2, 2), 0, 1))
    ),
    "X: expected 2 dimensions": lambda: Lists.from_rows(np.zeros(3)),
    "X: expected numbers, found dtype <U1": lambda: Lists.from_rows([["a"]]),
    "y: expected one value a row, shape (2,), found shape (3,)": lambda: Lists.from_rows(CSR, y=[1, 2, 3]),
    "y: expected finite numbers, found inf at row 1": lambda: Lists.from_rows(CSR, y=[1, np.inf]),
    "y: expected numbers": lambda: Lists.from_rows(CSR, y=["a", "b"]),
    "qid: expected one id a row": lambda: Lists.from_rows(CSR, qid=[1]),
    "k: expected one number, or one a list (1), found shape (2,)": lambda: Lists.from_rows(CSR, y=[1, 2], k=[1, 2]),
    "k: expected whole numbers >= 0": lambda: Lists.from_rows(CSR, y=[1, 2], k=-1),
    "weight: expected finite numbers >= 0": lambda: Lists.from_rows(CSR, y=[1, 2], weight=np.nan),
    "known: expected -1, 0 or 1, found 2 at row 1": lambda: Lists.from_rows(CSR, y=[1, 2], known=[0, 2]),
    "known: expected one value a row": lambda: Lists.from_rows(CSR, y=[1, 2], known=[0]),
    "y: expected a value for every row": lambda: Lists.from_rows(CSR, k=3),
    "X: expected finite numbers, found nan at list 1, position 0, column 1": lambda: Lists.from_padded(
        nan_at((2, 3, 2), 1, 0, 1), lengths=[1, 1]
    ),
    "y: expected finite numbers, found nan at list 0, column 1": lambda: Lists.from_padded(
        np.zeros((1, 2, 1)), nan_at((1, 2), 0, 1)
    ),
    "y: expected shape (1, 2)": lambda: Lists.from_padded(np.zeros((1, 2, 1)), [[1, 2, 3]]),
    "lengths: expected 1 whole numbers from 0 to 2": lambda: Lists.from_padded(np.zeros((1, 2, 1)), lengths=[3]),
    "mask: expected booleans of shape (1, 2)": lambda: Lists.from_padded(np.zeros((1, 2, 1)), mask=[[1, 0]]),
    "mask: expected either mask or lengths": lambda: Lists.from_padded(np.zeros((1, 2, 1)), mask=[[1, 0]], lengths=[1]),
    "relevance: expected a SciPy sparse matrix, found list": lambda: Lists.from_csr([[1]]),
    "relevance: expected an item at most once in a list, found row 1, column 0 twice": lambda: Lists.from_csr(
        csr_array((np.ones(3), np.array([0, 0, 0]), np.array([0, 1, 3])), shape=(2, 1))
    ),
    "relevance: expected finite numbers, found nan at row 1, column 0": lambda: Lists.from_csr(
        csr_array(nan_at((2, 2), 1, 0))
    ),
    "relevance: expected shape (2, 3)": lambda: CatalogueLists.from_features(np.eye(2), np.ones((3, 2)), CSR),
    "catalogue: expected finite numbers": lambda: CatalogueLists.from_features(np.eye(2), nan_at((2, 2), 0, 0), CSR),
    "max_bytes: expected a whole number >= 1": lambda: Lists.from_rows(CSR).blocks(0),
    "values: expected 2, one a row, found 3": lambda: Lists.from_rows(CSR).scatter(np.zeros(3)),
    "fill: expected a number, because 1 input rows are not here": lambda: (
        Lists.from_rows(CSR, qid=[0, 1]).blocks(1)[0].scatter(np.zeros(1))
    ),
    "offsets: expected numbers from 0 to 2": lambda: Lists(None, np.array([0, 1]), np.zeros(1), np.arange(2), (2,)),
    "offsets: expected none to go back, found 2 then 1 at list 1": lambda: Lists(
        None, np.array([0, 2, 1, 2]), np.zeros(3), np.arange(2), (2,)
    ),
    "features: expected 2 rows, found 3": lambda: Lists(
        np.zeros((3, 1)), np.array([0, 2]), np.zeros(1), np.arange(2), (2,)
    ),
    "ids: expected 1 ids, found 2": lambda: Lists(None, np.array([0, 2]), np.zeros(2), np.arange(2), (2,)),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named(message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the message is compared below, brackets and all)
        BAD[message]()
    assert message in str(caught.value)


def test_importing_lists_needs_numpy_only():
    code = "import sys, slatewise.lists; sys.exit(int(any(m in sys.modules for m in ('scipy', 'numba', 'sklearn'))))"
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
