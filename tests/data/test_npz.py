"""The npz form: round trips, the arrays NumPy itself reads, and archives that lie."""

import io
import pickle
import random
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.sparse import csr_array

from slatewise.core.errors import DataError
from slatewise.data import MultiLabel, read_npz, write_npz
from tests.data.strategies import finite, named

GOOD = {
    "X_data": np.array([0.5, 2.0]),
    "X_indices": np.array([1, 0], dtype=np.int16),
    "X_indptr": np.array([0, 1, 2]),
    "X_shape": np.array([2, 2]),
    "Y": np.array([[1, 0, 1], [0, 1, 0]], dtype=np.uint8),
    "label_names": np.array(["a", "b", "c"]),
    "is_train": np.array([True, False]),
}


def packed(members: dict[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **members)
    return file.getvalue()


@st.composite
def records(draw) -> MultiLabel:
    n_rows, n_features, n_labels = (draw(st.integers(0, 4)) for _ in range(3))
    X = draw(arrays.arrays(np.float64, (n_rows, n_features), elements=finite))
    Y = draw(arrays.arrays(np.int8, (n_rows, n_labels), elements=st.integers(0, 1)))
    names = np.array([f"é{label}" for label in range(n_labels)], dtype=np.str_)
    features = draw(st.none() | st.just(np.array([f"f{place}" for place in range(n_features)], dtype=np.str_)))
    is_train = draw(st.none() | arrays.arrays(np.bool_, n_rows))
    known = draw(st.none() | arrays.arrays(np.bool_, Y.shape).map(lambda mask: mask | (Y == 1)))
    answered = None if known is None else draw(st.none() | st.just(known & (Y == 0)))
    X = csr_array(X) if draw(st.booleans()) else X
    return MultiLabel(X, csr_array(Y), names, features, is_train, known=known, answered=answered)


@given(data=records())
def test_what_was_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, data: MultiLabel) -> None:
    path = tmp_path_factory.getbasetemp() / "round.npz"
    write_npz(path, data)
    again = read_npz(path)
    assert type(again.X) is type(data.X)
    dense = [X if isinstance(X, np.ndarray) else X.toarray() for X in (data.X, again.X)]
    np.testing.assert_array_equal(dense[0], dense[1])
    np.testing.assert_array_equal(data.Y.toarray(), again.Y.toarray())
    for name in ("label_names", "feature_names", "is_train", "known", "answered"):
        np.testing.assert_array_equal(getattr(data, name), getattr(again, name))


def test_the_same_data_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        write_npz(tmp_path / name, read_npz(named(packed(GOOD))))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"known": np.ones((2, 2), bool)},
            r"\[known\]: expected booleans of shape \(2, 3\), found bool of shape \(2, 2\)",
        ),
        ({"known": np.ones((2, 3), np.int8)}, r"\[known\]: expected booleans of shape"),
        ({"known": np.zeros((2, 3), bool)}, r"\[Y\]: expected 0 where it is not known, found 1"),
        (
            {"known": GOOD["Y"] == 1, "answered": np.ones((2, 3), bool)},
            r"\[answered\]: expected False where Y is not known, found True",
        ),
        ({"X_shape": None}, r"\[X\]: expected this member or its CSR parts, found only X_data"),
        ({"X_indices": None}, r"\[X_indices\]: expected this member in the archive"),
        ({"X_data": None}, r"\[X_data\]: expected this member in the archive"),
        ({"X_data": np.array([0.5, np.nan])}, r"\[X_data\]: expected finite numbers, found nan at \(1,\)"),
        ({"X_data": np.array([0.5])}, r"\[X_data\]: expected 2 values, found shape \(1,\)"),
        ({"X_data": np.array(["a", "b"])}, r"\[X_data\]: expected numbers, found dtype <U1"),
        ({"X_indices": np.array([1, 2])}, r"\[X_indices\]: expected columns from 0 to 1, found 1 to 2"),
        ({"X_indices": np.array([-1, 0])}, r"\[X_indices\]: expected columns from 0 to 1, found -1 to 0"),
        ({"X_indices": np.array([1.0, 0.0])}, r"\[X_indices\]: expected a row of integers, found float64"),
        ({"X_indptr": np.array([0, 2, 2])}, r"\[X_indices\]: expected ascending columns, each once per row"),
        ({"X_indptr": np.array([0, 3, 2])}, r"\[X_indptr\]: expected 3 bounds that grow from 0 to 2"),
        ({"X_indptr": np.array([1, 1, 2])}, r"\[X_indptr\]: expected 3 bounds"),
        ({"X_shape": np.array([2, -2])}, r"\[X_shape\]: expected two sizes >= 0"),
        ({"X_shape": np.array([10**15, 2])}, r"\[X_indptr\]: expected 1000000000000001 bounds"),
        ({"Y": np.array([[1, 0, 2], [0, 1, 0]])}, r"\[Y\]: expected zeros and ones, found 2"),
        ({"Y": np.eye(3)}, r"\[X\]: expected 3 rows as in Y, found 2"),
        ({"Y": np.ones(2)}, r"\[Y\]: expected two dimensions"),
        ({"label_names": np.array(["a"])}, r"\[label_names\]: expected 3 strings, found <U1 of shape \(1,\)"),
        ({"is_train": np.array([0, 1])}, r"\[is_train\]: expected 2 booleans, found int64"),
        (
            {"label_names": np.array(["a", "b", None])},
            r"\[label_names\]: expected a whole array .* found Python objects",
        ),
    ],
)
def test_a_wrong_member_is_named(changes, message) -> None:
    members = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    with pytest.raises(DataError, match=r"^bad.npz" + message):
        read_npz(named(packed(members), "bad.npz"))


