"""The routes of the page: a person's way through a project, recorded once, and clear errors."""

import csv
import errno
import io
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from tests.labeling.page.client import LABELS, ORIGIN, LocalClient
from tests.labeling.scenes import X, Y, ranker

from slatewise.errors import ProjectError
from slatewise.labeling import Item, Plan, Project, simulate
from slatewise.labeling.page import make_app
from slatewise.labeling.page.access_tokens import new_token
from slatewise.labeling.plan import QUESTIONS
from slatewise.web.site import Site

WORDS = ("no", "yes")


def answer(client, turn, word, label=None, annotator="Ann", **more):
    label = turn["view"]["question"]["label"] if label is None else label
    body = {"item": turn["item"]["number"], "label": label, "answer": word, "turn": turn["turn"]} | more
    return client.post("/api/answer", body, annotator=annotator)


def test_a_persons_way(client):
    turn = client.post("/api/next")
    assert turn["item"]["number"] == 0
    assert turn["item"]["file"] == "/api/items/0/file"
    view = turn["view"]
    assert view["question"]["reason"]["text"].endswith("likely")
    assert (view["n_questions"], view["labels_without_model"], view["version"], view["basis"]) == (0, 8, 1, "model")
    assert len(view["listed"]) == 5
    turn = answer(client, turn, "yes", milliseconds=700)
    assert turn["view"]["n_questions"] == 1
    assert [one["answer"] for one in turn["view"]["answered"]] == ["yes"]
    other = next(one["label"] for one in turn["view"]["listed"] if one["answer"] is None)
    turn = answer(client, turn, "no", label=other)
    undone = client.post("/api/undo", {"turn": turn["turn"]})
    assert undone["message"] == f"Taken back: your answer for {LABELS[other]}."
    assert len(undone["view"]["answered"]) == 1
    after = client.post("/api/done", {"item": 0, "turn": undone["turn"]})
    assert after["item"]["id"] == "poem"
    assert after["item"]["text"].startswith("<script>")
    assert client.post("/api/skip", {"item": 1, "turn": after["turn"]})["item"]["kind"] == "audio"
    assert client.post("/api/undo")["item"]["id"] == "poem"
    assert client.post("/api/next", {"item": 1})["item"]["id"] == "noise"
    assert client.post("/api/next", {"item": 1})["item"]["id"] == "noise"  # as the reply before was lost
    assert client.post("/api/next")["item"]["id"] == "noise"


def test_two_people_never_have_one_item(client):
    assert client.post("/api/next")["item"]["number"] == 0
    assert client.post("/api/next", annotator="Bob")["item"]["number"] == 1
    refused = client.post("/api/answer", {"item": 0, "label": 0, "answer": "yes"}, 409, annotator="Bob")
    assert refused["detail"].startswith("item: expected one that you may have")


@pytest.mark.parametrize("what", ["answer", "done", "skip", "undo"])
def test_what_is_sent_again_is_recorded_once_also_by_the_next_server(path, what):
    bodies = {"answer": {"item": 0, "label": 3, "answer": "no"}, "done": {"item": 0}, "skip": {"item": 0}, "undo": {}}
    with LocalClient(path) as client:
        turn = client.post("/api/next")
        turn = answer(client, turn, "yes")
        body = bodies[what] | {"turn": turn["turn"]}
        first = client.post(f"/api/{what}", body)
        assert client.post(f"/api/{what}", body) | {"message": ""} == first | {"message": ""}
        wrong = client.post("/api/answer", {"item": 0, "label": 5, "answer": "yes", "turn": turn["turn"]}, 409)
        assert wrong["detail"].startswith(f"turn: expected {first['turn']}, found {turn['turn']}")
    with LocalClient(path) as client:
        again = client.post(f"/api/{what}", body)
        assert again["turn"] == first["turn"]
        assert again["item"] == first["item"]
        assert again["view"] == first["view"]


