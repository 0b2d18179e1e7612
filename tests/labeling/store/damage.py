"""Damage the file of a project, call everything, and look whether anything but one plain error comes out.

In the suite some damage of every column of every table; ``python -m tests.labeling.store.damage --cases 2000`` for
more, half of them flipped bytes. A call may succeed, since not all damage differs from something that was meant,
raise a ProjectError, or raise a ValueError that says what it expected: the file may now say so. A command may end with
exit code 0, or with 2 and one line.
"""

import argparse
import contextlib
import io
import random
import re
import shutil
import sqlite3
import tempfile
import warnings
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np

from slatewise.cli.main import main as command
from slatewise.core.errors import ProjectError
from slatewise.labeling import (
    Agreement,
    Item,
    ItemData,
    Plan,
    ProgressReport,
    Project,
    Quality,
    Session,
    export_answers,
    label_studio_config,
    qualities,
)
from slatewise.labeling.exchange.formats import FORMATS

LABELS = ("sea", "sky", "tree")
VALUES = (
    *(None, -1, 0, 1, 2, 77, 2**40, 2**63 - 1, 1.5, float("inf"), "", "text", "7", "a\x00b", "null", "[1]", '{"a": 1}'),
    *("[{}]", '[{"version": 1}]', '{"file": "x", "kind": 3}', "[" * 5000, b"\xff\x00", b"7", b""),
)
_FEATURES = "project.features.npz"
LIMIT_BYTES = 1 << 32
"""Beyond what the process has when a case begins: numbers that were altered must not make room."""


def make_project(folder):
    """Make a project with something in every table, in a folder of its own; return the file."""
    file = Path(folder, "project.db")
    (Path(folder) / "files").mkdir()
    (Path(folder) / "files" / "a.svg").write_text("<svg/>")
    items = [Item("a", "image", "a.svg", Path(folder) / "files"), *(Item(f"text {n}", "text", "Waves.") for n in "bcd")]
    with Project.create(file, LABELS, items) as project:
        Plan(share=0.5, retrain_every=0).keep(project)
        ItemData.of(project, np.arange(8.0).reshape(4, 2)).attach(project)
        ann, bob = (project.people.number(name) for name in ("Ann", "Bob"))
        version = project.models.add("models/none.safetensors", note="first", last_act=0)
        project.models.use(version)
        project.models.use(None)
        project.settings.set("quality", [Quality(version, 3, 0.5, 0.5, 0.0, 2.0).as_json()])
        project.labels.rename("tree", "wood")
        project.tokens.revoke(project.tokens.add("0" * 64, "annotator", ann))
        project.tokens.add("1" * 64, "owner", bob)
        for label, value in enumerate((1, 0, -1)):
            project.answer(0, label, value, ann, milliseconds=900, probability=0.5)
            project.answer(1, label, value, bob, how="reviewed", model=version)
        project.answer(0, 0, 0, bob)
        project.done(0, ann, [0, 1, 2])
        project.skip(2, bob)
        project.answer(3, 0, 1, ann)
        project.undo(ann)
        project.leases.claim(3, bob)
    return file


def columns(file):
    """Return every column of every table, with how many rows the table has."""
    with closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        counts = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}
        names = {table: connection.execute(f"PRAGMA table_info({table})").fetchall() for table in tables}
        return [(table, row[1], counts[table]) for table in tables for row in names[table]]


