"""Files on the command line: without labels, as judgements, never overwritten, and never printed if binary."""

import gzip
import json
import os

import numpy as np
import pytest
from scipy.sparse import csr_array

from slatewise import CStarRanker, data, datasets, load, metrics
from slatewise.data.records import MultiLabel

HINGE = ["--param", "C=1.0"]
"""The paper's c-star, which can learn from three rows."""


def bad_input(result):
    """Exit code 2, nothing on stdout, one line on stderr; returns that line."""
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("slatewise: ")
    assert err.count("\n") == 1
    return err


DOCUMENTS = "2 qid:1 1:0.9 2:0.1 # a\n0 qid:1 1:0.2 2:0.8 # b\n# why\n1 qid:2 1:0.5 2:0.3 # c\n0 qid:2 1:0.1 # d\n"


@pytest.fixture
def documents(tmp_path, done):
    path, model = tmp_path / "rows.txt", tmp_path / "documents.safetensors"
    path.write_text(DOCUMENTS)
    done("fit", "feature", path, "--out", model)
    return path, model


@pytest.fixture(scope="module")
def scenes():
    made = datasets.make_label_scenes(60, n_labels=6, n_features=4, n_groups=1, random_state=0)
    return MultiLabel(made.X, csr_array(made.Y), np.array(["sea", "sky", "sun", "snow", "ship", "shop"]))


@pytest.fixture
def tags(tmp_path, done, scenes):
    path, model = tmp_path / "tags.npz", tmp_path / "tags.safetensors"
    data.write_npz(path, scenes)
    done("fit", "cstar", path, "--out", model, "--param", "core=2")
    return path, model


CLASSES = "length,width,class\n1,20,red\n1.5,25,red\n5,21,blue\n5.5,24,blue\n5.7,22,blue\n"


@pytest.fixture
def classes(tmp_path, done):
    path, model = tmp_path / "rows.csv", tmp_path / "classes.safetensors"
    path.write_text(CLASSES)
    done("fit", "metric", path, "--out", model, "--param", "C=10")
    return path, model


@pytest.fixture
def sessions(tmp_path, done):
    path, model = tmp_path / "sessions.txt", tmp_path / "sessions.safetensors"
    path.write_text("a b c\n" * 30 + "b c a\n" * 20)
    done("fit", "latent", path, "--out", model, "--param", "n_components=4", "--param", "epochs=5")
    return path, model


def ranked(done, tmp_path, model, path):
    out = tmp_path / "out.run"
    done("rank", model, path, "--out", out)
    return out.read_bytes()


# --- rank without labels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["txt", "txt.gz"])
def test_documents_without_grades(tmp_path, documents, done, run, ending):
    path, model = documents
    bare = tmp_path / f"bare.{ending}"
    text = "".join(line if line[0] == "#" else line[2:] for line in DOCUMENTS.splitlines(keepends=True)).encode()
    assert text.startswith(b"qid:1 1:0.9")
    bare.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    assert ranked(done, tmp_path, model, bare) == ranked(done, tmp_path, model, path)
    bare.write_text("qid:1 1:0.9\nqid:1 1:x\n")
    assert f"{bare}:2:9: expected a value" in bad_input(run("rank", model, bare, "--out", tmp_path / "x.run"))
    bare.write_text("qid:1 1:0.9\n1 qid:1 1:3\n")
    assert f"{bare}:2:1: expected a query id" in bad_input(run("rank", model, bare, "--out", tmp_path / "x.run"))
    assert "a label" in bad_input(run("evaluate", model, bare))
    assert "a label" in bad_input(run("fit", "feature", bare, "--out", tmp_path / "x"))


def test_a_table_without_the_column_of_grades(tmp_path, done, run):
    import polars

    frame = polars.DataFrame({"label": [1, 0, 2], "qid": [1, 1, 2], "bm25": [0.3, 0.9, 0.1], "age": [5.0, 1.0, 3.0]})
    frame.write_parquet(tmp_path / "rows.parquet")
    frame.drop("label").write_parquet(tmp_path / "bare.parquet")
    model = tmp_path / "m.safetensors"
    done("fit", "feature", tmp_path / "rows.parquet", "--out", model)
    runs = [ranked(done, tmp_path, model, tmp_path / name) for name in ("rows.parquet", "bare.parquet")]
    assert runs[0] == runs[1]
    assert "'label'" in bad_input(run("fit", "feature", tmp_path / "bare.parquet", "--out", model))


