"""``slatewise label``: from files to a project and back, and errors of wrong input."""

import json
import os

import numpy as np
import polars as pl
import pytest

from slatewise.labeling import Item, ItemData, Plan, Project
from slatewise.labeling.setup.demo import LABELS, draw_scenes, make_demo_folder
from slatewise.labeling.store import leases

PNG = draw_scenes(1)[0].png


@pytest.fixture
def refused(run):
    """Run a command that must end with exit code 2 and one line on stderr; returns that line."""

    def call(*words):
        code, out, err = run(*words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err

    return call


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in (1, 2, 10):
        (folder / f"p{number}.png").write_bytes(PNG)
    (tmp_path / "labels.txt").write_text("sea\n\nsky\nsun\n")
    return folder


@pytest.fixture
def beach(tmp_path, photos, done):
    """A project of three pictures."""
    done("label", "init", tmp_path / "beach", "--items", photos, "--labels", tmp_path / "labels.txt")
    return tmp_path / "beach"


def opened(folder):
    return Project.open(folder / "project.db")


def test_a_folder_of_pictures(tmp_path, photos, done):
    out = done("label", "init", tmp_path / "beach", "--items", photos, "--labels", tmp_path / "labels.txt")
    assert out.splitlines()[0].endswith("beach: 3 items, 3 labels")
    with opened(tmp_path / "beach") as project:
        assert [item.id for item in project.items.all()] == ["p1.png", "p2.png", "p10.png"]
        assert project.items.folders() == [photos]
        assert project.labels.names() == ["sea", "sky", "sun"]
    assert sorted(os.listdir(tmp_path)) == ["beach", "labels.txt", "photos"]


def test_copied_items_need_their_folder_no_more(tmp_path, photos, done):
    (photos / "more").mkdir()
    (photos / "p2.png").rename(photos / "more" / "p2.png")
    words = ("--items", photos, "--labels", tmp_path / "labels.txt", "--copy", "--plan", "overlap=2")
    done("label", "init", tmp_path / "beach", *words)
    (tmp_path / "beach").rename(tmp_path / "moved")
    with opened(tmp_path / "moved") as project:
        assert [item.path.read_bytes() == PNG for item in project.items.all()] == [True] * 3
        assert [item.id for item in project.items.all()] == ["more/p2.png", "p1.png", "p10.png"]
        assert Plan.of(project).overlap == 2


@pytest.mark.filterwarnings("default::slatewise.core.errors.DataWarning")
def test_unreadable_items_are_left_out_with_a_note_and_their_features_too(tmp_path, photos, run):
    (photos / "p3.png").write_bytes(b"")
    (photos / "p4.jpg").write_text("<html>not found</html>")
    (photos / "p5.png").symlink_to("/etc/hostname")
    (photos / "notes.xmp").write_text("?")
    (photos / ".hidden.png").write_bytes(PNG)
    np.save(tmp_path / "X.npy", np.arange(6.0)[:, None])
    words = ("--items", photos, "--labels", tmp_path / "labels.txt", "--features", tmp_path / "X.npy")
    code, _, err = run("label", "init", tmp_path / "beach", *words)
    assert code == 0
    assert "3 of 6 items cannot be read and are left out: p3.png (empty), p4.jpg (no JPG), p5.png (outside" in err
    assert "1 files that are no pictures, sounds or .txt are left out (ending: .xmp)" in err
    with opened(tmp_path / "beach") as project:
        data = ItemData.attached(project)
        assert data is not None
        assert data.X.tolist() == [[0.0], [1.0], [5.0]]


TABLES = {
    "items.csv": 'id,text,link\na,"Waves,\nand wind.",\nb,,https://example.org/b\n',
    "items.tsv": "id\ttext\na\tWaves.\nb\tWind.\n",
    "items.jsonl": '{"id": "a", "text": "Waves."}\n{"id": "b", "image": "photos/p1.png", "note": 3}\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_items(name, tmp_path, photos, done):
    (tmp_path / name).write_text(TABLES[name])
    done("label", "init", tmp_path / "new", "--items", tmp_path / name, "--labels", tmp_path / "labels.txt")
    with opened(tmp_path / "new") as project:
        assert [item.id for item in project.items.all()] == ["a", "b"]
        kinds = [item.kind for item in project.items.all()]
    assert kinds == ["text", {"items.csv": "link", "items.tsv": "text", "items.jsonl": "image"}[name]]


def choices(*names, **more):
    return {
        "result": [{"type": "choices", "value": {"choices": list(names)}}],
        **more,
    }


@pytest.fixture
def tasks(tmp_path, photos):
    """A picture with a prediction, a text that somebody annotated, and a link of which nothing is known."""
    photo = {"image": "/data/upload/3/p1.png"}
    ann = choices("sun", completed_by={"email": "ann@example.org"}, lead_time=2.0)
    made = [
        {"id": 11, "data": photo, "predictions": [choices("sea", score=0.2), choices("sky", "sun", score=0.75)]},
        {"id": 12, "data": {"text": "Waves."}, "predictions": [choices("sky", score=1.0)], "annotations": [ann]},
        {"id": 13, "data": {"page": "https://example.org/c"}},
    ]
    (photos / "tasks.json").write_text(json.dumps(made))
    return photos / "tasks.json"


def test_tasks_of_label_studio(tmp_path, tasks, done):
    out = done("label", "init", tmp_path / "new", "--items", tasks)
    assert "4 statements of 1 people about 1 items are in it" in out
    with opened(tmp_path / "new") as project:
        found = [(item.id, item.kind) for item in project.items.all()]
        assert found == [("11", "image"), ("12", "text"), ("13", "link")]
        assert project.items[0].path.read_bytes() == PNG
        assert project.labels.names() == ["sea", "sky", "sun"]
        assert project.known().values.tolist() == [[-1] * 3, [0, 0, 1], [-1] * 3]
        assert [person.name for person in project.people.all()] == ["label-studio ann@example.org"]
        data = ItemData.attached(project)
        assert (data.kind, data.X.shape) == ("log-odds", (3, 3))
        expected = [[0.05, 0.75, 0.75], [0.05, 0.95, 0.05], [0.05, 0.95, 0.5]]
        assert np.allclose(1 / (1 + np.exp(-data.X)), expected)


@pytest.mark.filterwarnings("default::slatewise.core.errors.DataWarning")
def test_tasks_with_labels_and_features(tmp_path, tasks, run):
    (tmp_path / "more.txt").write_text("sun\nboat\n")
    np.save(tmp_path / "X.npy", np.arange(3.0)[:, None])
    words = ("--items", tasks, "--labels", tmp_path / "more.txt", "--features", tmp_path / "X.npy")
    code, out, err = run("label", "init", tmp_path / "new", *words)
    assert (code, "predictions of the tasks are left out" in out) == (0, True)
    assert "2 labels that are not among --labels, such as 'sea'" in err
    with opened(tmp_path / "new") as project:
        assert project.known().values.tolist() == [[-1, -1], [1, 0], [-1, -1]]
        assert ItemData.attached(project).kind == "features"


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([], "expected at least one task, found none"),
        ([{"data": {"text": "a"}}], "expected at least 2 labels in annotations and predictions, or --labels, found 0"),
        ([{"data": {"text": "a"}, "predictions": [choices("a", "b", score=7)]}], "from 0 to 1, found 7: give --scores"),
        ([{"data": {"image": "lost.png"}}], "expected data with a text, an address, or a path to a file of the folder"),
        ({"data": {}}, "expected a list of tasks"),
    ],
)
def test_wrong_tasks_leave_nothing(tmp_path, refused, tasks, message):
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    assert message in refused("label", "init", tmp_path / "new", "--items", tmp_path / "tasks.json")
    assert os.listdir(tmp_path) == ["tasks.json"]