def test_a_header_that_claims_more_than_there_is_allocates_nothing() -> None:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**15, 2)})
    content = file.getvalue() + bytes(16)
    archive = io.BytesIO(packed({name: value for name, value in GOOD.items() if not name.startswith("X")}))
    with zipfile.ZipFile(archive, "a") as members:
        members.writestr("X.npy", content)
    with pytest.raises(DataError, match=r"\[X\]: expected a whole array .* found 16 bytes for shape"):
        read_npz(named(archive.getvalue()))


def claims(shape: tuple[int, ...], content: bytes = b"") -> bytes:
    """Return an npy file of float64 that claims a shape."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue() + content


def sparse(name: str, n_columns: int) -> dict[str, np.ndarray]:
    """Return one row without an entry, of so many columns."""
    nothing = np.array([], dtype=np.int64)
    parts = {"data": nothing, "indices": nothing, "indptr": np.array([0, 0]), "shape": np.array([1, n_columns])}
    return {f"{name}_{part}": values for part, values in parts.items()}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"X": np.ones((1, 1)), **sparse("Y", 20_000_000)},
            r"\[Y\]: expected at most 1048576 columns without label_names",
        ),
        ({"X": np.ones((1, 1)), **sparse("Y", 10**12)}, r"\[Y_shape\]: expected two sizes >= 0, at most 2147483647"),
        ({**sparse("X", 10**12), "Y": np.ones((1, 1))}, r"\[X_shape\]: expected two sizes >= 0, at most 2147483647"),
        ({**sparse("X", 2**62), "Y": np.ones((1, 1))}, r"\[X_shape\]: expected two sizes"),
        ({"X": np.ones((0, 1)), "Y": np.zeros((0, 10**12))}, r"\[Y\]: expected at most 2147483647 columns"),
        ({"X": np.zeros((0, 10**12)), "Y": np.zeros((0, 1))}, r"\[X\]: expected at most 2147483647 columns"),
        ({"X": np.zeros((10**12, 0))}, r"\[X\]: expected .* or 1048576 rows without columns"),
    ],
)
def test_a_shape_of_which_nothing_is_there_allocates_nothing(members: dict[str, np.ndarray], message: str) -> None:
    file = named(packed(members), "bad.npz")
    assert len(file.getbuffer()) < 1000
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"^bad.npz" + message):
            read_npz(file, require_labels=False)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", [(0, 2**63 - 1), (2**62, 0)])
def test_numbers_without_an_entry_whose_shape_fits_no_wider_ones_are_refused(shape: tuple[int, int]) -> None:
    nothing = np.empty(shape, dtype=np.int8)
    with pytest.raises(DataError, match=r"^bad.npz\[Y_data\]: expected 0 values, found shape"):
        read_npz(named(packed({"X": np.ones((1, 1)), **sparse("Y", 3), "Y_data": nothing}), "bad.npz"))
    with pytest.raises(DataError, match=r"^bad.npz\[X\]: expected at most 2147483647 columns, or 1048576 rows without"):
        read_npz(named(packed({"X": nothing, **sparse("Y", 3)}), "bad.npz"))


def test_names_of_labels_that_nobody_looks_at_are_not_made() -> None:
    file = named(packed({"X": np.ones((1, 1)), **sparse("Y", 1 << 20)}))
    tracemalloc.start()
    try:
        found = read_npz(file)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    again = pickle.loads(pickle.dumps(found))
    for rows in (found, again, replace(found)):
        assert rows.label_names[[0, -1]].tolist() == ["0", "1048575"]


def test_matrices_side_by_side_are_not_too_wide_and_have_the_same_rows() -> None:
    wide = packed({**sparse("A", 2**31 - 1), **sparse("B", 1), "Y": np.ones((1, 1)), "C": np.ones((2, 1))})
    with pytest.raises(DataError, match=r"\[A, B\]: expected at most 2147483647 columns, found 2147483648"):
        read_npz(named(wide), features=["A", "B"])
    with pytest.raises(DataError, match=r"\[C\]: expected 1 rows as in A, found 2"):
        read_npz(named(wide), features=["A", "C"])


@pytest.mark.parametrize("header", ["-" * 9000 + "1", "{[]: 1}", "{'descr': ('<f8', -1), 'shape': ()}"])
def test_a_header_that_no_parser_likes_is_a_data_error(header: str) -> None:
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    archive = io.BytesIO(packed({"Y": GOOD["Y"]}))
    with zipfile.ZipFile(archive, "a") as members:
        members.writestr("X.npy", content)
    with pytest.raises(DataError, match=r"\[X\]: expected a whole array"):
        read_npz(named(archive.getvalue()))


def test_bounds_that_wrap_around_are_refused() -> None:
    bounds = np.array([0, 2**63 - 1, -(2**63), -1, 2])
    members = {**GOOD, "X_indptr": bounds, "X_shape": np.array([4, 2]), "Y": np.ones((4, 3))}
    with pytest.raises(DataError, match=r"\[X_indptr\]: expected 5 bounds that grow from 0 to 2"):
        read_npz(named(packed({**members, "is_train": np.ones(4, dtype=bool)})))


@pytest.mark.parametrize("number", [0x110000, 0xD800, 2**32 - 1])
@pytest.mark.parametrize("order", "<>")
def test_names_that_are_no_text_are_refused(number: int, order: str) -> None:
    names = np.array([97, 98, number], dtype=f"{order}u4").view(f"{order}U1")
    for member, length in (("label_names", 3), ("ids", 2)):
        with pytest.raises(
            DataError, match=rf"\[{member}\]: expected text of Unicode letters, found the number {number}"
        ):
            read_npz(named(packed({**GOOD, member: names[-length:]})))


def test_names_of_labels_that_are_no_list_are_refused() -> None:
    with pytest.raises(DataError, match=r"\[label_names\]: expected 1 strings, found <U1 of shape \(\)"):
        read_npz(named(packed({"X": np.ones((1, 1)), "label_names": np.array("a")})), require_labels=False)


@pytest.mark.parametrize("codec", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_codec_that_numpy_does_not_write_is_refused(codec: int) -> None:
    archive = io.BytesIO(packed({"Y": np.zeros((10**6, 1), dtype=np.int8)}))
    with zipfile.ZipFile(archive, "a", codec) as members:
        members.writestr("X.npy", claims((10**6, 1), bytes(8 * 10**6)))
    with pytest.raises(DataError, match=r"expected a complete .npz archive, found X.npy packed by method 1[24]"):
        read_npz(named(archive.getvalue()))


def test_a_member_twice_is_refused() -> None:
    archive = io.BytesIO(packed(GOOD))
    with zipfile.ZipFile(archive, "a") as members, pytest.warns(UserWarning, match="Duplicate name"):
        members.writestr("Y.npy", members.read("Y.npy"))
    with pytest.raises(DataError, match="expected every member once"):
        read_npz(named(archive.getvalue()))


def test_damage_anywhere_is_a_data_error_or_changes_nothing() -> None:
    content = packed(GOOD)
    rng = random.Random(0)
    for _ in range(1500):
        damaged = bytearray(content)
        if rng.random() < 0.3:
            damaged = damaged[: rng.randrange(len(content))]
        else:
            damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        try:
            found = read_npz(named(bytes(damaged)))
        except DataError:
            continue
        assert not isinstance(found.X, np.ndarray)
        assert found.X.toarray().tolist() == [[0, 0.5], [2, 0]]
        assert found.Y.toarray().tolist() == GOOD["Y"].tolist()
        assert found.is_train is not None


def test_damage_inside_a_member_is_a_data_error() -> None:
    file = io.BytesIO()
    np.save(file, np.array([[0.5], [2.0]]))
    rng = random.Random(0)
    rest = {"Y": GOOD["Y"], "label_names": GOOD["label_names"]}
    for _ in range(500):
        member = bytearray(file.getvalue())
        member[rng.randrange(128)] = rng.choice(b"\x00'(),{}:<>0123456789bfiOUV\xff ")
        archive = io.BytesIO(packed(rest))
        with zipfile.ZipFile(archive, "a") as members:
            members.writestr("X.npy", bytes(member))
        try:
            found = read_npz(named(archive.getvalue()))
        except DataError:
            continue
        assert found.X.shape[0] == 2


def test_what_would_not_read_back_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"data\[X\]: expected finite numbers, found inf at \(0, 0\)"):
        write_npz(tmp_path / "a.npz", MultiLabel(np.array([[np.inf]]), csr_array(np.eye(1)), np.array(["a"])))
    with pytest.raises(ValueError, match=r"data\[label_names\]: expected 1 strings"):
        write_npz(tmp_path / "a.npz", MultiLabel(np.ones((1, 1)), csr_array(np.eye(1)), np.array(["a", "b"])))
    assert not list(tmp_path.iterdir())


def test_several_matrices_side_by_side() -> None:
    members = {**GOOD, "A": np.array([[1, 2], [3, 4]], dtype=np.uint16), "B": np.array([[5.0], [6.0]])}
    dense = read_npz(named(packed(members)), features=["A", "B"])
    assert np.asarray(dense.X).tolist() == [[1, 2, 5], [3, 4, 6]]
    mixed = read_npz(named(packed(members)), features=("X", "B"))
    assert not isinstance(mixed.X, np.ndarray)
    assert mixed.X.toarray().tolist() == [[0, 0.5, 5], [2, 0, 6]]
    with pytest.raises(ValueError, match="features: expected at least one name"):
        read_npz(named(packed(members)), features=[])


@pytest.mark.parametrize("name", ["birds", "corel5k", "delicious", "yeast"])
def test_public_data(shared_data: Path, name: str) -> None:
    path = shared_data / f"mulan_{name}" / f"{name}.npz"
    found = read_npz(path)
    with np.load(path, allow_pickle=False) as theirs:
        labels = np.split(theirs["Y_indices"], theirs["Y_indptr"][1:-1])
        assert found.label_names.tolist() == theirs["label_names"].tolist()
        assert found.is_train is not None
        assert found.is_train.tolist() == theirs["is_train"].tolist()
        for row in (0, 7, len(labels) - 1):
            assert found.Y[[row]].indices.tolist() == labels[row].tolist()
        if isinstance(found.X, np.ndarray):
            np.testing.assert_array_equal(found.X, theirs["X"])
        else:
            np.testing.assert_array_equal(found.X.data, theirs["X_data"])
            np.testing.assert_array_equal(found.X.indices, theirs["X_indices"])


def test_corel_histograms(shared_data: Path) -> None:
    path = shared_data / "corel5k_tagprop" / "corel5k_tagprop.npz"
    found = read_npz(path, features=["DenseSift", "DenseHue"])
    assert found.X.shape == (4999, 1100)
    assert found.Y.shape == (4999, 260)
    with pytest.raises(
        DataError, match=r"corel5k_tagprop.npz\[X\]: expected this member or its CSR parts, found only DenseHue"
    ):
        read_npz(path)
