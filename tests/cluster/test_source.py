"""Rows that stay in their files: the bits of a fit on arrays, and errors that name file and column."""

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.cluster.fits import learned
from tests.cluster.pretend import PretendWorkers

from slatewise import CStarRanker, MarginRanker, MatchingRanker, MetricRanker, cluster
from slatewise.core.executor import Executor, on_cluster
from slatewise.data.row_source import RowReader
from slatewise.errors import DataError


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
    monkeypatch.setattr("slatewise.metric_learning.margin_hinge.BLOCK_BYTES", 1 << 10)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("settings", [{}, {"loss": "auc"}, {"threshold": 2.0}, {"loss": "auc", "threshold": 2.0}])
def test_a_source_has_the_bits_of_arrays(tmp_path, many_blocks, settings):
    X, y, qid = rows()
    written(tmp_path, X, y, qid)
    source = cluster.source(tmp_path / "*.parquet", labels="grade", qid="q")
    assert source.n_rows == len(y)
    arrays = MarginRanker(**settings, tol=1e-2).fit(X, y, qid=qid)
    alone = MarginRanker(**settings, tol=1e-2).fit(source)
    with on_cluster(PretendWorkers(3)):
        on_workers = MarginRanker(**settings, tol=1e-2).fit(source)
    assert learned(arrays) == learned(alone) == learned(on_workers)
    assert alone.model_card_.data_sha256 == on_workers.model_card_.data_sha256
    assert alone.model_card_.n_lists == arrays.model_card_.n_lists == 60
    np.testing.assert_array_equal(alone.predict(X), arrays.predict(X))


def test_any_run_of_rows_can_be_read(tmp_path):
    X, y, qid = rows(1)
    source = cluster.source(written(tmp_path, X, y, qid), labels="grade", qid="q", features=["f3", "f1"])
    reader = RowReader(source)
    for first, last in [(0, 1), (0, len(y)), (16, 18), (5, 90), (len(y) - 1, len(y))]:
        found = reader.read(first, last)
        np.testing.assert_array_equal(found.X, X[first:last, [3, 1]])
        np.testing.assert_array_equal(found.y, y[first:last])


def test_lists_are_those_of_the_rows(tmp_path):
    X, y, qid = rows(2)
    lists = cluster.source(written(tmp_path, X, y, qid), labels="grade", qid="q").lists(Executor(2))
    starts = np.flatnonzero(np.append(True, qid[1:] != qid[:-1]))
    np.testing.assert_array_equal(lists.offsets, np.append(starts, len(y)))
    np.testing.assert_array_equal(lists.least, np.minimum.reduceat(y, starts))
    assert lists.grades.tolist() == [0.0, 1.0, 2.0]


def test_bad_files_are_named(tmp_path):
    X, y, qid = rows(3)
    paths = written(tmp_path, X, y, qid)
    with pytest.raises(FileNotFoundError, match=r"paths: expected files like .*\.pq, found none"):
        cluster.source(tmp_path / "*.pq", labels="grade", qid="q")
    with pytest.raises(FileNotFoundError, match=r"gone\.parquet"):
        cluster.source(tmp_path / "gone.parquet", labels="grade", qid="q")
    with pytest.raises(DataError, match="expected a column called 'label'"):
        cluster.source(paths, labels="label", qid="q")
    source = cluster.source([*paths, paths[0]], labels="grade", qid="q")
    with pytest.raises(DataError, match=r"column 'q': expected the rows of a query together, found query \d+ again"):
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
    with pytest.raises(ValueError, match="X: expected arrays for MatchingRanker, found a source"):
        MatchingRanker().fit(source)
    for other in (CStarRanker(), MetricRanker()):
        with pytest.raises(ValueError, match=r"X: expected arrays, found a source: only MarginRanker\.fit takes one"):
            other.fit(source, [0, 1])
    with pytest.raises(ValueError, match="y: expected None with a source"):
        MarginRanker().fit(source, y)
