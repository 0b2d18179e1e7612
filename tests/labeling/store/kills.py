"""Kill a process that writes answers, again and again, and look whether anything it acknowledged is lost.

In the suite 20 times; ``python -m tests.labeling.store.kills --kills 1000`` for more. A writer opens the project as
the server does and runs three threads: two answer, one is done with items and undoes. What a method returned is
acknowledged through a pipe. A kill cannot lose what the system holds, so it tests transactions and recovery; that the
disk is flushed is another test, of ``PRAGMA synchronous``.
"""

import argparse
import os
import random
import signal
import struct
import tempfile
import time
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from slatewise.labeling import Item, Project

N_ITEMS, N_LABELS, FRESH_FILE_AFTER = 50, 20, 50
_ACK = struct.Struct("<qqqqq")
_ANSWER, _DONE, _UNDO = range(3)


class Tally(NamedTuple):
    """What came of it."""

    kills: int
    acknowledged: int
    lost: list[str]
    corrupt: list[str]


def kill_writers(folder, kills, seed=0):
    """Kill writers of projects in a folder and count."""
    rng = random.Random(seed)
    total, lost, corrupt = 0, [], []
    for number in range(kills):
        file = Path(folder, f"{number // FRESH_FILE_AFTER}.db")
        if number % FRESH_FILE_AFTER == 0:
            items = [Item(f"item {item}", "text", "x") for item in range(N_ITEMS)]
            with Project.create(file, [f"label {label}" for label in range(N_LABELS)], items) as project:
                for who in range(3):
                    project.people.number(f"person {who}")
        acknowledged = _killed(file, rng)
        total += len(acknowledged)
        with Project.open(file, serve=True) as project:  # the lock of the dead server is gone
            corrupt += [f"kill {number}: {problem}" for problem in project.problems()]
            lost += [f"kill {number}: {one}" for one in missing(project, acknowledged)]
    return Tally(kills, total, lost, corrupt)


def _killed(file, rng):
    """Start a writer, kill it a moment after its first acknowledgement, and return all of them."""
    seed, delay, checkpoint = rng.random(), rng.random() * 0.05, rng.choice([2, 20, 1000])
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            _write(file, writing, seed, checkpoint)
        finally:
            os._exit(1)
    os.close(writing)
    received = os.read(reading, _ACK.size)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reading, 1 << 16):
        received += more
    os.close(reading)
    return list(_ACK.iter_unpack(received))


def _write(file, pipe, seed, checkpoint):
    project = Project.open(file, serve=True)
    # Small, so that many kills come while the log is moved into the file.
    project._database._writer.execute(f"PRAGMA wal_autocheckpoint = {checkpoint}")

    def answer(who):
        rng = random.Random(f"{seed} {who}")
        while True:
            item, label, value = rng.randrange(N_ITEMS), rng.randrange(N_LABELS), rng.randrange(-1, 2)
            act = project.answer(item, label, value, who)
            os.write(pipe, _ACK.pack(_ANSWER, act, item, label, value))

    def be_done(who):
        rng = random.Random(f"{seed} {who}")
        while True:
            item = rng.randrange(N_ITEMS)
            os.write(pipe, _ACK.pack(_DONE, project.done(item, who, range(N_LABELS)), item, 0, 0))
            undone = project.undo(who)
            os.write(pipe, _ACK.pack(_UNDO, undone.act, undone.item, 0, 0))

    threads = [Thread(target=answer, args=(1,)), Thread(target=answer, args=(2,)), Thread(target=be_done, args=(3,))]
    for thread in threads:
        thread.start()
    threads[0].join()


def missing(project, acknowledged):
    """Return what is not there as it was acknowledged."""
    there = {answer.act: answer for answer in project.answers(every=True)}
    undone = {act for (act,) in project._database.rows("SELECT undoes FROM acts WHERE undoes IS NOT NULL")}
    acts = {act: (kind, item) for act, kind, item in project._database.rows("SELECT number, kind, item FROM acts")}
    for what, act, item, label, value in acknowledged:
        answer = there.get(act)
        if what == _ANSWER:
            right = answer is not None and (answer.item, answer.label, answer.value) == (item, label, value)
        else:
            right = acts.get(act) == ("done", item) and (what == _DONE or act in undone)
        if not right:
            yield (what, act, item, label, value)


def main():
    """Kill as often as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tally = kill_writers(folder, arguments.kills, arguments.seed)
    print(
        f"{tally.kills} kills, {tally.acknowledged} acknowledged acts, "
        f"{len(tally.lost)} lost, {len(tally.corrupt)} corrupt files"
    )
    print(*tally.lost, *tally.corrupt, sep="\n")
    return bool(tally.lost or tally.corrupt)


if __name__ == "__main__":
    raise SystemExit(main())