def test_an_item_that_was_open_is_open_again(path):
    with LocalClient(path) as client:
        turn = answer(client, client.post("/api/next"), "yes")
    with LocalClient(path) as client:
        assert client.post("/api/next") == turn


def test_answers_of_another_process_need_no_question(path, client, tmp_path):
    turn = client.post("/api/next")
    chosen = turn["view"]["question"]["label"]
    rows = [f"scene 0,{LABELS[chosen]},yes", *(f"poem,{name},no" for name in LABELS)]
    (tmp_path / "old.csv").write_text("\n".join(["item,label,answer", *rows]) + "\n")
    words = [sys.executable, "-m", "slatewise", "label", "import", str(path), str(tmp_path / "old.csv")]
    subprocess.run(words, check=True, capture_output=True)
    again = client.post("/api/next")
    assert again["view"]["question"]["label"] != chosen
    assert (chosen, "yes") in [(one["label"], one["answer"]) for one in again["view"]["listed"]]
    assert client.post("/api/next", annotator="Bob")["item"]["id"] == "noise"  # the poem is known


@pytest.mark.parametrize("policy", ["margin rule", "most probable"])
def test_the_questions_are_those_of_the_simulation(path, policy):
    n, most = 6, 5
    expected = simulate(ranker(), X[:n], Y[:n], QUESTIONS[policy], questions=range(most + 1))
    with Project.open(path) as project:
        Plan(share=0.0, order="file order", policy=policy, retrain_every=0, list_length=8).keep(project)
    chosen, precision = np.full((n, most), -1), np.full((n, most + 1), np.nan)
    with LocalClient(path) as client:
        turn = client.post("/api/next")
        while (item := turn["item"]["number"]) < n:
            for count in range(most + 1):
                listed, k = [one["label"] for one in turn["view"]["listed"]], Y[item].sum()
                precision[item, count] = Y[item, listed[:k]].sum() / k if k else np.nan
                if count < most:
                    chosen[item, count] = turn["view"]["question"]["label"]
                    turn = answer(client, turn, WORDS[Y[item, chosen[item, count]]])
            turn = client.post("/api/done", {"item": item, "shown": [], "turn": turn["turn"]})
    assert np.array_equal(chosen, expected.labels)
    assert np.array_equal(precision, expected.per_list, equal_nan=True)


@pytest.mark.parametrize(
    ("path_", "body", "status", "detail"),
    [
        (
            "/api/answer",
            {"item": 0, "label": 8, "answer": "yes"},
            422,
            "label: expected the number of one that is there",
        ),
        (
            "/api/answer",
            {"item": 99, "label": 0, "answer": "yes"},
            422,
            "item: expected the number of one that is there",
        ),
        ("/api/answer", {"item": 0, "label": "0", "answer": "yes"}, 422, "label: expected int, found str"),
        (
            "/api/answer",
            {"item": 0, "label": 0, "answer": "maybe"},
            422,
            "answer: expected \"don't know\" or 'no' or 'yes', found 'maybe'",
        ),
        ("/api/answer", {"item": 0, "label": 0}, 422, "answer: expected, found nothing"),
        (
            "/api/answer",
            {"item": 0, "label": 0, "answer": "yes", "x": 1},
            422,
            "x: expected one of the fields item, label, answer, milliseconds, turn, found another",
        ),
        ("/api/done", {"item": 0, "shown": [99]}, 422, "label: expected the number of one that is there"),
        ("/api/next", {"by": "luck"}, 422, "by: expected 'disagreement' or 'file order'"),
        ("/api/next", [], 422, "body: expected object, found array"),
        ("/api/models/use", {"version": 7}, 404, "version: expected one of [1]"),
        ("/api/review", {"item": 99, "label": 0, "answer": "yes"}, 422, "item: expected the number"),
    ],
)
def test_wrong_requests_are_clear_errors(client, path_, body, status, detail):
    client.post("/api/next")
    assert client.post(path_, body, status)["detail"].startswith(detail)