def put(file, table, column, row, value):
    """Put a value into a place whatever the rules of the tables; return whether that can be done at all."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        kept = connection.execute("SELECT rowid, sql FROM sqlite_master").fetchall()
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'IS NOT NULL', 'NOTNULL')")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'BEFORE UPDATE', 'BEFORE DELETE')")
        connection.execute("PRAGMA schema_version = 1000")
    try:
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            keys = [one[1] for one in connection.execute(f"PRAGMA table_info({table})") if one[5]]
            key = connection.execute(f"SELECT {', '.join(keys)} FROM {table} LIMIT 1 OFFSET {row}").fetchone()
            where = " AND ".join(f"{name} = ?" for name in keys)
            changed = connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value, *key)).rowcount
    except sqlite3.IntegrityError:
        changed = 0  # a key that another row has, or no number
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.executemany("UPDATE sqlite_master SET sql = ?2 WHERE rowid = ?1", kept)
        connection.execute("PRAGMA schema_version = 2000")
    return changed == 1


def flip(file, rng):
    """Change some bytes, most often inside of what is used."""
    data = bytearray(file.read_bytes())
    used = [at for at, byte in enumerate(data) if byte]
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.choice(used) if rng.random() < 0.8 else rng.randrange(len(data))
        data[at] = rng.choice((data[at] ^ (1 << rng.randrange(8)), 0, 255, rng.randrange(256)))
    file.write_bytes(data)


def reads(folder):
    """Return every call that reads, by name."""
    out = Path(folder, "out")
    return {
        "items": lambda project: (len(project.items), project.items.all(), project.items.folders()),
        "item": lambda project: [project.items[number] for number in range(min(len(project.items), 5))],
        "item paths": lambda project: [item.path for item in project.items.all() if item.kind in ("image", "audio")],
        "item number": lambda project: project.items.number("text b"),
        "labels": lambda project: (len(project.labels), project.labels.names(), project.labels.by_name()),
        "label number": lambda project: (project.labels.number("sea"), project.labels.number("tree")),
        "people": lambda project: project.people.all(),
        "tokens": lambda project: project.tokens.all(),
        "models": lambda project: (project.models.all(), project.models.current()),
        "free": lambda project: (project.leases.free(1), project.leases.free(2, 2)),
        "held": lambda project: project.leases.held(2),
        "audit": lambda project: project.audit.all(),
        "settings": lambda project: [project.settings.get(name) for name in ("plan", "item data", "quality", "x")],
        "answers": lambda project: (list(project.answers()), list(project.answers(every=True))),
        "answers of": lambda project: (list(project.answers(item=0)), list(project.answers(annotator=1))),
        "marks": lambda project: project.marks(),
        "state": lambda project: [project.state(item, who) for item in range(4) for who in (1, 2)],
        "known": lambda project: project.known(),
        "votes": lambda project: (project.votes(), project.votes(0)),
        "last act": lambda project: (project.last_act(), project.last_act(1), project.n_acts(0)),
        "acts after": lambda project: (project.acts_after(0), project.recorded_after(0, 1, 99)),
        "problems": lambda project: project.problems(),
        "plan": Plan.of,
        "progress": lambda project: str(ProgressReport.of(project)),
        "agreement": Agreement.of,
        "qualities": qualities,
        "item data": ItemData.seen,
        "interface": label_studio_config,
        **{f"export {name}": partial(_export, out, name) for name in FORMATS},
        "backup": lambda project: project.backup(out),
    }


def _export(out, format, project):
    export_answers(project, out, format, X=np.ones((4, 1)) if format in ("npz", "svmlight") else None)


def writes():
    """Return every call that writes, by name."""
    return {
        "answer": lambda project: project.answer(0, 0, 1, 1),
        "done": lambda project: project.done(1, 2, [0, 1, 2]),
        "skip": lambda project: project.skip(2, 1),
        "undo": lambda project: (project.undo(1), project.undo(2, 1), project.undo(2)),
        "claim": lambda project: project.leases.claim(2, 1, instead_of=3),
        "release": lambda project: project.leases.release(3, 2),
        "drop impossible": lambda project: project.leases.drop_impossible(),
        "new person": lambda project: (project.people.number("Cy"), project.people.number("Ann")),
        "add": lambda project: (project.items.add([Item("z", "text", "x")]), project.labels.add(["new"])),
        "rename": lambda project: project.labels.rename("sea", "ocean"),
        "new token": lambda project: (project.tokens.add("2" * 64, "owner", 1), project.tokens.revoke(2)),
        "use": lambda project: (project.models.use(1), project.models.adopt([1], "x")),
        "set": lambda project: (project.settings.set("plan", {}), project.audit.add("x", 1)),
        "session": _label,
        "forget": lambda project: project.people.forget(1),
    }


def _label(project):
    session = Session(project, "Bob")
    for _ in range(3):
        if session.next_item() is None:
            break
        session.answer(0, "yes")
        session.undo()
        session.done()


COMMANDS = (
    *("status", "status --json", "audit", "token list", "token make Cy", "token revoke 1", "rename sea ocean"),
    *("export wide.csv", "export long.csv --format long", "export a.jsonl", "export a.json", "export a.npz"),
    *("backup b.db", "import old.csv", "forget Ann"),
)


def faults(file, folder):
    """Call everything on copies of a damaged file; return what came out that must not."""
    found = []
    work = Path(folder, "work", "project.db")
    work.parent.mkdir(exist_ok=True)
    shutil.copy(file.with_name(_FEATURES), work.parent)
    _fresh(file, work)
    found += _faults(work, {"readonly": True}, reads(folder))
    for name, call in writes().items():
        _fresh(file, work)
        found += _faults(work, {"serve": True}, {name: call})
    for words in COMMANDS:
        _fresh(file, work)
        found += [f"label {words}: {fault}" for fault in _fault_of_command(work, folder, words)]
    return found


def _fresh(file, work):
    for ending in ("", "-wal", "-shm", ".lock"):
        work.with_name(work.name + ending).unlink(missing_ok=True)
    shutil.copy(file, work)


def _faults(file, options, calls):
    opened = []
    found = [f"open: {fault}" for fault in _fault(lambda: opened.append(Project.open(file, **options)))]
    for project in opened:
        with project:
            for name, call in calls.items():
                found += [f"{name}: {fault}" for fault in _fault(partial(call, project))]
    return found


def _fault(call):
    try:
        call()
    except ProjectError as error:
        return [] if "\n" not in str(error) else [f"more than a line: {error}"]
    except (ValueError, IndexError) as error:
        is_clear = type(error) is not UnicodeDecodeError and re.match(
            r"[^\n]*\bexpected [^\n]+, found [^\n]*$", str(error)
        )
        return [] if is_clear else [f"raised {error!r:.200}"]
    except Exception as error:  # whatever else comes out is what the damage is for
        return [f"raised {error!r:.200}"]
    return []


def _fault_of_command(file, folder, words):
    name, *rest = words.split()
    rest = [str(Path(folder, word)) if "." in word else word for word in rest]
    place = [rest.pop(0)] if name == "token" else []
    (Path(folder) / "old.csv").write_text("item,sea,sky\na,1,0\ntext b,,1\n")
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            command(["label", name, *place, str(file), *rest])
    except SystemExit as stop:
        code = stop.code or 0
    except Exception as error:
        return [f"raised {error!r:.200}"]
    right = (code == 0 and not err.getvalue()) or (code == 2 and err.getvalue().count("\n") == 1)
    return [] if right else [f"exit code {code} and {err.getvalue()!r:.200}"]


def attack(folder, cases, seed):
    """Damage a project again and again; return how often, and what came out that must not."""
    sound = make_project(folder)
    places, done, found = columns(sound), 0, []
    damaged = Path(folder, "damaged", "project.db")
    damaged.parent.mkdir()
    shutil.copy(sound.with_name(_FEATURES), damaged.parent)
    for number in cases:
        rng = random.Random(f"{seed}/{number}")
        shutil.copy(sound, damaged)
        if number % 2:
            flip(damaged, rng)
            what = "flipped bytes"
        else:
            table, column, count = places[number // 2 % len(places)]
            row, value = rng.randrange(max(count, 1)), rng.choice(VALUES)
            what = f"{table}.{column} of row {row} = {value!r:.30}"
            if not count or not put(damaged, table, column, row, value):
                continue
        done += 1
        found += [f"case {number} of seed {seed}, {what}: {fault}" for fault in limited(faults, damaged, folder)]
    return done, found


def limited(call, *arguments):
    """Call with so much memory, where the system can limit it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not Path("/proc/self/statm").exists():
            return call(*arguments)
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + LIMIT_BYTES, before[1]))
        try:
            return call(*arguments)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.labeling.store.damage", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        done, found = attack(folder, range(arguments.first, arguments.first + arguments.cases), arguments.seed)
    for fault in found:
        print(fault)
    print(f"{done} damaged projects, {len(found)} faults")
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