def test_rows_without_label_sets(tmp_path, tags, scenes, done):
    path, model = tags
    expected = ranked(done, tmp_path, model, path)
    np.savez(tmp_path / "named.npz", X=scenes.X, label_names=scenes.label_names)
    assert ranked(done, tmp_path, model, tmp_path / "named.npz") == expected
    np.savez(tmp_path / "bare.npz", X=scenes.X)
    rows = [" ".join(f"{place}:{value!r}" for place, value in enumerate(row, 1)) for row in scenes.X.tolist()]
    (tmp_path / "bare.txt").write_text("\n".join(rows) + "\n")
    header = "@relation r\n" + "".join(f"@attribute f{place} real\n" for place in range(4)) + "@data\n"
    body = "\n".join(",".join(map(repr, row)) for row in scenes.X.tolist())
    (tmp_path / "bare.arff").write_text(header + body + "\n")
    for name in ("bare.npz", "bare.txt", "bare.arff"):  # the names that fit saw
        assert ranked(done, tmp_path, model, tmp_path / name) == expected


def test_a_model_without_names_takes_those_of_the_data(tmp_path, tags, scenes, done):
    path, model = tags
    expected = ranked(done, tmp_path, model, path)
    CStarRanker(core=2).fit(scenes.X, scenes.Y).save(model)
    assert ranked(done, tmp_path, model, path) == expected
    for number, name in enumerate(scenes.label_names):
        expected = expected.replace(f" {name} ".encode(), f" {number} ".encode())
    np.savez(tmp_path / "bare.npz", X=scenes.X)
    assert ranked(done, tmp_path, model, tmp_path / "bare.npz") == expected


def test_rows_without_classes(tmp_path, classes, done, run):
    path, model = classes
    expected = ranked(done, tmp_path, model, path)
    bare = tmp_path / "bare.csv"
    without = [line.rpartition(",")[0] for line in CLASSES.splitlines()]
    for lines in (without, without[1:]):
        bare.write_text("\n".join(lines) + "\n")
        assert ranked(done, tmp_path, model, bare) == expected
    svmlight = tmp_path / "bare.txt"
    svmlight.write_text("".join("1:{} 2:{}\n".format(*line.split(",")) for line in without[1:]))
    assert ranked(done, tmp_path, model, svmlight) == expected
    bare.write_text("1,20\n1.5,25,red\n")
    assert "found both" in bad_input(run("rank", model, bare, "--out", tmp_path / "x.run"))
    bare.write_text("1,20\n1.5\n")
    assert f"{bare}:2:1: expected 2 numbers" in bad_input(run("rank", model, bare, "--out", tmp_path / "x.run"))


def test_queries_alone(tmp_path, sessions, done):
    path, model = sessions
    expected = ranked(done, tmp_path, model, path)
    for name, text in (("q.txt", "a\nb\nc\n"), ("q.csv", "a\nb\nc\n"), ("q.tsv", "c\nb\na\nb\n")):
        (tmp_path / name).write_text(text)
        assert ranked(done, tmp_path, model, tmp_path / name) == expected
    out = tmp_path / "header.run"
    (tmp_path / "q.csv").write_text("item\na\nb\nc\n")
    done("rank", model, tmp_path / "q.csv", "--header", "--out", out)
    assert out.read_bytes() == expected


# --- runs against every file that fit reads --------------------------------------------------------------------------


def both(done, tmp_path, model, path, measures, *more):
    """The figures of a model, and of its run, on the same file."""
    out = tmp_path / "both.run"
    done("rank", model, path, "--out", out, "--top", "1000")
    by_model = json.loads(done("evaluate", model, path, "--measures", measures, "--json"))
    return by_model, json.loads(done("evaluate", out, path, "--measures", measures, "--json", *more))


