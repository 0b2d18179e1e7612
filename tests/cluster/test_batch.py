"""Batch answers: those of the model itself, exactly once, whoever is killed, and never over another's files."""

import json
import os

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.cluster.pretend import PretendWorkers

from slatewise import LatentRanker, MarginRanker, MetricRanker, SessionRanker, cluster, datasets, metrics
from slatewise.cluster import batch
from slatewise.core.running.executor import on_cluster
from slatewise.errors import DataError


@pytest.fixture(scope="module")
def songs(tmp_path_factory):
    """A model of queries and items, and a table of queries, of which some are unknown, in many row groups."""
    folder = tmp_path_factory.mktemp("songs")
    pairs = datasets.make_sessions(n_sessions=300, n_items=40, random_state=4).sessions.pairs()
    model = LatentRanker(n_components=4, epochs=1, learning_rate=0.2, max_norm=1.5, random_state=1)
    model.fit(pairs.queries, pairs.items).save(folder / "songs.safetensors")
    sessions = SessionRanker(None)
    sessions.fit([[0, 1, 2], [1, 2, 0], [2, 1, 0]]).save(folder / "sessions.safetensors")
    queries = np.random.default_rng(0).choice(np.append(model.query_ids_, 999), 90)
    pyarrow.parquet.write_table(pyarrow.table({"query": queries}), folder / "queries.parquet", row_group_size=11)
    return model, queries, folder


@pytest.fixture
def workers():
    opened = PretendWorkers(2)
    with on_cluster(opened):
        yield opened


def lines(out):
    parts = sorted(out.glob("part-*.parquet"))
    return pyarrow.concat_tables([pyarrow.parquet.read_table(path) for path in parts]).to_pandas()


def test_answers_are_those_of_the_model(songs, workers, tmp_path):
    model, queries, folder = songs
    with pytest.warns(UserWarning, match=rf"{np.sum(queries == 999)} queries are unknown to the model and get no list"):
        n_lines = batch.rank(workers, folder / "songs.safetensors", folder / "queries.parquet", tmp_path / "out", 7)
    found = lines(tmp_path / "out")
    known = queries[queries != 999]
    answer = model.rank(known, 7)
    assert n_lines == len(found) == 7 * len(known)
    np.testing.assert_array_equal(found["qid"], np.repeat(known, 7))
    np.testing.assert_array_equal(found["doc_id"], answer.ids.ravel())
    np.testing.assert_array_equal(found["score"], answer.scores.ravel())
    np.testing.assert_array_equal(found["rank"], np.tile(np.arange(1, 8), len(known)))
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["complete"]


@pytest.mark.filterwarnings("ignore:.*unknown to the model")
def test_a_run_that_was_killed_goes_on_and_doubles_nothing(songs, workers, tmp_path, monkeypatch):
    _, queries, folder = songs
    ask = (workers, folder / "songs.safetensors", folder / "queries.parquet", tmp_path / "out", 3)
    ranked = []

    def killed(job, partition):
        ranked.append(partition[0])
        if len(ranked) == 4:
            raise KeyboardInterrupt
        return whole(job, partition)

    whole = batch._rank_partition
    monkeypatch.setattr(batch, "_rank_partition", killed)
    with pytest.raises(KeyboardInterrupt):
        batch.rank(*ask)
    (tmp_path / "out" / ".part-000003.parquet.0123abcd.part").write_bytes(b"left behind")
    with pytest.warns(UserWarning, match=rf"{np.sum(queries == 999)} queries are unknown"):  # of both runs
        n_lines = batch.rank(*ask)
    assert sorted(ranked) == [0, 1, 2, 3, *range(3, 9)]
    assert len(lines(tmp_path / "out")) == n_lines
    assert sorted(os.listdir(tmp_path / "out")) == ["manifest.json", *(f"part-{at:06d}.parquet" for at in range(9))]
    before = len(ranked)
    assert batch.rank(*ask) == n_lines  # it is complete: nothing is ranked again
    assert len(ranked) == before
    (tmp_path / "out" / "part-000005.parquet").unlink()
    assert batch.rank(*ask) == n_lines
    assert ranked[before:] == [5]


