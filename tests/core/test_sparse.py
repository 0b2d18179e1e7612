"""Sparse matrices altered after they were made are refused by name at every door, and the process lives on."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from slatewise import (
    BestFeatureRanker,
    CStarRanker,
    LatentFeatureRanker,
    LatentRanker,
    MarginRanker,
    MatchingRanker,
    MetricRanker,
    SessionNeighbors,
    StructuredReranker,
    data,
    labeling,
    metrics,
)
from slatewise.core.checks import relevance_rows, sparse_rows

N_ROWS, N_COLUMNS = 6, 5
DENSE = (np.arange(30).reshape(N_ROWS, N_COLUMNS) * 7 % 11 < 5).astype(np.float64)
FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")


def alter(**parts: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what replaces parts of a matrix after SciPy has checked it."""

    def attack(matrix: Any) -> Any:
        for name, change in parts.items():
            setattr(matrix, name, change(getattr(matrix, name)))
        return matrix

    return attack


def put(place: int, value: int) -> Callable[[Any], Any]:
    def change(part: Any) -> Any:
        part = part.copy()
        part[place] = value
        return part

    return change


def cut(part: Any) -> Any:
    return part[:-1]


ATTACKS = {
    "a bound far beyond": alter(indptr=put(-1, 10_000_000)),
    "a bound on the way far beyond": alter(indptr=put(2, 10_000_000)),
    "a bound below 0": alter(indptr=put(1, -10_000_000)),
    "a first bound above 0": alter(indptr=put(0, 1)),
    "a bound that goes back": alter(indptr=put(2, 0)),
    "a bound too few": alter(indptr=cut),
    "no bounds": alter(indptr=lambda part: part[:0]),
    "bounds that are no whole numbers": alter(indptr=lambda part: part + 0.5),
    "a place far outside": alter(indices=put(3, 2_000_000_000)),
    "a place just outside": alter(indices=put(3, 6)),
    "a place below 0": alter(indices=put(0, -1)),
    "a place far below 0": alter(indices=put(0, -2_000_000_000)),
    "a place too few": alter(indices=cut),
    "a value too few": alter(data=cut),
    "complex numbers": lambda matrix: matrix.astype(np.complex128),
    "objects": alter(data=lambda part: part.astype(object)),
}
KINDS = (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.csc_matrix)


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    """Rankers small enough to be trained in no time."""
    quick = {"n_components": 2, "epochs": 1, "learning_rate": 0.1, "max_norm": 1.0, "random_state": 0}
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_COLUMNS))
    return {
        "ids": LatentRanker(**quick).fit(DENSE),
        "features": LatentFeatureRanker(**quick).fit(X, np.arange(N_ROWS) % 3),
        "sessions": SessionNeighbors().fit([[0, 1, 2], [3, 4]]),
        "stars": CStarRanker(core=1, tol=0.1).fit(X, DENSE),
        "labels": MetricRanker(tol=0.5).fit(X, DENSE),
        "lists": MetricRanker(tol=0.5).fit(X[:N_COLUMNS], relevance=DENSE, queries=X),
    }