def test_a_run_of_labels_is_measured_by_rows_with_labels(tmp_path, tags, scenes, done):
    path, model = tags
    by_model, by_run = both(done, tmp_path, model, path, "ndcg@3,map,p@2")
    assert by_run == pytest.approx(by_model)
    Y = scenes.Y.toarray()
    lines = [
        ",".join(map(str, np.flatnonzero(y))) + "".join(f" {place}:{value!r}" for place, value in enumerate(x, 1))
        for x, y in zip(scenes.X.tolist(), Y, strict=True)
    ]
    (tmp_path / "tags.txt").write_text("\n".join(lines) + "\n")
    done("fit", "cstar", tmp_path / "tags.txt", "--out", model, "--param", "core=2")
    by_model, by_run = both(done, tmp_path, model, tmp_path / "tags.txt", "ndcg@3,map,p@2")
    assert by_run == pytest.approx(by_model)


def test_a_run_of_classes_is_measured_by_the_rows_of_fit(tmp_path, classes, done, run):
    path, model = classes
    by_model, by_run = both(done, tmp_path, model, path, "p@1,map")
    assert by_run == pytest.approx(by_model)
    test = tmp_path / "test.csv"
    test.write_text("2,21,red\n5.2,23,blue\n2,22,green\n")
    by_model, by_run = both(done, tmp_path, model, test, "p@1,map", "--system", "metric", "--catalogue", path)
    assert by_run == pytest.approx(by_model)
    line = bad_input(run("evaluate", tmp_path / "both.run", test))
    assert "--catalogue: expected a run of the 3 rows of" in line
    svmlight = tmp_path / "test.txt"
    svmlight.write_text("7 1:1 2:20\n7 1:1.5 2:25\n9 1:5 2:21\n9 1:5.5 2:24\n")
    done("fit", "metric", svmlight, "--out", model, "--param", "C=10")
    by_model, by_run = both(done, tmp_path, model, svmlight, "p@1,map")
    assert by_run == pytest.approx(by_model)


@pytest.mark.filterwarnings("ignore:.*lists end after 3 documents")  # nobody knows z
def test_a_run_of_items_is_measured_by_sessions_and_pairs(tmp_path, sessions, done):
    path, model = sessions
    by_model, by_run = both(done, tmp_path, model, path, "recall@1,mrr")
    assert by_run == by_model
    pairs = tmp_path / "later.csv"
    pairs.write_text("a,b\nb,a\nc,z\n")
    by_model, by_run = both(done, tmp_path, model, pairs, "recall@1,mrr")
    assert by_run == by_model
    assert by_run["recall@1"] == pytest.approx(1 / 3)
    pairs.write_text("user,item\na,b\nb,a\nc,z\n")
    out = tmp_path / "both.run"
    assert json.loads(done("evaluate", out, pairs, "--header", "--measures", "mrr", "--json"))["mrr"] == by_run["mrr"]


def test_a_run_of_a_named_set_is_measured_by_its_test_part(tmp_path, done, monkeypatch):
    from slatewise.datasets.records import LabelledSet

    about = next(one for one in map(datasets.describe, datasets.names()) if one.kind == "labelled")
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    loaded = LabelledSet(
        about, y[:, None] + 0.3 * rng.normal(size=(40, 2)), y, np.array(["no", "yes"]), np.arange(40) < 30
    )
    monkeypatch.setattr(datasets, "load", lambda name, kind: loaded)
    model = tmp_path / "m.safetensors"
    done("fit", "metric", about.name, "--out", model, "--param", "C=10")
    by_model, by_run = both(done, tmp_path, model, about.name, "p@1,map")
    assert by_run == pytest.approx(by_model)


def test_a_row_without_labels_counts_as_the_convention_says(tmp_path, tags, scenes, done):
    path, model = tags
    Y = scenes.Y.toarray()
    Y[:20] = 0
    data.write_npz(path, MultiLabel(scenes.X, csr_array(Y), scenes.label_names))
    for preset in ("trec_eval", "lightgbm"):
        _, by_run = both(done, tmp_path, model, path, "ndcg@3", "--preset", preset)
        by_model = json.loads(done("evaluate", model, path, "--measures", "ndcg@3", "--preset", preset, "--json"))
        assert by_run == pytest.approx(by_model)