def test_labels_are_needed_without_tasks(tmp_path, photos, refused):
    assert "--labels: expected a file" in refused("label", "init", tmp_path / "new", "--items", photos)


def test_texts_and_sounds_of_a_folder(tmp_path, photos, done):
    (photos / "a.txt").write_text("\ufeffWaves.\n")
    (photos / "b.mp3").write_bytes(b"ID3")
    done("label", "init", tmp_path / "new", "--items", photos, "--labels", tmp_path / "labels.txt")
    with opened(tmp_path / "new") as project:
        assert project.items.all()[:2] == [Item("a.txt", "text", "Waves."), Item("b.mp3", "audio", "b.mp3", photos)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.csv", "label,color\nsea,blue\nsky,blue\n"),
        ("l.csv", "sea\nsky\n"),
        ("l.json", '["sea", "sky"]'),
        ("l.json", '{"labels": ["sea", "sky"]}'),
        ("l.jsonl", '"sea"\n"sky"\n'),
    ],
)
def test_files_of_labels(name, text, tmp_path, photos, done):
    (tmp_path / name).write_text(text)
    done("label", "init", tmp_path / "new", "--items", photos, "--labels", tmp_path / name)
    with opened(tmp_path / "new") as project:
        assert project.labels.names() == ["sea", "sky"]