def test_a_run_that_was_killed_before_its_last_word_goes_on(songs, workers, tmp_path, monkeypatch):
    _, queries, folder = songs
    known = tmp_path / "known.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"query": queries[queries != 999]}), known, row_group_size=30)
    ask = (workers, folder / "songs.safetensors", known, tmp_path / "out", 3)
    n_lines = batch.rank(*ask)
    whole = (tmp_path / "out" / "manifest.json").read_text()
    (tmp_path / "out" / "manifest.json").write_text(json.dumps({**json.loads(whole), "complete": False}))
    monkeypatch.setattr(batch, "_rank_partition", None)
    assert batch.rank(*ask) == n_lines
    assert (tmp_path / "out" / "manifest.json").read_text() == whole


def test_of_two_runs_that_begin_at_once_one_has_the_folder(songs, workers, tmp_path, monkeypatch):
    _, _, folder = songs
    ask = (workers, folder / "songs.safetensors", folder / "queries.parquet", tmp_path / "out")

    def look(folder):  # the other run begins between a look at the folder and the manifest
        monkeypatch.undo()
        looked(folder)
        batch._start_folder(folder, {"model": "another", "partitions": 1, "complete": False})

    looked = batch._require_writable
    monkeypatch.setattr(batch, "_require_writable", look)
    with pytest.raises(FileExistsError, match="to go on with, found another library, model, data, top, partitions in"):
        batch.rank(*ask)
    assert os.listdir(tmp_path / "out") == ["manifest.json"]


@pytest.mark.parametrize("said", ["", '{"library": "slate', "[1]", "\0\xff"])
def test_a_manifest_that_is_none_is_named(songs, workers, tmp_path, said):
    _, _, folder = songs
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text(said, encoding="latin-1")
    with pytest.raises(DataError, match=r"manifest.json: expected the manifest of a run \(remove the folder"):
        batch.rank(workers, folder / "songs.safetensors", folder / "queries.parquet", tmp_path / "out")


@pytest.mark.filterwarnings("ignore:.*unknown to the model")
def test_files_of_others_among_the_parts_are_named(songs, workers, tmp_path):
    _, _, folder = songs
    ask = (workers, folder / "songs.safetensors", folder / "queries.parquet", tmp_path / "out")
    batch.rank(*ask)
    pyarrow.parquet.write_table(pyarrow.table({"qid": [1]}), tmp_path / "out" / "part-000099.parquet")
    with pytest.raises(FileExistsError, match=r"expected only the files of this run, found .*: part-000099.parquet"):
        batch.rank(*ask)


def test_columns_are_those_that_a_model_of_a_frame_has_names_of(workers, tmp_path):
    pandas = pytest.importorskip("pandas")
    data = datasets.make_queries(n_queries=20, random_state=1)
    order = np.argsort(data.qid, kind="stable")
    names = [f"f{at}" for at in range(data.X.shape[1])]
    frame = pandas.DataFrame(np.asarray(data.X)[order], columns=names)
    qid, y = np.asarray(data.qid)[order], np.asarray(data.y)[order]
    model = MarginRanker(tol=0.1).fit(frame, y, qid=qid)
    model.save(tmp_path / "model.safetensors")
    turned = {name: frame[name] for name in names[::-1]}
    table = pyarrow.table({**turned, "qid": qid, "label": y, "title": [f"row {at}" for at in range(len(y))]})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=50)
    batch.rank(workers, tmp_path / "model.safetensors", tmp_path / "rows.parquet", tmp_path / "out", 5)
    np.testing.assert_array_equal(lines(tmp_path / "out")["doc_id"], model.rank(frame, qid).top(5).ids.ravel())
    found = cluster.evaluate(workers, tmp_path / "model.safetensors", tmp_path / "rows.parquet", [metrics.NDCG(k=5)])
    assert found == [metrics.NDCG(k=5)(y, model.predict(frame), qid, np.arange(len(y)).astype(str))]


