"""A small project of texts, copied anew for every test: to make one flushes the disk many times."""

import shutil

import pytest

from slatewise.labeling import Item, Project

LABELS = ["sea", "sky", "tree"]


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    file = tmp_path_factory.mktemp("made") / "tags.db"
    items = [Item(f"text {number}", "text", "Waves.\nAnd sand.") for number in range(4)]
    with Project.create(file, LABELS, items) as project:
        assert [project.people.number(name) for name in ("Ann", "Bob")] == [1, 2]
    return file


@pytest.fixture
def project(tmp_path, made):
    shutil.copy(made, tmp_path / "tags.db")
    with Project.open(tmp_path / "tags.db") as opened:
        yield opened


@pytest.fixture
def ann(project):
    return project.people.number("Ann")


@pytest.fixture
def bob(project):
    return project.people.number("Bob")