FEATURES = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
IDS = ["p1.png", "p2.png", "p10.png"]


@pytest.mark.parametrize("ending", [".npz", ".npy", ".csv", ".jsonl", ".parquet"])
def test_features_in_every_form(ending, tmp_path, photos, done):
    path, order = tmp_path / f"features{ending}", [2, 0, 1]
    rows = [(IDS[at], *FEATURES[at]) for at in order]
    match ending:
        case ".npz":
            np.savez(path, X=[FEATURES[at] for at in order], ids=[IDS[at] for at in order])
        case ".npy":
            np.save(path, FEATURES)  # without ids: in the order of the items
        case ".csv":
            path.write_text("id,a,b\n" + "".join(f"{name},{a},{b}\n" for name, a, b in rows))
        case ".jsonl":
            path.write_text("".join(json.dumps({"id": n, "features": {"a": a, "b": b}}) + "\n" for n, a, b in rows))
        case _:
            pl.DataFrame(rows, schema=["id", "a", "b"], orient="row").write_parquet(path)
    words = ("--items", photos, "--labels", tmp_path / "labels.txt", "--features", path)
    done("label", "init", tmp_path / "new", *words)
    with opened(tmp_path / "new") as project:
        data = ItemData.attached(project)
        assert data is not None
        assert data.kind == "features"
        assert (data.X.toarray() if ending == ".jsonl" else data.X).tolist() == FEATURES


def test_scores_by_the_names_of_labels_and_probabilities_are_noted(tmp_path, photos, done):
    (tmp_path / "scores.csv").write_text("id,sun,sea,sky\np10.png,0.5,1,0\np1.png,0.9,0.5,0.5\np2.png,0,0,0.25\n")
    words = ("--items", photos, "--labels", tmp_path / "labels.txt", "--scores", tmp_path / "scores.csv")
    assert "taken to be probabilities" in done("label", "init", tmp_path / "new", *words)
    with opened(tmp_path / "new") as project:
        data = ItemData.attached(project)
    assert data is not None
    assert data.kind == "log-odds"
    chance = 1.0 / (1.0 + np.exp(-np.asarray(data.X)))
    assert chance.round(3).tolist() == [[0.5, 0.5, 0.9], [0.0, 0.25, 0.0], [1.0, 0.0, 0.5]]