@pytest.mark.filterwarnings("ignore:.*1 of 3 queries have no list")
def test_figures_equal_those_of_the_library(tmp_path, done):
    (tmp_path / "r.run").write_text("u Q0 x 1 2 t\nu Q0 y 2 1 t\nv Q0 y 1 1 t\n")
    (tmp_path / "p.csv").write_text("u,y\nv,z\nw,x\n")
    files = (tmp_path / "r.run", tmp_path / "p.csv", "--no-header")
    found = json.loads(done("evaluate", *files, "--measures", "mrr", "--json"))
    expected = metrics.evaluate_run(
        ["mrr"],
        {"u": {"x": 2.0, "y": 1.0}, "v": {"y": 1.0}},
        {"u": {"y": 1}, "v": {"z": 1}, "w": {"x": 1}},
        missing="zero",
    )
    assert found == pytest.approx(expected)
    assert found["mrr"] == pytest.approx(0.5 / 3)


@pytest.mark.filterwarnings("always::UserWarning")
def test_ids_of_another_kind_are_warned_of(tmp_path, tags, scenes, run, done):
    path, model = tags
    CStarRanker(core=2).fit(scenes.X, scenes.Y).save(model)
    np.savez(tmp_path / "bare.npz", X=scenes.X)
    done("rank", model, tmp_path / "bare.npz", "--out", tmp_path / "r.run")
    code, _, err = run("evaluate", tmp_path / "r.run", path)
    assert code == 0
    assert "none of the 6 documents of the run" in err
    assert err.count("\n") == 1


def test_what_cannot_be_measured_is_an_error(tmp_path, tags, sessions, run):
    trec = tmp_path / "r.run"
    trec.write_text("0 Q0 sea 1 1 x\n")
    path, model = tags
    assert "--catalogue" in bad_input(run("evaluate", trec, path, "--catalogue", path))
    assert "--system" in bad_input(run("evaluate", model, path, "--system", "cstar"))
    assert "system: expected one of" in bad_input(run("evaluate", trec, path, "--system", "nonsense"))
    assert "nowhere" in bad_input(run("evaluate", trec, "nowhere"))
    os.mkfifo(tmp_path / "pipe")
    assert "expected a plain file" in bad_input(run("evaluate", trec, tmp_path / "pipe"))
    assert "ends with one of" in bad_input(run("rank", tmp_path / "no model", path, "--out", tmp_path / "r.xyz"))
    assert "expected a plain file" in bad_input(run("demo", "--out", tmp_path))
    kinds = {datasets.describe(name).kind: name for name in datasets.names()}
    assert "found one of images" in bad_input(run("evaluate", trec, kinds["images"]))


def test_a_model_is_known_under_any_name(tmp_path, documents, done):
    path, model = documents
    plain = tmp_path / "model"
    plain.write_bytes(model.read_bytes())
    assert done("evaluate", plain, path, "--json") == done("evaluate", model, path, "--json")


# --- inputs stay as they are -----------------------------------------------------------------------------------------


def test_no_output_onto_an_input(tmp_path, documents, run):
    path, model = documents
    linked, same = tmp_path / "linked.run", tmp_path / "same.run"
    linked.symlink_to(path)
    os.link(path, same)
    before = {file: file.read_bytes() for file in (path, model)}
    for target in (path, linked, same, model, tmp_path / "." / "rows.txt"):
        assert "--out: expected another file than" in bad_input(run("rank", model, path, "--out", target))
        if target != model:
            assert "--out: expected another file than" in bad_input(run("fit", "feature", path, "--out", target))
    point = ("--checkpoint", path)
    assert "checkpoint: expected another" in bad_input(run("fit", "margin", path, "--out", model, *point))
    new = ("--out", tmp_path / "new", "--checkpoint", f"{tmp_path}/./new")
    assert "checkpoint: expected another" in bad_input(run("fit", "margin", path, *new))
    assert "--json: expected another" in bad_input(run("reproduce", "letor", "--data", path, "--json", path))
    page = tmp_path / "page.html"
    assert "--report: expected another" in bad_input(run("reproduce", "letor", "--json", page, "--report", page))
    assert {file: file.read_bytes() for file in before} == before


