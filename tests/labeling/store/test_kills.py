"""Nothing that was acknowledged is lost when the process that writes is killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.labeling.store.kills import missing


@pytest.mark.skipif(os.name != "posix", reason="processes are forked and killed as POSIX does")
def test_twenty_kills_lose_nothing():
    """In a process of its own: what forks should have loaded little and started no thread."""
    command = [sys.executable, "-m", "tests.labeling.store.kills", "--kills", "20", "--seed", "1"]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("20 kills, ")
    assert "0 lost, 0 corrupt files" in done.stdout
    assert int(done.stdout.split()[2]) >= 20


def test_a_loss_would_be_seen(project, ann):
    answer, done = project.answer(0, 1, 1, ann), project.done(0, ann)
    right = [(0, answer, 0, 1, 1), (1, done, 0, 0, 0)]
    wrong = [(0, answer, 0, 1, 0), (0, 99, 0, 1, 1), (1, answer, 0, 0, 0), (2, done, 0, 0, 0)]
    assert list(missing(project, right + wrong)) == wrong
