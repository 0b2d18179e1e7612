"""The labeling page under load: 10,000 items x 200 labels, 20 people, on the cores that there are.

The server is a process of its own, reached by HTTP as by a browser. First everybody answers once a second, then the
same while a model is trained, then without a pause. A time is from an answer to the reply with the next question, of
the last answer for an item to the next item: what a person waits for.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from threading import Event, Thread

import numpy as np
from numpy.typing import NDArray

from slatewise.cstar.ranker import CStarRanker
from slatewise.datasets import make_label_scenes
from slatewise.datasets.make_scenes import LabelScenes
from slatewise.labeling import Item, ItemData, Plan, Project, keep_model
from slatewise.labeling.store.records import Act, Given
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.label_page import PageClient, PageServer, Turn

N_ITEMS, N_LABELS, N_PEOPLE = 10_000, 200, 20
_N_TRAIN, _N_ANSWERED, _MOST_QUESTIONS = 1000, 500, 10
_BAR = "<= 0.1 s"
_WORDS = ("no", "yes")


def run(quick: bool = False) -> Table:
    """Measure all; ``quick``: a tenth of the items and labels, some seconds each."""
    share, seconds = (10, 4.0) if quick else (1, 40.0)
    scenes = make_label_scenes(
        _N_TRAIN + N_ITEMS // share, N_LABELS // share, n_scenes=12, n_features=32, random_state=0
    )
    with tempfile.TemporaryDirectory() as folder:
        path, start = make_project(Path(folder, "load.db"), scenes), time.perf_counter()
        with PageServer(path) as server:
            people = [_Person(server.address, f"person {number}", scenes.Y[_N_TRAIN:]) for number in range(N_PEOPLE)]
            rows = [Row("from the start of the server to 20 people with an item", time.perf_counter() - start)]
            rows += _rows("once a second", measured(people, seconds, pause=1.0))
            rows.append(Row("memory of the server", server.peak_megabytes(), unit="MB"))
            rows += _while_training(server, people, seconds)
            rows += _rows("without pause", measured(people, seconds / 2, pause=0.0), bar="")
            rows.append(Row("memory of the server, at most", server.peak_megabytes(), unit="MB"))
    cores = len(os.sched_getaffinity(0))
    remark = f"{N_ITEMS // share} items x {N_LABELS // share} labels, {N_PEOPLE} people, {cores} cores with the people"
    return Table("label", rows, remarks=[remark])


def make_project(path: Path, scenes: LabelScenes) -> Path:
    """Make a project with a model, and answers for some items, so that there is something to train from."""
    X, Y = scenes.X[_N_TRAIN:], scenes.Y[_N_TRAIN:]
    names = [f"label {number}" for number in range(Y.shape[1])]
    items = [Item(f"item {number}", "text", f"The text of item {number}.") for number in range(len(X))]
    model = CStarRanker(core=8, C=1.0, random_state=0)
    model.fit(scenes.X[:_N_TRAIN], scenes.Y[:_N_TRAIN], label_names=names)
    with Project.create(path, names, items) as project:
        Plan(retrain_every=0).keep(project)
        ItemData.of(project, X).attach(project)
        who, acts = project.people.number("somebody before"), list[Act]()
        for item in range(min(_N_ANSWERED, len(X) // 2)):
            given = tuple(Given(label, int(value)) for label, value in enumerate(Y[item]))
            acts += [Act("answer", item, who, given), Act("done", item, who)]
        project.record(acts)
        keep_model(project, model, note="made elsewhere")
    return path


class _Person:
    """Answers truly, until the page says that it is enough, or for some questions; then goes on to the next item."""

    def __init__(self, address: str, name: str, truth: NDArray[np.int8]) -> None:
        self._client, self._truth = PageClient(address, name), truth
        self._turn = Turn(self._client.post("/api/next"))
        self.seconds: list[float] = []

    def act(self) -> None:
        """Do the next thing, and note how long the reply takes."""
        turn, view = self._turn, self._turn.body["view"]
        if turn.item is None:
            raise RuntimeError("expected enough items for everybody, found none left")
        if (
            turn.question is None
            or view["enough"]
            or (view["n_questions"] >= _MOST_QUESTIONS and not view["for_calibration"])
        ):
            path, body = "/api/done", turn.done(milliseconds=500)
        else:
            word = _WORDS[int(self._truth[turn.item, turn.question])]
            path, body = "/api/answer", turn.answer(turn.question, word, milliseconds=500)
        reply = self._client.ask("POST", path, body)
        if reply.status != 200:
            raise RuntimeError(f"{path}: {reply.status} {reply.body}")
        self._turn = Turn(reply.body)
        self.seconds.append(reply.seconds)


def measured(people: list[_Person], seconds: float, pause: float, until: Event | None = None) -> _Measured:
    """Let everybody act for some seconds, or until something happens."""
    failed: list[BaseException] = []
    start = time.monotonic()
    end = start + seconds

    def work(person: _Person, offset: float) -> None:
        try:
            due = start + offset
            while time.monotonic() < end and not (until is not None and until.is_set()):
                if pause:
                    time.sleep(max(due - time.monotonic(), 0.0))
                    due += pause
                person.act()
        except BaseException as error:
            failed.append(error)

    for person in people:
        person.seconds.clear()
    threads = [Thread(target=work, args=(person, pause * place / len(people))) for place, person in enumerate(people)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return _Measured([second for person in people for second in person.seconds], time.monotonic() - start)


class _Measured:
    def __init__(self, seconds: list[float], wall: float) -> None:
        self.count, self.wall = len(seconds), wall
        self.median, self.p95, self.most = (float(np.percentile(seconds, share)) for share in (50, 95, 100))


def _rows(what: str, found: _Measured, bar: str = _BAR) -> list[Row]:
    return [
        Row(f"{what}: p95 of answer to next question", found.p95, bar=bar),
        Row(f"{what}: median", found.median),
        Row(f"{what}: longest", found.most),
        Row(f"{what}: answers per second", found.count / found.wall, unit="1/s"),
    ]


def _while_training(server: PageServer, people: list[_Person], most_seconds: float) -> list[Row]:
    """Measure from when a training begins until it has ended and everybody has the new model."""
    owner = PageClient(server.address, "owner")
    versions = len(owner.ask("GET", "/api/models").body["versions"])
    owner.post("/api/models/train")
    trained, started = Event(), time.monotonic()
    took: list[float] = []

    def watch() -> None:
        while True:
            found = owner.ask("GET", "/api/models").body
            if found["trainer"] != "training":
                took.append(time.monotonic() - started)
                if len(found["versions"]) != versions + 1:
                    raise RuntimeError(f"expected a new version, found {found['message']}")
                time.sleep(3.0)  # the new version is loaded meanwhile
                trained.set()
                return
            time.sleep(0.5)

    watching = Thread(target=watch)
    watching.start()
    found = measured(people, 20 * most_seconds, 1.0, trained)
    watching.join()
    return [*_rows("while a model is trained", found), Row("training beside it", took[0])]