@pytest.mark.parametrize(
    ("path_", "status", "detail"),
    [
        ("/api/items/24", 404, "item: expected the number of one that is there, found 24"),
        ("/api/items/-1", 422, "number: expected int >= 0"),
        ("/api/items/1/file", 404, "item: expected a picture or a sound, found a text"),
        ("/api/export?format=xml", 422, "format: expected one of wide, long"),
        ("/api/me?annotator=%00", 422, "annotator: expected a text"),
        ("/static/page.py", 404, "path: expected a part of the page"),
    ],
)
def test_missing_things_are_clear_errors(client, path_, status, detail):
    assert client.get(path_, status)["detail"].startswith(detail)


def test_no_json_is_refused(client):
    reply = client.ask("POST", "/api/next", content=b"{", headers={"content-type": "application/json"})
    assert (reply.status_code, reply.json()["detail"]) == (
        422,
        "body: expected JSON, found another text at character 1",
    )


def test_files_are_served_as_what_they_are(client):
    picture = client.ask("GET", "/api/items/0/file")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in picture.headers["content-security-policy"]
    part = client.ask("GET", "/api/items/2/file", headers={"range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, b"RIFF")


def test_the_page_and_its_parts(client):
    for part in ("/", "/enter", "/static/page.css", "/static/main.js"):
        reply = client.ask("GET", part)
        assert reply.status_code == 200
        assert "script-src 'self'" in reply.headers["content-security-policy"]
        again = client.ask("GET", part, headers={"if-none-match": reply.headers["etag"]})
        assert again.status_code == 304
    page = client.ask("GET", "/").text
    assert "<script>" not in page
    assert "style=" not in page


def test_progress_agreement_and_review(path):
    with Project.open(path) as project:
        Plan(share=0.0, order="file order", overlap=2, retrain_every=0).keep(project)
    with LocalClient(path) as client:
        for name, word in (("Ann", "yes"), ("Bob", "no")):
            turn = answer(client, client.post("/api/next", annotator=name), word, label=2, annotator=name)
            turn = answer(client, turn, "yes", label=4, annotator=name, milliseconds=500)
            client.post("/api/done", {"item": 0, "shown": [], "turn": turn["turn"]}, annotator=name)
        progress = client.get("/api/progress")
        assert (progress["finished"], progress["items"], progress["disputes"]) == (1, 24, 1)
        assert progress["labels"][2] == {"name": LABELS[2], "yes": 1, "no": 1, "not_known": 0}
        assert [(one["name"], one["answers"]) for one in progress["people"]] == [("Ann", 2), ("Bob", 2)]
        agreement = client.get("/api/agreement")
        assert agreement["n_units"] == 2
        assert agreement["pairs"][0]["people"] == ["Ann", "Bob"]
        review = client.get("/api/review")
        assert review["total"] == 1
        dispute = review["disputes"][0]
        assert (dispute["item"]["number"], dispute["name"], dispute["yes"], dispute["no"]) == (
            0,
            LABELS[2],
            ["Ann"],
            ["Bob"],
        )
        settled = {"item": 0, "label": 2, "answer": "yes", "turn": client.get("/api/review?annotator=Cora")["turn"]}
        assert settled["turn"] == 0
        left = client.post("/api/review", settled, annotator="Cora")
        assert (left["total"], left["disputes"]) == (0, [])
        assert client.post("/api/review", settled, annotator="Cora") == left  # as the reply before was lost
        refused = client.post("/api/review", settled | {"answer": "no"}, 409, annotator="Cora")
        assert refused["detail"].startswith(f"turn: expected {left['turn']}, found 0")
    with Project.open(path) as project:
        (cora,) = [person.number for person in project.people.all() if person.name == "Cora"]
        assert [one.how for one in project.answers(annotator=cora, every=True)] == ["reviewed"]


def test_versions_are_listed_and_rolled_back(client):
    models = client.get("/api/models")
    assert [(one["version"], one["in_use"], one["note"]) for one in models["versions"]] == [(1, True, "made elsewhere")]
    assert (models["trainer"], models["sees"], models["basis"]) == ("idle", "features", "model")
    without = client.post("/api/models/use", {"version": None})
    assert [one["in_use"] for one in without["versions"]] == [False]
    again = client.post("/api/models/use", {"version": 1})
    assert [one["in_use"] for one in again["versions"]] == [True]


def test_questions_use_the_new_name_of_a_renamed_label(path, client):
    turn = client.post("/api/next")
    chosen = turn["view"]["question"]["label"]
    with Project.open(path) as project:  # as another process does
        project.labels.rename(LABELS[chosen], "renamed")
    client.page_state.state.refresh(wait=True)
    me, names = client.get("/api/me"), turn["names"]
    assert me["labels"][chosen] == "renamed"
    turn = answer(client, turn, "no")
    assert turn["names"] == me["names"] != names
    assert turn["view"]["answered"][0]["name"] == "renamed"
    assert client.post("/api/undo")["view"]["question"]["name"] == "renamed"


def test_who_was_forgotten_comes_back_as_somebody_else(path, client):
    answer(client, client.post("/api/next"), "yes")
    with Project.open(path) as project:
        before = project.people.number("Ann")
        project.people.forget(before)
    turn = client.post("/api/next")
    assert turn["turn"] == 0
    answer(client, turn, "no")
    with Project.open(path) as project:
        after = project.people.number("Ann")
        assert after != before
        assert [len(list(project.answers(annotator=who))) for who in (before, after)] == [1, 1]


def test_the_trainer_is_started(client, monkeypatch):
    started = []
    monkeypatch.setattr("slatewise.labeling.retraining.Trainer.start", lambda self: started.append(1) or True)
    client.post("/api/models/train")
    assert started == [1]


@pytest.mark.filterwarnings("ignore:191 of 192 labels are not known")
@pytest.mark.parametrize("format", ["wide", "long", "jsonl", "npz", "svmlight"])
def test_everything_can_be_taken_along(client, format):
    answer(client, client.post("/api/next"), "yes", label=3)
    reply = client.ask("GET", "/api/export", params={"format": format})
    assert reply.status_code == 200
    assert reply.headers["content-disposition"].startswith('attachment; filename="scenes.')
    lost = "191 of 192 labels are not known and count as no; npz keeps them apart"
    assert reply.headers.get("x-lost") == (lost if format == "svmlight" else None)
    if format == "wide":
        rows = list(csv.DictReader(io.StringIO(reply.text)))
        assert rows[0][LABELS[3]] == "1"


def test_a_format_that_cannot_say_it_is_refused(client):
    refused = client.get("/api/export?format=label-studio", 422)  # its tasks are of one kind, these items are not
    assert "expected one kind" in refused["detail"]


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("annotator", {"/api/progress", "/api/models"}),
        ("reviewer", {"/api/progress", "/api/models", "/api/agreement", "/api/review"}),
        ("owner", {"/api/progress", "/api/models", "/api/agreement", "/api/review", "/api/export"}),
    ],
)
def test_roles(path, role, allowed):
    with Project.open(path) as project:
        token = new_token(project, "Zoe", role)
    with LocalClient(path, Site.public(ORIGIN), token) as client:
        for place in ("/api/progress", "/api/models", "/api/agreement", "/api/review", "/api/export"):
            assert client.ask("GET", place).status_code == (200 if place in allowed else 403)
        use = client.ask("POST", "/api/models/use", json={"version": 1})
        assert use.status_code == (200 if role == "owner" else 403)
        assert client.post("/api/next", annotator="Zoe")["annotator"] == "Zoe"
        assert "holder of the token, Zoe" in client.post("/api/next", status=403, annotator="Ann")["detail"]
        if role == "annotator":
            assert {one["name"] for one in client.get("/api/progress")["people"]} <= {"Zoe"}