BAD = {
    "no items": ({"empty/": ""}, ["--items", "empty"], "at least one item that can be read, found none"),
    "no such items": ({}, ["--items", "nowhere"], "--items: expected a folder, or a table"),
    "all unreadable": ({"bad/a.png": ""}, ["--items", "bad"], "can be read, found a.png (empty)"),
    "no column": ({"i.csv": "id,picture\n1,a\n"}, ["--items", "i.csv"], "i.csv:1:1: expected a column called image"),
    "two kinds": ({"i.csv": "text,link\na,b\n"}, ["--items", "i.csv"], "i.csv:2:1: expected one of image"),
    "open quote": ({"i.csv": 'text\n"a\n'}, ["--items", "i.csv"], "quotes that are closed"),
    "same id": ({"i.csv": "id,text\na,b\na,c\n"}, ["--items", "i.csv"], "expected every item once, found the id 'a'"),
    "path out": ({"i.csv": "image\n../a.png\n"}, ["--items", "i.csv"], "stays below it, found ../a.png"),
    "no label": ({"l.txt": "\n"}, ["--labels", "l.txt"], "l.txt:1:1: expected at least 2 labels, found 0"),
    "same label": (
        {"l.txt": "sea\nsky\nsea\n"},
        ["--labels", "l.txt"],
        "l.txt:3:1: expected every label once, found 'sea' again, which is in line 1 too",
    ),
    "no labels": ({}, ["--labels", "nowhere"], "--labels: expected a file with a label per line, found no"),
    "fewer rows": ({"f.csv": "a\n1\n"}, ["--features", "f.csv"], "expected a row per item, 3, found 1"),
    "other ids": ({"f.csv": "id,a\nx,1\n"}, ["--features", "f.csv"], "found nothing for 3 of them, such as 'p1.png'"),
    "no numbers": ({"f.csv": "a\nx\ny\nz\n"}, ["--features", "f.csv"], "f.csv:2:1: expected a finite number"),
    "pickle": ({"f.npy": "nothing"}, ["--features", "f.npy"], "expected an array as numpy.save writes it"),
    "plan": ({}, ["--plan", "overlap=0"], "--plan overlap: expected"),
    "no plan": ({}, ["--plan", "speed=1"], "--plan: expected name=value with a name from order"),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_name_the_fault_and_leave_nothing(case, tmp_path, photos, refused, monkeypatch):
    files, words, message = BAD[case]
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).write_text(text)
    before = sorted(os.listdir(tmp_path))
    assert message in refused("label", "init", "new", "--items", photos, "--labels", "labels.txt", *words)
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("shape", [(10**12, 2), (30_000_000, 2)])
def test_features_that_a_file_only_claims_are_refused_in_one_line(tmp_path, photos, refused, shape):
    with open(tmp_path / "f.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
        file.write(bytes(16))
    words = ("--items", photos, "--labels", tmp_path / "labels.txt", "--features", tmp_path / "f.npy")
    expected = "f.npy: expected an array as numpy.save writes it, found 16 bytes for shape"
    assert expected in refused("label", "init", tmp_path / "new", *words)


@pytest.mark.parametrize("shape", [(0, 2**62), (2**62, 0)])
def test_features_without_an_entry_are_refused_in_one_line(tmp_path, photos, refused, shape):
    np.save(tmp_path / "f.npy", np.empty(shape, dtype=np.int8))
    words = ("--items", photos, "--labels", tmp_path / "labels.txt", "--features", tmp_path / "f.npy")
    assert "f.npy: expected at most 2147483647 columns" in refused("label", "init", tmp_path / "new", *words)


def test_a_project_is_never_overwritten(tmp_path, photos, beach, refused):
    words = ("--items", photos, "--labels", tmp_path / "labels.txt")
    assert "expected nothing there yet, found something" in refused("label", "init", beach, *words)
    assert "expected a folder to make it in" in refused("label", "init", tmp_path / "no" / "new", *words)


def test_no_project(tmp_path, refused):
    assert "found nothing: `slatewise label init` makes one" in refused("label", "status", tmp_path / "none")
    assert "found no project.db" in refused("label", "status", tmp_path)
    (tmp_path / "text.db").write_text("hello")
    assert "expected a labeling project" in refused("label", "status", tmp_path / "text.db")


def answer(folder):
    """Two people answer, one of them is done."""
    with opened(folder) as project:
        ann, bob = project.people.number("Ann"), project.people.number("Bob")
        for label, value in ((0, 1), (1, 0), (2, -1)):
            project.answer(0, label, value, ann, milliseconds=900)
        project.answer(0, 0, 1, bob)
        project.answer(0, 1, 1, bob)
        project.done(0, ann)


def test_status(beach, done):
    assert "beach: 0 of 3 items" in done("label", "status", beach)
    answer(beach)
    out = done("label", "status", beach)
    assert "1 of 3 items" in out
    assert "Ann\t3\t1\t0\t0.9" in out
    assert "sky\t1\t1\t0" in out
    assert "agreement: alpha 0.000 on 2 labels that several answered; 1 to review" in out
    found = json.loads(done("label", "status", beach, "--json"))
    assert found["progress"]["finished"] == 1
    assert found["agreement"]["disputes"][0]["label"] == 1
    assert found["models"] == []
    assert found["progress"]["people"][1]["seconds_per_answer"] is None


def test_export_and_import(tmp_path, beach, photos, done, refused):
    answer(beach)
    out = tmp_path / "out.csv"
    assert "1 of 3 items, 1 labels known" in done("label", "export", beach, out)
    assert out.read_text().splitlines()[:2] == ["item,sea,sky,sun", "p1.png,1,,"]
    assert "expected features of the items, found none" in refused("label", "export", beach, tmp_path / "out.npz")
    assert "no part of the project" in refused("label", "export", beach, beach / "project.db", "--format", "wide")
    done("label", "export", beach, tmp_path / "all.jsonl")
    words = ("--items", photos, "--labels", tmp_path / "labels.txt")
    done("label", "init", tmp_path / "second", *words)
    assert "6 statements of 2 people about 1 items" in done(
        "label", "import", tmp_path / "second", tmp_path / "all.jsonl"
    )
    for folder, name in ((beach, "one.csv"), (tmp_path / "second", "two.csv")):
        done("label", "export", folder, tmp_path / name, "--format", "long")
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()


def test_to_label_studio(tmp_path, beach, done, refused):
    answer(beach)
    out, interface = tmp_path / "beach.json", tmp_path / "beach.xml"
    done("label", "export", beach, out, "--prefix", "/data/local-files/?d=photos/", "--interface", interface)
    assert json.loads(out.read_text())[0]["data"]["image"] == "/data/local-files/?d=photos/p1.png"
    assert '<Image name="item" value="$image"/>' in interface.read_text()
    done("label", "init", tmp_path / "again", "--items", beach.parent / "photos", "--labels", tmp_path / "labels.txt")
    assert "6 statements of 2 people about 1 items" in done("label", "import", tmp_path / "again", out)
    message = refused("label", "export", beach, tmp_path / "beach.csv", "--interface", interface)
    assert "expected with --format label-studio only, found wide" in message


def test_who_did_what_is_listed(beach, done):
    done("label", "token", "make", beach, "Ann")
    done("label", "rename", beach, "sky", "heaven")
    first, second = done("label", "audit", beach).splitlines()[1:]
    assert first.endswith('Ann\tadd token\t{"token": 1, "role": "annotator"}')
    assert "rename label" in second


def test_labels_that_were_renamed_are_mapped_or_refused(tmp_path, beach, done, refused):
    done("label", "rename", beach, "sky", "heaven")
    (tmp_path / "old.csv").write_text("item,sea,sky\np1.png,1,0\n")  # what it was called before
    done("label", "import", beach, tmp_path / "old.csv")
    (tmp_path / "theirs.csv").write_text("item,ocean\np2.png,1\n")
    message = refused("label", "import", beach, tmp_path / "theirs.csv")
    assert "theirs.csv:1:6: expected the name of a label" in message
    assert "--map THEIRS=OURS" in message
    done("label", "import", beach, tmp_path / "theirs.csv", "--map", "ocean=sea", "--annotator", "Ann")
    with opened(beach) as project:
        assert project.known().values.tolist() == [[1, 0, -1], [1, -1, -1], [-1, -1, -1]]
    assert "expected every label once" in refused("label", "rename", beach, "sea", "heaven")
    assert "expected the name of a label" in refused("label", "rename", beach, "see", "lake")


def test_tokens_are_shown_once(beach, done, refused):
    out = done("label", "token", "make", beach, "Ann", "--role", "reviewer")
    token = out.splitlines()[-1]
    assert token.startswith("slw_")
    assert len(token) == 47
    listed = done("label", "token", "list", beach)
    assert "1\tAnn\treviewer" in listed
    assert "valid" in listed
    assert token not in listed
    done("label", "token", "revoke", beach, "1")
    assert "revoked" in done("label", "token", "list", beach)
    assert "expected the number of one that is there" in refused("label", "token", "revoke", beach, "7")
    assert "--role: expected one of annotator, reviewer, owner" in refused(
        "label", "token", "make", beach, "Bob", "--role", "king"
    )


def test_a_name_is_forgotten_and_a_backup_has_it(tmp_path, beach, done, refused):
    answer(beach)
    done("label", "backup", beach, tmp_path / "before.db")
    assert "someone-" in done("label", "forget", beach, "Ann")
    assert "Ann" not in done("label", "status", beach)
    assert "Ann\t3" in done("label", "status", tmp_path / "before.db")
    assert "found nobody" in refused("label", "forget", beach, "Ann")
    assert "another file than the project itself" in refused("label", "backup", beach, beach / "project.db")


def test_a_clock_that_goes_backwards_loses_nothing(beach, done, monkeypatch):
    now = 1_700_000_000.0
    for step, label in enumerate((0, 1, 2)):
        monkeypatch.setattr(leases, "wall_clock", lambda at=now - 3600.0 * step: at)
        with opened(beach) as project:
            project.answer(0, label, 1, project.people.number("Ann"))
            project.answer(0, label, 0, project.people.number("Ann"))  # later, so it counts
    with opened(beach) as project:
        assert project.known().values[0].tolist() == [0, 0, 0]
    assert "sea\t0\t1\t0" in done("label", "status", beach)


def test_a_second_server_is_refused(beach, refused):
    with Project.open(beach / "project.db", serve=True):
        message = refused("label", "serve", beach, "--port", "0")
    assert f"expected a project that no other server serves, found it is served by process {os.getpid()}" in message


def test_a_proxy_needs_to_know_the_address(beach, refused):
    message = refused("label", "serve", beach, "--port", "0", "--behind-proxy")
    assert "origin: expected the address that browsers use, as https://label.example.org, found None" in message


@pytest.mark.parametrize(
    ("address", "warned"),
    [("http://127.0.0.1:8765", False), ("http://192.168.1.5:8765", True), ("https://label.example.org", False)],
)
def test_the_demo_makes_its_folder_and_warns_without_tls(tmp_path, done, monkeypatch, address, warned):
    served = []

    def make(folder):
        folder.mkdir()
        Project.create(folder / "project.db", ["sea", "sky"]).close()

    def serve(file, ready, **_):
        served.append(file)
        ready(address)

    monkeypatch.setattr("slatewise.labeling.setup.demo.make_demo_folder", make)
    monkeypatch.setattr("slatewise.labeling.page.serve", serve)
    out = done("label", "demo", tmp_path / "demo" / "labeling")
    assert served == [tmp_path / "demo" / "labeling" / "project.db"]
    assert ("not encrypted" in out) is warned


def test_the_demo_has_a_model_and_pictures(tmp_path):
    file = make_demo_folder(tmp_path / "demo", n_scenes=40, n_labeled=30)
    with Project.open(file) as project:
        assert len(project.items) == 40
        assert project.labels.names() == list(LABELS)
        assert all(item.path.read_bytes().startswith(b"\x89PNG") for item in project.items.all())
        current = project.models.current()
        assert current is not None
        assert (project.path.parent / current.path).is_file()
        assert len(project.known().values) == 40
        assert (project.known().values >= 0).all(axis=1).sum() == 30
    assert os.listdir(tmp_path) == ["demo"]


def test_scenes_are_the_same_for_a_seed_and_labels_come_together():
    one, other = draw_scenes(6, random_state=1), draw_scenes(6, random_state=1)
    assert [scene.png for scene in one] == [scene.png for scene in other]
    for scene in draw_scenes(12):
        assert scene.colors.shape == (288,)
        assert scene.there <= set(LABELS)
        assert not scene.there & {"boat", "fish"} or "sea" in scene.there