def test_rows_of_a_query_that_a_row_group_cuts_are_ranked_and_measured_together(workers, tmp_path):
    data = datasets.make_queries(n_queries=20, random_state=1)
    model = MarginRanker(tol=0.1).fit(data.X, data.y, qid=data.qid)
    model.save(tmp_path / "model.safetensors")
    order = np.argsort(data.qid, kind="stable")
    X, y, qid = (np.asarray(part)[order] for part in (data.X, data.y, data.qid))
    table = {"qid": qid, "label": y} | {f"f{at}": X[:, at] for at in range(X.shape[1])}
    (tmp_path / "in").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(qid)), 2)):
        part = pyarrow.table({name: column[rows] for name, column in table.items()})
        pyarrow.parquet.write_table(part, tmp_path / "in" / f"{number}.parquet", row_group_size=7)
    batch.rank(workers, tmp_path / "model.safetensors", tmp_path / "in", tmp_path / "out", 5)
    found, answer = lines(tmp_path / "out"), model.rank(X, qid).top(5)
    np.testing.assert_array_equal(found["doc_id"], answer.ids.ravel())
    np.testing.assert_array_equal(found["qid"], np.repeat(answer.query_ids, answer.lengths))
    measures = [metrics.NDCG(k=5), metrics.AP(ties="id")]
    ids = np.arange(len(y)).astype(str)
    expected = [measure(y, model.predict(X), qid, ids) for measure in measures]
    assert cluster.evaluate(workers, tmp_path / "model.safetensors", tmp_path / "in", measures) == expected