def test_nobody_serves_others_without_tokens(path):
    with pytest.raises(ValueError, match="expected a token, without which nobody can enter"):
        make_app(path, site=Site.public("https://label.example.org"))


def test_a_second_server_is_refused(path, client):
    with pytest.raises(ProjectError, match="expected a project that no other server serves, found it is served by"):
        make_app(path)


def test_a_full_disk_is_an_error_and_loses_nothing(path, client):
    turn = answer(client, client.post("/api/next"), "yes")
    with Project.open(path) as project:
        before = project.last_act()
    writer = client.page_state.project._database._writer
    writer.execute("PRAGMA query_only = ON")
    body = {"item": 0, "label": 6, "answer": "no", "turn": turn["turn"]}
    refused = client.post("/api/answer", body, 503)
    assert "must not be written to; all earlier answers are saved" in refused["detail"]
    writer.execute("PRAGMA query_only = OFF")
    page_count = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {page_count}")
    try:
        for _ in range(2000):
            reply = client.ask("POST", "/api/answer", json=body | {"turn": None}, params={"annotator": "Ann"})
            if reply.status_code != 200:
                break
        assert reply.status_code == 503
        assert "no room" in reply.json()["detail"]
    finally:
        writer.execute("PRAGMA max_page_count = 1000000000")
    assert client.post("/api/answer", body | {"turn": None})["turn"] > before
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(
    ("route", "broken"),
    [("/api/export", "slatewise.labeling.page.routes.tempfile.mkdtemp"),
     ("/api/models/train", "slatewise.labeling.retraining.models_folder")],
)  # fmt: skip
def test_no_room_for_other_files_is_an_error_too(client, monkeypatch, route, broken):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "some/folder")

    monkeypatch.setattr(broken, full)
    reply = client.ask("POST" if "train" in route else "GET", route, **({"json": {}} if "train" in route else {}))
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
    assert reply.json()["detail"] == "[Errno 28] No space left on device: 'some/folder'"


