"""Tagged rows on the command line: from a file to a model, a run and figures, with the ids of rows."""

import json

import numpy as np
import polars as pl
import pytest

import slatewise
from slatewise import data, datasets

NAMES = ["boat", "sea", "sky", "sun"]
TAGS = ("--tags", "tags", "--separator", "|", "--id", "photo")


@pytest.fixture
def refused(run):
    """Run a command that must end with exit code 2 and one line on stderr; returns that line."""

    def call(*words):
        code, out, err = run(*words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err

    return call


@pytest.fixture(scope="module")
def photos():
    """Ids, features, and the tags of each row."""
    made = datasets.make_label_scenes(60, n_labels=4, n_features=3, n_groups=1, random_state=0)
    ids = [f"p{row:02d}.jpg" for row in range(60)]
    tags = [[name for name, flag in zip(NAMES, row, strict=True) if flag] for row in made.Y]
    return ids, made.X, tags


@pytest.fixture
def files(tmp_path, photos):
    """The same rows in every form, and what is said of each."""
    ids, X, tags = photos
    rows = list(zip(ids, X.tolist(), tags, strict=True))
    joined = [f"{i},{a!r},{b!r},{c!r},{'|'.join(t)}" for i, (a, b, c), t in rows]
    (tmp_path / "tags.csv").write_text("\n".join(["photo,f0,f1,f2,tags", *joined]) + "\n")
    flags = [[str(int(name in t)) for name in NAMES] for t in tags]
    lines = ["\t".join([*flag, i, *map(repr, x)]) for flag, (i, x, _) in zip(flags, rows, strict=True)]
    names = "\t".join([*(f"is:{name}" for name in NAMES), "photo", "f0", "f1", "f2"])
    (tmp_path / "labels.tsv").write_text("\n".join([names, *lines]) + "\n")
    objects = [{"id": i, "features": dict(zip(("f0", "f1", "f2"), x, strict=True)), "tags": t} for i, x, t in rows]
    (tmp_path / "tags.jsonl").write_text("\n".join(map(json.dumps, objects)))
    frame = {"photo": ids, **{f"f{at}": X[:, at] for at in range(3)}, "tags": tags}
    pl.DataFrame(frame).write_parquet(tmp_path / "tags.parquet")
    return {
        tmp_path / "tags.csv": TAGS,
        tmp_path / "labels.tsv": ("--labels", "is:", "--id", "photo"),
        tmp_path / "tags.jsonl": (),
        tmp_path / "tags.parquet": ("--tags", "tags", "--id", "photo"),
    }


def fitted(done, path, said, out, *more):
    done("fit", "cstar", path, *said, "--out", out, "--param", 'core=["sky"]', "--param", "tol=0.1", *more)
    return out


def test_every_file_gives_the_same_model_run_and_figures(tmp_path, photos, files, done):
    models = [fitted(done, path, said, tmp_path / f"{n}.safetensors") for n, (path, said) in enumerate(files.items())]
    assert len({slatewise.load(model).pair_.tobytes() for model in models}) == 1
    model, runs, figures = models[0], set(), set()
    assert slatewise.load(model).label_names_.tolist() == NAMES
    assert slatewise.load(model).feature_names_in_.tolist() == ["f0", "f1", "f2"]
    out = tmp_path / "out.run"
    for path, said in files.items():
        done("rank", model, path, *said, "--top", "4", "--out", out)
        runs.add(out.read_text())
        for judged in (model, out):
            figures.add(done("evaluate", judged, path, *said, "--measures", "map,p@2", "--json"))
    assert len(runs) == len(figures) == 1
    run = data.read_run(out)
    assert run.qid.tolist() == [name for name in photos[0] for _ in range(4)]
    assert set(run.doc_ids.tolist()) == set(NAMES)


def test_rows_to_rank_need_the_columns_of_the_model_only(tmp_path, photos, files, done, refused):
    ids, X, _ = photos
    path = tmp_path / "tags.csv"
    model, out = fitted(done, path, TAGS, tmp_path / "m.safetensors"), tmp_path / "out.run"
    done("rank", model, path, *TAGS, "--out", out)
    expected = out.read_text()
    bare = tmp_path / "bare.csv"
    text = [f"{b!r},some text,{i},{c!r},{a!r}" for i, (a, b, c) in zip(ids, X.tolist(), strict=True)]
    bare.write_text("\n".join(["f1,title,photo,f2,f0", *text]))
    done("rank", model, bare, "--id", "photo", "--out", out)
    assert out.read_text() == expected
    done("rank", model, bare, "--out", out)
    assert data.read_run(out).qid[0] == "0"
    strange = tmp_path / "strange.jsonl"
    strange.write_text('{"id": 7, "features": {"f0": 1}, "tags": ["never seen"]}\n')
    done("rank", model, strange, "--out", out)
    assert data.read_run(out).qid.tolist() == ["7"] * 4
    assert "expected a tag that is known, found 'never seen'" in refused("evaluate", model, strange)
    bare.write_text("f0,f1\n1,2\n")
    assert f"{bare}:1:1: expected a column called 'f2', found 'f0', 'f1'" in refused("rank", model, bare, "--out", out)


def test_a_run_with_other_ids_is_refused(tmp_path, files, done, refused):
    path, out = tmp_path / "tags.csv", tmp_path / "out.run"
    done("rank", fitted(done, path, TAGS, tmp_path / "m.safetensors"), path, *TAGS, "--out", out)
    said = ("--tags", "tags", "--separator", "|", "--features", "f")
    assert "expected an answer to at least one judged query" in refused("evaluate", out, path, *said)


def test_some_columns_are_features(tmp_path, files, done):
    path, said = tmp_path / "tags.csv", ("--features", "f0,f2")
    model = fitted(done, path, (*TAGS, *said), tmp_path / "m.safetensors")
    assert slatewise.load(model).feature_names_in_.tolist() == ["f0", "f2"]


def test_ids_of_an_archive_are_carried_along(tmp_path, files, done):
    rows = data.read_tags(tmp_path / "tags.csv", tags="tags", separator="|", id="photo")
    data.write_npz(tmp_path / "tags.npz", rows)
    model = fitted(done, tmp_path / "tags.npz", (), tmp_path / "m.safetensors")
    done("rank", model, tmp_path / "tags.npz", "--out", tmp_path / "out.csv")
    assert data.read_pairs(tmp_path / "out.csv", header=True).queries[0] == "p00.jpg"


def test_npz_without_names_and_arff_of_meka(tmp_path, photos, done):
    _, X, tags = photos
    Y = np.array([[int(name in row) for name in NAMES] for row in tags])
    np.savez(tmp_path / "bare.npz", X=X, Y=Y)
    header = "@relation 'photos: -C 4'\n" + "".join(f"@attribute {name} {{0,1}}\n" for name in NAMES)
    header += "".join(f"@attribute f{at} real\n" for at in range(3)) + "@data\n"
    body = "\n".join(",".join([*map(str, y), *map(repr, x)]) for y, x in zip(Y.tolist(), X.tolist(), strict=True))
    (tmp_path / "meka.arff").write_text(header + body + "\n")
    for path, names, core in [("bare.npz", list("0123"), '["2"]'), ("meka.arff", NAMES, '["sky"]')]:
        model = tmp_path / "m.safetensors"
        done("fit", "cstar", tmp_path / path, "--out", model, "--param", f"core={core}", "--param", "tol=0.1")
        assert slatewise.load(model).label_names_.tolist() == names
        done("rank", model, tmp_path / path, "--out", tmp_path / "out.run")
        done("evaluate", model, tmp_path / path)


def test_bad_input_is_one_line(tmp_path, files, refused):
    path, out = tmp_path / "tags.csv", ("--out", tmp_path / "m.safetensors")
    for said, message in [
        ((), "--labels, --tags: expected one of them, which says where"),
        (("--tags", "tags"), "--separator: expected what stands between two tags in 'tags'"),
        (("--tags", "label", "--separator", "|"), "tags.csv:1:1: expected a column called 'label'"),
        (("--tags", "tags", "--separator", "|"), "tags.csv:2:1: expected a finite number"),
        (("--labels", "is:"), "tags.csv:1:1: expected columns whose names start with 'is:'"),
        (("--labels", "sky,sea"), "tags.csv:1:1: expected a column called 'sky'"),
        (("--labels", "is:", "--tags", "tags", "--separator", "|"), "labels, tags: expected one of them, found both"),
        ((*TAGS, "--param", 'core=["lake"]'), "core: expected names of labels that fit saw, found 'lake'"),
    ]:
        assert message in refused("fit", "cstar", path, *said, *out)
    assert "for cstar and cstar-margin, only" in refused("fit", "feature", path, "--labels", "is:", *out)
    assert "for cstar and cstar-margin, only" in refused("fit", "latent", path, "--id", "photo", *out)
    np.savez(tmp_path / "x.npz", X=np.eye(3), Y=np.eye(3))
    assert "expected with CSV, TSV, JSON lines" in refused("fit", "cstar", tmp_path / "x.npz", "--id", "photo", *out)
    one = tmp_path / "one.csv"
    one.write_text("a,tags\n1,sky\n2,\n")
    assert "y: expected at least two labels to rank, found 1" in refused(
        "fit", "cstar", one, "--tags", "tags", "--separator", "|", *out
    )
    (tmp_path / "broken.jsonl").write_text('{"features": [1, 2], "tags": ["a"\n')
    assert "broken.jsonl:1:34: expected ',' or ']'" in refused("fit", "cstar", tmp_path / "broken.jsonl", *out)
    (tmp_path / "empty.jsonl").write_text("\n")
    assert "empty.jsonl:1:1: expected a line" in refused("fit", "cstar", tmp_path / "empty.jsonl", *out)
