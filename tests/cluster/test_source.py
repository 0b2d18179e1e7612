"""Rows that stay in their files: the bits of a fit on arrays, and errors that name file and column."""

import io
import zipfile
from decimal import Decimal

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.cluster.fits import BLOCKS, learned
from tests.cluster.pretend import PretendWorkers

from slatewise import (
    BestFeatureRanker,
    CStarMarginRanker,
    CStarRanker,
    GraphMatcher,
    MarginRanker,
    MatchingRanker,
    MetricRanker,
    cluster,
    datasets,
    losses,
)
from slatewise.core.running.executor import Executor, on_cluster
from slatewise.errors import DataError
from slatewise.matching import Slates


def rows(seed=0, n_lists=60):
    """Lists of one to nine rows; some say nothing, at the ends and in between."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 10, n_lists)
    qid = np.repeat(rng.permutation(n_lists) + 100, sizes)
    y = rng.integers(0, 3, len(qid)).astype(float)
    y[np.repeat(rng.random(n_lists) < 0.2, sizes)] = 1.0
    X = rng.normal(size=(len(qid), 5)) + y[:, None] * np.array([0.5, 0, 0, 0.2, 0])
    return X, y, qid


def written(folder, X, y, qid, n_files=3, row_group_size=17):
    """Write files whose ends, and those of their row groups, cut lists."""
    paths = []
    for number, part in enumerate(np.array_split(np.arange(len(y)), n_files)):
        table = {"q": qid[part], "grade": y[part]} | {f"f{at}": X[part, at] for at in range(X.shape[1])}
        paths.append(folder / f"part-{number}.parquet")
        pyarrow.parquet.write_table(pyarrow.table(table), paths[-1], row_group_size=row_group_size)
    return paths


@pytest.fixture
def many_blocks(monkeypatch):
    for name, value in BLOCKS.items():
        monkeypatch.setattr(name, value)
    monkeypatch.setattr("slatewise.cstar.margin.unary._BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr("slatewise.data.row_files.PIECE_BYTES", 1 << 9)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("loss", ["map", "auc", losses.MAP(threshold=2.0), losses.AUC(threshold=2.0)], ids=str)
def test_a_source_has_the_bits_of_arrays(tmp_path, many_blocks, loss):
    X, y, qid = rows()
    written(tmp_path, X, y, qid)
    source = cluster.source(tmp_path / "*.parquet", labels="grade", qid="q")
    assert source.n_rows == len(y)
    arrays = MarginRanker(loss, tol=1e-2).fit(X, y, qid=qid)
    alone = MarginRanker(loss, tol=1e-2).fit(source)
    with on_cluster(PretendWorkers(3)):
        on_workers = MarginRanker(loss, tol=1e-2).fit(source)
    assert learned(arrays) == learned(alone) == learned(on_workers)
    assert alone.model_card_.data_sha256 == on_workers.model_card_.data_sha256
    assert alone.model_card_.n_lists == arrays.model_card_.n_lists == 60
    np.testing.assert_array_equal(alone.predict(X), arrays.predict(X))


def alike(make, arrays, source):
    """Fit on arrays, on a source, and on a source with workers, and require the same bits."""
    found = [learned(arrays(make())), learned(source(make()))]
    with on_cluster(PretendWorkers(3)):
        found.append(learned(source(make())))
    assert len(set(found)) == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "settings",
    [
        {"slates": Slates(repeats=2)},
        {"slates": "whole"},
        {"slates": Slates(3, repeats=1), "surrogate": "max-margin", "tol": 0.05},
    ],
)
def test_slates_of_a_source_have_the_bits_of_arrays(tmp_path, many_blocks, settings):
    X, y, qid = rows()
    source = cluster.source(written(tmp_path, X, y, qid), labels="grade", qid="q")
    alike(lambda: MatchingRanker(**settings), lambda r: r.fit(X, y, qid=qid), lambda r: r.fit(source))


def tagged(folder, *, some_unknown):
    """Write scenes with their log-odds; some rows are there twice, some labels are not known."""
    scenes = datasets.make_label_scenes(n_rows=150, random_state=3)
    chance = np.clip(np.asarray(scenes.marginals(scenes.X)), 0.01, 0.99)
    rows = np.append(np.arange(150), [3, 77])
    X, Y, odds = scenes.X[rows], np.asarray(scenes.Y)[rows].astype(float), np.log(chance / (1.0 - chance))[rows]
    if some_unknown:
        Y[5, 3] = Y[9, :2] = np.nan
    names = {"label": Y, "odds": odds, "x": X}
    table = {f"{name}{at}": values[:, at] for name, values in names.items() for at in range(values.shape[1])}
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "tags.parquet", row_group_size=23)
    columns = {name: [f"{name}{at}" for at in range(values.shape[1])] for name, values in names.items()}
    return X, Y, odds, columns


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (CStarRanker, {"base": "precomputed", "core": [0, 1], "C": 1.0}),
        (CStarRanker, {"base": "precomputed", "core": 2}),
        (CStarMarginRanker, {"core": 2, "C": 1.0, "solver": "bundle", "tol": 0.1}),
    ],
)
def test_labels_of_a_source_have_the_bits_of_arrays(tmp_path, many_blocks, monkeypatch, kind, settings):
    monkeypatch.setattr("slatewise.cstar.likelihood.choice._MOST_ROWS", 60)
    X, Y, odds, columns = tagged(tmp_path, some_unknown=kind is CStarRanker and settings["core"] == 2)
    features = columns["odds"] if kind is CStarRanker else columns["x"]
    source = cluster.source(tmp_path / "tags.parquet", features=features, labels=columns["label"])
    given = odds if kind is CStarRanker else X
    names = columns["label"]
    alike(
        lambda: kind(**settings),
        lambda r: r.fit(given, Y, label_names=names),
        lambda r: r.fit(source),
    )
    np.savez(tmp_path / "tags.npz", X=given, Y=Y, label_names=names)
    archive = cluster.source(tmp_path / "tags.npz", labels="Y")
    assert len(archive.groups) > 3
    fit = kind(**settings).fit(archive)
    assert learned(fit) == learned(kind(**settings).fit(source))
    assert fit.label_names_.tolist() == names


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_queries_in_files_have_the_bits_of_arrays(tmp_path, many_blocks):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    X = rng.normal(size=(90, 4)) + y[:, None] * np.array([1.0, 0.5, 0.0, 0.0])
    table = {"class": y} | {f"f{at}": X[:, at] for at in range(4)}
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "items.parquet", row_group_size=13)
    items = cluster.source(tmp_path / "items.parquet", labels="class")
    alike(lambda: MetricRanker("map", C=10.0, tol=1e-2), lambda r: r.fit(X, y), lambda r: r.fit(items))
    asked = cluster.source(tmp_path / "items.parquet", features=[f"f{at}" for at in range(4)])
    relevance = (y[:, None] == y[:60]).astype(float)
    relevance[5] = 0.0  # says nothing, and is left out
    alike(
        lambda: MetricRanker("auc", tol=1e-2),
        lambda r: r.fit(X[:60], relevance=relevance, queries=X),
        lambda r: r.fit(X[:60], relevance=relevance, queries=asked),
    )
    with pytest.raises(ValueError, match=r"queries: expected arrays, or a source .* found kernel='rbf'"):
        MetricRanker(kernel="rbf").fit(X[:60], relevance=relevance, queries=asked)
    with pytest.raises(ValueError, match="targets: expected 'auto' or 'all' with queries in files, found 2"):
        MetricRanker(targets=2).fit(X[:60], relevance=relevance, queries=asked)
    with pytest.raises(ValueError, match="queries: expected 3 features, as X has, found 4"):
        MetricRanker().fit(X[:60, :3], relevance=relevance, queries=asked)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_lines_and_archives_have_the_bits_of_arrays(tmp_path, many_blocks):
    X, y, qid = rows(4)
    lines = [
        f"{grade:g} qid:{query} " + " ".join(f"{at + 1}:{value!r}" for at, value in enumerate(row.tolist()))
        for grade, query, row in zip(y, qid, X, strict=True)
    ]
    lines[7:7] = ["# only a comment", "", "  # another one"]
    (tmp_path / "rows.svm").write_text("\n".join(["\ufeff# what some editors begin with", *lines]))
    np.savez_compressed(tmp_path / "rows.npz", X=X, y=y, q=qid)
    text = cluster.source(tmp_path / "rows.svm", features=5)
    archive = cluster.source(tmp_path / "rows.npz", labels="y", qid="q")
    assert len(text.groups) > 3
    for source in (text, archive):
        assert source.n_rows == len(y)
        alike(lambda: MarginRanker(tol=1e-2), lambda r: r.fit(X, y, qid=qid), lambda r, s=source: r.fit(s))
    (tmp_path / "rows.svm").write_text("\n".join([*lines[:40], "1 qid:x 1:2", *lines[41:]]))
    with pytest.raises(DataError, match=r"rows.svm:41:\d+: expected"):
        MarginRanker().fit(cluster.source(tmp_path / "rows.svm", features=5))


def test_what_a_format_cannot_say_is_named(tmp_path):
    (tmp_path / "rows.svm").write_text("1 qid:1 1:2\n0 qid:1 1:3\n")
    (tmp_path / "rows.svm.gz").write_bytes(b"\x1f\x8b and more")
    np.savez(tmp_path / "rows.npz", X=np.zeros((3, 2)), y=np.zeros(2), Z=np.zeros(3))
    with pytest.raises(ValueError, match="features: expected how many there are for SVMlight"):
        cluster.source(tmp_path / "rows.svm")
    with pytest.raises(ValueError, match="labels, qid: expected None for SVMlight"):
        cluster.source(tmp_path / "rows.svm", features=1, labels="y")
    with pytest.raises(DataError, match="expected plain text, of which any range can be read, found a compressed file"):
        cluster.source(tmp_path / "rows.svm.gz", features=1)
    with pytest.raises(DataError, match=r"rows.npz\[q\]: expected this member, stored in full, found only X, y, Z"):
        cluster.source(tmp_path / "rows.npz", qid="q")
    with pytest.raises(DataError, match=r"rows.npz\[y\]: expected 3 rows as in X"):
        cluster.source(tmp_path / "rows.npz", labels="y")
    with pytest.raises(DataError, match=r"rows.npz\[Z\]: expected two dimensions"):
        cluster.source(tmp_path / "rows.npz", features="Z")
    with pytest.raises(ValueError, match="labels: expected Parquet or npz for sets of labels, found SVMlight"):
        CStarRanker("precomputed").fit(cluster.source(tmp_path / "rows.svm", features=1))
    np.savez(tmp_path / "tags.npz", X=np.zeros((2, 2)), Y=[[0, 1], [1, 3]])
    with pytest.raises(DataError, match=r"tags.npz\[Y\], row 1: expected 0, 1, or a missing value, found 3"):
        CStarRanker("precomputed").fit(cluster.source(tmp_path / "tags.npz", labels="Y"))
    for name, member, message in (
        ("X", [[1.0], [np.nan]], r"\[X\], column 0, row 1: expected a finite number, found nan"),
        ("X", [["1"], ["2"]], r"\[X\]: expected 1 columns of numbers, found <U1"),
        ("X", [[1.0], [2j]], r"\[X\]: expected 1 columns of numbers, found complex128"),
        ("X", np.zeros((2, 0)), r"\[X\]: expected two dimensions, and a column at least, found shape \(2, 0\)"),
        ("y", [0.0, np.nan], r"\[y\], row 1: expected a finite number, found nan"),
        ("q", [0.5, 0.5], r"\[q\]: expected integer or string ids, found float64"),
    ):
        np.savez(tmp_path / "bad.npz", **{"X": [[1.0], [2.0]], "y": [0, 1], "q": [1, 1], name: member})
        with pytest.raises(DataError, match=f"bad.npz{message}"):
            MarginRanker().fit(cluster.source(tmp_path / "bad.npz", labels="y", qid="q"))
    np.savez(tmp_path / "good.npz", X=np.ones((50, 1)), y=np.arange(50) % 2, q=np.zeros(50, dtype=int))
    whole = (tmp_path / "good.npz").read_bytes()
    (tmp_path / "good.npz").write_bytes(whole[:250] + b"\1" + whole[251:])
    with pytest.raises(DataError, match=r"good.npz\[X\]: expected a whole array, found Bad CRC-32"):
        MarginRanker().fit(cluster.source(tmp_path / "good.npz", labels="y", qid="q"))
    np.savez(tmp_path / "more.npz", X=np.zeros((2, 2)), Y=[[0, 1, 1], [1, 0, 1]])
    with pytest.raises(
        DataError, match=r"more.npz\[Y\]: expected 2 rows as in X, shape \(2, 2\), found shape \(2, 3\)"
    ):
        cluster.source([tmp_path / "tags.npz", tmp_path / "more.npz"], labels="Y")


@pytest.mark.parametrize("shape", [(10**15, 2), (10**9, 2), (-1, -2), (2, 2)])
def test_rows_that_an_archive_only_claims_are_not_cut_into_pieces(tmp_path, shape):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(tmp_path / "rows.npz", "w") as archive:
        archive.writestr("X.npy", file.getvalue() + bytes(16))
    with pytest.raises(DataError, match=r"rows.npz\[X\]: expected a whole array, found 16 bytes for shape"):
        cluster.source(tmp_path / "rows.npz")


def test_an_archive_that_claims_more_than_it_can_have_packed_is_refused(tmp_path):
    file, n_rows = io.BytesIO(), 10**12
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (n_rows, 1)})
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr("X.npy", file.getvalue())
        members.infolist()[0].file_size = len(file.getvalue()) + 8 * n_rows  # in the directory at the end
    (tmp_path / "rows.npz").write_bytes(archive.getvalue())
    with pytest.raises(DataError, match=r"rows.npz\[X\]: expected a whole array, found \d{6} bytes for shape"):
        cluster.source(tmp_path / "rows.npz")


@pytest.mark.parametrize("header", ["-" * 9000 + "1", "{[]: 1}"])
def test_a_header_of_an_archive_that_no_parser_likes_is_a_data_error(tmp_path, header):
    with zipfile.ZipFile(tmp_path / "rows.npz", "w") as archive:
        archive.writestr("X.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
    with pytest.raises(DataError, match=r"rows.npz\[X\]: expected a whole array"):
        cluster.source(tmp_path / "rows.npz")


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("f", ["a", "b", "c"], "column 'f', row 0: expected numbers, found a column of String"),
        ("q", [0.5, 0.5, 0.5], "column 'q', row 0: expected integer or string ids, found a column of Float64"),
        ("tag", ["yes", "no", "no"], "column 'tag', row 0: expected numbers, found a column of String"),
        ("tag", [[1], [0], [0]], "column 'tag', row 0: expected numbers, found a column of List"),
        ("tag", [1, 0, 7], "column 'tag', row 2: expected 0, 1, or a missing value, found 7"),
    ],
)
def test_a_column_of_another_kind_is_named(tmp_path, column, values, message):
    table = {"q": [1, 1, 2], "f": [0.5, 1.0, 1.5], "g": [0.5, 1.0, 1.5], "tag": [0, 1, None], "tog": [1, 0, 1]}
    pyarrow.parquet.write_table(pyarrow.table({**table, column: values}), tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=message):  # noqa: PT012
        found = cluster.source(tmp_path / "rows.parquet", features=["f", "g"], labels=["tag", "tog"], qid="q")
        CStarRanker("precomputed").fit(found)


def test_kinds_of_columns_that_say_the_same_are_read_the_same(tmp_path):
    X, y, qid = rows(5)
    table = pyarrow.table({"q": qid, "grade": y} | {f"f{at}": X[:, at] for at in range(5)})
    kinds = {
        "q": pyarrow.array(qid.astype(str)).dictionary_encode(),
        "grade": pyarrow.array([Decimal(int(grade)) for grade in y]),
        "f1": pyarrow.array(X[:, 1]).dictionary_encode(),
    }
    other = pyarrow.table({name: kinds.get(name, table[name]) for name in reversed(table.column_names)})
    with pyarrow.parquet.ParquetWriter(tmp_path / "b.parquet", other.schema) as file:
        for part in (other[:0], other[:40], other[:0], other[40:], other[:0]):
            file.write_table(part)
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    pyarrow.parquet.write_table(pyarrow.table({name: [] for name in table.column_names}), tmp_path / "nothing.parquet")
    plain = cluster.source(tmp_path / "a.parquet", labels="grade", qid="q").read(0, len(y))
    names = [f"f{at}" for at in range(5)]
    source = cluster.source(
        [tmp_path / "b.parquet", tmp_path / "nothing.parquet"], features=names, labels="grade", qid="q"
    )
    for one, two in zip(plain, source.read(0, len(y)), strict=True):
        np.testing.assert_array_equal(one, two)
    assert len(source.lists(Executor(1))) == 60


BUNDLE = {"solver": "bundle", "C": 1.0}


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (CStarRanker(), "base: expected 'precomputed' with a source, found None"),
        (CStarMarginRanker("rbf", **BUNDLE), "unary: expected 'linear' with a source, found 'rbf'"),
        (CStarMarginRanker(C=1.0), "solver: expected 'bundle' with a source, found 'bcfw'"),
        (CStarMarginRanker(solver="bundle"), "C: expected a number with a source"),
        (CStarMarginRanker(**BUNDLE, k=2), "k: expected 'relevant' with a source, found 2"),
        (CStarMarginRanker(**BUNDLE, core_selection="gain"), "core_selection: expected 'information' with a source"),
    ],
)
def test_settings_that_need_rows_in_memory_are_refused_with_a_source(tmp_path, ranker, message):
    np.savez(tmp_path / "tags.npz", X=[[1.0, -1.0], [-1.0, 1.0]], Y=[[1, 0], [0, 1]])
    with pytest.raises(ValueError, match=message):
        ranker.fit(cluster.source(tmp_path / "tags.npz", labels="Y"))


def test_any_run_of_rows_can_be_read(tmp_path):
    X, y, qid = rows(1)
    source = cluster.source(written(tmp_path, X, y, qid), labels="grade", qid="q", features=["f3", "f1"])
    for first, last in [(0, 1), (0, len(y)), (16, 18), (5, 90), (len(y) - 1, len(y))]:
        found = source.read(first, last)
        np.testing.assert_array_equal(found.X, X[first:last, [3, 1]])
        np.testing.assert_array_equal(found.y, y[first:last])


def test_lists_are_those_of_the_rows(tmp_path):
    X, y, qid = rows(2)
    lists = cluster.source(written(tmp_path, X, y, qid), labels="grade", qid="q").lists(Executor(2))
    starts = np.flatnonzero(np.append(True, qid[1:] != qid[:-1]))
    np.testing.assert_array_equal(lists.offsets, np.append(starts, len(y)))
    np.testing.assert_array_equal(lists.least, np.minimum.reduceat(y, starts))
    assert lists.grades.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.filterwarnings("ignore:.*lists are left out")
def test_bad_files_are_named(tmp_path):
    X, y, qid = rows(3)
    paths = written(tmp_path, X, y, qid)
    with pytest.raises(FileNotFoundError, match=r"paths: expected files like .*\.pq, found none"):
        cluster.source(tmp_path / "*.pq", labels="grade", qid="q")
    with pytest.raises(FileNotFoundError, match=r"gone\.parquet"):
        cluster.source(tmp_path / "gone.parquet", labels="grade", qid="q")
    with pytest.raises(DataError, match="expected a column called 'label'"):
        cluster.source(paths, labels="label", qid="q")
    with pytest.raises(ValueError, match=r"paths: expected every file once, found .*part-0.parquet 2 times"):
        cluster.source([*paths, paths[0]], labels="grade", qid="q")
    with pytest.raises(IsADirectoryError, match=r"paths: expected files, or one path with \*, found the folder"):
        cluster.source(tmp_path, labels="grade", qid="q")
    source = cluster.source(paths[::-1], labels="grade", qid="q")
    with pytest.raises(DataError, match=r"query ids: expected the rows of a query together, found query \d+ again"):
        MarginRanker().fit(source)
    X[40, 2] = 1e300
    source = cluster.source(written(tmp_path, X, y, qid), labels="grade", qid="q")
    with pytest.raises(DataError, match=r"part-0.parquet, column 'f2', row 40: expected at most 1e\+50 in size, found"):
        MarginRanker().fit(source)
    X[40, 2] = np.nan
    source = cluster.source(written(tmp_path, X, y, qid), labels="grade", qid="q")
    with pytest.raises(DataError, match=r"part-0.parquet, column 'f2', row 40: expected a finite number, found nan"):
        MarginRanker().fit(source)
    paths[1].write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"part-1.parquet: expected a complete Parquet file"):
        cluster.source(paths, labels="grade", qid="q")


def test_a_file_that_is_gone_is_named(tmp_path):
    paths = written(tmp_path, *rows())
    source = cluster.source(paths, labels="grade", qid="q")
    paths[2].unlink()
    with pytest.raises(FileNotFoundError, match=r"part-2.parquet"), on_cluster(PretendWorkers(2)):
        MarginRanker().fit(source)


def test_what_does_not_go_with_a_source_is_named(tmp_path):
    X, y, qid = rows()
    source = cluster.source(written(tmp_path, X, y, qid), labels="grade", qid="q")
    with pytest.raises(ValueError, match="C: expected a number with a source"):
        MarginRanker(C="auto").fit(source)
    with pytest.raises(ValueError, match="l2: expected a number with a source"):
        MatchingRanker(l2="auto").fit(source)
    with pytest.raises(ValueError, match="edge_features: expected arrays, one per graph, found a source"):
        GraphMatcher().fit(source, [0, 1])
    with pytest.raises(ValueError, match="X: expected arrays for BestFeatureRanker, found a source"):
        BestFeatureRanker().fit(source)
    with pytest.raises(ValueError, match="labels: expected a source with labels, found one without"):
        MarginRanker().fit(cluster.source(source.paths, qid="q", features=["f0"]))
    with pytest.raises(ValueError, match="qid: expected a source with query ids, found one without"):
        MarginRanker().fit(cluster.source(source.paths, labels="grade", features=["f0"]))
    with pytest.raises(ValueError, match="y: expected None with a source"):
        MarginRanker().fit(source, y)


def test_a_file_that_is_another_by_now_is_named(tmp_path):
    made = datasets.make_queries(n_queries=6, random_state=1)
    n = len(made.y) - 3

    def rows_in(name, n_rows):
        path, rows = tmp_path / name, slice(0, n_rows)
        if name.endswith("parquet"):
            columns = {"grade": made.y[rows], "query": made.qid[rows], "a": made.X[rows, 0]}
            pyarrow.parquet.write_table(pyarrow.table(columns), path)
        elif name.endswith("npz"):
            np.savez(path, X=made.X[rows, :1], grade=made.y[rows], query=made.qid[rows])
        else:
            lines = zip(made.y[rows], made.qid[rows], made.X[rows, 0], strict=True)
            path.write_text("".join(f"{grade:g} qid:{query} 1:{value}\n" for grade, query, value in lines))
        return path

    for name, how in [
        ("rows.parquet", {"labels": "grade", "qid": "query"}),
        ("rows.npz", {"labels": "grade", "qid": "query"}),
        ("rows.svm", {"features": 1}),
    ]:
        for n_rows in (n - 3, n + 3):
            rows = cluster.source(rows_in(name, n), **how)
            rows_in(name, n_rows)
            with pytest.raises(DataError, match=rf"{name}: expected a file of \d+ bytes, as when it was looked into"):
                MarginRanker("map", C=1.0).fit(rows)


def test_ids_of_two_kinds_are_named_and_those_without_a_sign_stay_apart(tmp_path):
    names = [tmp_path / "a.npz", tmp_path / "b.npz"]

    def lists(*ids):
        for path, one in zip(names, ids, strict=True):
            np.savez(path, X=np.ones((len(one), 1)), y=np.zeros(len(one)), q=one)
        return cluster.source(names, labels="y", qid="q").lists(Executor(1))

    large = 2**60 + np.arange(8)
    assert lists(large[:4].astype(np.uint64), large[4:]).ids.tolist() == large.tolist()
    with pytest.raises(DataError, match="query ids: expected integers in all files, or strings, found both"):
        lists(np.array([1, 2]), np.array(["2", "3"]))
    with pytest.raises(DataError, match=r"a.npz\[q\]: expected ids within int64, found 18446744073709551615"):
        lists(np.array([2**64 - 1], dtype=np.uint64), large)