def test_without_items_the_page_says_so(tmp_path):
    Project.create(tmp_path / "empty.db", ["sea"]).close()
    with LocalClient(tmp_path / "empty.db") as client:
        turn = client.post("/api/next")
        assert (turn["item"], turn["view"], turn["message"]) == (None, None, "This project has no items yet.")
        assert client.get("/api/progress")["items"] == 0
        assert client.get("/api/models")["sees"] == "nothing"
        assert client.get("/api/review")["total"] == 0
        client.post("/api/answer", {"item": 0, "label": 0, "answer": "yes"}, 422)


def test_without_labels_there_is_nothing_to_ask(tmp_path):
    Project.create(tmp_path / "empty.db", [], [Item("a", "text", "A.")]).close()
    with pytest.raises(ValueError, match=r"empty\.db: expected labels to ask for, found none"):
        make_app(tmp_path / "empty.db")


def test_a_project_without_a_model_says_so(tmp_path):
    Project.create(tmp_path / "cold.db", ["sea", "sky"], [Item("a", "text", "A."), Item("b", "text", "B.")]).close()
    with LocalClient(tmp_path / "cold.db") as client:
        view = client.post("/api/next")["view"]
        assert view["question"]["reason"]["text"] == "No model yet, no answers yet"
        assert view["notes"] == [
            "There is no model yet: questions about the labels that were found most often come first."
        ]
        assert view["chance"] is None


def test_every_route_says_what_goes_in_and_out(client):
    schema = client.get("/openapi.json")
    for place, methods in schema["paths"].items():
        for method, route in methods.items():
            assert {"200", "422", "409", "503"} <= set(route["responses"]), (place, method)
            if method == "post":
                assert "requestBody" in route