def test_a_param_reaches_into_settings_in_any_order(tmp_path, documents, run):
    path, _ = documents
    out = tmp_path / "model"
    run("fit", "margin", path, "--out", out, "--param", "loss__k=3", "--param", "loss=ndcg")
    assert load(out).get_params()["loss__k"] == 3


def test_params_are_what_a_text_can_say(tmp_path, documents, run):
    path, model = documents

    def refused(param, system="margin"):
        return bad_input(run("fit", system, path, "--out", model, "--param", param))

    assert "--param loss__k: expected a parameter of loss='ndcg' or 'precision', found loss='map'" in refused(
        "loss__k=3"
    )
    assert "found 'callbacks=[1]'" in refused("callbacks=[1]")
    assert "--param: expected a number, a text" in refused('C={"a": 1}')
    assert "--param: expected a number, a text" in refused("C=[[1]]")
    assert "C: expected" in refused("C=" + "[" * 100_000)
    assert "name=value" in refused("__class__=1")


# --- messages --------------------------------------------------------------------------------------------------------


def test_binary_files_are_not_printed(tmp_path, documents, run):
    path, _ = documents
    binary = bytes(range(256)) * 64
    for name in ("rows.dat", "rows.csv", "rows.arff", "rows.npz", "rows.parquet", "rows.txt.gz"):
        target = tmp_path / name
        target.write_bytes(gzip.compress(binary) if name.endswith("gz") else binary)
        for system in ("feature", "cstar", "metric", "latent"):
            line = bad_input(run("fit", system, target, "--out", tmp_path / "x"))
            assert line.isascii()
            assert line.strip().isprintable()
            assert "\\x" not in line
            if name in ("rows.dat", "rows.txt.gz"):
                assert f"{target}: expected a text file, found binary data" in line
    target = tmp_path / "rows.dat"
    assert "binary data" in bad_input(run("evaluate", target, path))
    trec = tmp_path / "r.run"
    trec.write_text("1 Q0 a 1 1 x\n")
    assert "binary data" in bad_input(run("evaluate", trec, target))
    assert "slatewise model" in bad_input(run("rank", target, path, "--out", trec))
    late = tmp_path / "late.txt"
    late.write_bytes(b"1 qid:1 1:1\n" * 1000 + b"1 qid:1 1:\xff\xfe\xfd\n")
    assert f"{late}:1001:11: expected a value, a finite decimal number, found binary data" in bad_input(
        run("fit", "feature", late, "--out", tmp_path / "x")
    )


def test_arff_without_its_labels_says_what_is_missing(tmp_path, tags, run):
    arff = tmp_path / "music.arff"
    arff.write_text("@relation r\n@attribute size real\n@attribute sea {0,1}\n@data\n0.5,1\n")
    line = bad_input(run("fit", "cstar", arff, "--out", tmp_path / "x"))
    assert f"{arff}: expected the file music.xml beside it, which names the attributes that are labels" in line
    assert "music.xml beside it" in bad_input(run("rank", tags[1], arff, "--out", tmp_path / "x.run"))


def test_ties_are_broken_by_the_names_of_labels(tmp_path, run, done):
    """Labels without a feature score alike; before, a preset that breaks ties by id could not be used."""
    rows, model = tmp_path / "rows.txt", tmp_path / "m.safetensors"
    rows.write_text("0,1 1:1\n2 2:1\n0,1 1:1\n2 2:1\n")
    done("fit", "cstar-margin", rows, "--out", model, *HINGE, "--param", "core=1")
    assert done("evaluate", model, rows, "--measures", "map", "--preset", "trec_eval", "--json") == '{"map": 1.0}\n'
