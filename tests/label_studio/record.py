"""Record how a real Label Studio reads what a project writes, and what it exports itself.

Not part of the suite: it needs a running Label Studio, which is large. The recordings are ``*.json`` beside this file,
and ``tests/labeling/exchange/test_label_studio.py`` reads them. To make them again, in an environment of its own::

    pip install label-studio==1.23.2
    LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN=true COLLECT_ANALYTICS=false LATEST_VERSION_CHECK=false \
        label-studio start --no-browser --port 8097 --data-dir SOME-FOLDER \
        --username recorder@example.org --password recording-1 --user-token TOKEN     # 40 characters
    python -m tests.label_studio.record http://127.0.0.1:8097 TOKEN
"""

import json
import sys
import tempfile
import urllib.request
from pathlib import Path

import numpy as np

from slatewise.labeling import Item, Project, export_answers, label_studio_config

HERE = Path(__file__).parent
LABELS = ["sea", "sky, blue", 'a "tree" & <more>', "Straße 👍"]
TEXTS = ["Waves on a beach.", "A street at night.", "Leaves.\nMany of them.", "Nobody has seen this."]


def make_project(path):
    """The project whose export is recorded; the tests make the same one."""
    items = [Item(f"text {number}", "text", text) for number, text in enumerate(TEXTS)]
    project = Project.create(path, LABELS, items)
    ann, bob = project.people.number("Ann"), project.people.number("Bob")
    project.answer(0, 0, 1, ann, milliseconds=1200, probability=0.75)
    project.answer(0, 1, 0, ann, milliseconds=800)
    project.answer(0, 2, -1, ann)
    project.done(0, ann, {3: 0.125})
    project.answer(0, 0, 0, bob)
    project.answer(1, 3, 1, bob, how="volunteered")
    project.done(2, bob, [0, 1])
    project.skip(1, ann)
    return project


def main(url, token):
    """Write the recordings."""

    def call(method, path, body=None):
        request = urllib.request.Request(
            url + path,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Token {token}", "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def new_project(title, config):
        return call("POST", "/api/projects", {"title": title, "label_config": config})["id"]

    def exported(number):
        return call("GET", f"/api/projects/{number}/export?exportType=JSON&download_all_tasks=true")

    with tempfile.TemporaryDirectory() as folder:
        project = make_project(Path(folder, "texts.db"))
        probabilities = np.linspace(0, 1, 16).reshape(4, 4)
        export_answers(project, HERE / "ours.json", probabilities=probabilities)
        config = label_studio_config(project)
        project.close()

    returned = new_project("ours", config)
    taken = call("POST", f"/api/projects/{returned}/import", json.loads((HERE / "ours.json").read_text()))
    print("Label Studio took", taken)
    write("returned.json", exported(returned))

    native = new_project("native", config.replace('"item"', '"text"').replace('"labels"', '"topics"'))
    result = {"from_name": "topics", "to_name": "text", "type": "choices"}
    tasks = [{"data": {"text": text}} for text in TEXTS]
    tasks[0]["predictions"] = [
        {"model_version": "m1", "score": 0.25, "result": [result | {"value": {"choices": ["sea"]}}]},
        {"model_version": "m2", "score": 0.5, "result": [result | {"value": {"choices": ["sea", "sky, blue"]}}]},
    ]
    call("POST", f"/api/projects/{native}/import", tasks)
    numbers = sorted(task["id"] for task in exported(native))
    for number, choices, skipped in ((0, ["sea"], False), (1, LABELS[1:3], False), (2, [], True)):
        answer = [result | {"id": f"made{number}", "value": {"choices": choices}}] if choices else []
        body = {"result": answer, "was_cancelled": skipped, "lead_time": 3.25}
        call("POST", f"/api/tasks/{numbers[number]}/annotations/", body)
    write("native.json", exported(native))
    options = {"serialization_options": {"predictions": {"only_id": False}}}
    snapshot = call("POST", f"/api/projects/{native}/exports/", options)["id"]
    write("snapshot.json", call("GET", f"/api/projects/{native}/exports/{snapshot}/download?exportType=JSON"))
    write("version.json", {"label-studio": call("GET", "/api/version")["release"]})


def write(name, content):
    """Keep a recording."""
    (HERE / name).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
