"""Tasks of Label Studio: what a real one exported is read, and what it made of ours comes back as it was.

``tests/label_studio`` has the recordings and the script that made them; ``version.json`` says of which version.
"""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.label_studio.record import HERE, LABELS, TEXTS, make_project

from slatewise.core.errors import DataError, DataWarning
from slatewise.labeling import Item, Project, export_answers, import_answers, label_studio_config
from slatewise.labeling.exchange.label_studio import read_tasks
from slatewise.labeling.exchange.statements import project_statements
from slatewise.labeling.store import leases


@pytest.fixture
def recorded(tmp_path):
    with make_project(tmp_path / "recorded.db") as project:
        yield project


@pytest.fixture
def empty(tmp_path):
    items = [Item(f"text {number}", "text", text) for number, text in enumerate(TEXTS)]
    with Project.create(tmp_path / "empty.db", LABELS, items) as project:
        yield project


def without_times(project):
    return [{**vars(one), "time": None} for one in project_statements(project)]


def test_what_label_studio_made_of_ours_comes_back_as_it_was(recorded, empty):
    """It took all annotations and predictions, and gave the annotations back with their meta."""
    import_answers(empty, HERE / "returned.json")
    by_person = lambda one: (one["item"], one["annotator"])  # noqa: E731
    assert sorted(without_times(empty), key=by_person) == sorted(without_times(recorded), key=by_person)
    assert json.loads((HERE / "version.json").read_text())["label-studio"]


def test_what_we_write_is_what_was_recorded(recorded, tmp_path, monkeypatch):
    def timeless(path):
        return json.loads(path.read_text(), object_hook=lambda row: {k: v for k, v in row.items() if k != "time"})

    export_answers(recorded, tmp_path / "ours.json", probabilities=np.linspace(0, 1, 16).reshape(4, 4))
    assert timeless(tmp_path / "ours.json") == timeless(HERE / "ours.json")


def test_what_people_did_in_label_studio_is_read(empty):
    """All labels were in view: what is not ticked is a no. A cancelled annotation is a skip."""
    taken = import_answers(empty, HERE / "native.json")
    assert taken == (2 * (len(LABELS) + 1) + 1, 3, 1)
    known = empty.known()
    assert known.values.tolist() == [[1, 0, 0, 0], [0, 1, 1, 0], [-1] * 4, [-1] * 4]
    assert (known.answered == (known.values >= 0)).all()
    assert [(mark.item, mark.kind, mark.milliseconds) for mark in empty.marks()] == [
        (0, "done", 3250), (1, "done", 3250), (2, "skip", 3250)
    ]  # fmt: skip
    assert [person.name for person in empty.people.all()] == ["label-studio 1"]
    assert {answer.how for answer in empty.answers()} == {"closed", "confirmed"}
    assert leases.now() > next(empty.answers()).time > 1_700_000_000_000
    assert empty.undo(1, item=0).labels == (0, 1, 2, 3)


def test_tasks_with_predictions_become_items_and_scores():
    tasks = read_tasks(HERE / "snapshot.json")
    assert [(item.kind, item.content) for item in tasks.items] == [("text", text) for text in TEXTS[: len(tasks.items)]]
    assert tasks.labels == sorted(LABELS[:3])
    scores = dict(zip(tasks.labels, tasks.scores[0].tolist(), strict=True))
    assert (scores["sea"], scores["sky, blue"]) == (0.5, 0.5)  # of the last prediction
    assert np.isnan(tasks.scores[1:]).all()
    assert np.isnan(read_tasks(HERE / "native.json").scores).all()  # there they are numbers only


def test_predictions_go_out_as_ours(recorded, tmp_path):
    tasks = read_tasks(HERE / "ours.json")
    assert [item.id for item in tasks.items] == [f"text {number}" for number in range(4)]
    assert len(tasks.items) == 4
    assert np.isnan(tasks.scores[0]).all()  # nothing above a half
    with pytest.raises(ValueError, match="probabilities: expected numbers from 0 to 1 of shape"):
        export_answers(recorded, tmp_path / "out.json", probabilities=np.full((4, 4), 2.0))


