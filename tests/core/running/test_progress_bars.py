"""What a person sees of a fit that lasts, in a pseudo terminal; nothing in a pipe."""

import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo terminals")

FITS = """
import os, sys, time
from slatewise import MarginRanker, datasets, set_progress

made = datasets.make_queries(n_queries=12, random_state=0)

def slow(round_):
    time.sleep(0.3)

def fit():
    MarginRanker(C=3.0, max_iter=8, tol=1e-9).fit(made.X, made.y, qid=made.qid, callbacks=[slow])
    sys.stderr.flush()
    os.write(2, b"\\0")

fit()
set_progress(False)
fit()
set_progress(True)
os.environ["SLATEWISE_QUIET"] = "1"
fit()
os.environ["SLATEWISE_QUIET"] = ""
os.dup2({pipe}, 2)
fit()
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Fit in one process, with a pseudo terminal as stderr and then with a pipe; return what each fit printed there."""
    screen, end = pty.openpty()
    out, into = os.pipe()
    with (tmp_path_factory.mktemp("bars") / "stdout").open("w+b") as stdout:
        child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", FITS.format(pipe=into)],
            stdout=stdout,
            stderr=end,
            pass_fds=[into],
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "SLATEWISE_QUIET": ""},
        )
        os.close(end)
        os.close(into)
        texts = [read_all(screen), read_all(out)]
        assert child.wait() == 0, texts
        assert stdout.tell() == 0
    at_terminal, in_pipe = (text.removesuffix("\0").split("\0") for text in texts)
    return dict(zip(("shown", "switched off", "quiet environment", "pipe"), at_terminal + in_pipe, strict=True))


def read_all(file):
    """Read until the other end is closed, which a pseudo terminal reports as an error."""
    found = b""
    with suppress(OSError):
        while part := os.read(file, 1 << 16):
            found += part
    os.close(file)
    return found.decode()


def test_a_fit_that_lasts_shows_what_it_is_at(printed):
    assert "MarginRanker: round" in printed["shown"]
    assert "gap" in printed["shown"]


@pytest.mark.parametrize("how", ["switched off", "quiet environment"])
def test_it_can_be_switched_off(printed, how):
    assert printed[how] == ""


def test_nothing_goes_into_a_pipe(printed):
    assert printed["pipe"] == ""
