"""What a person sees of a fit that lasts, in a pseudo terminal; nothing in a pipe."""

import os
import pty
import subprocess
import sys

import pytest

FIT = """
import sys, time
import numpy as np
import slatewise
from slatewise import MarginRanker, datasets
{before}
made = datasets.make_queries(n_queries=12, random_state=0)
def slow(round_):
    time.sleep(0.3)
MarginRanker(C=3.0, max_iter=8, tol=1e-9).fit(made.X, made.y, qid=made.qid, callbacks=[slow])
"""


def at_a_terminal(code, **environment):
    """Run Python with a pseudo terminal as stderr; return what it printed there."""
    screen, end = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code],
        stderr=end,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "SLATEWISE_QUIET": "", **environment},
    )
    os.close(end)
    printed = b""
    while True:
        try:
            part = os.read(screen, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        printed += part
    os.close(screen)
    assert child.wait() == 0
    return printed.decode()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo terminals")
def test_a_fit_that_lasts_shows_what_it_is_at():
    printed = at_a_terminal(FIT.format(before=""))
    assert "MarginRanker: round" in printed
    assert "gap" in printed


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo terminals")
@pytest.mark.parametrize("before", ["slatewise.set_progress(False)", "import os; os.environ['SLATEWISE_QUIET'] = '1'"])
def test_it_can_be_switched_off(before):
    assert at_a_terminal(FIT.format(before=before)) == ""


def test_nothing_goes_into_a_pipe():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIT.format(before="")], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