def test_an_annotation_changed_in_label_studio_counts_as_it_is_now(empty, tmp_path):
    tasks = json.loads((HERE / "returned.json").read_text())
    tasks[0]["annotations"][0]["result"][0]["value"]["choices"] = ["sky, blue"]
    (tmp_path / "changed.json").write_text(json.dumps(tasks[:1]))
    import_answers(empty, tmp_path / "changed.json")
    ann = empty.people.number("label-studio 1")
    assert empty.state(0, ann).values.tolist() == [0, 1, 0, 0]
    assert empty.people.number("Bob") != ann


def test_files_are_found_by_the_end_of_their_path(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "deep").mkdir()
    for name in ("a b.jpg", "c.ogg", "deep/c.ogg", "d.png"):
        (tmp_path / "photos" / name).write_bytes(b"")
    tasks = [
        {"id": 7, "data": {"image": "/data/upload/1/a%20b.jpg"}},
        {"id": 8, "data": {"audio": "/data/local-files/?d=sounds/deep/c.ogg"}},
        {"id": 10, "data": {"audio": "/data/local-files/?d=../c.ogg"}},
        {"id": 11, "data": {"image": "/data/upload/1/0f1e2d3c-d.png"}},
        {"id": 9, "data": {"image": "https://example.org/x.jpg"}},
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    items = read_tasks(tmp_path / "tasks.json", folder=tmp_path / "photos").items
    assert [(item.id, item.kind, item.content) for item in items] == [
        ("7", "image", "a b.jpg"), ("8", "audio", "deep/c.ogg"), ("10", "audio", "c.ogg"), ("11", "image", "d.png"),
        ("9", "link", "https://example.org/x.jpg"),
    ]  # fmt: skip
    folder = tmp_path / "photos"
    files = [Item(name, "image", name, folder) for name in ("a b.jpg", "d.png")]
    with Project.create(tmp_path / "photos.db", ["sea", "sky"], files) as project:
        ticked = {"annotations": [{"result": chosen("sky")}]}
        (tmp_path / "done.json").write_text(json.dumps([tasks[0] | ticked, tasks[3] | ticked]))
        import_answers(project, tmp_path / "done.json")
        assert project.known().values.tolist() == [[0, 1], [0, 1]]
    with pytest.raises(DataError, match=r"tasks.json\[0\]: expected data with a text, an address, or a path to a file"):
        read_tasks(tmp_path / "tasks.json")


def test_results_that_are_no_choices_are_counted(empty, tmp_path):
    box = {"type": "rectanglelabels", "value": {"x": 1}}
    tick = {"type": "choices", "value": {"choices": ["sea"]}}
    tasks = [{"data": {"item": "text 0"}, "annotations": [{"result": [box, tick, box]}]}]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    with pytest.warns(DataWarning, match="left out 2 results of annotations that are no choices"):
        import_answers(empty, tmp_path / "tasks.json", annotator="someone")
    assert empty.known().values[0].tolist() == [1, 0, 0, 0]


def annotated(annotations):
    return [{"data": {"item": "text 0"}, "annotations": annotations}]


def chosen(name):
    return [{"type": "choices", "value": {"choices": [name]}}]


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ({"data": {}}, "in.json:1:1: expected a list of tasks"),
        ([{"text": "x", "labels": "sea"}], r"in.json\[0\]: expected an object with data, as of an export as JSON"),
        ([{"data": {"text": "?"}, "annotations": [{}]}], r"in.json\[0\]: expected data with the id of an item"),
        (annotated(5), "annotations: a list of objects"),
        (annotated([{"result": 5}]), r"annotations\[0\].result: a list of objects"),
        (annotated([{"result": chosen(1)}]), r"annotations\[0\].result\[0\].value.choices: a list of texts"),
        (annotated([{"result": chosen("x")}]), "choices that are labels of the project, found 'x'"),
        (annotated([{"lead_time": "long"}]), r"annotations\[0\].lead_time: seconds"),
    ],
)
def test_wrong_tasks_are_refused(empty, tmp_path, tasks, message):
    (tmp_path / "in.json").write_text(json.dumps(tasks))
    with pytest.raises(DataError, match=message):
        import_answers(empty, tmp_path / "in.json")
    assert empty.last_act() == 0


def test_an_interface_shows_one_kind_of_items(empty, tmp_path):
    values = [choice.get("value") for choice in ElementTree.fromstring(label_studio_config(empty)).iter("Choice")]
    assert values == LABELS
    empty.items.add([Item("l", "link", "https://example.org")])
    with pytest.raises(ValueError, match="items: expected one kind"):
        label_studio_config(empty)
