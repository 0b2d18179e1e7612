"""Nothing that was acknowledged is lost, and nothing is recorded twice, when the server of the page is killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.labeling.page.kills import N_PEOPLE, Person, make_project, wrong

from slatewise.labeling import Project


@pytest.mark.skipif(os.name != "posix", reason="processes are forked and killed as POSIX does")
def test_ten_kills_lose_nothing():
    """In a process of its own: what forks should have started no thread."""
    command = [sys.executable, "-m", "tests.labeling.page.kills", "--kills", "10", "--seed", "1"]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("10 kills, ")
    assert "0 lost or twice, 0 corrupt files" in done.stdout
    assert int(done.stdout.split()[2]) >= 10


def test_a_loss_and_a_double_would_be_seen(tmp_path):
    people = [Person(who, 0) for who in range(N_PEOPLE)]
    with Project.open(make_project(tmp_path / "a.db")) as project:
        ann = project.people.number(people[0].name)
        first, second = project.answer(0, 3, 1, ann), project.done(0, ann)
        people[0].acknowledged = [(first, "answer", 0, 3, "yes"), (second, "done", 0, None, None)]
        assert list(wrong(project, people)) == []
        people[0].acknowledged[0] = (first, "answer", 0, 3, "no")
        assert len(list(wrong(project, people))) == 1
        people[0].acknowledged[0] = (first, "answer", 0, 3, "yes")
        project.done(0, ann)
        assert list(wrong(project, people)) == ["person 0: 1 acts that were never acknowledged"]
        people[0].acknowledged.append((99, "skip", 1, None, None))
        assert any("(99, 'skip', 1, None, None) is None" in one for one in wrong(project, people))
