"""A project with many kinds of answers, and an empty one with the same items and labels to read them into."""

import shutil

import pytest

from slatewise.labeling import Item, Project

LABELS = ["sea", "sky, blue", 'a "tree"', "Straße 👍"]
IDS = ["a.jpg", "b, c", 'd"e', "item"]


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("made") / "empty.db"
    Project.create(file, LABELS, [Item(name, "text", f"text of\n{name}") for name in IDS]).close()
    return file


@pytest.fixture
def make(empty_file, tmp_path):
    """Return new empty projects."""
    opened = []

    def new():
        file = tmp_path / f"{len(opened)}.db"
        shutil.copy(empty_file, file)
        opened.append(Project.open(file))
        opened[-1]._database._writer.execute("PRAGMA synchronous = OFF")
        return opened[-1]

    yield new
    for project in opened:
        project.close()


@pytest.fixture
def project(make):
    """Two people, two versions of a model, marks, an undo, a dispute."""
    made = make()
    ann, bob = made.people.number("Ann"), made.people.number("Bob, the second")
    first, second = made.models.add("1.safetensors"), made.models.add("2.safetensors")
    made.answer(0, 0, 1, ann, milliseconds=900, model=first, probability=0.1 + 0.2)
    made.answer(0, 1, 0, ann, milliseconds=0)
    made.answer(0, 2, -1, ann)
    made.answer(0, 3, 1, ann, how="volunteered", model=second, probability=1.0)
    made.done(0, ann, {0: 0.9, 1: 0.0, 3: 0.25}, milliseconds=1234, model=second)
    made.answer(0, 0, 0, bob, how="reviewed")
    made.answer(1, 1, 1, bob)
    made.undo(bob)
    made.skip(1, bob, milliseconds=7)
    made.done(2, bob, [0, 1, 2])
    made.answer(2, 1, 1, bob, how="volunteered")
    return made