def test_a_folder_that_cannot_be_written_to_is_named_before_the_work(songs, workers, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    _, _, folder = songs
    monkeypatch.setattr(batch.tempfile, "TemporaryFile", refuse)  # the tests' own user may write everywhere
    monkeypatch.setattr(batch, "_rank_partition", None)
    with pytest.raises(PermissionError, match=r"out: expected a folder that can be written to, .*: Permission denied"):
        batch.rank(workers, folder / "songs.safetensors", folder / "queries.parquet", tmp_path / "out")


def test_what_cannot_be_ranked_is_named_before_the_work(songs, workers, tmp_path):
    _, _, folder = songs
    model, data = folder / "songs.safetensors", folder / "queries.parquet"
    with pytest.raises(FileNotFoundError, match="data: expected a Parquet file or a folder of them, found no"):
        batch.rank(workers, model, tmp_path / "gone", tmp_path / "out")
    with pytest.raises(DataError, match="expected Parquet files in the folder, found none"):
        batch.rank(workers, model, tmp_path, tmp_path / "out")
    pyarrow.parquet.write_table(pyarrow.table({"song": [1]}), tmp_path / "songs.parquet")
    with pytest.raises(DataError, match="expected a column called 'query', found the columns 'song'"):
        batch.rank(workers, model, tmp_path / "songs.parquet", tmp_path / "out")
    with pytest.raises(FileExistsError, match="out: expected a new or an empty folder, found files in"):
        batch.rank(workers, model, data, tmp_path)
    with pytest.raises(NotADirectoryError, match=r"out: expected a folder that can be written to, found .*: Not a dir"):
        batch.rank(workers, model, data, tmp_path / "songs.parquet" / "out")
    batch._start_folder(tmp_path / "out", {"model": "another", "partitions": 0, "complete": False})
    with pytest.raises(FileExistsError, match="to go on with, found another library, model, data, top, partitions in"):
        batch.rank(workers, model, data, tmp_path / "out")
    MetricRanker(tol=0.5).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).save(tmp_path / "metric.safetensors")
    with pytest.raises(ValueError, match=r"model: expected one of .* on a cluster, found a MetricRanker"):
        batch.rank(workers, tmp_path / "metric.safetensors", data, tmp_path / "other")
    with pytest.raises(ValueError, match=r"model: expected one of .*MarginRanker, .* found a LatentRanker"):
        cluster.evaluate(workers, model, data, [metrics.AP()])
    for name, wanted, message in (
        ("text", {"query": ["a"]}, "column 'query': expected ids as in fit, whole numbers, found dtype <U1"),
        ("numbers", {"query": [0.5]}, "column 'query', row 0: expected integer or string ids, found a column of Float"),
        ("nothing", {"query": pyarrow.array([], pyarrow.int64())}, "expected rows, found none in 1 files"),
    ):
        pyarrow.parquet.write_table(pyarrow.table(wanted), tmp_path / f"{name}.parquet")
        with pytest.raises(DataError, match=message):
            batch.rank(workers, model, tmp_path / f"{name}.parquet", tmp_path / "other")
    (tmp_path / "in" / "a.parquet").mkdir(parents=True)
    with pytest.raises(DataError, match=r"a.parquet: expected a Parquet file, found a folder"):
        batch.rank(workers, model, tmp_path / "in", tmp_path / "other")
    with pytest.raises(ValueError, match=r"model: expected one of .*MarginRanker, .* found a SessionRanker"):
        batch.rank(workers, folder / "sessions.safetensors", data, tmp_path / "other")
    MarginRanker(tol=0.5).fit([[0.0], [1.0]], [0, 1], qid=[1, 1]).save(tmp_path / "margin.safetensors")
    rows = {"qid": [1, 1], "f": [0.5, 1.5], "title": ["a", "b"]}
    for columns, message in (
        (("qid", "f", "title"), "column 'title', row 0: expected numbers, found a column of String"),
        (("qid", "f", "f2"), "expected 1 columns of features, as the model has, beside qid and label, found 2"),
        (("qid",), "expected a column of features, found none"),
    ):
        table = pyarrow.table({name: rows.get(name, [1.0, 2.0]) for name in columns})
        pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
        with pytest.raises(DataError, match=message):
            batch.rank(workers, tmp_path / "margin.safetensors", tmp_path / "rows.parquet", tmp_path / "other")
    assert not (tmp_path / "other").exists()
    with pytest.raises(ValueError, match="top: expected a whole number >= 1"):
        cluster.rank(workers, model, data, tmp_path / "other", 0)


def test_data_that_changes_during_a_run_is_named(songs, workers, tmp_path, monkeypatch):
    _, _, folder = songs
    data = tmp_path / "queries.parquet"
    data.write_bytes((folder / "queries.parquet").read_bytes())
    counted = batch._count_lines

    def changed(*what):
        os.utime(data, (0, 0))
        return counted(*what)

    monkeypatch.setattr(batch, "_count_lines", changed)
    with pytest.raises(DataError, match=r"queries.parquet: expected files that stay as they are \(remove .* anew\)"):
        batch.rank(workers, folder / "songs.safetensors", data, tmp_path / "out")
    assert not json.loads((tmp_path / "out" / "manifest.json").read_text())["complete"]


def test_a_file_with_ids_of_another_kind_is_named_before_the_work(songs, workers, tmp_path):
    _, queries, folder = songs
    for name, ids in {"a": queries, "b": queries.astype(str)}.items():
        pyarrow.parquet.write_table(pyarrow.table({"query": ids}), tmp_path / f"{name}.parquet")
    with pytest.raises(DataError, match=r"b.parquet, column 'query': expected ids as in fit, whole numbers, found"):
        batch.rank(workers, folder / "songs.safetensors", tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("measures", [[], ["ndcg@10"]])
def test_what_is_no_measure_is_named(workers, measures):
    with pytest.raises(ValueError, match="measures: expected"):
        cluster.evaluate(workers, "m.safetensors", "judged.parquet", measures)