X = np.random.default_rng(1).normal(size=(N_ROWS, N_COLUMNS))
SQUARE = X[:N_COLUMNS]
IDS = np.arange(N_ROWS)
DOORS: dict[str, tuple[str, Callable[[Any, dict[str, Any], Any], object]]] = {
    "LatentRanker.fit interactions": ("queries", lambda m, _, __: LatentRanker().fit(m)),
    "LatentFeatureRanker.fit": ("X", lambda m, _, __: LatentFeatureRanker().fit(m, IDS)),
    "LatentFeatureRanker.fit items": ("y", lambda m, _, __: LatentFeatureRanker().fit(X, m)),
    "LatentRanker.partial_fit": ("queries", lambda m, f, _: f["ids"].partial_fit(m)),
    "LatentFeatureRanker.rank": ("X", lambda m, f, _: f["features"].rank(m, 1)),
    "LatentRanker.rank exclude": ("exclude", lambda m, f, _: f["ids"].rank(IDS, 1, exclude=m)),
    "LatentRanker.fold_in": ("items", lambda m, f, _: f["ids"].fold_in(m)),
    "SessionNeighbors.fit": ("sessions", lambda m, _, __: SessionNeighbors().fit(m)),
    "SessionNeighbors.rank": ("queries", lambda m, f, _: f["sessions"].rank(m, 1)),
    "SessionNeighbors.rank exclude": ("exclude", lambda m, f, _: f["sessions"].rank(IDS % 5, 1, exclude=m)),
    "SessionNeighbors.rank candidates": ("candidates", lambda m, f, _: f["sessions"].rank(IDS % 5, 1, candidates=m)),
    "CStarRanker.fit y": ("y", lambda m, _, __: CStarRanker(core=1).fit(X, m)),
    "CStarRanker.score y": ("y", lambda m, f, _: f["stars"].score(X, m)),
    "MetricRanker.fit X": ("X", lambda m, _, __: MetricRanker().fit(m, IDS % 2)),
    "MetricRanker.fit y": ("y", lambda m, _, __: MetricRanker().fit(X, m)),
    "MetricRanker.fit queries": ("queries", lambda m, _, __: MetricRanker().fit(X, relevance=np.eye(6), queries=m)),
    "MetricRanker.fit relevance": ("relevance", lambda m, _, __: MetricRanker().fit(SQUARE, relevance=m, queries=X)),
    "MetricRanker.transform": ("X", lambda m, f, _: f["labels"].transform(m)),
    "MetricRanker.rank": ("X", lambda m, f, _: f["labels"].rank(m, 1)),
    "MetricRanker.distances": ("X", lambda m, f, _: f["labels"].distances(m)),
    "MetricRanker.score y": ("y", lambda m, f, _: f["labels"].score(X, m)),
    "MetricRanker.score relevance": ("relevance", lambda m, f, _: f["lists"].score(X, relevance=m)),
    "StructuredReranker base": ("base", lambda m, _, __: StructuredReranker(m).fit(IDS, IDS % 5)),
    "simulate": ("y", lambda m, f, _: labeling.simulate(f["stars"], X, m)),
    "write_svmlight": ("X", lambda m, _, path: data.write_svmlight(path, data.RowsToRank(m, np.zeros(6), IDS))),
    "write_npz X": ("X", lambda m, _, path: data.write_npz(path, _labelled(m, sparse.csr_array(DENSE)))),
    "write_npz Y": ("Y", lambda m, _, path: data.write_npz(path, _labelled(X, m))),
    "minmax_per_query": ("X", lambda m, _, __: data.minmax_per_query(m, IDS)),
    "RowsToRank.dense": ("X", lambda m, _, __: data.RowsToRank(m, np.zeros(6), IDS).dense()),
    "a measure's relevance": ("relevance", lambda m, _, __: metrics.NDCG()(m, X)),
    "a measure's scores": ("scores", lambda m, _, __: metrics.NDCG()(DENSE, m)),
    "evaluate": ("relevance", lambda m, _, __: metrics.evaluate(["map"], m, X)),
}
DENSE_DOORS: dict[str, Callable[[Any, dict[str, Any]], object]] = {
    "CStarRanker.fit X": lambda m, _: CStarRanker(core=1).fit(m, DENSE),
    "CStarRanker.rank X": lambda m, f: f["stars"].rank(m),
    "BestFeatureRanker.fit X": lambda m, _: BestFeatureRanker().fit(m, IDS % 2, qid=IDS // 3),
    "MarginRanker.fit X": lambda m, _: MarginRanker().fit(m, IDS % 2, qid=IDS // 3),
    "MatchingRanker.fit X": lambda m, _: MatchingRanker().fit(m, IDS % 2, qid=IDS // 3),
}


def _labelled(X: Any, Y: Any) -> data.MultiLabel:
    return data.MultiLabel(X, Y, np.array(list("abcde")))


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_by_name(door: str, attack: str, fitted: dict[str, Any], tmp_path_factory: Any) -> None:
    name, enter = DOORS[door]
    for kind in KINDS:
        path = tmp_path_factory.getbasetemp() / "never"
        with pytest.raises(ValueError, match=f"^{name}: expected"):
            enter(ATTACKS[attack](kind(DENSE)), fitted, path)
        assert not path.exists()


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("door", DENSE_DOORS)
def test_rows_of_features_are_refused_by_name(door: str, attack: str, fitted: dict[str, Any]) -> None:
    for kind in KINDS:
        with pytest.raises((ValueError, TypeError), match=r"\bX\b"):
            DENSE_DOORS[door](ATTACKS[attack](kind(DENSE)), fitted)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("is_array", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.bool_, np.uint8])
def test_every_format_is_read_as_its_own_toarray_has_it(form: str, is_array: bool, dtype: type) -> None:
    kind = getattr(sparse, f"{form}_{'array' if is_array else 'matrix'}")
    for dense in (DENSE, np.zeros((3, 4)), np.zeros((0, 4)), np.diag([1, 0, 2, 3])[:3]):
        matrix = kind(dense.astype(dtype))
        rows = sparse_rows("X", matrix)
        assert isinstance(rows, sparse.csr_array)
        assert rows.dtype == dtype
        np.testing.assert_array_equal(rows.toarray(), matrix.toarray())


def test_blocks_and_room_behind_the_last_entry_are_read() -> None:
    blocks = sparse.bsr_array(DENSE[:, :4], blocksize=(3, 2))
    found = sparse_rows("X", blocks)
    assert found is not None
    np.testing.assert_array_equal(found.toarray(), DENSE[:, :4])
    roomy = sparse.csr_array(DENSE)
    roomy.data, roomy.indices = np.append(roomy.data, 9.0), np.append(roomy.indices, 99)
    found = sparse_rows("X", roomy)
    assert found is not None
    assert found.nnz == len(found.data) == np.count_nonzero(DENSE)


OTHER_ATTACKS = [
    ("coo", alter(row=put(0, 6)), "places from 0 to 5 in row, found 0 to 6"),
    ("coo", alter(col=put(0, -1)), "places from 0 to 4 in col, found -1"),
    ("coo", alter(data=cut), "as many values as rows and columns"),
    ("bsr", alter(indices=put(0, 99)), "places from 0 to 4 in indices"),
    ("bsr", alter(indptr=put(-1, 99)), "bounds in indptr that grow from 0"),
    ("bsr", alter(data=lambda part: part[:, :, 0]), "3-dimensional data"),
    ("bsr", alter(data=lambda part: np.repeat(part, 4, axis=1)), "blocks that fill the shape"),
    ("dia", alter(offsets=cut), "a row of data for each offset"),
    ("dia", alter(offsets=lambda part: part * 0), "each offset once"),
    ("dia", alter(offsets=lambda part: part + 0.5), "a row of whole numbers as offsets"),
    ("lil", alter(data=lambda part: put(0, [1.0])(part)), "lists of places and as many values"),
    ("lil", alter(rows=lambda part: put(0, [0, 1, 99][: len(part[0])])(part)), "places from 0 to 4 in rows"),
    ("lil", alter(rows=cut), "6 lists of places"),
]


@pytest.mark.parametrize(("form", "attack", "message"), OTHER_ATTACKS)
def test_the_other_formats_are_checked_too(form: str, attack: Callable[[Any], Any], message: str) -> None:
    for kind in ("array", "matrix"):
        dense = DENSE.copy()
        dense[0] = [0, 1, 1, 0, 1]
        with pytest.raises(ValueError, match=f"^X: expected a sparse matrix with .*{message}"):
            sparse_rows("X", attack(getattr(sparse, f"{form}_{kind}")(dense)))


def test_keys_outside_the_shape_are_refused() -> None:
    matrix = sparse.dok_array((2, 2))
    matrix._dict[0, 7] = 1.0
    with pytest.raises(ValueError, match="places from 0 to 1 in col, found 7 to 7"):
        sparse_rows("X", matrix)


def test_a_vector_is_refused() -> None:
    with pytest.raises(ValueError, match=r"X: expected 2 dimensions, found shape \(3,\)"):
        sparse_rows("X", sparse.coo_array(np.ones(3)))


def test_the_matrix_is_not_taken_at_its_word() -> None:
    """SciPy remembers that columns ascend and none comes twice, and does not look again."""
    matrix = sparse.csr_array(([1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 3]), shape=(2, 3))
    assert matrix.has_canonical_format
    matrix.indices[1] = 0
    with pytest.raises(ValueError, match="relevance: expected an item at most once in a list, found row 0, column 0"):
        relevance_rows(matrix)
    matrix.indices[:2] = 2, 1
    assert matrix.has_sorted_indices
    assert relevance_rows(matrix).indices.tolist() == [1, 2, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, ">f8", ">i4"])
def test_numbers_of_rare_types_are_read(dtype: Any) -> None:
    matrix = sparse.csr_array(DENSE)
    matrix.data = matrix.data.astype(dtype)
    found = sparse_rows("X", matrix)
    assert found is not None
    np.testing.assert_array_equal(found.toarray(), DENSE)
