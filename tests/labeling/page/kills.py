"""Kill the server of the page under people who answer, again and again, and look whether anything is lost or twice.

In the suite 10 times; ``python -m tests.labeling.page.kills --kills 1000`` for more. Four people answer, are done,
skip and undo by HTTP. When the server dies, each sends what got no reply again, word for word, to the next server, as
the page does. Then every act that was acknowledged must be there, once, and none that nobody sent.
"""

import argparse
import http.client
import os
import random
import signal
import tempfile
import time
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import numpy as np

from slatewise.labeling import Item, ItemData, Plan, Project
from slatewise.labeling.page import make_app, serve
from slatewise.web.server import server_config
from slatewise_papers.label_page import PageClient, Turn

N_ITEMS, N_LABELS, N_PEOPLE, FRESH_FILE_AFTER = 60, 12, 4, 50
VALUES = {"yes": 1, "no": 0, "don't know": -1}


class Tally(NamedTuple):
    """What came of it."""

    kills: int
    acknowledged: int
    sent_again: int
    lost: list[str]
    corrupt: list[str]


class Person:
    """Somebody who goes on where the server went away; ``acknowledged`` are acts as the replies number them."""

    def __init__(self, number, seed):
        self.name, self._rng = f"person {number}", random.Random(f"{seed} {number}")
        self.acknowledged, self.sent_again = [], 0
        self._pending = self._turn = None

    def work(self, address):
        """Act until the server dies."""
        try:
            client = PageClient(address, self.name)
            if self._pending is not None:
                self.sent_again += 1
                self._send(client, *self._pending)
            else:
                self._turn = Turn(client.post("/api/next"))
            while True:
                self._send(client, *self._next())
        except (OSError, http.client.HTTPException):
            pass

    def _next(self):
        kinds = ["answer"] * 6 + ["done", "skip", "undo"] if self._turn.item is not None else ["undo"]
        match kind := self._rng.choice(kinds):
            case "answer":
                return kind, self._turn.answer(self._rng.randrange(N_LABELS), self._rng.choice(list(VALUES)))
            case "undo":
                return kind, {"turn": self._turn.body["turn"]}
            case _:
                return kind, self._turn.done()

    def _send(self, client, kind, body):
        self._pending = kind, body
        before = body["turn"]
        self._turn = Turn(client.post(f"/api/{kind}", body))
        self._pending = None
        if self._turn.body["turn"] != before:  # there may be nothing to undo
            self.acknowledged.append(
                (self._turn.body["turn"], kind, body.get("item"), body.get("label"), body.get("answer"))
            )


def kill_servers(folder, kills, seed=0):
    """Kill servers of projects in a folder and count."""
    rng, people, file = random.Random(seed), [], Path()
    total, again, lost, corrupt = 0, 0, [], []
    for number in range(kills):
        if number % FRESH_FILE_AFTER == 0:
            file = make_project(Path(folder, f"{number // FRESH_FILE_AFTER}.db"))
            people = [Person(who, f"{seed} {number}") for who in range(N_PEOPLE)]
        _killed(file, people, rng.random() * 0.15)
        with Project.open(file) as project:
            corrupt += [f"kill {number}: {problem}" for problem in project.problems()]
            lost += [f"kill {number}: {one}" for one in wrong(project, people)]
        if number % FRESH_FILE_AFTER == FRESH_FILE_AFTER - 1 or number == kills - 1:
            total += sum(len(person.acknowledged) for person in people)
            again += sum(person.sent_again for person in people)
    return Tally(kills, total, again, lost, corrupt)


def make_project(file):
    items = [Item(f"item {number}", "text", "x") for number in range(N_ITEMS)]
    with Project.create(file, [f"label {number}" for number in range(N_LABELS)], items) as project:
        Plan(overlap=N_PEOPLE, retrain_every=0, list_length=4).keep(project)
        ItemData.of(project, np.random.default_rng(0).normal(size=(N_ITEMS, N_LABELS)), "log-odds").attach(project)
    return file


def _killed(file, people, delay):
    """Start a server, let people act, and kill it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            serve(file, port=0, ready=lambda address: os.write(writing, f"{address}\n".encode()))
        finally:
            os._exit(1)
    os.close(writing)
    address = os.read(reading, 100).decode().strip()
    threads = [Thread(target=person.work, args=(address,)) for person in people]
    for thread in threads:
        thread.start()
    acts = [len(person.acknowledged) for person in people]
    while [len(person.acknowledged) for person in people] == acts and threads[0].is_alive():
        time.sleep(0.002)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for thread in threads:
        thread.join()
    os.close(reading)


def wrong(project, people):
    """Return what is not there as it was acknowledged, and what is there more often than it was sent."""
    numbers = {person.name: person.number for person in project.people.all()}
    rows = project._database.rows("SELECT number, kind, item, annotator FROM acts")
    acts = {number: (kind, item, who) for number, kind, item, who in rows}
    values = {
        answer.act: (answer.label, answer.value) for answer in project.answers(every=True) if answer.how != "closed"
    }
    for person in people:
        who = numbers.get(person.name)
        for number, kind, item, label, word in person.acknowledged:
            there = acts.get(number)
            right = there is not None and there[0] == kind and there[2] == who and item in (None, there[1])
            if not right or (kind == "answer" and values.get(number) != (label, VALUES[word])):
                yield f"{person.name}: {(number, kind, item, label, word)} is {there}"
        own = {number for number, (_, _, whose) in acts.items() if whose == who}
        extra = own - {number for number, *_ in person.acknowledged}
        if len(extra) > (person._pending is not None):  # what got no reply may be there, once
            yield f"{person.name}: {len(extra)} acts that were never acknowledged"


def warm_up(folder):
    """Import and compile here what every server needs: those that are forked have it then."""

    app = make_app(make_project(Path(folder, "warm.db")))
    server_config(app, "127.0.0.1", 0).load()
    app._app.state.page_state.close()


def main():
    """Kill as often as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        warm_up(folder)
        tally = kill_servers(folder, arguments.kills, arguments.seed)
    print(
        f"{tally.kills} kills, {tally.acknowledged} acknowledged acts, {tally.sent_again} sent again, "
        f"{len(tally.lost)} lost or twice, {len(tally.corrupt)} corrupt files"
    )
    print(*tally.lost, *tally.corrupt, sep="\n")
    return bool(tally.lost or tally.corrupt)


if __name__ == "__main__":
    raise SystemExit(main())
